"""Options that several commands have, each said once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

Data = Annotated[str | None, typer.Option(help="Sentences: CoNLL-U, ListOps, a table, text, or -.")]
Split = Annotated[
    Literal["train", "dev", "test"], typer.Option(help="Without --data: which set of the runs.")
]
Limit = Annotated[int | None, typer.Option(min=1, help="Only the first N examples.")]
MaxLength = Annotated[int | None, typer.Option(min=1, help="Leave out longer sentences, in words.")]
Text = Annotated[
    list[str] | None,
    typer.Option(help="Column of a table with a text; twice for pairs; as in training."),
]
Label = Annotated[
    str | None, typer.Option(help="Column of a table with the label; as in training.")
]
Input = Annotated[
    Literal["conllu", "tsv", "csv", "jsonl", "conll", "text"] | None,
    typer.Option("--input", help="Form of the file; by its name."),
]
Tokens = Annotated[bool, typer.Option("--tokens", help="Texts are words with spaces between.")]
Device = Annotated[str, typer.Option(help="cpu, cuda, cuda:1 or auto.")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", help="Change a setting: KEY=VALUE; repeatable.")
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the run in --out, or start it.")]
Show = Annotated[bool, typer.Option("--list", help="Show presets and all settings, and stop.")]
Vectors = Annotated[
    list[Path] | None,
    typer.Option(
        help="Word vectors of the training, to look up new words; all its files in order."
    ),
]
