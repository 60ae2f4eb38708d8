"""Corpora from files: treebanks, tables and texts, ListOps, the data of a run."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from itertools import islice
from pathlib import Path

from treelax.analysis.corpora import Corpus, Label
from treelax.data.conllu import Sentence, read_conllu
from treelax.data.listops import Expression
from treelax.data.text.ptb import one_word
from treelax.data.text.records import Records
from treelax.data.text.tokenizer import words_of
from treelax.errors import DataError, InputError
from treelax.ops.checks import one_of
from treelax.tasks.text.config import DataConfig
from treelax.tasks.text.origins import Origin, find_again
from treelax.tasks.text.sources import distribution, read_split

__all__ = ["SPLITS", "listops_corpus", "read_treebank", "split_records", "text_corpus"]

SPLITS = ("train", "dev", "test")


def read_treebank(path: str | os.PathLike[str], *, limit: int | None = None) -> Corpus:
    """Read a CoNLL-U file, with its heads and tags where it has them; words are as they stand there.

    Args:
        path: the file, also compressed or in a ``.zip``.
        limit: the most sentences to read.

    Returns:
        The sentences; the tags of words are also their labels. White space in a word becomes a
        no-break space.

    Raises:
        DataError: as `read_conllu`, or there are no sentences.
        BackendError: the conllu library is not installed.

    Example:
        >>> import tempfile
        >>> from treelax.data.conllu import write_conllu
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     count = write_conllu(Path(folder, "a.conllu"), [Sentence(("Dogs", "bark"), (2, 0))])
        ...     read_treebank(Path(folder, "a.conllu")).gold
        [(2, 0)]
    """
    sentences = tuple(
        replace(sentence, words=tuple(map(one_word, sentence.words)))
        for sentence in islice(read_conllu(path, require_heads=False), limit)
    )
    if not sentences:
        raise DataError(f"{path}: has no sentences; expected at least one")
    tags = tuple(sentence.tags for sentence in sentences)
    return Corpus(str(path), sentences, labels=tags if any(tags) else None)


def text_corpus(records: Records, name: str, *, texts: int = 1, limit: int | None = None) -> Corpus:
    """The sentences of records; those without words are left out and noted in ``records.report``.

    Args:
        records: a reader's.
        name: of the corpus.
        texts: how many a record has.
        limit: the most records to read.

    Returns:
        The sentences, with the labels of the records.

    Raises:
        DataError: the file cannot be read, or has no sentences.
        BackendError: tokenising needs the nltk library and it is not installed.

    Example:
        >>> from treelax.data.text.records import Record
        >>> records = Records("a.tsv", lambda report: iter([Record(("Dogs bark.",), "yes", 2)]))
        >>> corpus = text_corpus(records, "a.tsv")
        >>> corpus.words, corpus.labels
        ([('Dogs', 'bark', '.')], ('yes',))
    """
    sentences: list[Sentence] = []
    labels: list[Label] = []
    for record in islice(records, limit):
        words = [words_of(record, i) for i in range(texts)]
        tags = record.label if isinstance(record.label, tuple) else None
        if tags is not None and len(tags) != len(words[0]):
            tags = None
        sentences += [Sentence(tuple(map(one_word, own)), tags=tags) for own in words]
        labels.append(record.label)
    known = any(label is not None for label in labels)
    return Corpus(name, tuple(sentences), texts, tuple(labels) if known else None)


def listops_corpus(expressions: Iterable[Expression], name: str) -> Corpus:
    """ListOps expressions with their gold heads; the kind of a token is its tag.

    Args:
        expressions: at least one.
        name: of the corpus.

    Returns:
        The corpus.

    Raises:
        InputError: there are no expressions.

    Example:
        >>> from treelax.data.listops import parse_expression
        >>> listops_corpus([parse_expression("[MAX 2 9 ]")], "one").gold
        [(0, 1, 1, 1)]
    """
    sentences = tuple(Sentence(each.tokens, each.heads, each.kinds) for each in expressions)
    return Corpus(name, sentences, listops=True)


def split_records(config: DataConfig, split: str, origin: Origin | None = None) -> Records:
    """The reader of a split that a run was trained on or chosen by.

    Args:
        config: which data.
        split: "train", "dev" or "test".
        origin: what its file was when the run was trained, see `treelax.tasks.text.origins`; None
            for a run that does not say, whose files are taken as they are.

    Returns:
        The records, not yet read.

    Raises:
        DataError: the file does not exist.
        InputError: the run has no such split, or the file has another content than it had.

    Example:
        >>> split_records(DataConfig(train="a.tsv", dev="b.tsv"), "test")
        Traceback (most recent call last):
        ...
        treelax.errors.InputError: data.test is none; expected a split that the run has: give \
--split train or dev, or --data FILE
    """
    one_of("split", split, SPLITS)
    named = getattr(config, split) or distribution(config)
    if named is None and origin is None:
        there = [name for name in SPLITS if getattr(config, name)]
        raise InputError(
            f"data.{split} is none; expected a split that the run has: give --split "
            f"{' or '.join(there)}, or --data FILE"
        )

    def file_of(path: str) -> Path:
        file = read_split(config, split, path).file
        assert file is not None  # all readers of runs read a file
        return file

    path = find_again(named, origin, f"{split} data", file_of=file_of)
    return read_split(config, split, path)
