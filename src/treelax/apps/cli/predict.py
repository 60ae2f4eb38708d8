"""``treelax predict``: labels and trees of new texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from treelax.apps.cli.commands import Device, Input, Tokens, Vectors, command
from treelax.apps.cli.console import error_console
from treelax.apps.cli.output import DisplayOptions, Result, form_of, refuse_output, write_results
from treelax.apps.cli.progress import advancing, progress
from treelax.errors import InputError, counted, short

if TYPE_CHECKING:
    from treelax.apps.tasks.base import Example, Examples, Label, Source, TrainedParser

STREAM = "-"
COUNT_EVERY = 100  # texts; a bar takes longer to draw than one of them to predict
MOST_WORDS = 1_000_000  # different ones that are counted: texts without end must fit into memory
ENDINGS = {".jsonl": "jsonl", ".tsv": "tsv", ".conllu": "conllu", "": "jsonl"}
HELP = """Label new texts with a trained model and show their trees.

RUN is the folder of a run or of a saved model, or english or listops for a
model that comes with treelax. FILE is a table (TSV, CSV, JSON lines), a file
with one word per line for taggers, or plain text with one sentence or ListOps
expression per line (for pairs, two separated by a tab); it may be compressed
or in a .zip. - reads lines from standard input.

Prints one line per text with its label, probabilities, words and their heads,
counted from 1; 0 is the root. Binary trees are written in brackets. A line
without words gets no label. If the file has labels, the accuracy is printed
at the end. CoNLL-U sentences keep their sent_id and, with --format conllu,
their lines: a parser changes HEAD and DEPREL only. Models with given trees
need CoNLL-U files with heads.

--best N prints the N most probable trees of a parser for each sentence, as
lines or sentences with their rank and log-probability.

A run trained with --vectors stores the vectors of its words. Other words
share a hundred vectors, or have none in a parser, unless the same --vectors
are given again: then they are looked up, as in training.

Examples:
  treelax predict runs/stars new.tsv --text review --out stars.jsonl
  treelax predict runs/stars new.tsv --vectors glove.840B.300d.zip
  treelax predict runs/tags new.conllu --format conllu
  treelax predict runs/parser --file new.conllu --out parsed.conllu
  treelax predict english new.txt --best 5
  echo "A fine film." | treelax predict runs/stars - --format tsv
