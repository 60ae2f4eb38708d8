"""``treelax parse``: the trees of texts, drawn or written."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
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
from treelax.cli.progress import progress
from treelax.errors import InputError

if TYPE_CHECKING:
    from treelax.cli.parse_models import Asked, Parsed
    from treelax.cli.parse_output import Form, Look
    from treelax.cli.parse_texts import Source

HELP = """Show the trees that a trained model finds.

RUN is the folder of a run or of a saved model, or listops for the model that
comes with treelax, which is also taken where no RUN is named. The first
argument is RUN if it is listops, a folder that exists, or ends in
.safetensors; all others are texts. A text of such a name comes second, as
runs does in treelax parse runs/stars runs.

TEXT is a sentence or a ListOps expression in quotes, or - for standard input,
a text a line. Arguments without any spaces are the words of one text. Models
of pairs take two TEXTs, or lines with a tab between.

Samples are exact ones of the distribution over trees that the scores define,
not those of perturb-and-parse. With the --vectors of its training a model
looks up the words that it does not know, as for treelax predict.

Examples:
  treelax parse "[MAX 2 [MIN 4 7 ] 0 ]" --gold
  treelax parse runs/stars "A fine film." --soft
  treelax parse runs/snli "A man eats." "Somebody eats." --out pair.svg
  treelax parse runs/tags --file new.conllu --gold --format json
"""
COUNT_EVERY = 20  # texts; a bar takes longer to draw than one of them to parse


def parse(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="[RUN] [TEXT...|-]", help="A model, and what to parse."),
    ] = None,
    file: Annotated[
        str | None,
        typer.Option(help="Texts: lines, a table, CoNLL-U, also in a .zip; as for predict."),
    ] = None,
    form: Annotated[
        Literal["tree", "heads", "json", "conllu", "svg", "heatmap"] | None,
        typer.Option("--format", help="By --out, or tree."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="File to write, in .txt, .json, .conllu, .svg, .png, .pdf; or - (stdout)."
        ),
    ] = None,
    soft: Annotated[
        bool, typer.Option("--soft", help="Also show the weights of arcs, without noise.")
    ] = False,
    samples: Annotated[
        int, typer.Option(min=0, metavar="K", help="Also sample K trees, with their frequency.")
    ] = 0,
    seed: Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Of the samples.")] = 0,
    gold: Annotated[
        bool, typer.Option("--gold", help="Mark right and wrong arcs (ListOps, CoNLL-U files).")
    ] = False,
    given: Input = None,
    vectors: Vectors = None,
    tokens: Tokens = False,
    width: Annotated[
        int | None, typer.Option(min=1, help="Columns to draw in; those of the terminal.")
    ] = None,
    device: Device = "auto",
) -> None:
    """Show trees; see HELP."""
    from treelax.cli.parse_models import Asked
    from treelax.cli.parse_output import Look, form_of
    from treelax.cli.parse_texts import STREAM, Source, split_arguments
    from treelax.pictures import supports_unicode
    from treelax.training.models import is_listops

    if out == Path(STREAM):
        out = None
    run, texts = split_arguments(arguments or [])
    if file is None and texts == [STREAM]:
        file, texts = STREAM, []
    if bool(texts) == (file is not None):
        nothing = "none" if run is None else f"none beside RUN, {run}"
        received = f"both {texts[0]!r} and {file}" if texts else nothing
        raise InputError(
            f"TEXT: received {received}; expected one of: texts as arguments, --file FILE, or - "
            "for standard input"
        )
    if STREAM in texts:
        raise InputError("TEXT: received - beside other texts; expected - alone")
    refuse_same_file(out, file, *(vectors or ()))
    refuse_folder(out)
    if run is not None and not is_listops(run):
        refuse_files_of_run(out, Path(run))
    asked = Asked(weights=soft, samples=samples, seed=seed)
    written = form_of(form, out, asked)
    if written == "heatmap":
        asked = Asked(weights=True, samples=samples, seed=seed)
    source = Source(texts, file, given, tokens, run)
    look = Look(
        gold=gold,
        asked=asked,
        width=width,
        ascii=out is None and not supports_unicode(sys.stdout),
        number=file is not None,
    )
    _write(_parsed(source, asked, gold, device, vectors), written, look, out)
    if source.records is not None:
        for note in source.records.report.lines():
            error_console.print(f"{source.records.source}: {note}")


def _parsed(
    source: Source, asked: Asked, gold: bool, device: str, vectors: Sequence[Path] | None
) -> Iterator[Parsed]:
    """What the model says of each text."""
    from treelax.cli.parse_models import parse_listops, parse_sentences
    from treelax.cli.parse_texts import listops_examples, load, sentence_examples
    from treelax.training.devices import find_device
    from treelax.tasks.text.pretrained import SentenceModel

    model = load(source.run, find_device(device), vectors)
    if isinstance(model, SentenceModel):
        examples = sentence_examples(model, source, gold=gold)
        tokens = True if source.tokens else None
        return parse_sentences(model, examples, asked, tokens=tokens)
    return parse_listops(model, listops_examples(source), asked)


def _write(parsed: Iterator[Parsed], form: Form, look: Look, out: Path | None) -> None:
    from treelax.cli.figure import write_picture
    from treelax.cli.parse_conllu import conllu_sentences, treebank_lines
    from treelax.cli.parse_output import lines_of, picture_of

    if out is not None:
        parsed = _counted(parsed)
    if form in ("svg", "heatmap"):
        write_picture(picture_of(parsed, form, look), out)
    elif form == "conllu":
        first = next(parsed, None)
        parsed = chain([] if first is None else [first], parsed)
        if first is not None and first.block is not None:
            write_lines(treebank_lines(parsed), out)
        else:
            write_sentences(conllu_sentences(parsed), out)
    else:
        write_lines(lines_of(parsed, form, look), out)


def _counted(parsed: Iterator[Parsed]) -> Iterator[Parsed]:
    """The same, with a bar that shows how many there were."""
    with progress("parsing", unit="text", transient=True) as bar:
        for number, each in enumerate(parsed, 1):
            yield each
            if number % COUNT_EVERY == 0:
                bar.update(number)


register = command("parse", HELP, parse)
