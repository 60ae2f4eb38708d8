"""``treelax eval``: figures of a trained model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from treelax.apps.cli.commands import AsJson, Device, Vectors, command
from treelax.apps.cli.console import error_console, show
from treelax.apps.cli.output import warn_of_long
from treelax.apps.cli.progress import progress
from treelax.errors import InputError

HELP = """Evaluate a trained model.

RUN is the folder of a run or of a saved model, a file model.safetensors, or
listops for the model that comes with treelax. Without --data it is evaluated
on the test set of its run; that of ListOps is generated from the same seed.
Tables are read with the columns used in training.

A parser is evaluated by the rules of the CoNLL 2018 shared task, on the words
of a treebank or, with --raw, on its texts (# text), which the parser then
cuts into words itself; UAS and LAS are F1. Sentences stay those of the file.

Examples:
  treelax eval runs/small
  treelax eval listops --data data/listops/test.tsv --max-length 40 --json
  treelax eval runs/stars --data new-reviews.tsv
  treelax eval runs/parser --data test.conllu --raw
"""
NAMED = 5  # words that a text is named by


def evaluate(
    model: Annotated[str, typer.Argument(metavar="RUN", help="Run, file, or listops.")],
    data: Annotated[
        Path | None, typer.Option(help="Labelled examples, in a format of the training data.")
    ] = None,
    max_length: Annotated[
        int | None, typer.Option(min=1, help="Skip texts with more words.")
    ] = None,
    min_length: Annotated[int, typer.Option(min=1, help="Skip texts with fewer words.")] = 1,
    raw: Annotated[
        bool,
        typer.Option("--raw", help="Cut the texts of a treebank into words anew, for a parser."),
    ] = False,
    vectors: Vectors = None,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Measure a model; see HELP."""
    from treelax.apps.tasks import load
    from treelax.apps.tasks.base import Source
    from treelax.apps.training.devices import find_device

    parser = load(model, device=find_device(device), vectors=vectors)
    is_parser = parser.trees == "treebank"
    if raw and not (is_parser and data):
        received = "no --data FILE" if is_parser else f"{model}, which learned from no treebank"
        raise InputError(f"--raw: received {received}; expected a parser and a treebank")
    with progress("reading the data", transient=True):
        unusable = "drop" if is_parser and max_length else None  # sentences too long to be parsed
        given = Source(file=str(data), unusable=unusable, scored=True, raw=raw)
        source = parser.own_examples("test") if data is None else parser.read(given)
        examples = list(source)
    title = source.name if data is None else str(data)
    lengths = [max(map(len, example.words)) for example in examples]
    most = max_length or max(lengths, default=1)
    used = [e for e, n in zip(examples, lengths, strict=True) if min_length <= n <= most]
    if not used:
        none = f"none of its {len(examples)} examples has {min_length} to {most} words"
        raise InputError(f"{title}: {none}; change --min-length or --max-length")
    if skipped := len(examples) - len(used):
        error_console.print(
            f"{skipped} of {len(examples)} examples skipped because of their length"
        )
    for note in source.notes():
        error_console.print(note)
    longest = max(used, key=lambda example: max(map(len, example.words)))
    words = max(longest.words, key=len)
    warn_of_long(title, f"the longest text ({' '.join(words[:NAMED])} ...)", len(words), "words")
    total = sum(len(text) for example in used for text in example.words)
    with progress("evaluating", total, unit="tokens", transient=True) as bar:
        try:
            figures = parser.evaluate(used, progress=bar.update)
        except InputError as error:
            raise InputError(f"{title}: {error}") from error
    if as_json:
        record = {"model": model, "data": title, "examples": len(used)}
        record |= {"min_length": min_length, "max_length": max_length}
        typer.echo(json.dumps(record | figures.record()))
    else:
        show(figures.tables(title))


register = command("eval", HELP, evaluate)