"""


def predict(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="Run, saved model, english or listops.")
    ],
    given_file: Annotated[
        str | None, typer.Argument(metavar="FILE", help="Texts, or - for standard input.")
    ] = None,
    named_file: Annotated[
        str | None, typer.Option("--file", metavar="FILE", help="FILE, as an option.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Output file: .jsonl, .tsv or .conllu; default: stdout."),
    ] = None,
    form: Annotated[
        Literal["jsonl", "tsv", "conllu"] | None,
        typer.Option("--format", help="Output format. Default: by --out, or jsonl."),
    ] = None,
    text: Annotated[
        list[str] | None,
        typer.Option(help="Text or word column; twice for pairs. Default: as in training."),
    ] = None,
    given: Input = None,
    vectors: Vectors = None,
    tokens: Tokens = False,
    unusable: Annotated[
        Literal["error", "drop"] | None,
        typer.Option(
            help="drop: skip lines with too few or too many columns or words. Default: as in "
            "training."
        ),
    ] = None,
    soft: Annotated[
        bool,
        typer.Option(
            "--soft",
            help="Predict with soft trees; the tree shown is the one with the most weight.",
        ),
    ] = False,
    keep: Annotated[
        bool,
        typer.Option(
            "--keep",
            help="Keep the heads and labels of a CoNLL-U file; a parser finds those that are _.",
        ),
    ] = False,
    probabilities: Annotated[
        bool,
        typer.Option(
            "--probabilities",
            help="Also write the probability of every word's head (in CoNLL-U, into MISC).",
        ),
    ] = False,
    best: Annotated[
        int,
        typer.Option(
            min=1, help="Trees per sentence: the N best of a parser, log-probabilities too."
        ),
    ] = 1,
    device: Device = "auto",
    batch_size: Annotated[int, typer.Option(min=1, max=1_000_000, help="Texts per batch.")] = 64,
    threads: Annotated[
        int,
        typer.Option(min=0, help="CPU threads; 0: torch decides; 1 is best on a busy machine."),
    ] = 0,
) -> None:
    """Label texts; see HELP."""
    from treelax.apps.data.text.records import EMPTY, Report
    from treelax.apps.tasks.base import Source
    from treelax.apps.training.devices import find_device

    file = given_file or named_file
    if not file or (given_file and named_file):
        raise InputError(
            f"predict: received {'FILE and --file' if file else 'no FILE'}; expected one, as in "
            f"treelax predict {run} new.txt"
        )
    out = None if out == Path(STREAM) else out
    refuse_output(out, file, *(vectors or ()))
    written = form_of(form, out, ENDINGS, "jsonl")
    find_device(device, threads=threads)
    parser = load_parser(run, device, vectors, out)
    if keep and not parser.keeps_heads:
        raise InputError(f"--keep: {run} finds all heads itself; expected a dependency parser")
    if best > 1 and soft:
        raise InputError("--best: received --soft too; expected one of them")
    if probabilities:
        parser.require_heads("--probabilities")
        parser.require_scores()
    columns = tuple(text or ())
    source = Source((), file, given, columns, None, tokens, unusable, keep_empty=True, keep=keep)
    examples = read(parser, source, vectors)
    accuracy, blank, words = _Accuracy(parser), Report(), set[str]()

    def results() -> Iterator[Result]:
        asked = parser.ask(
            examples, keep=keep, soft=soft, scores=probabilities or best > 1, batch_size=batch_size
        )
        for example, prediction in asked:
            accuracy.add(example.label, prediction.label)
            if prediction.label is None and prediction.trees is None:
                blank.drop(EMPTY, example.line)
            if parser.takes_vectors and not vectors and len(words) < MOST_WORDS:
                words.update(*example.words)
            trees = [prediction]
            if best > 1 and prediction.trees:
                trees = parser.best_trees(example.texts[0], prediction, best, keep=keep)
            for rank, ranked in enumerate(trees, 1):
                shares: list[list[float]] = []
                if probabilities:
                    pairs = zip(ranked.scores or (), ranked.heads or (), strict=True)
                    tables = ((parser.marginals(scores), heads) for scores, heads in pairs)
                    shares = [[float(t[h, m]) for m, h in enumerate(hs, 1)] for t, hs in tables]
                yield Result(example, ranked, parser.shown_tags(ranked), shares=shares, rank=rank)

    with progress("predicting", unit="texts", transient=True) as bar:
        advanced = advancing(results(), bar, every=COUNT_EVERY)
        show = DisplayOptions(replace_tags=True, ranked=best > 1, probabilities=True)
        write_results(advanced, written, parser, out, show)
    without = [note.replace("dropped", "without a label") for note in blank.lines()]
    notes = [f"{examples.name}: {note}" for note in (*without, *examples.notes())]
    for line in (*filter(None, [parser.unknown_words(words)]), *notes, *accuracy.lines()):
        error_console.print(line)


def load_parser(
    run: str, device: str, vectors: Sequence[Path] | None, out: Path | None
) -> TrainedParser:
    """The model of a run; a file that it was trained with may not be written."""
    from treelax.apps.tasks import BUILT_IN, load
    from treelax.apps.training.devices import find_device

    if run not in BUILT_IN and not Path(run).exists():
        raise InputError(missing_run(run))
    parser = load(run, device=find_device(device), vectors=vectors)
    if out is not None and out.exists() and (what := parser.trained_with(out)) is not None:
        raise InputError(f"--out: received {out}, the {what} of {run}; expected another file")
    return parser


def missing_run(run: str) -> str:
    """The message for a RUN that does not exist."""
    from treelax.apps.tasks import BUILT_IN

    expected = f"the folder of a run or of a saved model, a file, or {', '.join(BUILT_IN)}"
    return f"RUN: received {run!r}, which does not exist; expected {expected}"


def read(parser: TrainedParser, source: Source, vectors: Sequence[Path] | None) -> Examples:
    """The examples of a source; with files of word vectors, once all words have been looked up."""
    examples = parser.read(source)
    if not vectors:
        return examples
    with progress("looking up words", transient=True):
        rows: list[Example] = list(examples)
        new, known = parser.look_up(word for row in rows for words in row.words for word in words)
    if new:
        error_console.print(f"word vectors: {known:,} of {new:,} words new to the model found")
    return replace(examples, rows=rows)


class _Accuracy:
    """How many labels of a file a model has found."""

    def __init__(self, parser: TrainedParser) -> None:
        self.parser, self.count, self.right = parser, 0, 0
        self.unknown: list[str] = []

    def add(self, right: Label, predicted: Label) -> None:
        from treelax.apps.tasks.base import several_labels

        if right is None or type(right) is not type(predicted):
            return  # unknown, or labels of other kinds
        for a, b in zip(several_labels(right), several_labels(predicted), strict=True):
            if a is not None:
                self.count += 1
                self.right += a == b
                self.unknown += [] if str(a) in self.parser.labels else [str(a)]

    def lines(self) -> Iterator[str]:
        if not self.count:
            return
        labelled = counted(self.count, f"labelled {'word' if self.parser.is_tagger else 'text'}")
        unknown = ""
        if self.unknown:
            unknown = f"; {len(self.unknown):,} with a label that the model does not know, counted "
            unknown += f"as wrong (the first: {short(self.unknown[0])})"
        yield f"accuracy: {100 * self.right / self.count:.2f} % of {labelled}{unknown}"


register = command("predict", HELP, predict)
