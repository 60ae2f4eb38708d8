"""What commands write: files, standard output, and what a model says in every form."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from treelax.apps.cli.console import error_console
from treelax.errors import InputError, counted

if TYPE_CHECKING:
    from torch import Tensor

    from treelax.apps.data.conllu import Sentence
    from treelax.apps.pictures import Picture
    from treelax.apps.tasks.base import Example, Heads, Prediction, TrainedParser, Tree
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
    """How to write: as told, as the name of a file says, or by default."""
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


class Drawing(Protocol):
    """What can be saved as a picture."""

    def save(self, path: Path, /) -> Path:
        """Write it to a file of the form that its ending says."""

    def svg(self) -> str:
        """Its text as SVG."""


def write_picture(picture: Drawing, out: Path | None) -> None:
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
        found = f"{source}: {what} has {length:,} {unit}, which may take long"
        error_console.print(f"{found}; use --max-length {LONG} to skip these")


@dataclass(frozen=True)
class Said:
    """An example with what a model says of it."""

    example: Example
    said: Prediction
    tags: tuple[str, ...] | None = None  # to write under the words
    # of each text, [head][modifier] or [first][last]; none if not asked for
    weights: tuple[list[list[float]], ...] = ()
    # of each text the best tree with noise; none if there is none
    noisy: tuple[Tree, ...] = ()
    # of each text the sampled trees and how often, the most frequent first
    samples: tuple[tuple[tuple[Tree, int], ...], ...] = ()
    # of each text the probability of every word's arc; none if not asked for
    shares: tuple[tuple[float, ...], ...] = ()
    rank: int = 1  # among several trees

    @property
    def trees(self) -> tuple[Tree, ...]:
        """The tree of each text that has words."""
        return self.said.trees or ()

    def relations(self, text: int, tree: Tree | None = None) -> tuple[str, ...] | None:
        """The labels of the arcs of a text, of another tree those that both have; None without."""
        if self.said.relations is None:
            return None
        both = zip(
            self.said.relations[text], tree or self.trees[text], self.trees[text], strict=True
        )
        return tuple(label if head == own else "" for label, head, own in both)

    @property
    def name(self) -> str | None:
        """The sentence's name in its treebank, if it is from one and has one."""
        return (self.example.block and self.example.block.id) or None

    @property
    def labelled(self) -> str | None:
        """The class with its probability, for people."""
        share = self.said.probability
        return f"{self.said.label} ({share:.2f})" if isinstance(share, float) else None


@dataclass(frozen=True)
class Look:
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


def write_said(
    said: Iterator[Said], form: str, parser: TrainedParser, out: Path | None, look: Look
) -> None:
    """Write all that a model says: in lines, as CoNLL-U, or as a picture."""
    if form in PICTURES:
        write_picture(_picture(said, form, look), out)
    else:
        write_lines(_lines(said, form, parser, look), out)


def _lines(several: Iterable[Said], form: str, parser: TrainedParser, look: Look) -> Iterator[str]:
    if form == "tsv":
        yield _table_header(parser, look)
    for number, each in enumerate(several):
        if number and form == "tree":
            yield ""
        yield from FORMS[form](each, parser, look)


def _one(values: Sequence[Any] | None) -> Any:
    """What there is of a single text, or a list with that of each."""
    if values is None:
        return None
    return values[0] if len(values) == 1 else list(values)


def _label_json(each: Said, parser: TrainedParser, look: Look) -> Iterator[str]:
    """The label with all probabilities; for a tagger, of each word that of its tag."""
    said = each.said
    shares: Any = said.probabilities
    if isinstance(shares, tuple):
        shares = [round(share, DIGITS) for share in _shares(said)]
    elif shares is not None:
        shares = {name: round(share, DIGITS) for name, share in shares.items()}
    record = _record(each)
    if parser.labels:
        record |= {"tags" if parser.is_tagger else "label": said.label, "probabilities": shares}
    record |= {"words": _one(said.words), parser.notation: _one(said.trees)}
    record |= _relations(said)
    if each.shares:
        rounded = [[round(share, DIGITS) for share in own] for own in each.shares]
        record["head_probabilities"] = _one(rounded)
    yield json.dumps(record, ensure_ascii=False)


