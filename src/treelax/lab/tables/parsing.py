"""Tables of parsers: rows that differ in a few settings, each over several seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from treelax.apps.tasks.parsing.commands import SIZES
from treelax.apps.tasks.parsing.config import LABELS, STRUCTURES, Row
from treelax.lab.tables.paper import SPLITS, Column, PaperTable, Record

FIGURES = ("uas", "las", "malformed")


@dataclass(frozen=True)
class ParserTable(PaperTable):
    """A table of attachment scores, whose rows start from a preset."""

    size: str = "full"

    keys = (
        *("preset", "seed"),
        *(f"{split}_{key}" for split in SPLITS for key in (*FIGURES, "sentences")),
        *("training_sentences", "parameters", "best_epoch", "epochs", "seconds", "device"),
    )
    named_after = ("model.structure", "data.labelled", "data.rest")
    measured, counted = FIGURES, "sentences"

    def about(self, runs: Sequence[tuple[Any, Record]]) -> str:
        """The data, and what the figures are."""
        config, first = runs[0]
        counts = sorted({result["training_sentences"] for _, result in runs})
        some = " or ".join(f"{count:,}" for count in counts)
        trained = f"{some} sentences of {PurePath(config.data.train).name}"
        sizes = [f"{row['sentences']:,} of {split}" for split, row in first["splits"].items()]
        files = " and ".join(PurePath(file).name for file in config.data.vector_files)
        return (
            f"Preset {self.size}, trained on {trained}, with "
            f"{f'word vectors of {files}' if files else 'no given word vectors'}; figures are over the "
            f"sentences of each split, {' and '.join(sizes)}. UAS and LAS (without subtypes of labels) "
            "are in percent of words, malformed in percent of sentences: those whose heads are not a "
            "tree with one root. Mean ± standard deviation over seeds; seconds of training of each "
            "run, others beside it on the device if there was more than one at a time."
        )


COLUMNS: Mapping[str, Column] = {
    "seeds": lambda runs: str(len(runs)),
    **{
        f"{split} {name}": f"{split}_{key}"
        for split in SPLITS
        for key, name in zip(FIGURES, ("UAS", "LAS", "malformed"), strict=True)
    },
    "seconds": lambda runs: ", ".join(f"{r['seconds']:.0f}" for r in runs),
}
SHOWN = ("seeds", "dev UAS", "dev LAS", "test UAS", "test LAS", "test malformed")


def _table(title: str, rows: Mapping[str, Row], size: str) -> ParserTable:
    labels = {f"{size}-{name}": row.label for name, row in rows.items()}
    return ParserTable(title, dict.fromkeys(labels), labels, COLUMNS, SHOWN, size=size)


TABLES = {  # a table of another name is a line here, its rows, and a command
    name + suffix: _table(title, rows, size)
    for name, title, rows in (
        ("parser", "Dependency parsing: kinds of trees", STRUCTURES),
        ("labels", "Dependency parsing: few labels", LABELS),
    )
    for size, suffix in zip(SIZES, ("", "-small"), strict=True)
}
