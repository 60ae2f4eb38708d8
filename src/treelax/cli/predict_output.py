"""What ``treelax predict`` writes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from treelax.cli.parse_conllu import label_comments, tag_features
from treelax.data.conllu import Sentence
from treelax.data.input_files import COMPRESSED
from treelax.data.text.ptb import NO_BREAK_SPACE
from treelax.errors import InputError
from treelax.tasks.text.prediction import Prediction, SentenceSettings

Output = Literal["jsonl", "tsv", "conllu"]
DIGITS = 6  # of probabilities
_SPACE = re.compile(r"\s")
# columns of CoNLL-U to fields of a sentence; tags of others go where tags usually are
TAG_COLUMNS = {"UPOS": "tags", "XPOS": "xpos", "DEPREL": "labels"}


@dataclass(frozen=True)
class Said:
    """What the model says of an example.

    Attributes:
        line: where it stands.
        prediction: what the model says.
        block: the lines of a CoNLL-U file that it is from; None for other texts.
    """

    line: int
    prediction: Prediction
    block: Sentence | None = None

    @property
    def name(self) -> str | None:
        """The sentence's name in its treebank, if it is from one and has one."""
        return None if self.block is None else self.block.id


def output_form(form: str | None, out: Path | None, settings: SentenceSettings) -> str:
    """How to write, as told or as the name of a file says; JSON lines by default."""
    if form is None:
        form = "jsonl" if out is None else _form_by_name(out)
    if form == "conllu" and settings.kind != "tag" and settings.model.trees in ("none", "intra"):
        raise InputError(
            f"--format: received conllu, and the model has no trees (model.trees is "
            f"{settings.model.trees!r}); expected jsonl or tsv"
        )
    return form


def _form_by_name(out: Path) -> str:
    plain = out.with_suffix("") if out.suffix.lower() in COMPRESSED else out
    form = plain.suffix.lower().removeprefix(".") or "jsonl"
    if form not in get_args(Output):
        raise InputError(
            f"--out: received {out}, whose ending says no format; expected "
            f"{', '.join(f'.{known}' for known in get_args(Output))}, also compressed "
            f"({', '.join(COMPRESSED)}), or --format with one of them"
        )
    return form


def json_lines(said: Iterable[Said], settings: SentenceSettings) -> Iterator[str]:
    """A JSON object for each example."""
    for one in said:
        each = one.prediction
        heads: Any = each.heads
        texts: Any = each.words
        if settings.texts == 1:
            heads, texts = None if heads is None else heads[0], texts[0]
        shares: Any = each.probabilities
        if isinstance(shares, tuple):  # of each word that of its tag: all would be far too many
            shares = [round(share, DIGITS) for share in _several(each)]
        elif shares is not None:
            shares = {name: round(share, DIGITS) for name, share in shares.items()}
        label = "tags" if settings.kind == "tag" else "label"
        named = {} if one.name is None else {"sent_id": one.name}
        record = {"line": one.line, **named, label: each.label, "probabilities": shares}
        yield json.dumps(record | {"words": texts, "heads": heads}, ensure_ascii=False)


def table_rows(said: Iterable[Said], settings: SentenceSettings) -> Iterator[str]:
    """The lines of a TSV file, first the names of its columns."""
    names = ["tags", "probabilities"] if settings.kind == "tag" else ["label", "probability"]
    numbers = [""] if settings.texts == 1 else ["_1", "_2"]
    both = [f"{name}{number}" for number in numbers for name in ("words", "heads")]
    yield "\t".join(["line", *names, *both])
    for one in said:
        each = one.prediction
        label = each.label or ""
        if isinstance(label, tuple):
            label = " ".join(map(_one_word, label))
        shares = " ".join(f"{share:.{DIGITS}f}" for share in _several(each))
        cells = [str(one.line), _SPACE.sub(" ", label), shares]
        for i, text in enumerate(each.words):
            cells.append(" ".join(map(_one_word, text)))
            cells.append("" if each.heads is None else " ".join(map(str, each.heads[i])))
        yield "\t".join(cells)


def conllu_sentences(said: Iterable[Said], settings: SentenceSettings) -> Iterator[Sentence]:
    """A sentence with its tree for each text; those without words are left out."""
    for one in said:
        each = one.prediction
        if each.label is None:
            continue
        about = {}
        tags: dict[str, Any] = {}
        if isinstance(each.label, tuple):
            place = TAG_COLUMNS.get(settings.label or "UPOS", "tags")
            tags[place] = tuple(map(_one_word, each.label))
        else:
            [share] = _several(each)
            about = {"label": _SPACE.sub(" ", each.label), "probability": f"{share:.{DIGITS}f}"}
        for i, text in enumerate(each.words):
            name = str(one.line) if settings.texts == 1 else f"{one.line}-{i + 1}"
            forms = tuple(map(_one_word, text))
            yield Sentence(
                forms,
                None if each.heads is None else each.heads[i],
                metadata={"sent_id": name, "text": " ".join(forms), **about},
                **tags,
            )


def treebank_lines(said: Iterable[Said], settings: SentenceSettings) -> Iterator[str]:
    r"""The lines of a CoNLL-U file with what a model says in them; those without words are left out.

    HEAD is replaced and DEPREL is ``_``, as `treelax parse` does it, unless the model has no trees of
    its own; all else stays. Labels are comments, ``predicted_label`` and ``predicted_probability``,
    for the file may have its own of both. Tags are in the column they were learned from, or in MISC,
    ``PredictedTag=N``, if that is none of UPOS, XPOS and DEPREL.
    """
    column = settings.label or "UPOS"
    for one in said:
        each = one.prediction
        if one.block is None or each.label is None:
            continue
        comments: dict[str, str] = {}
        columns: dict[str, tuple[str, ...]] = {}
        misc: dict[str, tuple[str, ...]] = {}
        if isinstance(each.label, str):
            [share] = _several(each)
            comments = label_comments(each.label, share)
        elif column in TAG_COLUMNS:
            columns = {column: tuple(map(_one_word, each.label))}
        else:
            misc = tag_features(each.label)
        # given trees are those of the file, whose labels of arcs fit them
        own = None if each.heads is None or settings.model.trees == "given" else each.heads[0]
        yield from one.block.with_tree(own, columns=columns, misc=misc, comments=comments)
        yield ""


def _several(each: Prediction) -> tuple[float, ...]:
    """The probability of the label, or of each tag; nothing where there is none."""
    share = each.probability
    if share is None:
        return ()
    return share if isinstance(share, tuple) else (share,)


def _one_word(word: str) -> str:
    """A word that takes one place in a line: white space inside it does not part it."""
    return _SPACE.sub(NO_BREAK_SPACE, word)