def _tree_json(each: Said, parser: TrainedParser, look: Look) -> Iterator[str]:
    """The tree, with whatever else was asked for."""
    said, record = each.said, _record(each)
    if isinstance(said.probability, float):
        record |= {"label": said.label, "probability": round(said.probability, DIGITS)}
    if parser.is_tagger:
        record["tags"] = said.label
    record |= {"words": _one(said.words), parser.notation: _one(said.trees)} | _relations(said)
    if look.gold:
        record["gold"] = _one(each.example.gold)
    if each.weights:
        rounded = [[[round(w, DIGITS) for w in row] for row in own] for own in each.weights]
        record["marginals" if look.marginals else "weights"] = _one(rounded)
    if each.noisy:
        record[f"noisy_{parser.notation}"] = _one(each.noisy)
    if each.samples:
        counts = [[{parser.notation: tree, "count": n} for tree, n in own] for own in each.samples]
        record["samples"] = _one(counts)
    yield json.dumps(record, ensure_ascii=False)


def _record(each: Said) -> dict[str, Any]:
    record: dict[str, Any] = {"line": each.example.line}
    if each.name is not None:
        record["sent_id"] = each.name
    if each.said.log_prob is not None:
        record |= {"rank": each.rank, "log_prob": round(each.said.log_prob, DIGITS)}
    return record


def _relations(said: Prediction) -> dict[str, Any]:
    return {} if said.relations is None else {"relations": _one(said.relations)}


def _table_header(parser: TrainedParser, look: Look) -> str:
    names = ["tags", "probabilities"] if parser.is_tagger else ["label", "probability"]
    if not parser.labels:
        ranks = ["rank", "log_prob"] if look.ranked else []
        return "\t".join(["line", "words", parser.notation, "relations", *ranks])
    numbers = [""] if len(parser.text) == 1 else ["_1", "_2"]
    both = [f"{name}{number}" for number in numbers for name in ("words", parser.notation)]
    return "\t".join(["line", *names, *both])


def _table_row(each: Said, parser: TrainedParser, look: Look) -> Iterator[str]:
    said, label = each.said, each.said.label or ""
    if not isinstance(label, str):
        label = " ".join(_one_word(str(tag)) for tag in label)
    shares = " ".join(f"{share:.{DIGITS}f}" for share in _shares(said))
    cells = [str(each.example.line)]
    if parser.labels:
        cells += [_SPACE.sub(" ", label), shares]
    for i, text in enumerate(said.words):
        cells.append(" ".join(map(_one_word, text)))
        cells.append(_written(each.trees[i]) if each.trees else "")
    if not parser.labels:
        cells.append(" ".join(said.relations[0]) if said.relations else "")
    if look.ranked:
        cells += [str(each.rank), "" if said.log_prob is None else f"{said.log_prob:.{DIGITS}f}"]
    yield "\t".join(cells)


def _tree_lines(each: Said, parser: TrainedParser, look: Look) -> Iterator[str]:
    """A line of trees, or with samples a line for each different tree with its count in front."""
    if not each.samples:
        yield "\t".join(map(_written, each.trees))
    for tree, count in chain.from_iterable(each.samples):
        yield f"{count}\t{_written(tree)}"


def _written(tree: Tree) -> str:
    return tree if isinstance(tree, str) else " ".join(map(str, tree))


def _shares(said: Prediction) -> tuple[float, ...]:
    """The probability of the label, or of each tag; nothing where there is none."""
    share = said.probability
    return share if isinstance(share, tuple) else () if share is None else (share,)


def _one_word(word: str) -> str:
    """A word that takes one place in a line: white space inside it does not part it."""
    return _SPACE.sub("\u00a0", word)


