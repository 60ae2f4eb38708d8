"""How ``treelax parse`` writes CoNLL-U: new sentences, or trees put into those of a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from treelax.cli.parse_models import Heads, Parsed
from treelax.data.conllu import Sentence

DIGITS = 6  # of probabilities


def conllu_sentences(parsed: Iterable[Parsed]) -> Iterator[Sentence]:
    """A sentence for each text, or for each different sampled tree of it."""
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


def treebank_lines(parsed: Iterable[Parsed]) -> Iterator[str]:
    r"""The lines of a CoNLL-U file with the trees of a model in them, so that both can be aligned.

    HEAD is replaced and DEPREL is ``_``; all else stays as `Sentence.with_tree` says.
    Labels are comments, ``predicted_label`` and ``predicted_probability``, and tags of a tagger are
    in MISC, ``PredictedTag=N``, for the file may have its own of both. Each different sampled tree
    is a sentence, whose ``sent_id`` tells which sample it is.
    """
    for each in parsed:
        assert each.block is not None  # what is not from such a file is written as sentences
        [tree] = each.trees
        about = label_comments(each.label, each.probability)
        named: list[tuple[Heads, dict[str, str]]] = [(tree.heads, about)]
        if tree.samples:
            name = each.block.id or str(each.line)
            named = [
                (heads, {"sent_id": f"{name}-sample-{k}", **about, "count": str(count)})
                for k, (heads, count) in enumerate(tree.samples, 1)
            ]
        tags = None if tree.notes is None else tag_features(tree.notes)
        for heads, comments in named:
            yield from each.block.with_tree(heads, misc=tags, comments=comments)
            yield ""


def label_comments(label: str | None, probability: float | None) -> dict[str, str]:
    """What is said of a class in a file of sentences that may have classes of its own."""
    if label is None:
        return {}
    share = f"{probability:.{DIGITS}f}"
    return {"predicted_label": _flat(label), "predicted_probability": share}


def tag_features(tags: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Tags of words as a feature in MISC, which leaves the columns of a file as they are."""
    # a bar would part features; UD writes it so
    return {"PredictedTag": tuple(_flat(tag).replace("|", r"\p") or "_" for tag in tags)}


def _flat(text: str) -> str:
    """A text that takes one place in a line: white space inside it does not part it."""
    return "\u00a0".join(text.split()) if text.split() != [text] else text
