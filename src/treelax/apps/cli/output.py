"""What commands write: files, standard output, and what a model says in every form."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from treelax.apps.cli.console import error_console
from treelax.errors import InputError, counted

if TYPE_CHECKING:
    from torch import Tensor

    from treelax.apps.data.conllu import Sentence
    from treelax.apps.pictures import Picture
    from treelax.apps.tasks.base import Example, Prediction, TrainedParser, Tree
    from treelax.brackets import Span

LONG = 1_000  # words or tokens
DIGITS = 6  # of probabilities and weights
DRAWN = 5  # different sampled trees; the others are counted
PICTURES = ("svg", "heatmap")
PICTURE_ENDINGS = (".svg", ".png", ".pdf")
TAG_COLUMNS = ("UPOS", "XPOS", "DEPREL")  # of CoNLL-U; tags learned from others go elsewhere
_SPACE = re.compile(r"\s")


def refuse_output(out: Path | None, *read: str | Path | None) -> None:
    """Refuse a file that is a folder, has none to be in, or is read, before any work is done."""
    if out is None:
        return
    if out.is_dir():
        raise InputError(f"{out}: is a folder; expected a file: give another --out")
    if not out.parent.is_dir():
        raise InputError(f"{out}: there is no folder {out.parent}; make it or give another --out")
    for file in read:
        if file and out.exists() and Path(file).exists() and out.samefile(file):
            raise InputError(f"--out: received {out}, the file that is read; expected another")


def form_of(form: str | None, out: Path | None, by_ending: Mapping[str, str], default: str) -> str:
    """The format: the one given, that of the file's name, or the default."""
    from treelax.apps.data.input_files import COMPRESSED

    if out is None:
        return form or default
    plain = out.with_suffix("") if out.suffix.lower() in COMPRESSED else out
    form = form or by_ending.get(plain.suffix.lower())
    if form is None:
        known = ", ".join(filter(None, by_ending))
        raise InputError(f"--out: {out} has no known ending; expected {known}, or --format")
    if (form in PICTURES) != (out.suffix.lower() in PICTURE_ENDINGS):
        known = f"{'a' if form in PICTURES else 'no'} name in {', '.join(PICTURE_ENDINGS)}"
        raise InputError(f"--out: received {out} for the format {form}; expected {known}")
    return form


def write_lines(lines: Iterable[str], out: Path | None) -> None:
    """Write lines into a file, whole or not at all and compressed as its name says, or to stdout."""
    from treelax.files import atomic_write, compressed

    if out is None:
        for line in lines:
            sys.stdout.write(line + "\n")
        return
    with atomic_write(out) as raw, compressed(raw, out, "wb") as file:
        for line in lines:
            # half a character, which JSON can write, is then as JSON writes it
            file.write((line + "\n").encode(errors="backslashreplace"))


class Saveable(Protocol):
    """What can be saved as a picture."""

    def save(self, path: Path, /) -> Path:
        """Write it to a file of the form that its ending says."""

    def svg(self) -> str:
        """Its text as SVG."""


def write_picture(picture: Saveable, out: Path | None) -> None:
    """Save a picture, or print its SVG."""
    if out is not None:
        picture.save(out)
        return
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    # what the encoding lacks can be written as the number of its character
    sys.stdout.write(picture.svg().encode(encoding, "xmlcharrefreplace").decode(encoding))


def warn_of_long(source: str, what: str, length: int, unit: str) -> None:
    """Say what makes a command take long: time grows with the cube of the length."""
    if length > LONG:
        problem = f"{source}: {what} has {length:,} {unit}, which may take long"
        error_console.print(f"{problem}; use --max-length {LONG} to skip these")


@dataclass(frozen=True)
class Result:
    """An example with its prediction."""

    example: Example
    prediction: Prediction
    tags: tuple[str, ...] | None = None  # to write under the words
    # for each text, if they were asked for:
    weights: Sequence[Tensor] = ()  # [head, modifier] or [first, last]
    noisy: Sequence[Tree] = ()  # the best tree with noise
    samples: Sequence[Sequence[tuple[Tree, int]]] = ()  # with counts, the most frequent first
    shares: Sequence[Sequence[float]] = ()  # the probability of every word's arc
    rank: int = 1  # among several trees

    @property
    def trees(self) -> tuple[Tree, ...]:
        """The tree of each text that has words."""
        return self.prediction.trees or ()

    def relations(self, text: int, tree: Tree | None = None) -> tuple[str, ...] | None:
        """The labels of the arcs of a text, of another tree those that both have; None without."""
        if (labels := self.prediction.relations) is None:
            return None
        both = zip(labels[text], tree or self.trees[text], self.trees[text], strict=True)
        return tuple(label if head == best else "" for label, head, best in both)

    @property
    def name(self) -> str | None:
        """The sentence's name in its treebank, if it is from one and has one."""
        return (self.example.block and self.example.block.id) or None

    @property
    def labelled(self) -> str | None:
        """The class with its probability, for people."""
        share = self.prediction.probability
        return f"{self.prediction.label} ({share:.2f})" if isinstance(share, float) else None


