"""The paper's table 1 with our runs beside it, and appendix C's curves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from treelax.analysis.tables import spread
from treelax.training.metrics import read_metrics
from treelax.training.run import Run


@dataclass(frozen=True)
class Row:
    """A row of the table: a preset, and what the paper has in its place.

    Attributes:
        preset: its name.
        label: what it is, in words.
        paper: accuracy and attachment there, None if it has no such row.
    """

    preset: str
    label: str
    paper: tuple[float, float] | None = None


# accuracy and attachment as the paper prints them (table 1; gold trees in the text of section 5)
ROWS = (
    Row("paper-zero", "paper's recipe, G = 0, forward relaxed", (98.1, 83.2)),
    Row("paper-zero-st", "paper's recipe, G = 0, straight-through", (70.8, 33.9)),
    Row("paper-mc", "paper's recipe, MC, forward relaxed", (99.6, 99.7)),
    Row("paper-mc-st", "paper's recipe, MC, straight-through", (77.0, 83.2)),
    Row("paper-mc-all", "paper's recipe, MC, forward relaxed, loss on all tokens", (99.6, 99.7)),
    Row("balanced-zero", "balanced recipe, G = 0, forward relaxed", (98.1, 83.2)),
    Row("balanced-zero-st", "balanced recipe, G = 0, straight-through", (70.8, 33.9)),
    Row("balanced-mc", "balanced recipe, MC, forward relaxed", (99.6, 99.7)),
    Row("balanced-mc-st", "balanced recipe, MC, straight-through", (77.0, 83.2)),
    Row("balanced-entropy", "balanced recipe, MC, entropy relaxation"),
    Row("balanced-heads", "balanced recipe, MC, head selection (no tree)"),
    Row("chain", "left-to-right chain"),
    Row("gold", "gold trees", (100.0, 100.0)),
)
# presets of other tables, if their runs are asked for
OTHERS = (
    Row("small", "balanced recipe, MC, forward relaxed, small layers"),
    Row("paulus", "balanced recipe, MC, forward relaxed"),
)
COLUMNS = (
    "preset",
    "seed",
    "max_length",
    "operator_accuracy",
    "attachment",
    "exact_trees",
    "token_accuracy",
    "soft_operator_accuracy",
    "operator_accuracy_50",
    "attachment_50",
    "best_epoch",
    "epochs",
    "seconds",
    "device",
)


def record(result: dict[str, Any]) -> dict[str, Any]:
    """One run's line of the CSV, from its ``test.json``.

    Args:
        result: what `treelax.analysis.listops_results.read_result` returns.

    Returns:
        A value for each of `COLUMNS`; ``..._50`` are over expressions of at most 50 tokens.
    """
    test = result["test"]
    short = [
        row for row in test["by_length"] if row["longest"] is not None and row["longest"] <= 50
    ]
    return {
        **{key: result[key] for key in ("preset", "seed", "max_length", "best_epoch", "epochs")},
        # rounded here, once, so that all that is made from the records agrees
        **{key: round(test[key], 3) for key in COLUMNS if key in test},
        "operator_accuracy_50": round(_weighted(short, "operator_accuracy", "operators"), 3),
        "attachment_50": round(_weighted(short, "attachment", "tokens"), 3),
        "seconds": round(result["seconds"], 1),
        "device": result["device"],
    }


def table_rows(records: Sequence[dict[str, Any]]) -> list[list[str]]:
    """Rows for `HEADINGS`: the paper, our mean and spread, every seed.

    Args:
        records: of `record`, in any order.

    Returns:
        The cells: first the presets of `ROWS` and `OTHERS` in their order, then any others.
    """
    rows = []
    known = {row.preset for row in (*ROWS, *OTHERS)}
    others = dict.fromkeys(r["preset"] for r in records if r["preset"] not in known)
    for row in (*ROWS, *OTHERS, *(Row(preset, preset) for preset in others)):
        own = sorted((r for r in records if r["preset"] == row.preset), key=lambda r: r["seed"])
        if own:
            rows.append(
                [
                    row.label,
                    "–" if row.paper is None else f"{row.paper[0]:.1f} / {row.paper[1]:.1f}",
                    str(len(own)),
                    spread([r["operator_accuracy"] for r in own]),
                    spread([r["attachment"] for r in own]),
                    spread([r["exact_trees"] for r in own]),
                    spread([r["soft_operator_accuracy"] for r in own]),
                    spread([r["operator_accuracy_50"] for r in own]),
                    spread([r["attachment_50"] for r in own]),
                    ", ".join(f"{r['operator_accuracy']:.1f}/{r['attachment']:.1f}" for r in own),
                ]
            )
    return rows


def not_run(presets: Iterable[str]) -> list[str]:
    """The labels of `ROWS` that have no run among these presets.

    Args:
        presets: of the runs there are.

    Returns:
        The labels, in the order of the table.

    Example:
        >>> not_run(row.preset for row in ROWS[1:])
        ["paper's recipe, G = 0, forward relaxed"]
    """
    there = set(presets)
    return [row.label for row in ROWS if row.preset not in there]


HEADINGS = (
    "trees",
    "paper acc / att",
    "seeds",
    "accuracy",
    "attachment",
    "exact trees",
    "accuracy, soft trees",
    "accuracy ≤ 50 tokens",
    "attachment ≤ 50",
    "every seed, acc/att",
)
ON_SCREEN = (0, 1, 2, 3, 4)  # columns that fit a terminal; the file has all


def curves(runs: Sequence[Run]) -> dict[str, dict[int, list[dict[str, Any]]]]:
    """The rows of ``metrics.jsonl`` of every run, by preset and seed.

    Args:
        runs: in folders ``PRESET-SEED``.

    Returns:
        For each preset, for each seed, the rows.

    Raises:
        DataError: a file is missing or broken.
    """
    found: dict[str, dict[int, list[dict[str, Any]]]] = {}
    for run in runs:
        preset, _, seed = run.path.name.rpartition("-")
        found.setdefault(preset, {})[int(seed)] = read_metrics(run.metrics_file)
    return found


def _weighted(rows: Sequence[dict[str, Any]], key: str, weight: str) -> float:
    total = sum(row[weight] for row in rows)
    return sum(row[key] * row[weight] for row in rows) / total if total else 0.0
