"""``treelax parse``: the trees of texts, drawn or written."""

from __future__ import annotations

import math
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from treelax.apps.cli.commands import Device, Input, Tokens, Vectors, command
from treelax.apps.cli.console import error_console
from treelax.apps.cli.output import DisplayOptions, Result, form_of, refuse_output, write_results
from treelax.apps.cli.predict import STREAM, load_parser, missing_run, read
from treelax.apps.cli.progress import advancing, progress
from treelax.errors import DataError, InputError

if TYPE_CHECKING:
    from torch import Tensor

    from treelax.apps.tasks.base import Examples, TrainedParser

HELP = """Show the trees that a trained model finds.

RUN is the folder of a run or of a saved model, or english or listops for a
model that comes with treelax. Without it, ListOps expressions go to listops
and all other texts to english. The first argument is RUN if it is english,
listops, an existing folder, a name in .safetensors or a word with a slash. A
word before -, --file or a text with spaces is RUN too, unless it ends in a
full stop, ! or ?. All else is text. To parse a text that would be taken as
RUN, give RUN first: treelax parse english Thanks "A fine film."

english was trained on UD English-EWT and has its licence, CC BY-SA 4.0;
treelax.load("english").about has its scores.

TEXT is a sentence or a ListOps expression in quotes, or - for standard input,
one text per line. Arguments without spaces are the words of one text. Pair
models take two TEXTs, or lines with two texts separated by a tab.

The tree is the best one of the scores. --soft adds the weights of the model's
soft tree, --marginals the probability of every arc. --temperature spreads
either over more arcs; --noise adds Gumbel noise to the scores, as in
training, and shows their best tree too. Samples are exact samples from the
distribution over trees, without that noise. Of both, arcs that the best tree
does not have are drawn without labels. --vectors, as for treelax predict,
looks up unknown words.

Examples:
  treelax parse "The old cat watched a small bird."
  treelax parse "[MAX 2 [MIN 4 7 ] 0 ]" --gold
  treelax parse runs/stars "A fine film." --soft
  treelax parse "She saw the man with a telescope." --marginals
  treelax parse "She saw the man with a telescope." --soft --temperature 3
  treelax parse "Time flies like an arrow." --noise 5 --seed 1
  treelax parse runs/snli "A man eats." "Somebody eats." --out pair.svg
  treelax parse runs/parser "She saw a bird." --samples 10
  treelax parse runs/tags --file new.conllu --gold --format json
"""
COUNT_EVERY = 20  # texts; a bar takes longer to draw than one of them to parse
# a value and round brackets may come before, as in the original files
EXPRESSION = re.compile(r"[\d\s(]*\[(MIN|MAX|MED|SM)\b")
SENTENCE_ENDS = (".", "!", "?", "…")  # a text of one word, not the name of a run
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
        typer.Option("--soft", help="Also show the weights of the soft tree."),
    ] = False,
    marginals: Annotated[
        bool, typer.Option("--marginals", help="Also show the probability of every arc.")
    ] = False,
    temperature: Annotated[
        float | None,
        typer.Option(metavar="T", help="Of --soft (default: the model's) or --marginals (1)."),
    ] = None,
    noise: Annotated[
        float | None,
        typer.Option(metavar="SCALE", help="Add Gumbel noise to scores, times SCALE."),
    ] = None,
    samples: Annotated[
        int, typer.Option(min=0, metavar="K", help="Also sample K trees, with frequencies.")
    ] = 0,
    seed: Annotated[
        int, typer.Option(min=0, max=2**32 - 1, help="Random seed of the samples and the noise.")
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
    from treelax.apps.pictures import supports_unicode
    from treelax.apps.tasks.base import Source

    run, texts = split_arguments(arguments or [], file)
    if file is None and texts == [STREAM]:
        file, texts = STREAM, []
    if bool(texts) == (file is not None) or STREAM in texts:
        received = "none" if run is None else f"none, with the RUN {run}"
        received = f"{texts[0]!r} and {file or STREAM}" if texts else received
        raise InputError(f"TEXT: received {received}; expected one of: texts, --file FILE, or -")
    out = None if out == Path(STREAM) else out
    refuse_output(out, file, *(vectors or ()))
    written = form_of(form, out, ENDINGS, "tree")
    asked = (("--soft", soft), ("--marginals", marginals))
    numbers = (("--temperature", temperature), ("--noise", noise))
    options = [name for name, value in (*asked, *numbers) if value not in (None, False)]
    if options and written in ("conllu", "heads", "brackets"):
        expected = "tree, json, svg or heatmap, which show weights"
        raise InputError(
            f"{options[0]}: received it with the format {written}; expected {expected}"
        )
    if soft and marginals:
        raise InputError("--soft: received it with --marginals; expected one of them")
    for name, number in numbers:
        if number is not None and not 0 < number < math.inf:
            raise InputError(f"{name}: received {number:g}; expected a number above 0")
    ascii = out is None and not supports_unicode(sys.stdout)
    parser = load_parser(run or default_model(texts, file), device, vectors, out)
    parser.require_trees()
    if gold or written == "heatmap":
        parser.require_heads("--gold" if gold else "a heat map")
    if written in ("heads", "brackets") and written != parser.notation:
        raise InputError(
            f"--format is {written}; expected {parser.notation}, the trees of {parser.name}"
        )
    by_line = file is not None
    show = DisplayOptions(gold, samples, seed, width, ascii, number=by_line, marginals=marginals)
    if samples:
        parser.require_scores()
    weigh = None
    if options or written == "heatmap":
        weigh = ArcWeights(parser, marginals, temperature, noise, seed)
        show = replace(show, weights=weigh.named, noise=weigh.noise_named)
    try:
        source = Source(tuple(texts), file, given, tokens=tokens, gold=gold)
        examples = read(parser, source, vectors)
        results = _results(parser, examples, weigh, show)
        if out is None:
            write_results(results, written, parser, out, show)
        else:
            with progress("parsing", unit="texts", transient=True) as bar:
                results = advancing(results, bar, every=COUNT_EVERY)
                write_results(results, written, parser, out, show)
    except DataError as error:
        if run is not None:
            raise
        raise DataError(f"{error} (no RUN was named, so {parser.name} reads it)") from error
    for note in examples.notes():
        error_console.print(f"{examples.name}: {note}")


def split_arguments(
    arguments: Sequence[str], file: str | None = None
) -> tuple[str | None, list[str]]:
    """Separate the model from the texts; refuse a word in the place of a RUN that does not exist."""
    from treelax.apps.tasks import BUILT_IN

    first, *texts = arguments or [""]
    # not with a Path: it raises if a long text is no possible name of a file
    if first in BUILT_IN or os.path.isdir(first) or first.endswith(".safetensors"):
        return first, texts
    if first.split() != [first]:
        return None, list(arguments)
    if {os.sep, "/"} & set(first):
        return first, texts
    has_input = file is not None or texts == [STREAM] or any(len(t.split()) > 1 for t in texts)
    if first == STREAM or first.endswith(SENTENCE_ENDS) or not has_input:
        return None, list(arguments)
    if not os.path.exists(first):
        raise InputError(
            f"{missing_run(first)} (if it is a text, name the model first: treelax parse english ...)"
        )
    return first, texts


def default_model(texts: Sequence[str], file: str | None) -> str:
    """The model for texts, or a file of them, where none is named."""
    from treelax.apps.data.input_files import one_file

    if file is None:
        first = texts[0]
    elif file == STREAM:
        first = sys.stdin.buffer.peek().decode(errors="replace")  # type: ignore[union-attr]
    else:
        first = next((line for _, line in one_file(file).lines() if line.strip()), "")
    return "listops" if EXPRESSION.match(first) else "english"


@dataclass(frozen=True)
class ArcWeights:
    """Makes weights of scores."""

    parser: TrainedParser
    marginals: bool
    temperature: float | None
    noise: float | None
    seed: int

    @property
    def named(self) -> str:
        """What the weights are."""
        name, trained = self.parser.relaxation
        usual = 1.0 if self.marginals else trained
        temperature = usual if self.temperature is None else self.temperature
        facts = [f"temperature {temperature:g}", *filter(None, [self.noise_named])]
        if self.marginals:
            parts = "arcs" if self.parser.notation == "heads" else "spans"
            return f"probabilities of {parts} ({', '.join(facts)})"
        what = "probabilities" if name == "entropy" else "weights, not probabilities"
        relaxed = name if name == "SparseMAP" else f"{name} relaxation"
        return f"soft tree ({', '.join([relaxed, *facts])}; {what})"

    @property
    def noise_named(self) -> str:
        """What is added to scores."""
        return "" if self.noise is None else f"Gumbel noise times {self.noise:g}, seed {self.seed}"

    def perturbed(self, scores: Tensor) -> Tensor:
        """Scores with the noise, the same for every text of their size."""
        import torch

        from treelax.noise import gumbel

        if self.noise is None:
            return scores
        generator = torch.Generator().manual_seed(self.seed)
        return scores + self.noise * gumbel(scores.shape, generator=generator)

    def __call__(self, scores: Tensor) -> Tensor:
        """The weights of all arcs, or spans."""
        if self.marginals:
            return self.parser.marginals(scores / (self.temperature or 1.0))
        return self.parser.soft_tree(scores, temperature=self.temperature)


def _results(
    parser: TrainedParser, examples: Examples, weigh: ArcWeights | None, show: DisplayOptions
) -> Iterator[Result]:
    """Each example with its trees."""
    for example, prediction in parser.ask(examples, scores=bool(weigh or show.samples)):
        if prediction.trees is None:
            raise InputError(f"{examples.name}, line {example.line}: has no words; expected some")
        words, scores = prediction.words, prediction.scores or ()
        perturbed = [weigh.perturbed(matrix) for matrix in scores] if weigh else []
        result = Result(
            example,
            prediction,
            parser.shown_tags(prediction),
            weights=[weigh(matrix) for matrix in perturbed] if weigh else [],
        )
        if show.noise:
            noisy = [parser.best_tree(*pair) for pair in zip(words, perturbed, strict=True)]
            result = replace(result, noisy=noisy)
        if show.samples:
            counts = [
                Counter(parser.sample_trees(text, matrix, show.samples, seed=show.seed))
                for text, matrix in zip(words, scores, strict=True)
            ]
            ranked = [sorted(c.items(), key=lambda item: (-item[1], item[0])) for c in counts]
            result = replace(result, samples=ranked)
        yield result


register = command("parse", HELP, parse)