@dataclass(frozen=True)
class DisplayOptions:
    """How trees are shown."""

    gold: bool = False  # mark right and wrong arcs
    samples: int = 0  # how many trees were sampled
    seed: int = 0  # of the samples and of the noise
    width: int | None = None  # columns to fit into; the terminal's by default
    ascii: bool = False
    number: bool = False  # say on which line a text stands
    # put the tags of the model where those of a CoNLL-U file are, not beside them
    replace_tags: bool = False
    weights: str = ""  # what the weights are
    marginals: bool = False  # they are probabilities of arcs
    noise: str = ""  # what was added to scores
    ranked: bool = False  # there may be several trees of a text, with their log-probabilities
    probabilities: bool = False  # those of all labels


def write_results(
    results: Iterator[Result],
    form: str,
    parser: TrainedParser,
    out: Path | None,
    show: DisplayOptions,
) -> None:
    """Write predictions: in lines, as CoNLL-U, or as a picture."""
    if form in PICTURES:
        write_picture(_picture(results, form, show), out)
    else:
        write_lines(_lines(results, form, parser, show), out)


def _lines(
    several: Iterable[Result], form: str, parser: TrainedParser, show: DisplayOptions
) -> Iterator[str]:
    for number, result in enumerate(several):
        if form == "tsv":
            cells = _cells(result, parser, show)
            yield from ["\t".join(cells)] * (number == 0)
            yield "\t".join(cells.values())
            continue
        if number and form == "tree":
            yield ""
        yield from FORMS[form](result, parser, show)


def _one(values: Sequence[Any] | None) -> Any:
    """What there is of a single text, or a list with that of each."""
    if values is None:
        return None
    return values[0] if len(values) == 1 else list(values)


def _json(result: Result, parser: TrainedParser, show: DisplayOptions) -> Iterator[str]:
    """The label and the tree, with whatever else was asked for."""
    prediction = result.prediction
    record: dict[str, Any] = {"line": result.example.line}
    if result.name is not None:
        record["sent_id"] = result.name
    if prediction.log_prob is not None:
        record |= {"rank": result.rank, "log_prob": prediction.log_prob}
    shares: Any = prediction.probabilities
    if show.probabilities and parser.labels:
        name = "tags" if parser.is_tagger else "label"
        all_shares = prediction.probability if isinstance(shares, tuple) else shares
        record |= {name: prediction.label, "probabilities": all_shares}
    elif not show.probabilities:
        if isinstance(prediction.probability, float):
            record |= {"label": prediction.label, "probability": prediction.probability}
        if parser.is_tagger:
            record["tags"] = prediction.label
    record |= {"words": _one(prediction.words), parser.notation: _one(prediction.trees)}
    if prediction.relations is not None:
        record["relations"] = _one(prediction.relations)
    if show.gold:
        record["gold"] = _one(result.example.gold)
    if result.weights:
        record["marginals" if show.marginals else "weights"] = _one(
            [w.tolist() for w in result.weights]
        )
    if result.noisy:
        record[f"noisy_{parser.notation}"] = _one(result.noisy)
    if result.samples:
        counts = [[{parser.notation: t, "count": n} for t, n in text] for text in result.samples]
        record["samples"] = _one(counts)
    if result.shares:
        record["head_probabilities"] = _one(result.shares)
    yield json.dumps(_rounded(record), ensure_ascii=False)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, DIGITS)
    if isinstance(value, Mapping):
        return {name: _rounded(inner) for name, inner in value.items()}
    return [_rounded(inner) for inner in value] if isinstance(value, list | tuple) else value


def _cells(result: Result, parser: TrainedParser, show: DisplayOptions) -> dict[str, str]:
    """A row of a table, by the names of its columns."""
    prediction, label = result.prediction, result.prediction.label or ""
    cells = {"line": str(result.example.line)}
    if parser.labels:
        if not isinstance(label, str):
            label = " ".join(_one_word(str(tag)) for tag in label)
        shares = " ".join(f"{share:.{DIGITS}f}" for share in _shares(prediction))
        name, share = ("tags", "probabilities") if parser.is_tagger else ("label", "probability")
        cells |= {name: _SPACE.sub(" ", label), share: shares}
    for i, text in enumerate(prediction.words):
        number = "" if len(parser.text) == 1 else f"_{i + 1}"
        cells[f"words{number}"] = " ".join(map(_one_word, text))
        cells[f"{parser.notation}{number}"] = _written(result.trees[i]) if result.trees else ""
    if not parser.labels:
        cells["relations"] = " ".join(prediction.relations[0]) if prediction.relations else ""
    if show.ranked:
        log_prob = prediction.log_prob
        share = "" if log_prob is None else f"{log_prob:.{DIGITS}f}"
        cells |= {"rank": str(result.rank), "log_prob": share}
    return cells


