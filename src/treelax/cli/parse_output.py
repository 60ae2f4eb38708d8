"""How ``treelax parse`` writes trees."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from treelax.cli.parse_models import Asked, Heads, Parsed, Tree
from treelax.data.input_files import COMPRESSED
from treelax.errors import InputError
from treelax.pictures import (
    Picture,
    draw_arcs,
    draw_heat_map,
    draw_tree,
    list_weights,
    stack_pictures,
)
from treelax.pictures.svg import draw_note

Form = Literal["tree", "heads", "json", "conllu", "svg", "heatmap"]
# what may stand in a file of each ending; the first is taken where --format says nothing
ENDINGS: dict[str, tuple[Form, ...]] = {
    ".txt": ("tree", "heads", "json", "conllu"),
    ".svg": ("svg", "heatmap"),
    ".png": ("svg", "heatmap"),
    ".pdf": ("svg", "heatmap"),
    ".json": ("json",),
    ".jsonl": ("json",),
    ".conllu": ("conllu",),
}
DRAWINGS = ("svg", "heatmap")
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


def form_of(form: Form | None, out: Path | None, asked: Asked) -> Form:
    """How to write, as told or as the name of a file says; drawings by default."""
    found = form or "tree"
    if out is not None:
        found = _form_of_file(form, found, out)
    if asked.weights and found in ("conllu", "heads"):
        raise InputError(
            f"--soft: received it with the format {found}, which has no place for weights; "
            "expected tree, json, svg or heatmap"
        )
    return found


def _form_of_file(asked: str | None, form: Form, out: Path) -> Form:
    packed = out.suffix.lower() in COMPRESSED
    ending = (out.with_suffix("") if packed else out).suffix.lower()
    fitting = ENDINGS.get(ending)
    if asked is None:
        if fitting is None:
            raise InputError(
                f"--out: received {out}, whose ending does not say what to write; expected one in "
                f"{', '.join(ENDINGS)}, or --format besides"
            )
        form = fitting[0]
    elif fitting is not None and form not in fitting:
        raise InputError(
            f"--out: received {out} with --format {form}; expected {_endings(form)}, or --format "
            f"{' or '.join(fitting)}"
        )
    if form in DRAWINGS and (packed or fitting is None):
        raise InputError(
            f"--out: received {out} for a picture; expected a name in {_endings(form)}"
        )
    return form


def _endings(form: Form) -> str:
    return " or ".join(ending for ending, forms in ENDINGS.items() if form in forms)


# ------------------------------------------------------------------ lines of text


def lines_of(parsed: Iterable[Parsed], form: Form, look: Look) -> Iterator[str]:
    """Lines for "tree", "heads" or "json"."""
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
    if _name(each) is not None:
        record["sent_id"] = _name(each)
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
        name = _name(each)
        yield f"line {each.line}" if name is None else f"line {each.line}: {name}"
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


def _name(each: Parsed) -> str | None:
    """The sentence's name in its treebank, if it is from one and has one."""
    return None if each.block is None else each.block.id or None


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
        others = "1 other" if len(rest) == 1 else f"{len(rest)} others"
        yield None, f"{times} of {asked.samples}: {others} (all with --format json)"


# ------------------------------------------------------------------ pictures


def picture_of(parsed: Iterable[Parsed], form: Form, look: Look) -> Picture:
    """All trees in one picture, above each other."""
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
                if heads is None:
                    pictures.append(draw_note(told))
                else:
                    title = f"sampled {told.removesuffix(':')}"
                    pictures.append(draw_arcs(tree.words, heads, gold=gold, title=title))
    return stack_pictures(pictures)