def _conllu(each: Said, parser: TrainedParser, look: Look) -> Iterator[str]:
    """A sentence for each text, or for each different sampled tree; none without words.

    In the lines of a CoNLL-U file HEAD and DEPREL are replaced, DEPREL by ``_`` where the model has no
    labels of arcs; all else stays. Labels are comments, binary trees likewise; tags are in their
    column or in MISC.
    """
    block, line = each.example.block, str(each.example.line)
    known = each.said.label is not None or each.trees
    for i, words in enumerate(each.said.words if known else ()):
        forms = tuple(map(_one_word, words))
        columns, misc, about, name = {"FORM": forms}, {}, {}, line
        raw = each.example.raw[i] if each.example.raw else ""
        sentence = block or _spaced(raw, forms)
        if block is None:
            name = line if len(each.said.words) == 1 else f"{line}-{i + 1}"
            about = {"sent_id": name, "text": sentence.text}
        else:
            columns, name = {}, block.id or line
        if each.tags is not None:
            tags = tuple(_one_word(tag) or "_" for tag in each.tags)
            if block is None:
                column = parser.tag_column if parser.tag_column in TAG_COLUMNS else "UPOS"
                columns[column] = tags
            elif look.replace_tags and parser.tag_column in TAG_COLUMNS:
                columns[parser.tag_column] = tags
            else:  # a bar would part features; UD writes it so
                misc = {"PredictedTag": tuple(tag.replace("|", r"\p") for tag in tags)}
        if (relations := each.relations(i)) is not None and not each.samples:
            columns["DEPREL"] = relations
        if each.shares:
            misc["HeadProbability"] = tuple(f"{share:.{DIGITS}f}" for share in each.shares[i])
        about |= _about(each.said, "" if block is None else "predicted_")
        if each.said.log_prob is not None:
            about |= {"sent_id": f"{name}-best-{each.rank}", "rank": str(each.rank)}
            about["log_prob"] = f"{each.said.log_prob:.{DIGITS}f}"
        for tree, more in _variants(each, i, name):
            own = None
            if isinstance(tree, str):
                more["brackets"] = tree
            elif block is None or not parser.takes_trees:
                own = tree  # given trees are those of the file, whose labels of arcs fit them
            yield from sentence.with_tree(own, columns=columns, misc=misc, comments=about | more)
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
    rows = tuple("\t".join([str(m), *"_" * 8, own]) for m, own in enumerate(misc, 1))
    return Sentence(words, metadata={"text": " ".join(text.split())}, lines=rows)


def _variants(each: Said, text: int, name: str) -> Iterator[tuple[Tree | None, dict[str, str]]]:
    """The tree of a text, or those that were sampled, with their names and how often."""
    if not each.samples:
        yield each.trees[text] if each.trees else None, {}
        return
    for k, (tree, count) in enumerate(each.samples[text], 1):
        yield tree, {"sent_id": f"{name}-sample-{k}", "count": str(count)}


def _about(said: Prediction, prefix: str = "") -> dict[str, str]:
    """What is said of a class in comments."""
    if not isinstance(said.label, str):
        return {}
    [share] = _shares(said)
    label = _SPACE.sub(" ", said.label)
    return {f"{prefix}label": label, f"{prefix}probability": f"{share:.{DIGITS}f}"}


def _drawn(each: Said, parser: TrainedParser, look: Look) -> Iterator[str]:
    from treelax.apps.pictures import draw_binary_tree, draw_tree, list_brackets, list_weights

    size: dict[str, Any] = {"width": look.width, "ascii": look.ascii}

    def drawn(i: int, tree: Tree) -> str:
        words, gold = each.said.words[i], each.example.gold[i] if look.gold else None
        if isinstance(tree, str):
            return draw_binary_tree(words, _spans(tree), **size)
        return draw_tree(words, tree, gold=gold, labels=each.relations(i, tree), **size)

    if look.number:
        yield f"line {each.example.line}" + (f": {each.name}" if each.name else "")
    for i, words in enumerate(each.said.words):
        if i:
            yield ""
        yield drawn(i, each.trees[i])
        if each.tags is not None:
            told = [f"{w} {tag}" for w, tag in zip(words, each.tags, strict=True) if tag]
            yield f"tags: {', '.join(told) or 'none'}"
        best = each.trees[i]
        if each.noisy:
            best = each.noisy[i]
            yield f"best tree with {look.noise}:"
            yield drawn(i, best)
        if each.weights:
            yield f"{look.weights}:"
            if isinstance(best, str):
                yield list_brackets(words, _tensor(each.weights[i]), **size)
            else:
                yield list_weights(words, each.weights[i], heads=best, **size)
        for tree, note in _shown_samples(each, i, look):
            yield note
            if tree is not None:
                yield drawn(i, tree)
    if each.labelled is not None:
        yield f"label: {each.labelled}"