def _tree_lines(result: Result, parser: TrainedParser, show: DisplayOptions) -> Iterator[str]:
    """A line of trees, or with samples a line for each different tree with its count in front."""
    if not result.samples:
        yield "\t".join(map(_written, result.trees))
    for tree, count in chain.from_iterable(result.samples):
        yield f"{count}\t{_written(tree)}"


def _written(tree: Tree) -> str:
    return tree if isinstance(tree, str) else " ".join(map(str, tree))


def _shares(prediction: Prediction) -> tuple[float, ...]:
    """The probability of the label, or of each tag; nothing where there is none."""
    share = prediction.probability
    return share if isinstance(share, tuple) else () if share is None else (share,)


def _one_word(word: str) -> str:
    """A word that takes one place in a line: white space inside it does not part it."""
    return _SPACE.sub("\u00a0", word)


def _conllu(result: Result, parser: TrainedParser, show: DisplayOptions) -> Iterator[str]:
    """A sentence for each text, or for each different sampled tree; none without words.

    In the lines of a CoNLL-U file HEAD and DEPREL are replaced, DEPREL by ``_`` where the model has no
    labels of arcs; all else stays. Labels are comments, binary trees likewise; tags are in their
    column or in MISC.
    """
    block, line, prediction = result.example.block, str(result.example.line), result.prediction
    known = prediction.label is not None or result.trees
    for i, words in enumerate(prediction.words if known else ()):
        forms = tuple(map(_one_word, words))
        columns, misc, about, name = {}, {}, {}, block and (block.id or line)
        if (sentence := block) is None:
            sentence = _spaced(result.example.raw[i] if result.example.raw else "", forms)
            name = line if len(prediction.words) == 1 else f"{line}-{i + 1}"
            columns, about = {"FORM": forms}, {"sent_id": name, "text": sentence.text}
        if result.tags is not None:
            tags = tuple(_one_word(tag) or "_" for tag in result.tags)
            in_column = parser.tag_column in TAG_COLUMNS
            if block is None:
                columns[parser.tag_column if in_column else "UPOS"] = tags
            elif show.replace_tags and in_column:
                columns[parser.tag_column] = tags
            else:  # a bar would part features; UD writes it so
                misc["PredictedTag"] = tuple(tag.replace("|", r"\p") for tag in tags)
        if (relations := result.relations(i)) is not None and not result.samples:
            columns["DEPREL"] = relations
        if result.shares:
            misc["HeadProbability"] = tuple(f"{share:.{DIGITS}f}" for share in result.shares[i])
        if isinstance(prediction.label, str):
            prefix, [share] = "" if block is None else "predicted_", _shares(prediction)
            about[f"{prefix}label"] = _SPACE.sub(" ", prediction.label)
            about[f"{prefix}probability"] = f"{share:.{DIGITS}f}"
        if prediction.log_prob is not None:
            about |= {"sent_id": f"{name}-best-{result.rank}", "rank": str(result.rank)}
            about["log_prob"] = f"{prediction.log_prob:.{DIGITS}f}"
        variants: list[tuple[Tree | None, dict[str, str]]]
        variants = [(result.trees[i] if result.trees else None, {})]
        if result.samples:
            variants = [
                (tree, {"sent_id": f"{name}-sample-{k}", "count": str(count)})
                for k, (tree, count) in enumerate(result.samples[i], 1)
            ]
        for tree, more in variants:
            shown = None
            if isinstance(tree, str):
                more["brackets"] = tree
            elif block is None or not parser.takes_trees:
                shown = tree  # given trees are those of the file, whose labels of arcs fit them
            yield from sentence.with_tree(shown, columns=columns, misc=misc, comments=about | more)
            yield ""


def _spaced(text: str, words: tuple[str, ...]) -> Sentence:
    """A sentence that keeps the spaces of its text, if that has these very words."""
    from treelax.apps.data.conllu import Sentence

    ends, end = [], 0
    for word in words:
        start = end + len(text[end:]) - len(text[end:].lstrip())
        if not text.startswith(word, start):  # some tokenisers write `` for a quote
            return Sentence(words, metadata={"text": " ".join(words)})
        end = start + len(word)
        ends.append(end)
    misc = ["_" if text[end : end + 1].strip() == "" else "SpaceAfter=No" for end in ends]
    rows = tuple("\t".join([str(m), *"_" * 8, note]) for m, note in enumerate(misc, 1))
    return Sentence(words, metadata={"text": " ".join(text.split())}, lines=rows)


