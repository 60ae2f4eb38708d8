"""The paper's table 1 and appendix C's curves."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from treelax.tasks.listops.config import ListOpsConfig
from treelax.tasks.tables import Column, PaperTable, Record


class Row(NamedTuple):
    """A preset, what it is in words, and accuracy and attachment in the paper."""

    preset: str
    label: str
    paper: tuple[float, float] | None = None


# as the paper prints them (table 1; gold trees in the text of section 5)
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
CELLS = {
    "zero": "G = 0, forward relaxed",
    "mc": "MC, forward relaxed",
    "zero-st": "G = 0, straight-through",
    "mc-st": "MC, straight-through",
}


class ListOpsTable(PaperTable):
    """Table 1."""

    title = "ListOps valency tagging"
    paper = "paper acc / att"
    keys = (
        *("preset", "seed", "max_length", "operator_accuracy", "attachment", "exact_trees"),
        *("token_accuracy", "soft_operator_accuracy", "operator_accuracy_50", "attachment_50"),
        *("best_epoch", "turn", "epochs", "seconds", "device"),
    )
    # other settings in which rows differ belong to their recipes
    named_after = (
        *("model.trees", "model.relaxation", "model.noise", "model.straight_through"),
        "train.loss",
    )
    curves = ("operator_accuracy", "attachment", "soft_operator_accuracy")
    panels = {"operator_accuracy": "accuracy", "attachment": "attachment score"}  # noqa: RUF012
    plots = {  # noqa: RUF012
        recipe: {f"{recipe}-{cell}": label for cell, label in CELLS.items()}
        for recipe in ("paper", "balanced")
    }

    @property
    def figures(self) -> Mapping[str, str | None]:
        """Accuracy and attachment."""
        return {
            row.preset: None if row.paper is None else f"{row.paper[0]:.1f} / {row.paper[1]:.1f}"
            for row in ROWS
        }

    @property
    def labels(self) -> Mapping[str, str]:
        """What each preset is."""
        return {row.preset: row.label for row in (*ROWS, *OTHERS)}

    @property
    def columns(self) -> Mapping[str, Column]:
        """Our columns."""
        return {
            "seeds": lambda own: str(len(own)),
            "accuracy": "operator_accuracy",
            "attachment": "attachment",
            "exact trees": "exact_trees",
            "accuracy, soft trees": "soft_operator_accuracy",
            "turn, epoch": lambda own: turns([r["turn"] for r in own]),
            "every seed, acc/att": lambda own: ", ".join(
                f"{r['operator_accuracy']:.1f}/{r['attachment']:.1f}" for r in own
            ),
        }

    @property
    def shown(self) -> Collection[str]:
        """Headings that fit a terminal."""
        return ("seeds", "accuracy", "attachment")

    def record(self, result: Record, log: Sequence[Record] = ()) -> Record:
        """A line of the CSV; ``..._50`` are over expressions of at most 50 tokens."""
        test = result["test"]
        short = [r for r in test["by_length"] if r["longest"] is not None and r["longest"] <= 50]
        keys = ("preset", "seed", "max_length", "best_epoch", "epochs", "device")
        return {
            **{key: result[key] for key in keys},
            # rounded here, once, so that all that is made from the records agrees
            **{key: round(test[key], 3) for key in self.keys if key in test},
            "operator_accuracy_50": round(_weighted(short, "operator_accuracy", "operators"), 3),
            "attachment_50": round(_weighted(short, "attachment", "tokens"), 3),
            "turn": next((r["epoch"] for r in log if r["dev"]["operator_accuracy"] >= TURN), None),
            "seconds": round(result["seconds"], 1),
        }

    def about(self, runs: Sequence[tuple[Any, Record]]) -> str:
        """What the figures are, and of which data."""
        data = "; ".join(dict.fromkeys(_describe_data(config) for config, _ in runs))
        return (
            "Test accuracy over operators and attachment over all tokens, in percent, with discrete "
            f"trees; {data}. Mean ± standard deviation over seeds; the turn is the first epoch with "
            f"a dev accuracy of {TURN:.0f}."
        )


TABLE = ListOpsTable()


def turns(epochs: Sequence[int | None]) -> str:
    """When the runs of a row made their turn, and how many did if not all.

    >>> turns([51, 80, None]), turns([None]), turns([7])
    ('51–80 (2 of 3)', '–', '7')
    """
    made = sorted(epoch for epoch in epochs if epoch is not None)
    if not made:
        return "–"
    ends = f"{made[0]}" if made[0] == made[-1] else f"{made[0]}–{made[-1]}"
    return ends if len(made) == len(epochs) else f"{ends} ({len(made)} of {len(epochs)})"


def _weighted(rows: Sequence[Record], key: str, weight: str) -> float:
    total = sum(row[weight] for row in rows)
    return sum(row[key] * row[weight] for row in rows) / total if total else 0.0


def _describe_data(config: ListOpsConfig) -> str:
    data = config.data
    what = f"expressions of at most {data.max_length} tokens of"
    if data.folder is not None:
        return f"{what} {data.folder}"
    name = "distribution of Paulus et al. (2020)" if data.variant == "paulus" else "distribution"
    original = "original " if data.variant == "original" else ""
    return f"{what} the {original}{name}, generated (data.seed {data.seed})"
