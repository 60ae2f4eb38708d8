"""What ``treelax predict`` reads and writes."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from treelax.data.conllu import Sentence
from treelax.data.text.readers_plain import read_lines_of_text, read_stream, read_words
from treelax.data.text.readers_table import SUFFIXES, read_table
from treelax.data.text.records import EMPTY, Records
from treelax.data.text.sources import one_file
from treelax.data.text.tokenizer import words_of
from treelax.errors import InputError
from treelax.ops.checks import one_of
from treelax.tasks.text.prediction import Example, Prediction, SentenceSettings

__all__ = ["conllu_sentences", "input_records", "json_lines", "output_form", "table_rows", "words"]

Input = Literal["tsv", "csv", "jsonl", "conll", "text"]
Output = Literal["jsonl", "tsv", "conllu"]
Said = tuple[int, Prediction]  # the line of an example, and what the model says of it
PLAIN = ("", ".txt", ".text")
STREAM = "-"
DIGITS = 6  # of probabilities
_SPACE = re.compile(r"\s")
NO_BREAK_SPACE = "\u00a0"


def input_records(
    file: str,
    settings: SentenceSettings,
    *,
    form: str | None = None,
    columns: Sequence[str] = (),
    tokens: bool = False,
) -> Records:
    """The reader for a file of texts, by its name and what the model takes.

    Args:
        file: the file, or ``-`` for standard input.
        settings: of the model.
        form: of the file, one of `Input`; by default as its name says.
        columns: of a table, with the texts; by default those that the model was trained on.
        tokens: texts are words with spaces between; also if those that it was trained on are.

    Returns:
        The records, not yet read.

    Raises:
        InputError: the form is not known or not possible, or there are too few or too many columns.
        DataError: there is no such file.
    """
    if form is not None:
        one_of("--input", form, get_args(Input))
    if file == STREAM:
        if form not in (None, "text"):
            raise InputError(
                f"--input: received {form!r} for standard input; expected text, a line each: put "
                "other formats into a file"
            )
        form = "text"
    form = form or _form_of(file, settings)
    tokens = tokens or settings.tokens
    if form in ("text", "conll"):
        if columns:
            raise InputError(
                f"--text: received {columns[0]!r}, a column, and {file} is read as {form}, which has "
                "none; leave it out, or give --input tsv, csv or jsonl"
            )
        if form == "conll":
            return _words_records(file, settings)
        if file == STREAM:
            return read_stream(sys.stdin.buffer, texts=settings.texts, tokens=tokens)
        return read_lines_of_text(file, texts=settings.texts, tokens=tokens)
    names = tuple(columns) or settings.text
    if len(names) != settings.texts:
        noun = "column" if settings.texts == 1 else "columns"
        raise InputError(
            f"--text: received {' '.join(names)}; expected {settings.texts} {noun}, for the model "
            f"is of kind {settings.kind}"
        )
    return read_table(file, names, None, format=form, tokens=tokens)  # type: ignore[arg-type]


def _words_records(file: str, settings: SentenceSettings) -> Records:
    if settings.texts != 1:
        raise InputError(
            f"--input: received 'conll', a word a line, for a model of pairs; expected {file} to be "
            "a table, or text with a tab between two texts"
        )
    return read_words(file)


def _form_of(file: str, settings: SentenceSettings) -> str:
    suffix = one_file(file, expected="a file of texts, or - for standard input").suffix
    found = SUFFIXES.get(suffix)
    if settings.kind == "tag" and found in (None, "tsv"):
        if suffix in PLAIN:  # a wrong guess would go unnoticed
            raise InputError(
                f"{file}: its name does not say what is on a line; expected --input conll, a word, "
                "or --input text, a sentence"
            )
        return "conll"  # as the files that taggers are trained on
    if found is None and suffix not in PLAIN:
        raise InputError(
            f"{file}: received a file in {suffix!r}; expected {', '.join([*SUFFIXES, '.txt'])}, or "
            f"--input with one of {', '.join(get_args(Input))}"
        )
    return found or "text"


def words(records: Records, texts: int) -> Iterator[tuple[int, Example]]:
    """The line and the words of every example, also of those that have none.

    Args:
        records: which note those without words in their report.
        texts: how many an example has.

    Returns:
        Lines and words, in the order of the file.
    """
    told = 0
    for record in records:
        blank = records.report.dropped.get(EMPTY, [])
        for line in blank[told:]:
            yield line, ((),) * texts
        told = len(blank)
        yield record.line, [words_of(record, i) for i in range(texts)]
    for line in records.report.dropped.get(EMPTY, [])[told:]:
        yield line, ((),) * texts


def output_form(form: str | None, out: Path | None, settings: SentenceSettings) -> str:
    """How to write, as told or as the name of a file says; JSON lines by default.

    Args:
        form: what was asked for, one of `Output`.
        out: the file.
        settings: of the model.

    Returns:
        One of `Output`.

    Raises:
        InputError: there is no such form, or trees are wanted of a model that has none.

    Example:
        >>> output_form(None, Path("trees.conllu.gz"), SentenceSettings())
        'conllu'
    """
    if form is None:
        suffixes = [] if out is None else [suffix.removeprefix(".") for suffix in out.suffixes[-2:]]
        form = next((s for s in reversed(suffixes) if s in get_args(Output)), "jsonl")
    one_of("--format", form, get_args(Output))
    if form == "conllu" and settings.kind != "tag" and settings.model.trees in ("none", "intra"):
        raise InputError(
            f"--format: received conllu, and the model has no trees (model.trees is "
            f"{settings.model.trees!r}); expected jsonl or tsv"
        )
    return form


def json_lines(said: Iterable[Said], settings: SentenceSettings) -> Iterator[str]:
    """A JSON object for each example.

    Args:
        said: what the model says.
        settings: of the model.

    Returns:
        The lines; texts of pairs have lists of two.

    Example:
        >>> said = Prediction((("Hi",),), "yes", {"yes": 1.0}, ((0,),))
        >>> next(json_lines([(3, said)], SentenceSettings()))
        '{"line": 3, "label": "yes", "probabilities": {"yes": 1.0}, "words": ["Hi"], "heads": [0]}'
    """
    for line, each in said:
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
        record = {"line": line, label: each.label, "probabilities": shares}
        yield json.dumps(record | {"words": texts, "heads": heads}, ensure_ascii=False)


def table_rows(said: Iterable[Said], settings: SentenceSettings) -> Iterator[str]:
    r"""The lines of a TSV file, first the names of its columns.

    Args:
        said: what the model says.
        settings: of the model.

    Returns:
        The lines; words, heads and tags have spaces between.

    Example:
        >>> said = Prediction((("Hi", "!"),), "yes", {"yes": 1.0}, ((0, 1),))
        >>> list(table_rows([(3, said)], SentenceSettings()))
        ['line\tlabel\tprobability\twords\theads', '3\tyes\t1.000000\tHi !\t0 1']
    """
    names = ["tags", "probabilities"] if settings.kind == "tag" else ["label", "probability"]
    numbers = [""] if settings.texts == 1 else ["_1", "_2"]
    both = [f"{name}{number}" for number in numbers for name in ("words", "heads")]
    yield "\t".join(["line", *names, *both])
    for line, each in said:
        label = each.label or ""
        if isinstance(label, tuple):
            label = " ".join(map(_one_word, label))
        shares = " ".join(f"{share:.{DIGITS}f}" for share in _several(each))
        cells = [str(line), _SPACE.sub(" ", label), shares]
        for i, text in enumerate(each.words):
            cells.append(" ".join(map(_one_word, text)))
            cells.append("" if each.heads is None else " ".join(map(str, each.heads[i])))
        yield "\t".join(cells)


def conllu_sentences(said: Iterable[Said], settings: SentenceSettings) -> Iterator[Sentence]:
    """A sentence with its tree for each text; those without words are left out.

    Args:
        said: what the model says.
        settings: of the model.

    Returns:
        The sentences, with the label as a comment, or with tags.

    Example:
        >>> said = Prediction((("Hi", "!"),), "yes", {"yes": 1.0}, ((0, 1),))
        >>> next(conllu_sentences([(3, said)], SentenceSettings())).metadata["label"]
        'yes'
    """
    for line, each in said:
        if each.label is None:
            continue
        about = {}
        tags: tuple[str, ...] | None = None
        if isinstance(each.label, tuple):
            tags = tuple(map(_one_word, each.label))
        else:
            [share] = _several(each)
            about = {"label": _SPACE.sub(" ", each.label), "probability": f"{share:.{DIGITS}f}"}
        for i, text in enumerate(each.words):
            name = str(line) if settings.texts == 1 else f"{line}-{i + 1}"
            forms = tuple(map(_one_word, text))
            yield Sentence(
                forms,
                None if each.heads is None else each.heads[i],
                tags,
                metadata={"sent_id": name, "text": " ".join(forms), **about},
            )


def _several(each: Prediction) -> tuple[float, ...]:
    """The probability of the label, or of each tag; nothing where there is none."""
    share = each.probability
    if share is None:
        return ()
    return share if isinstance(share, tuple) else (share,)


def _one_word(word: str) -> str:
    """A word that takes one place in a line: white space inside it does not part it."""
    return _SPACE.sub(NO_BREAK_SPACE, word)