def _spans(line: str) -> list[Span]:
    """Those of a tree, whose words need not be those in the line: there, brackets are escaped."""
    from treelax.brackets import read_brackets

    return read_brackets(line, labelled=False)[1]


def _tensor(weights: list[list[float]]) -> Tensor:
    import torch

    return torch.tensor(weights, dtype=torch.float64)


def _shown_samples(each: Said, text: int, look: Look) -> Iterator[tuple[Tree | None, str]]:
    """What to say of the samples, each time with the tree to draw after it, if any."""
    if not each.samples:
        return
    samples = each.samples[text]
    total = counted(look.samples, "exact sample")
    yield None, f"{total} (seed {look.seed}): {counted(len(samples), 'different tree')}"
    for tree, count in samples[:DRAWN]:
        yield tree, f"{count} of {look.samples}:"
    if rest := samples[DRAWN:]:
        times = sum(count for _, count in rest)
        others = counted(len(rest), "other")
        yield None, f"{times} of {look.samples}: {others} (all with --format json)"


def _picture(several: Iterable[Said], form: str, look: Look) -> Picture:
    """All trees in one picture, above each other."""
    from treelax.apps.pictures import draw_heat_map, stack_pictures
    from treelax.apps.pictures.svg import draw_note

    pictures = []
    for each in several:
        for i, words in enumerate(each.said.words):
            tree, title = each.trees[i], each.labelled if i == 0 else None
            weights = each.weights[i] if each.weights else None
            best = each.noisy[i] if each.noisy else tree
            if form == "heatmap" and not isinstance(best, str):
                name = "probability" if look.marginals else "weight"
                drawn = draw_heat_map(words, weights or [], heads=best, title=title, name=name)
                pictures += [drawn, draw_note(look.weights)]
                continue
            gold = each.example.gold[i] if look.gold else None
            own, labels = None if each.noisy else weights, each.relations(i)
            pictures += _tree_pictures(
                words, tree, title, weights=own, gold=gold, tags=each.tags, labels=labels
            )
            if each.noisy:
                above = f"best tree with {look.noise}"
                labels = each.relations(i, best)
                pictures += _tree_pictures(
                    words, best, above, weights=weights, gold=gold, labels=labels
                )
            if weights:
                pictures.append(draw_note(look.weights))
            for sampled, told in _shown_samples(each, i, look):
                if sampled is None:
                    pictures.append(draw_note(told))
                else:
                    title = f"sampled {told.removesuffix(':')}"
                    labels = each.relations(i, sampled)
                    pictures += _tree_pictures(words, sampled, title, gold=gold, labels=labels)
    return stack_pictures(pictures)


def _tree_pictures(
    words: Sequence[str],
    tree: Tree,
    title: str | None,
    *,
    weights: list[list[float]] | None = None,
    gold: Heads | None = None,
    tags: Sequence[str] | None = None,
    labels: Sequence[str] | None = None,
) -> Iterator[Picture]:
    from treelax.apps.pictures import draw_arcs, draw_brackets

    if not isinstance(tree, str):
        shown: dict[str, Any] = {"labels": labels, "tags": tags, "title": title}
        yield draw_arcs(words, tree, weights=weights, gold=gold, **shown)
        return
    tagged = [(m, m, tag) for m, tag in enumerate(tags or ())]
    yield draw_brackets(words, [*_spans(tree), *tagged], title=title)
    if weights is not None:
        yield draw_brackets(words, _tensor(weights), show_weights=True)


FORMS = {
    **{"tree": _drawn, "heads": _tree_lines, "brackets": _tree_lines},
    **{"json": _tree_json, "conllu": _conllu},
    **{"jsonl": _label_json, "tsv": _table_row},
}
