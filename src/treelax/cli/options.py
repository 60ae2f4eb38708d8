"""Options that several commands have, each said once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

Data = Annotated[
    str | None, typer.Option(help="Sentences: CoNLL-U, ListOps, a table, text, or - for stdin.")
]
Split = Annotated[
    Literal["train", "dev", "test"], typer.Option(help="Without --data: which split of the runs.")
]
Limit = Annotated[int | None, typer.Option(min=1, help="Only the first N examples.")]
MaxLength = Annotated[int | None, typer.Option(min=1, help="Skip sentences with more words.")]
Text = Annotated[
    list[str] | None,
    typer.Option(help="Text column of a table; twice for pairs. Default: as in training."),
]
Label = Annotated[
    str | None, typer.Option(help="Label column of a table. Default: as in training.")
]
Input = Annotated[
    Literal["conllu", "tsv", "csv", "jsonl", "conll", "text"] | None,
    typer.Option("--input", help="File format. Default: by its name."),
]
Tokens = Annotated[
    bool, typer.Option("--tokens", help="Texts are tokenised: words separated by spaces.")
]
Device = Annotated[str, typer.Option(help="cpu, cuda, cuda:1 or auto.")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", help="Change a setting: KEY=VALUE; repeatable.")
]
Resume = Annotated[bool, typer.Option("--resume", help="Continue the run in --out, or start it.")]
Show = Annotated[bool, typer.Option("--list", help="Show presets and all settings, and exit.")]
Vectors = Annotated[
    list[Path] | None,
    typer.Option(help="Word vectors used in training, all files in order, to look up new words."),
]
