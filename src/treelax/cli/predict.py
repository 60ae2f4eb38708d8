"""``treelax predict``: labels and trees of new texts."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from treelax.cli.commands import command
from treelax.cli.console import error_console
from treelax.cli.options import Device, Input, Tokens, Vectors
from treelax.cli.output import (
    refuse_files_of_run,
    refuse_folder,
    refuse_same_file,
    write_lines,
    write_sentences,
)
from treelax.cli.progress import Progress, progress
from treelax.errors import InputError

if TYPE_CHECKING:
    from treelax.cli.predict_inputs import Accuracy, Asked
    from treelax.cli.predict_output import Said
    from treelax.data.text.records import CheckOptions, Found, Records, Report
    from treelax.tasks.text.prediction import SentenceSettings
    from treelax.tasks.text.pretrained import SentenceModel

COUNT_EVERY = 100  # texts; a bar takes longer to draw than one of them to predict
HELP = """Label new texts with a trained model and show their trees.

RUN is the folder of a run on sentences or of a saved model. FILE is a table
(TSV, CSV, JSON lines), a file with a word a line for taggers, plain text with
a sentence a line (two with a tab between, for pairs), also compressed or in a
.zip, or - for lines on standard input.

Every text gets a line with its label, probabilities, words and their heads,
counted from 1, 0 the root; a line without words gets no label. Where the file
has labels too, the accuracy is told at the end. Sentences of a CoNLL-U file
keep their sent_id and, with --format conllu, their lines. A model of given
trees takes CoNLL-U files with heads.

A run that was trained with --vectors keeps the vectors of the words in its
files. Other words share a hundred vectors, unless the same --vectors are
given here too: then they are looked up there, as in training.

Examples:
  treelax predict runs/stars new.tsv --text review --out stars.jsonl
  treelax predict runs/stars new.tsv --vectors glove.840B.300d.zip
  treelax predict runs/tags new.conllu --format conllu
  echo "A fine film." | treelax predict runs/stars - --format tsv
"""


def predict(
    run: Annotated[Path, typer.Argument(metavar="RUN", exists=True, help="Run or saved model.")],
    file: Annotated[str, typer.Argument(metavar="FILE", help="Texts, or - for standard input.")],
    out: Annotated[
        Path | None,
        typer.Option(help="File to write, in .jsonl, .tsv, .conllu; or - (stdout), the default."),
    ] = None,
    form: Annotated[
        Literal["jsonl", "tsv", "conllu"] | None,
        typer.Option("--format", help="By --out, or jsonl."),
    ] = None,
    text: Annotated[
        list[str] | None,
        typer.Option(help="Column with a text or words; twice for pairs; as in training."),
    ] = None,
    given: Input = None,
    vectors: Vectors = None,
    tokens: Tokens = False,
    unusable: Annotated[
        Literal["error", "drop"] | None,
        typer.Option(
            help="drop: leave out lines with too few or too many columns or words; by default as "
            "in training."
        ),
    ] = None,
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
    from treelax.cli.predict_files import STREAM
    from treelax.cli.predict_inputs import Accuracy, UnknownWords, look_up
    from treelax.cli.predict_output import output_form
    from treelax.data.text.records import Report
    from treelax.tasks.text.pretrained import SentenceModel
    from treelax.training.devices import find_device

    if out == Path(STREAM):
        out = None
    refuse_same_file(out, file, *(vectors or ()))
    refuse_folder(out)
    refuse_files_of_run(out, run)
    place = find_device(device, threads=threads)
    model = SentenceModel.from_pretrained(run, device=place, vectors=vectors)
    settings = model.settings
    written = output_form(form, out, settings)
    read = partial(_read, file, settings, given, text or (), tokens, unusable)
    records, asked = read()
    if vectors:
        asked = asked if Path(file).is_file() else list(asked)  # what cannot be read twice is kept
        with progress("looking up words", transient=True):
            look_up(model, asked)
        if not isinstance(asked, list):
            records, asked = read()
    accuracy, blank, unknown = Accuracy(model.labels), Report(), UnknownWords(model)
    with progress("predicting", unit="text", transient=True) as bar:
        source = file if records is None else records.source
        asked = unknown.counted(asked)
        said = _said(model, asked, source, accuracy, blank, bar, soft=soft, batch_size=batch_size)
        _write(said, settings, written, out)
    if (line := unknown.line()) is not None:
        error_console.print(line)
    for note in blank.lines():
        error_console.print(f"{file}: {note.replace('dropped', 'without a label')}")
    for note in [] if records is None else records.report.lines():
        error_console.print(f"{file}: {note}")
    if (line := accuracy.line("word" if settings.kind == "tag" else "text")) is not None:
        error_console.print(line)


def _read(
    file: str,
    settings: SentenceSettings,
    form: str | None,
    columns: Sequence[str],
    tokens: bool,
    unusable: Found | None,
) -> tuple[Records | None, Iterable[Asked]]:
    """The examples of a file, read as they are asked for, and the records that they are made of."""
    from treelax.cli.predict_files import input_records
    from treelax.cli.predict_inputs import examples_of, examples_with_trees

    if settings.model.trees == "given":
        if unusable == "drop":
            raise InputError(
                "--unusable: received drop, and the model takes given trees (model.trees is given), "
                "whose file is read whole; expected no --unusable: mend the file"
            )
        return None, examples_with_trees(file, settings, form=form, columns=columns)
    checks = _checks(unusable or settings.unusable)
    records = input_records(file, settings, form=form, columns=columns, tokens=tokens, **checks)
    return records, examples_of(records, settings, form=form)


def _checks(unusable: Found) -> CheckOptions:
    """What is asked of every line; one without words keeps its place."""
    return {
        "unusable": unusable,
        "empty": "keep",
        "advice": "--unusable drop",
    }


def _said(
    model: SentenceModel,
    asked: Iterable[Asked],
    source: str,
    accuracy: Accuracy,
    blank: Report,
    bar: Progress,
    *,
    soft: bool,
    batch_size: int,
) -> Iterator[Said]:
    """What the model says of each example, with its line; those without words are noted as blank."""
    from treelax.cli.predict_output import Said
    from treelax.data.text.records import EMPTY
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
        if prediction.label is None:
            blank.drop(EMPTY, each.line)
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
