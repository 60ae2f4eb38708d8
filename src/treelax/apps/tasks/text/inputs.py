"""Texts that a user gives a sentence model: arguments, tables, lines, CoNLL-U, or its training data."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path

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
    words_of,
)
from treelax.apps.data.text.tokenizer import Cut, tokenize
from treelax.apps.tasks.base import Example, Examples, Source
from treelax.apps.tasks.text.config import SPLIT, SentenceSettings, TextConfig
from treelax.apps.tasks.text.given_trees import check_tree
from treelax.apps.tasks.text.origins import Origin, find_again, trees_of
from treelax.apps.tasks.text.sources import distribution, read_split
from treelax.errors import DataError, InputError
from treelax.ops.checks import one_of

STREAM = "-"
CONLLU = ".conllu"
PLAIN = ("", ".txt", ".text")
SPLITS = ("train", "dev", "test")
FORMS = ("conll", "conllu", "text", *dict.fromkeys(SUFFIXES.values()))


def read_examples(settings: SentenceSettings, source: Source, cut: Cut = tokenize) -> Examples:
    """The examples that a user names, read as they are asked for; ``cut`` makes words of a text."""
    if source.columns and len(source.columns) != settings.texts:
        raise InputError(
            f"--text: received {' '.join(source.columns)}; expected {settings.texts} for a model of "
            f"kind {settings.kind}"
        )
    file = str(source.file)
    form = "arguments" if source.texts else _form_of(file, settings, source)
    if form == "conllu":
        return _treebank(file, settings, source)
    if source.gold:
        raise InputError(
            "--gold: the right trees of these texts are not known; expected ListOps expressions, or a "
            "CoNLL-U file with heads (--file FILE.conllu)"
        )
    if source.texts:
        return Examples("TEXT", list(_arguments(settings, source, cut)))
    records = _records(file, form, settings, source)
    rows = (_example(record, settings, cut) for record in records)
    return Examples(records.source, rows, lambda: records.report.lines())


def _arguments(settings: SentenceSettings, source: Source, cut: Cut) -> Iterator[Example]:
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
    for i, start in enumerate(range(0, len(texts), count), 1):
        row = [spaced_words(text) if tokens else text for text in texts[start : start + count]]
        yield _example(Record(tuple(row), None, i, tokens), settings, cut)


def _form_of(file: str, settings: SentenceSettings, source: Source) -> str:
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


def _records(file: str, form: str, settings: SentenceSettings, source: Source) -> Records:
    if settings.model.trees == "given":
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


def _example(record: Record, settings: SentenceSettings, cut: Cut = tokenize) -> Example:
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


def _treebank(
    file: str, settings: SentenceSettings, source: Source, limit: int | None = None
) -> Examples:
    """Sentences with their heads and tags where the file has them."""
    if settings.texts != 1:
        raise InputError(
            f"{file}: is CoNLL-U, which has no pairs; expected a table or lines of text"
        )
    if source.label:
        raise InputError(f"--label: {file} is CoNLL-U, which has no column of classes")
    given = settings.model.trees == "given"
    word = source.columns[0] if source.columns else settings.word
    name = one_file(file, preferred=(CONLLU,)).name
    unusable = source.unusable or settings.unusable
    report = Report(source=name, checks={"unusable": unusable, "advice": ""})  # type: ignore[typeddict-item]

    def rows() -> Iterator[Example]:
        for sentence in read_conllu(file, require_heads=source.gold or given):
            where = f"{name}, line {sentence.line}"
            if given:
                check_tree(sentence, where)
            if len(sentence) > MAX_WORDS:
                problem = f"received {len(sentence):,} words; expected at most {MAX_WORDS:,}"
                report.refuse(TOO_LONG, sentence.line, problem)
                continue
            report.kept += 1
            words, tags = sentence.words, sentence.tags
            if word not in (None, "FORM", "2"):
                words = _column(sentence, word, where)
            if settings.kind == "tag" and settings.label not in (None, "UPOS"):
                tags = _column(sentence, settings.label, where)
            spaced = replace(sentence, words=tuple(map(one_word, words)))
            yield Example((spaced,), sentence.line, tags, sentence)
        if not report.kept:
            raise DataError(f"{name}: received nothing; expected at least one sentence")

    return Examples(file, islice(rows(), limit), report.lines)


def _column(sentence: Sentence, name: str, where: str) -> tuple[str, ...]:
    number = COLUMNS.index(name) if name in COLUMNS else int(name) - 1 if name.isdigit() else -1
    if not 0 <= number < len(COLUMNS):
        raise InputError(f"{where}: received the column {name}; expected {', '.join(COLUMNS)}")
    rows = [line.split("\t") for line in sentence.lines if not line.startswith("#")]
    return tuple(row[number] for row in rows if row[0].isdigit())


def own_examples(
    config: TextConfig,
    settings: SentenceSettings,
    split: str,
    origins: Mapping[str, Origin],
    *,
    limit: int | None = None,
) -> Examples:
    """The examples of a split of the training data, if its file is still the same."""
    data = config.data
    one_of("split", split, SPLITS)
    if config.model.trees == "given" and data.trees is not None:
        trees, name = data.trees.replace(SPLIT, split), trees_of(split)
        file = find_again(trees, origins.get(name), f"file of {name}")
        return _treebank(file, settings, Source(), limit)
    named = getattr(data, split) or distribution(data)
    if named is None and split not in origins:
        there = " or ".join(name for name in SPLITS if getattr(data, name))
        raise InputError(
            f"the run was trained without {split} data; expected --data FILE or, for analyse and "
            f"report, --split {there}"
        )

    def file_of(path: str) -> Path:
        file = read_split(data, split, path).file
        assert file is not None  # all readers of runs read a file
        return file

    path = find_again(named, origins.get(split), f"{split} data", file_of=file_of)
    # as the reader of tagged words finds it in an archive
    if data.format == "tagging" and one_file(path, preferred=WORD_SUFFIXES).suffix == CONLLU:
        return _treebank(path, settings, Source(), limit)
    records = read_split(data, split, path)
    rows = (_example(record, settings) for record in islice(records, limit))

    def notes() -> list[str]:
        taken = f"{os.path.abspath(records.source)} is taken unchecked"
        unchecked = [] if origins else [f"the run is too old to tell what its data were; {taken}"]
        return [*records.report.lines(), *unchecked]

    return Examples(records.source, rows, notes)
