"""The section of estimators held against the exact gradient; see `benchmarks.figures`."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable

from benchmarks.figures_records import ROOT, table
from treelax.lab.analysis.gradients import MEASURES, SCORES, SHORT, Record, short_table

FOLDER = "results/gradients"
# whose estimates may all be 0, and at which of their settings
ZEROS = {
    "I-MLE": (0.1, 1, 10),
    "SparseMAP": (0.2, 1, 2),
    "perturbed Gaussian (8)": (0.1, 0.5, 1),
    "RLOO": (2, 8),
}


def rows() -> list[Record]:
    """The rows on record, as they were measured."""
    with (ROOT / FOLDER / "gradients.csv").open(newline="", encoding="utf-8") as file:
        found: list[Record] = list(csv.DictReader(file))
    for row in found:
        row |= {name: float(row[name]) for name in MEASURES}
        row |= {"value": float(row["value"]) if row["value"] else None, "draws": int(row["draws"])}
    return found


def gradients() -> str:
    """Best settings, the bias of unbiased estimators, and who has estimates of 0."""
    found = rows()
    tables = [
        table(columns, lines)
        for scores in SCORES
        for columns, lines, *_ in [short_table(found, scores)]
    ]
    ratios = [
        row["bias"] * math.sqrt(row["draws"]) / row["deviation"]
        for row in found
        if row["estimator"] in ("RLOO", "REINFORCE")
    ]
    zeros = []
    for name, values in ZEROS.items():
        own = {
            row["value"]: row
            for row in found
            if (row["estimator"], row["scores"], row["loss"]) == (name, "trained", "network")
        }
        shares = ", ".join(f"{100 * own[value]['zeros']:.0f} % at {value:g}" for value in values)
        zeros.append(f"{name} {shares} ({own[values[0]]['setting']})")
    first = found[0]
    return "\n\n".join(
        [
            *tables,
            f"{SHORT} Projective trees over {first['words']} words, {first['draws']:,} estimates, means "
            f"over {first['seeds']} draws of scores and loss. `treelax table gradients` on a "
            f"{first['device']}, torch {first['torch']}; [all measures]({FOLDER}/gradients.md), "
            f"[all settings]({FOLDER}/gradients.csv), "
            f"[non-projective trees]({FOLDER}/nonprojective/gradients.md).",
            "The bias of REINFORCE and RLOO in all panels is "
            f"{min(ratios):.1f} to {max(ratios):.1f} times what chance gives an unbiased estimator. "
            f"Estimates that are 0, trained scores and network loss: {'; '.join(zeros)}.",
        ]
    )


GRADIENT_SECTIONS: dict[str, Callable[[], str]] = {"gradients": gradients}
