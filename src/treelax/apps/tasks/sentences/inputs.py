"""Texts that a user gives a model of sentences: arguments, tables, lines or CoNLL-U."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import torch

from treelax.apps.data.conllu import COLUMNS, Sentence, read_conllu
from treelax.apps.data.input_files import one_file
from treelax.apps.data.text.ptb import one_word, spaced_words
from treelax.apps.data.text.readers_table import SUFFIXES, read_lines_of_text, read_table
from treelax.apps.data.text.readers_tagging import WORD_SUFFIXES, column_of, read_tagging
from treelax.apps.data.text.records import (
    MAX_WORDS,
    TOO_LONG,
    CheckOptions,
    Record,
    Records,
    Report,
    Unusable,
    words_of,
)
from treelax.apps.data.text.tokenizer import Cut, tokenize
from treelax.apps.tasks.base import Example, Examples, Source, Text
from treelax.errors import DataError, InputError, short
from treelax.trees import is_tree

STREAM = "-"
CONLLU = ".conllu"
PLAIN = ("", ".txt", ".text")
FORMS = ("conll", "conllu", "text", *dict.fromkeys(SUFFIXES.values()))


@dataclass(frozen=True)
class ReadOptions:
    """How the texts of a model are read, which is as in its training; see the data of its config."""

    kind: str = "parser"  # "pair" has two texts, "tag" tags of words
    text: tuple[str, ...] = ("text",)
    word: str | None = None
    label: str | None = None  # column of classes or tags
    tokens: bool = False
    quoted: bool | None = None
    unusable: Unusable = "error"

    @property
    def texts(self) -> int:
        """How many texts an example has."""
        return 2 if self.kind == "pair" else 1

    @property
    def needs_trees(self) -> bool:
        """Whether trees are given with the texts."""
        return False


def words_in(text: Text) -> tuple[str, ...]:
    """The words of a text."""
    return text.words if isinstance(text, Sentence) else tuple(text)


def text_words(text: Any, where: str, tokens: bool, cut: Cut = tokenize) -> Text:
    """The words of a text that is a string, a list of words or a sentence."""
    if isinstance(text, Sentence):
        spaced = " " in "".join(text.words)
        return replace(text, words=tuple(map(one_word, text.words))) if spaced else text
    if isinstance(text, str):
        if not text or text.isspace():
            return ()
        return words_of(Record((spaced_words(text) if tokens else text,), None, 1, tokens), 0, cut)
    if not isinstance(text, list | tuple):
        raise InputError(f"{where}: received {short(text)}; expected a text or a list of its words")
    for word in text:
        if not isinstance(word, str) or not word.strip():
            raise InputError(
                f"{where}: received {short(word)} as a word; expected words, or the text as one "
                "string"
            )
    # white space between words, not only a space that holds one together
    if isinstance(text, tuple) and len(text) == 2 and any(" " in spaced_words(t) for t in text):
        raise InputError(
            f"{where}: received {short(text)}, which reads as a pair of texts; expected one text, as a "
            "string or a list of its words"
        )
    return list(map(one_word, text))


def is_treebank(source: Source) -> bool:
    """Whether a source is CoNLL-U."""
    if source.file is None or source.form is not None:
        return source.file is not None and source.form == "conllu"
    return source.file != STREAM and one_file(source.file, preferred=(CONLLU,)).suffix == CONLLU


def read_examples(settings: ReadOptions, source: Source, cut: Cut = tokenize) -> Examples:
    """The examples that a user names, read as they are asked for; ``cut`` makes words of a text."""
    if source.columns and len(source.columns) != settings.texts:
        raise InputError(
            f"--text: received {' '.join(source.columns)}; expected {settings.texts} for a model of "
            f"kind {settings.kind}"
        )
    file = str(source.file)
    form = "arguments" if source.texts else _form_of(file, settings, source)
    if form == "conllu":
        return labelled_treebank(file, settings, source)
    if source.gold:
        raise InputError(
            "--gold: the right trees of these texts are not known; expected ListOps expressions, or a "
            "CoNLL-U file with heads (--file FILE.conllu)"
        )
    if source.texts:
        return Examples("TEXT", list(_arguments(settings, source, cut)))
    records = _records(file, form, settings, source)
    rows = (as_example(record, settings, cut) for record in records)
    return Examples(records.source, rows, lambda: records.report.lines())


def _arguments(settings: ReadOptions, source: Source, cut: Cut) -> Iterator[Example]:
    count = settings.texts
    texts = source.sentences if count == 1 else source.texts
    for i, text in enumerate(source.texts, 1):
        if not text.strip():
            raise InputError(f"TEXT {i} is empty; expected words")
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise InputError(f"TEXT {i} is not UTF-8; expected it to be")
    if len(texts) % count:
        raise InputError(
            f"TEXT: received {len(texts)}; expected {count} for each example of a model of pairs, each "
            "in quotes"
        )
    tokens = source.tokens or settings.tokens
    for start in range(0, len(texts), count):
        row = texts[start : start + count]
        words = tuple(words_in(text_words(text, "TEXT", tokens, cut)) for text in row)
        yield Example(words, start // count + 1, raw=() if tokens else row)


def _form_of(file: str, settings: ReadOptions, source: Source) -> str:
    """The format of a file, by its name and what the model takes."""
    if file == STREAM:
        if source.form not in (None, "text"):
            raise InputError(f"--input is {source.form}; expected text for standard input")
        return "text"
    if source.form not in (None, "conll"):
        return source.form
    words = WORD_SUFFIXES if source.form else (*WORD_SUFFIXES, *SUFFIXES)
    expected = "a file of texts, or - for standard input"
    suffix = one_file(file, preferred=words, expected=expected).suffix
    if suffix == CONLLU or source.form is not None:
        return "conllu" if suffix == CONLLU else "conll"
    form = SUFFIXES.get(suffix)
    if settings.kind == "tag" and form in (None, "tsv"):
        if suffix in PLAIN:  # a wrong guess would go unnoticed
            raise InputError(
                f"{file}: its name does not say what is on a line; expected --input conll, a word, "
                "or --input text, a sentence"
            )
        return "conll"  # as the files that taggers are trained on
    if form is None and suffix not in PLAIN:
        raise InputError(
            f"{file}: received a file in {suffix!r}; expected {', '.join([*SUFFIXES, '.txt'])}, or "
            f"--input with one of {', '.join(FORMS)}"
        )
    return form or "text"


def _records(file: str, form: str, settings: ReadOptions, source: Source) -> Records:
    if settings.needs_trees:
        raise InputError(
            f"{file}: the model takes given trees with its texts; expected a CoNLL-U file with heads, "
            "FILE.conllu"
        )
    checks: CheckOptions = {
        "unusable": source.unusable or settings.unusable,  # type: ignore[typeddict-item]
        "empty": "keep" if source.keep_empty else "drop",
        "advice": "--unusable drop" if source.keep_empty else "",
    }
    tokens = source.tokens or settings.tokens
    if form == "conll":
        if settings.texts != 1:
            raise InputError(f"--input is conll, which has no pairs; expected {file} to be a table")
        word = source.columns[0] if source.columns else settings.word
        tag = settings.label if settings.kind == "tag" else None
        places = (None if name is None else column_of(name) for name in (word, tag))
        return read_tagging(file, *places, need_tags=False, **checks)
    if form == "text":
        if source.columns or source.label:
            raise InputError(
                f"--text and --label: received {(*source.columns, source.label)[0]!r}, a column, and "
                f"{file} is read as text, which has none; give --input tsv, csv or jsonl"
            )
        given = sys.stdin.buffer if file == STREAM else file
        return read_lines_of_text(given, texts=settings.texts, tokens=tokens, **checks)
    label = None if settings.kind == "tag" else source.label or settings.label
    return read_table(
        file,
        source.columns or settings.text,
        source.label,
        format=form,  # type: ignore[arg-type]
        tokens=tokens,
        quoted=settings.quoted,
        extra=[] if label is None or source.label else [label],
        **checks,
    )


def as_example(record: Record, settings: ReadOptions, cut: Cut = tokenize) -> Example:
    """A record as an example."""
    label = record.label
    if settings.kind != "tag" and label is None and settings.label is not None:
        label = record.extra.get(settings.label, "").strip() or None
    whole = len(record.texts) == settings.texts
    texts = [words_of(record, i, cut) if whole else [] for i in range(settings.texts)]
    words = [tuple(map(one_word, text)) for text in texts]
    if isinstance(label, tuple) and words[0] and len(label) == len(words[0]):
        return Example((Sentence(words[0], tags=label),), record.line, label)
    raw = record.texts if whole and not record.tokens else ()
    return Example(tuple(words), record.line, label, raw=raw)


def labelled_treebank(
    file: str, settings: ReadOptions, source: Source, limit: int | None = None
) -> Examples:
    """Sentences with their heads and tags where the file has them."""
    if settings.texts != 1:
        raise InputError(
            f"{file}: is CoNLL-U, which has no pairs; expected a table or lines of text"
        )
    if source.label:
        raise InputError(f"--label: {file} is CoNLL-U, which has no column of classes")
    word = source.columns[0] if source.columns else settings.word

    def example(sentence: Sentence, name: str) -> Example:
        where = f"{name}, line {sentence.line}"
        if settings.needs_trees:
            check_tree(sentence, where)
        words, tags = sentence.words, sentence.tags
        if word not in (None, "FORM", "2"):
            words = _column(sentence, word, where)
        if settings.kind == "tag" and settings.label not in (None, "UPOS"):
            tags = _column(sentence, settings.label, where)
        spaced = replace(sentence, words=tuple(map(one_word, words)))
        return Example((spaced,), sentence.line, tags, sentence)

    unusable = source.unusable or settings.unusable
    checks: Any = {"unusable": unusable, "advice": ""}
    whole = source.gold or settings.needs_trees
    return treebank_examples(file, example, checks, require_heads=whole, limit=limit)


def treebank_examples(
    file: str,
    example: Callable[[Sentence, str], Example],
    checks: CheckOptions,
    *,
    require_heads: bool,
    partial: bool = False,
    limit: int | None = None,
    most_words: int | None = MAX_WORDS,
) -> Examples:
    """The sentences of a CoNLL-U file, each made an example, given the name of the file."""
    name = one_file(file, preferred=(CONLLU,), expected="a CoNLL-U file").name
    report = Report(source=name, checks=checks)

    def rows() -> Iterator[Example]:
        for sentence in read_conllu(file, require_heads=require_heads, partial=partial):
            if most_words is not None and len(sentence) > most_words:
                message = f"received {len(sentence):,} words; expected at most {most_words:,}"
                report.refuse(TOO_LONG, sentence.line, message)
                continue
            yield example(sentence, name)
            report.count += 1
        if not report.count:
            raise DataError(f"{name}: received nothing; expected at least one sentence")

    return Examples(file, islice(rows(), limit), report.lines)


def check_tree(tree: Sentence, where: str) -> tuple[int, ...]:
    """The heads of a sentence, if they form a tree; it may have several roots."""
    if tree.heads is None:
        raise DataError(f"{where}: received no heads; expected one for each word")
    if not bool(is_tree(torch.tensor(tree.heads))):
        raise DataError(f"{where}: the heads go round in a circle; expected a tree")
    return tree.heads


def _column(sentence: Sentence, name: str, where: str) -> tuple[str, ...]:
    number = COLUMNS.index(name) if name in COLUMNS else int(name) - 1 if name.isdigit() else -1
    if not 0 <= number < len(COLUMNS):
        raise InputError(f"{where}: received the column {name}; expected {', '.join(COLUMNS)}")
    rows = [line.split("\t") for line in sentence.lines if not line.startswith("#")]
    return tuple(row[number] for row in rows if row[0].isdigit())
