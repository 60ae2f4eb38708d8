"""``treelax predict``: labels and trees of new texts."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from treelax.cli.commands import command
from treelax.cli.console import error_console
from treelax.cli.options import Device, Tokens
from treelax.cli.output import refuse_folder, refuse_same_file, write_lines, write_sentences
from treelax.cli.progress import Progress, progress
from treelax.errors import InputError

if TYPE_CHECKING:
    from treelax.cli.predict_inputs import Accuracy, Asked
    from treelax.cli.predict_output import Said
    from treelax.data.text.records import Records
    from treelax.tasks.text.prediction import SentenceSettings
    from treelax.training.pretrained import SentenceModel

__all__ = ["register"]

COUNT_EVERY = 100  # texts; a bar takes longer to draw than one of them to predict
HELP = """Label new texts with a trained model and show their trees.

RUN is the folder of a run on sentences or of a saved model. FILE is a table
(TSV, CSV, JSON lines), a file with a word a line for taggers, plain text with
a sentence a line (two with a tab between, for pairs), also compressed, or -
for lines on standard input.

Every text gets a line with its label, probabilities, words and their heads,
counted from 1, 0 the root; a line without words gets no label. Where the file
has labels too, the accuracy is told at the end. Sentences of a CoNLL-U file
keep their sent_id and, with --format conllu, their lines. A model of given
trees takes CoNLL-U files with heads.

Examples:
  treelax predict runs/stars new.tsv --text review --out stars.jsonl
  treelax predict runs/tags new.conllu --format conllu
  echo "A fine film." | treelax predict runs/stars - --format tsv
"""


def predict(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run or saved model.")],
    file: Annotated[str, typer.Argument(metavar="FILE", help="Texts, or - for standard input.")],
    out: Annotated[Path | None, typer.Option(help="File to write; stdout by default.")] = None,
    form: Annotated[
        str | None,
        typer.Option("--format", help="jsonl, tsv or conllu; by --out, or jsonl."),
    ] = None,
    text: Annotated[
        list[str] | None,
        typer.Option(help="Column with a text or words; twice for pairs; as in training."),
    ] = None,
    given: Annotated[
        str | None,
        typer.Option("--input", help="Form of FILE: tsv, csv, jsonl, conll or text; by its name."),
    ] = None,
    tokens: Tokens = False,
    soft: Annotated[
        bool,
        typer.Option(
            "--soft",
            help="Predict with relaxed trees; heads are those of the tree whose arcs weigh most there.",
        ),
    ] = False,
    device: Device = "auto",
    batch_size: Annotated[
        int, typer.Option(min=1, max=1_000_000, help="The most texts at a time.")
    ] = 64,
    threads: Annotated[
        int,
        typer.Option(min=0, help="CPU threads; 0: torch decides; take 1 on a busy machine."),
    ] = 0,
) -> None:
    """Label texts; see HELP."""
    from treelax.cli.predict_files import input_records
    from treelax.cli.predict_inputs import Accuracy, examples_of, examples_with_trees
    from treelax.cli.predict_output import output_form
    from treelax.training.devices import find_device
    from treelax.training.pretrained import SentenceModel

    if not run.exists():
        raise InputError(f"{run}: does not exist; expected the folder of a run or of a saved model")
    refuse_same_file(out, file)
    refuse_folder(out)
    model = SentenceModel.from_pretrained(run, device=find_device(device, threads=threads))
    settings = model.settings
    written = output_form(form, out, settings)
    columns = text or ()
    records: Records | None = None
    if settings.model.trees == "given":
        asked = examples_with_trees(file, settings, form=given, columns=columns)
    else:
        records = input_records(file, settings, form=given, columns=columns, tokens=tokens)
        asked = examples_of(records, settings, form=given)
    accuracy = Accuracy(model.labels)
    with progress("predicting", unit="text", transient=True) as bar:
        source = file if records is None else records.source
        said = _said(model, asked, source, accuracy, bar, soft=soft, batch_size=batch_size)
        _write(said, settings, written, out)
    for note in [] if records is None else records.report.lines():
        error_console.print(f"{file}: {note.replace('dropped', 'without a label')}")
    if (line := accuracy.line("words" if settings.kind == "tag" else "texts")) is not None:
        error_console.print(line)


def _said(
    model: SentenceModel,
    asked: Iterable[Asked],
    source: str,
    accuracy: Accuracy,
    bar: Progress,
    *,
    soft: bool,
    batch_size: int,
) -> Iterator[Said]:
    """What the model says of each example, with the line that it stands on."""
    from treelax.cli.predict_output import Said
    from treelax.tasks.text.prediction import refuse_long

    waiting: deque[Asked] = deque()  # that were read and not yet predicted
    table = model.network.encoder.read(model.vectors)

    def examples() -> Iterator[object]:
        for each in asked:
            refuse_long(model.settings, table, each.texts, f"{source}, line {each.line}")
            waiting.append(each)
            yield each.texts[0] if model.settings.texts == 1 else each.texts

    said = model.stream(examples(), soft=soft, batch_size=batch_size)
    for number, prediction in enumerate(said, 1):
        each = waiting.popleft()
        accuracy.add(each.label, prediction.label)
        yield Said(each.line, prediction, each.block)
        if number % COUNT_EVERY == 0:
            bar.update(number)


def _write(said: Iterator[Said], settings: SentenceSettings, form: str, out: Path | None) -> None:
    from treelax.cli.predict_output import (
        conllu_sentences,
        json_lines,
        table_rows,
        treebank_lines,
    )

    if form != "conllu":
        write_lines((json_lines if form == "jsonl" else table_rows)(said, settings), out)
        return
    first = next(said, None)
    said = chain([] if first is None else [first], said)
    if first is not None and first.block is not None:
        write_lines(treebank_lines(said, settings), out)
    else:
        write_sentences(conllu_sentences(said, settings), out)


register = command("predict", HELP, predict)
