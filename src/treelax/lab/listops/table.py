"""The paper's table 1 and appendix C's curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from treelax.apps.tasks.listops.config import PRESETS, VARIANTS, ListOpsConfig, preset
from treelax.lab.tables.paper import Column, PaperTable, Record

# accuracy and attachment as the paper prints them (table 1; gold trees in the text of section 5)
PAPER = {
    "paper-zero": "98.1 / 83.2",
    "paper-zero-st": "70.8 / 33.9",
    "paper-mc": "99.6 / 99.7",
    "paper-mc-st": "77.0 / 83.2",
    "paper-entropy": None,
    "paper-nonprojective": None,
    "paper-heads": None,
    "chain": None,
    "gold": "100.0 / 100.0",
}
ESTIMATORS = {name: text for name, (_, text) in VARIANTS.items()}
LABELS = {name: text for name, (_, text) in PRESETS.items()}
KINDS = {  # columns, and the kinds of tokens of an evaluation
    "attachment_argument": "argument",
    "attachment_bracket": "bracket",
    "attachment_nested": "nested operator",
}
TURN = 90.0  # percent of dev accuracy at which a run has made its turn


COLUMNS: Mapping[str, Column] = {
    "seeds": lambda runs: str(len(runs)),
    "acc as trained": lambda runs: [r[as_trained(r["preset"])] for r in runs],
    "acc discrete": "operator_accuracy",
    "attachment": "attachment",
    "of arguments": "attachment_argument",
    "of brackets": "attachment_bracket",
    "of nested operators": "attachment_nested",
    "exact trees": "exact_trees",
    "turn, epoch": lambda runs: turns([r["turn"] for r in runs]),
    "every seed, acc/att": lambda runs: ", ".join(
        f"{r['operator_accuracy']:.1f}/{r['attachment']:.1f}" for r in runs
    ),
}


class ListOpsTable(PaperTable):
    """Table 1."""

    keys = (
        *("preset", "seed", "max_length", "operator_accuracy", "attachment", "exact_trees"),
        *("token_accuracy", "soft_operator_accuracy", "operator_accuracy_50", "attachment_50"),
        *("best_epoch", "turn", "epochs", "seconds", "device"),
        *("attachment_argument", "attachment_bracket", "attachment_nested"),
    )
    # other settings in which rows differ belong to their recipes
    named_after = (
        *("model.trees", "model.structure", "model.relaxation", "model.noise"),
        *("model.straight_through", "train.loss"),
    )
    curves = ("operator_accuracy", "attachment", "soft_operator_accuracy")
    panels = {"operator_accuracy": "accuracy", "attachment": "attachment score"}  # noqa: RUF012
    plots = {  # noqa: RUF012
        recipe: {
            f"{recipe}-{name}": ESTIMATORS[name] for name in ("zero", "mc", "zero-st", "mc-st")
        }
        for recipe in ("paper", "balanced")
    }

    def record(self, result: Record, log: Sequence[Record] = ()) -> Record:
        """A line of the CSV; ``..._50`` are over expressions of at most 50 tokens."""
        test = result["test"]
        # records on file from before arcs were counted have tokens alone
        short = [{"arcs": r["tokens"]} | r for r in test["by_length"] if (r["longest"] or 99) <= 50]
        kinds = {name: test["attachment_by_kind"].get(kind) for name, kind in KINDS.items()}
        keys = ("preset", "seed", "max_length", "best_epoch", "epochs", "device")
        return {
            **{key: result[key] for key in keys},
            # rounded here, once, so that all that is made from the records agrees
            **{key: round(test[key], 3) for key in self.keys if key in test},
            "operator_accuracy_50": round(_weighted(short, "operator_accuracy", "operators"), 3),
            "attachment_50": round(_weighted(short, "attachment", "arcs"), 3),
            "turn": next((r["epoch"] for r in log if r["dev"]["operator_accuracy"] >= TURN), None),
            "seconds": round(result["seconds"], 1),
            **{name: None if v is None else round(v, 3) for name, v in kinds.items()},
        }

    def about(self, runs: Sequence[tuple[Any, Record]]) -> str:
        data = "; ".join(dict.fromkeys(_describe_data(config) for config, _ in runs))
        tokens = {True: "all tokens", False: "the tokens whose gold head is not the root"}
        arcs = " or ".join(dict.fromkeys(tokens[config.model.root_arcs] for config, _ in runs))
        return (
            "Test accuracy over operators, in percent, with the trees of training (as trained: soft "
            "ones unless training is straight-through) and with discrete trees; attachment of "
            f"discrete trees over {arcs}; {data}. Mean ± standard deviation over seeds; the turn is "
            f"the first epoch with a dev accuracy of {TURN:.0f} with discrete trees."
        )


TABLE = ListOpsTable(
    "ListOps valency tagging",
    *(PAPER, LABELS, COLUMNS),
    shown=("seeds", "acc as trained", "acc discrete", "attachment"),
    paper="paper acc / att",
)


def as_trained(name: str) -> str:
    """The accuracy of a preset's runs with the trees of training."""
    discrete = preset(name).model.make_estimator().discrete
    return "operator_accuracy" if discrete else "soft_operator_accuracy"


def turns(epochs: Sequence[int | None]) -> str:
    """When the runs of a row made their turn, and how many did if not all.

    >>> turns([51, 80, None]), turns([None]), turns([7])
    ('51–80 (2 of 3)', '–', '7')
    """
    made = [epoch for epoch in epochs if epoch is not None]
    if not made:
        return "–"
    ends = "–".join(map(str, sorted({min(made), max(made)})))
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