def _drawn(result: Result, parser: TrainedParser, show: DisplayOptions) -> Iterator[str]:
    from treelax.apps.pictures import draw_binary_tree, draw_tree, list_brackets, list_weights

    size: dict[str, Any] = {"width": show.width, "ascii": show.ascii}

    def drawn(i: int, tree: Tree) -> str:
        words, gold = result.prediction.words[i], result.example.gold[i] if show.gold else None
        if isinstance(tree, str):
            return draw_binary_tree(words, _spans(tree), **size)
        return draw_tree(words, tree, gold=gold, labels=result.relations(i, tree), **size)

    if show.number:
        yield f"line {result.example.line}" + (f": {result.name}" if result.name else "")
    for i, words in enumerate(result.prediction.words):
        if i:
            yield ""
        yield drawn(i, result.trees[i])
        if result.tags is not None:
            tagged = [f"{w} {tag}" for w, tag in zip(words, result.tags, strict=True) if tag]
            yield f"tags: {', '.join(tagged) or 'none'}"
        best = result.trees[i]
        if result.noisy:
            best = result.noisy[i]
            yield f"best tree with {show.noise}:"
            yield drawn(i, best)
        if result.weights:
            yield f"{show.weights}:"
            if isinstance(best, str):
                yield list_brackets(words, result.weights[i], **size)
            else:
                yield list_weights(words, result.weights[i], heads=best, **size)
        for tree, note in _samples(result, i, show):
            yield note
            if tree is not None:
                yield drawn(i, tree)
    if result.labelled is not None:
        yield f"label: {result.labelled}"


def _spans(line: str) -> list[Span]:
    """Those of a tree, whose words need not be those in the line: there, brackets are escaped."""
    from treelax.brackets import read_brackets

    return read_brackets(line, labelled=False)[1]


def _samples(result: Result, text: int, show: DisplayOptions) -> Iterator[tuple[Tree | None, str]]:
    """Notes on the samples, each with the tree to draw after it, if any."""
    if not result.samples:
        return
    samples = result.samples[text]
    total = counted(show.samples, "exact sample")
    yield None, f"{total} (seed {show.seed}): {counted(len(samples), 'different tree')}"
    for tree, count in samples[:DRAWN]:
        yield tree, f"{count} of {show.samples}:"
    if rest := samples[DRAWN:]:
        times = sum(count for _, count in rest)
        others = counted(len(rest), "other")
        yield None, f"{times} of {show.samples}: {others} (all with --format json)"


def _picture(several: Iterable[Result], form: str, show: DisplayOptions) -> Picture:
    """All trees in one picture, above each other."""
    from treelax.apps.pictures import draw_heat_map, stack_pictures
    from treelax.apps.pictures.svg import draw_note

    pictures: list[Picture] = []
    for result in several:
        for i, words in enumerate(result.prediction.words):
            tree, title = result.trees[i], result.labelled if i == 0 else None
            weights = result.weights[i] if result.weights else None
            best = result.noisy[i] if result.noisy else tree
            if form == "heatmap" and not isinstance(best, str):
                name = "probability" if show.marginals else "weight"
                drawn = draw_heat_map(words, result.weights[i], heads=best, title=title, name=name)
                pictures += [drawn, draw_note(show.weights)]
                continue
            draw = partial(_tree_pictures, result, i, show)
            pictures += draw(tree, title, None if result.noisy else weights, result.tags)
            if result.noisy:
                pictures += draw(best, f"best tree with {show.noise}", weights)
            if weights is not None:
                pictures.append(draw_note(show.weights))
            for sampled, note in _samples(result, i, show):
                if sampled is None:
                    pictures.append(draw_note(note))
                else:
                    pictures += draw(sampled, f"sampled {note.removesuffix(':')}")
    return stack_pictures(pictures)


def _tree_pictures(
    result: Result,
    text: int,
    show: DisplayOptions,
    tree: Tree,
    title: str | None,
    weights: Tensor | None = None,
    tags: Sequence[str] | None = None,
) -> Iterator[Picture]:
    from treelax.apps.pictures import draw_arcs, draw_brackets

    words = result.prediction.words[text]
    if not isinstance(tree, str):
        gold, labels = (
            result.example.gold[text] if show.gold else None,
            result.relations(text, tree),
        )
        yield draw_arcs(
            words, tree, weights=weights, gold=gold, labels=labels, tags=tags, title=title
        )
        return
    tagged = [(m, m, tag) for m, tag in enumerate(tags or ())]
    yield draw_brackets(words, [*_spans(tree), *tagged], title=title)
    if weights is not None:
        yield draw_brackets(words, weights, show_weights=True)


FORMS = {
    **{"tree": _drawn, "heads": _tree_lines, "brackets": _tree_lines},
    **{"json": _json, "jsonl": _json, "conllu": _conllu},
}
