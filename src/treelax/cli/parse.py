"""``treelax parse``: the trees of texts, drawn or written."""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from treelax.cli.commands import Device, Input, Tokens, Vectors, command
from treelax.cli.console import error_console
from treelax.cli.output import Look, Said, form_of, refuse_output, write_said
from treelax.cli.predict import STREAM, load_parser, read
from treelax.cli.progress import advancing, progress
from treelax.errors import DataError, InputError

if TYPE_CHECKING:
    from treelax.tasks.base import Examples, TrainedParser

HELP = """Show the trees that a trained model finds.

RUN is the folder of a run or of a saved model, or english or listops for a
model that comes with treelax. Without it, ListOps expressions go to listops
and all other texts to english. The first argument is taken as RUN if it is
english, listops, an existing folder, or ends in .safetensors; all others are
texts. To parse a text of such a name, give RUN first: treelax parse
runs/stars runs.

english was trained on UD English-EWT and has its licence, CC BY-SA 4.0;
treelax.load("english").about has its scores.

TEXT is a sentence or a ListOps expression in quotes, or - for standard input,
one text per line. Arguments without spaces are the words of one text. Pair
models take two TEXTs, or lines with two texts separated by a tab.

Samples are exact samples from the distribution over trees, not perturb-and-
parse samples. --vectors, as for treelax predict, looks up unknown words.

Examples:
  treelax parse "The old cat watched a small bird."
  treelax parse "[MAX 2 [MIN 4 7 ] 0 ]" --gold
  treelax parse runs/stars "A fine film." --soft
  treelax parse runs/snli "A man eats." "Somebody eats." --out pair.svg
  treelax parse runs/parser "She saw a bird." --samples 10
  treelax parse runs/tags --file new.conllu --gold --format json
"""
COUNT_EVERY = 20  # texts; a bar takes longer to draw than one of them to parse
# a value and round brackets may come before, as in the original files
EXPRESSION = re.compile(r"[\d\s(]*\[(MIN|MAX|MED|SM)\b")
ENDINGS = {
    **{".txt": "tree", ".json": "json", ".jsonl": "json", ".conllu": "conllu"},
    **{".svg": "svg", ".png": "svg", ".pdf": "svg"},
}


def parse(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="[RUN] [TEXT...|-]", help="Model and texts."),
    ] = None,
    file: Annotated[
        str | None,
        typer.Option(help="File of texts: lines, a table or CoNLL-U, as for treelax predict."),
    ] = None,
    form: Annotated[
        Literal["tree", "heads", "brackets", "json", "conllu", "svg", "heatmap"] | None,
        typer.Option("--format", help="Output format. Default: by --out, or tree."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Output file: .txt, .json, .conllu, .svg, .png, .pdf; default: stdout."),
    ] = None,
    soft: Annotated[
        bool,
        typer.Option("--soft", help="Also show the weights of the soft tree, without noise."),
    ] = False,
    samples: Annotated[
        int, typer.Option(min=0, metavar="K", help="Also sample K trees, with frequencies.")
    ] = 0,
    seed: Annotated[
        int, typer.Option(min=0, max=2**63 - 1, help="Random seed of the samples.")
    ] = 0,
    gold: Annotated[
        bool, typer.Option("--gold", help="Mark right and wrong arcs (ListOps, CoNLL-U files).")
    ] = False,
    given: Input = None,
    vectors: Vectors = None,
    tokens: Tokens = False,
    width: Annotated[
        int | None, typer.Option(min=1, help="Columns to draw in; default: the terminal's width.")
    ] = None,
    device: Device = "auto",
) -> None:
    """Show trees; see HELP."""
    from treelax.pictures import supports_unicode
    from treelax.tasks.base import Source

    run, texts = split_arguments(arguments or [])
    if file is None and texts == [STREAM]:
        file, texts = STREAM, []
    if bool(texts) == (file is not None) or STREAM in texts:
        received = "none" if run is None else f"none, with the RUN {run}"
        received = f"{texts[0]!r} and {file or STREAM}" if texts else received
        raise InputError(f"TEXT: received {received}; expected one of: texts, --file FILE, or -")
    out = None if out == Path(STREAM) else out
    refuse_output(out, file, *(vectors or ()))
    written = form_of(form, out, ENDINGS, "tree")
    if soft and written in ("conllu", "heads", "brackets"):
        expected = "tree, json, svg or heatmap, which show weights"
        raise InputError(f"--soft: received it with the format {written}; expected {expected}")
    weights = soft or written == "heatmap"
    ascii = out is None and not supports_unicode(sys.stdout)
    look = Look(gold, samples, seed, width, ascii, number=file is not None)
    parser = load_parser(run or default_model(texts, file), device, vectors, out)
    parser.require_trees()
    if gold or written == "heatmap":
        parser.require_heads("--gold" if gold else "a heat map")
    if written in ("heads", "brackets") and written != parser.notation:
        raise InputError(
            f"--format is {written}; expected {parser.notation}, the trees of {parser.name}"
        )
    if weights or samples:
        parser.require_scores()
    try:
        source = Source(tuple(texts), file, given, tokens=tokens, gold=gold)
        examples = read(parser, source, vectors)
        said = _said(parser, examples, weights, look)
        if out is None:
            write_said(said, written, parser, out, look)
        else:
            with progress("parsing", unit="text", transient=True) as bar:
                write_said(advancing(said, bar, every=COUNT_EVERY), written, parser, out, look)
    except DataError as error:
        if run is not None:
            raise
        raise DataError(f"{error} (no RUN was named, so {parser.name} reads it)") from error
    for note in examples.notes():
        error_console.print(f"{examples.name}: {note}")


def split_arguments(arguments: Sequence[str]) -> tuple[str | None, list[str]]:
    """Tell the model from the texts."""
    from treelax.tasks import BUILT_IN

    first = arguments[0] if arguments else ""
    # not with a Path: a long text is no name of a file, which it takes for an error
    is_run = first in BUILT_IN or os.path.isdir(first) or first.endswith(".safetensors")
    # one word with a separator is meant as a RUN too
    if is_run or (first.split() == [first] and {os.sep, "/"} & set(first)):
        return first, list(arguments[1:])
    return None, list(arguments)


def default_model(texts: Sequence[str], file: str | None) -> str:
    """The model for texts, or a file of them, where none is named."""
    from treelax.data.input_files import one_file

    if file is None:
        first = texts[0]
    elif file == STREAM:
        first = sys.stdin.buffer.peek().decode(errors="replace")  # type: ignore[union-attr]
    else:
        first = next((line for _, line in one_file(file).lines() if line.strip()), "")
    return "listops" if EXPRESSION.match(first) else "english"


def _said(parser: TrainedParser, examples: Examples, weights: bool, look: Look) -> Iterator[Said]:
    """Each example with its trees; scores are those of the text alone."""
    for example, said in parser.ask(examples):
        if said.trees is None:
            raise InputError(f"{examples.name}, line {example.line}: has no words; expected some")
        asked = said.words if weights or look.samples else ()
        scores = [parser.arc_scores(words) for words in asked]
        soft = [parser.soft_tree(own).tolist() for own in scores] if weights else []
        counts = [
            Counter(parser.sample_trees(words, own, look.samples, seed=look.seed))
            for words, own in (zip(asked, scores, strict=True) if look.samples else ())
        ]
        samples = [sorted(own.items(), key=lambda item: (-item[1], item[0])) for own in counts]
        yield Said(example, said, parser.shown_tags(said), tuple(soft), tuple(map(tuple, samples)))


register = command("parse", HELP, parse)
