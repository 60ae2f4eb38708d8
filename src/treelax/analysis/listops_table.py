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
    Row("paper-zero", "G = 0, forward relaxed", (98.1, 83.2)),
    Row("paper-zero-st", "G = 0, straight-through", (70.8, 33.9)),
    Row("paper-mc", "MC, forward relaxed", (99.6, 99.7)),
    Row("paper-mc-st", "MC, straight-through", (77.0, 83.2)),
    Row("paper-entropy", "MC, entropy relaxation"),
    Row("paper-heads", "MC, head selection (no tree)"),
    Row("chain", "left-to-right chain"),
    Row("gold", "gold trees", (100.0, 100.0)),
)
# presets of other tables, if their runs are asked for
OTHERS = (
    Row("paper-mc-all", "MC, forward relaxed, loss on all tokens"),
    Row("balanced-zero", "balanced recipe, G = 0, forward relaxed"),
    Row("balanced-zero-st", "balanced recipe, G = 0, straight-through"),
    Row("balanced-mc", "balanced recipe, MC, forward relaxed"),
    Row("balanced-mc-st", "balanced recipe, MC, straight-through"),
    Row("balanced-entropy", "balanced recipe, MC, entropy relaxation"),
    Row("balanced-heads", "balanced recipe, MC, head selection (no tree)"),
    Row("small", "balanced recipe, MC, forward relaxed, small layers"),
    Row("paulus", "balanced recipe, MC, forward relaxed"),
)
TURN = 90.0  # percent of dev accuracy at which a run has made its turn
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
    "turn",
    "epochs",
    "seconds",
    "device",
)


def record(result: dict[str, Any], log: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    """One run's line of the CSV, from its ``test.json`` and its metrics.

    Args:
        result: what `treelax.analysis.listops_results.read_result` returns.
        log: the rows of ``metrics.jsonl``.

    Returns:
        A value for each of `COLUMNS`; ``..._50`` are over expressions of at most 50 tokens, ``turn``
        is the first epoch with a dev accuracy of at least `TURN`, or None.
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
        "turn": next((r["epoch"] for r in log if r["dev"]["operator_accuracy"] >= TURN), None),
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
                    turns([r["turn"] for r in own]),
                    ", ".join(f"{r['operator_accuracy']:.1f}/{r['attachment']:.1f}" for r in own),
                ]
            )
    return rows


def turns(epochs: Sequence[int | None]) -> str:
    """When the runs of a row made their turn.

    Args:
        epochs: of each run; None if it made none.

    Returns:
        The first and the last epoch, and how many runs made a turn if not all did.

    Example:
        >>> turns([51, 80, None]), turns([None]), turns([7])
        ('51–80 (2 of 3)', '–', '7')
    """
    made = sorted(epoch for epoch in epochs if epoch is not None)
    if not made:
        return "–"
    ends = f"{made[0]}" if made[0] == made[-1] else f"{made[0]}–{made[-1]}"
    return ends if len(made) == len(epochs) else f"{ends} ({len(made)} of {len(epochs)})"


def not_run(presets: Iterable[str]) -> list[str]:
    """The labels of `ROWS` that have no run among these presets.

    Args:
        presets: of the runs there are.

    Returns:
        The labels, in the order of the table.

    Example:
        >>> not_run(row.preset for row in ROWS[1:])
        ['G = 0, forward relaxed']
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
    "turn, epoch",
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
