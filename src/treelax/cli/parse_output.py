"""How ``treelax parse`` writes trees."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from treelax.cli.parse_models import Asked, Heads, Parsed, Tree
from treelax.data.conllu import Sentence
from treelax.errors import InputError
from treelax.ops.checks import one_of
from treelax.pictures import (
    Picture,
    draw_arcs,
    draw_heat_map,
    draw_tree,
    list_weights,
    stack_pictures,
)

__all__ = ["Form", "Look", "conllu_sentences", "form_of", "lines_of", "picture_of"]

Form = Literal["tree", "heads", "json", "conllu", "svg", "heatmap"]
SUFFIXES: dict[str, Form] = {
    ".svg": "svg",
    ".png": "svg",
    ".pdf": "svg",
    ".json": "json",
    ".jsonl": "json",
    ".conllu": "conllu",
}
PACKED = (".gz", ".xz", ".bz2")
DRAWN = 5  # different sampled trees; the others are counted
DIGITS = 6  # of weights in JSON


@dataclass(frozen=True)
class Look:
    """How trees are shown.

    Attributes:
        gold: mark right and wrong arcs.
        asked: what was asked besides the trees.
        width: columns to fit into; the terminal's by default.
        ascii: in ASCII characters only.
        number: say on which line a text stands.
    """

    gold: bool = False
    asked: Asked = field(default_factory=Asked)
    width: int | None = None
    ascii: bool = False
    number: bool = False


def form_of(form: str | None, out: Path | None, asked: Asked) -> Form:
    """How to write, as told or as the name of a file says; drawings by default.

    Args:
        form: what was asked for.
        out: the file.
        asked: what is to be shown besides trees.

    Returns:
        The form.

    Raises:
        InputError: there is no such form, or it has no place for weights.

    Example:
        >>> form_of(None, Path("trees.conllu.gz"), Asked())
        'conllu'
    """
    if form is None:
        inner = out.with_suffix("") if out is not None and out.suffix in PACKED else out
        form = "tree" if inner is None else SUFFIXES.get(inner.suffix.lower(), "tree")
    one_of("--format", form, get_args(Form))
    found: Form = form  # type: ignore[assignment]
    if asked.weights and found in ("conllu", "heads"):
        raise InputError(
            f"--soft: received it with the format {found}, which has no place for weights; "
            "expected tree, json, svg or heatmap"
        )
    return found


# ------------------------------------------------------------------ lines of text


def lines_of(parsed: Iterable[Parsed], form: Form, look: Look) -> Iterator[str]:
    """Lines for "tree", "heads" or "json".

    Args:
        parsed: what the model says.
        form: one of the three.
        look: how trees are shown.

    Returns:
        Texts of one line or more, to be written with a line end after each.

    Example:
        >>> one = Parsed(1, (Tree(("Dogs", "bark"), (2, 0)),), "yes", 0.75)
        >>> list(lines_of([one], "heads", Look()))
        ['2 0']
        >>> list(lines_of([one], "tree", Look(width=40)))[-1]
        'label: yes (0.75)'
    """
    for i, each in enumerate(parsed):
        if form == "json":
            yield _json(each, look)
        elif form == "heads":
            yield from _heads(each)
        else:
            if i:
                yield ""
            yield from _drawn(each, look)


def _heads(each: Parsed) -> Iterator[str]:
    """A line of heads, or with samples a line for each different tree with its count in front."""
    if not any(tree.samples for tree in each.trees):
        yield "\t".join(" ".join(map(str, tree.heads)) for tree in each.trees)
        return
    for tree in each.trees:
        for heads, count in tree.samples:
            yield f"{count}\t{' '.join(map(str, heads))}"


def _json(each: Parsed, look: Look) -> str:
    def several(values: Sequence[Any]) -> Any:
        return values[0] if len(values) == 1 else list(values)

    record: dict[str, Any] = {"line": each.line}
    if each.label is not None and each.probability is not None:
        record |= {"label": each.label, "probability": round(each.probability, DIGITS)}
    if each.trees[0].tags is not None:
        record["tags"] = several([tree.tags for tree in each.trees])
    record["words"] = several([tree.words for tree in each.trees])
    record["heads"] = several([tree.heads for tree in each.trees])
    if look.gold:
        record["gold"] = several([tree.gold for tree in each.trees])
    if look.asked.weights:
        record["weights"] = several(
            [[[round(w, DIGITS) for w in row] for row in tree.weights or ()] for tree in each.trees]
        )
    if look.asked.samples:
        record["samples"] = several(
            [[{"heads": heads, "count": count} for heads, count in t.samples] for t in each.trees]
        )
    return json.dumps(record, ensure_ascii=False)


def _drawn(each: Parsed, look: Look) -> Iterator[str]:
    if look.number:
        yield f"line {each.line}"
    for i, tree in enumerate(each.trees):
        if i:
            yield ""
        yield _tree(tree, tree.heads, look)
        if tree.notes is not None:
            told = [f"{w} {note}" for w, note in zip(tree.words, tree.notes, strict=True) if note]
            yield f"tags: {', '.join(told) or 'none'}"
        if tree.weights is not None:
            yield "weights of heads:"
            yield list_weights(tree.words, tree.weights, width=look.width, ascii=look.ascii)
        for heads, told_of in _samples(tree, look.asked):
            yield told_of
            if heads is not None:
                yield _tree(tree, heads, look)
    if each.label is not None:
        yield f"label: {_labelled(each)}"


def _tree(tree: Tree, heads: Heads, look: Look) -> str:
    gold = tree.gold if look.gold else None
    return draw_tree(tree.words, heads, gold=gold, width=look.width, ascii=look.ascii)


def _labelled(each: Parsed) -> str:
    return f"{each.label} ({each.probability:.2f})"


def _samples(tree: Tree, asked: Asked) -> Iterator[tuple[Heads | None, str]]:
    """What to say of the samples, each time with the tree to draw after it, if any."""
    if not tree.samples:
        return
    count, different = asked.samples, len(tree.samples)
    samples = "1 exact sample" if count == 1 else f"{count} exact samples"
    trees = "1 tree" if different == 1 else f"{different} different trees"
    yield None, f"{samples} (seed {asked.seed}): {trees}"
    for heads, count in tree.samples[:DRAWN]:
        yield heads, f"{count} of {asked.samples}:"
    rest = tree.samples[DRAWN:]
    if rest:
        times = sum(count for _, count in rest)
        yield None, f"{times} of {asked.samples}: {len(rest)} others (all with --format json)"


# ------------------------------------------------------------------ pictures and CoNLL-U


def picture_of(parsed: Iterable[Parsed], form: Form, look: Look) -> Picture:
    """All trees in one picture, above each other.

    Args:
        parsed: what the model says.
        form: "svg" for arcs, "heatmap" for the weights of all arcs.
        look: how trees are shown.

    Returns:
        The picture.

    Example:
        >>> one = Parsed(1, (Tree(("Dogs", "bark"), (2, 0)),), "yes", 0.75)
        >>> picture_of([one], "svg", Look()).title
        'yes (0.75)'
    """
    pictures = []
    for each in parsed:
        for i, tree in enumerate(each.trees):
            title = _labelled(each) if each.label is not None and i == 0 else None
            gold = tree.gold if look.gold else None
            if form == "heatmap":
                pictures.append(
                    draw_heat_map(
                        tree.words,
                        tree.weights or [],
                        heads=tree.heads,
                        title=title,
                        name="weight",
                    )
                )
                continue
            weights = tree.weights
            pictures.append(
                draw_arcs(
                    tree.words, tree.heads, weights=weights, gold=gold, tags=tree.notes, title=title
                )
            )
            for heads, told in _samples(tree, look.asked):
                if heads is not None:
                    title = f"sampled {told.removesuffix(':')}"
                    pictures.append(draw_arcs(tree.words, heads, gold=gold, title=title))
    return stack_pictures(pictures)


def conllu_sentences(parsed: Iterable[Parsed]) -> Iterator[Sentence]:
    """A sentence for each text, or for each different sampled tree of it.

    Args:
        parsed: what the model says.

    Returns:
        The sentences, with labels as comments.

    Example:
        >>> one = Parsed(3, (Tree(("Dogs", "bark"), (2, 0)),), "yes", 0.75)
        >>> next(conllu_sentences([one])).metadata
        {'sent_id': '3', 'text': 'Dogs bark', 'label': 'yes', 'probability': '0.750000'}
    """
    for each in parsed:
        about = {}
        if each.label is not None:
            about = {"label": _flat(each.label), "probability": f"{each.probability:.{DIGITS}f}"}
        for i, tree in enumerate(each.trees, 1):
            name = str(each.line) if len(each.trees) == 1 else f"{each.line}-{i}"
            words = tuple(map(_flat, tree.words))
            tags = None if tree.notes is None else tuple(_flat(note) or "_" for note in tree.notes)
            told = {"text": " ".join(words), **about}
            if not tree.samples:
                yield Sentence(words, tree.heads, tags, metadata={"sent_id": name, **told})
            for k, (heads, count) in enumerate(tree.samples, 1):
                named = {"sent_id": f"{name}-sample-{k}", **told, "count": str(count)}
                yield Sentence(words, heads, tags, metadata=named)


def _flat(text: str) -> str:
    """A text that takes one place in a line: white space inside it does not part it."""
    return "\u00a0".join(text.split()) if text.split() != [text] else text
