"""The texts of a config, encoded, with their word vectors."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile
from operator import eq
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from treelax.apps.data.conllu import read_conllu
from treelax.apps.data.tensor_files import fingerprint
from treelax.apps.data.text.cache import cached_splits
from treelax.apps.data.text.encoding import EncodedText
from treelax.apps.data.text.ptb import one_word, plain_word
from treelax.apps.data.text.readers_table import MissingColumnError
from treelax.apps.data.text.vectors import Vectors, load_joined, random_vectors
from treelax.apps.data.text.vocabulary import Vocabulary
from treelax.apps.tasks.sentences.inputs import check_tree
from treelax.apps.tasks.sentences.transformer import whole_words as rows_of_words
from treelax.apps.tasks.sentences.word_vectors import coverage_notes
from treelax.apps.tasks.text.config import SPLIT, DataConfig
from treelax.apps.tasks.text.model_files import save_words
from treelax.apps.tasks.text.sources import classes_of, text_sources
from treelax.errors import DataError, InputError, counted, short

Progress = Callable[[int, str], None]  # records done, and of what


def silent(done: int, what: str) -> None:
    """No progress."""


@dataclass(frozen=True)
class TextData:
    """Encoded splits and the vectors that their ids are rows of."""

    splits: dict[str, EncodedText]  # "train", "dev", perhaps "test"
    vectors: Vectors
    labels: tuple[str, ...]
    mixed: int  # how many of the last training examples are from the mixed-in set
    notes: dict[str, tuple[str, ...]]  # what was skipped in each split, also of "mix"
    coverage: tuple[int, int] | None = None  # words with a vector in a file, and all words

    def save_words(self, file: Path) -> None:
        save_words(file, self.vectors, self.labels)

    @property
    def messages(self) -> list[str]:
        """What was skipped, and how many words have vectors, for people."""
        lines = [f"{split}: {note}" for split, notes in self.notes.items() for note in notes]
        return lines if self.coverage is None else lines + coverage_notes(*self.coverage)

    def fingerprint(self, splits: Sequence[str] = ("train", "dev"), *, trees: bool = True) -> str:
        """Hash of everything that figures depend on."""
        chosen = [split for name in splits if (split := self.splits.get(name)) is not None]
        tensors: list[Tensor] = []
        words: list[str] = []
        for split in chosen:
            tensors += [split.offsets] if split.labels is None else [split.offsets, split.labels]
            tensors += [split.heads] if trees and split.heads is not None else []
        if chosen:
            rows, places = _by_first_use(torch.cat([split.ids for split in chosen]))
            tensors += [places, self.vectors.matrix[rows]]
            if not self.vectors.dim:  # then words differ by their letters
                names = {row: word for word, row in self.vectors.known.items()}
                words = [names[row] for row in rows.tolist()]
        return fingerprint((self.labels, self.mixed, words), tensors)


def _by_first_use(ids: Tensor) -> tuple[Tensor, Tensor]:
    """Distinct ids by first use, and the place of each id among them: independent of other data."""
    rows, sorted_places = ids.unique(return_inverse=True)
    first = torch.full_like(rows, len(ids), dtype=torch.int64)
    first.scatter_reduce_(0, sorted_places, torch.arange(len(ids)), "amin")
    order = first.argsort()
    return rows[order], order.argsort()[sorted_places]


_latest: tuple[Any, TextData] | None = None


def load_text(
    config: DataConfig, progress: Progress = silent, *, whole_words: bool = False
) -> TextData:
    """Read, encode and cache the texts of a config, and load their word vectors.

    Runs of one sweep share the data: those of the latest call are kept while no file changes.
    """
    global _latest
    files = [file for source in text_sources(config).values() for file in source.files]
    files += [*_trees(config).values(), *config.vector_files]
    stats = [(file, os.stat(file)) for file in files if os.path.exists(file)]
    state = [(file, stat.st_size, stat.st_mtime_ns) for file, stat in stats]
    key = (config, state, whole_words)
    if _latest is None or _latest[0] != key:
        _latest = None  # two at a time may not fit into memory
        _latest = (key, _load(config, progress, whole_words))
    return _latest[1]


def check_files(config: DataConfig) -> None:
    """Refuse missing files before anything is read."""
    trees, vectors = _trees(config).values(), config.vector_files
    for paths, what in ((trees, "a CoNLL-U file of given trees"), (vectors, "word vectors")):
        for path in paths:
            if not os.path.isfile(path):
                raise DataError(f"{path}: does not exist; expected {what}")


def _trees(config: DataConfig) -> dict[str, str]:
    sources = text_sources(config)  # which refuses missing texts
    return {n: config.trees.replace(SPLIT, n) for n in sources} if config.trees else {}


def encoded_splits(config: DataConfig, progress: Progress = silent) -> dict[str, EncodedText]:
    """Read, encode and cache the texts of a config as they are: none skipped, without vectors."""
    try:
        return cached_splits(
            text_sources(config),
            lower=config.lower,
            labels=classes_of(config),
            progress=lambda split, done, _: progress(done, split),
        )
    except MissingColumnError as error:
        named = config.format == "table" and error.column in (*config.text, config.label)
        if error.advised or not named:
            raise
        raise DataError(f"{error}; --text and --label name the columns of all files") from error


def _load(config: DataConfig, progress: Progress, whole: bool) -> TextData:
    splits = encoded_splits(config, progress)
    for name, split in splits.items():
        if split.labels is None:  # refused now, not after days of training
            hint = ": leave out --test" if name == "test" and config.test is not None else ""
            raise DataError(
                f"{split.source}: has no labels; expected labelled data for {name}{hint}"
            )
    notes = {name: split.notes for name, split in splits.items()}
    splits |= {name: with_trees(splits[name], path) for name, path in _trees(config).items()}
    for name in ("train", "mix"):
        if name in splits:
            splits[name], count = without_long(splits[name], config.max_length)
            if count:
                notes[name] += (
                    f"{counted(count, 'example')} of more than {config.max_length} words left out; "
                    "--set data.max_length=N keeps more",
                )
    coverage = None
    vocabulary = splits["train"].table  # the words of all splits
    assert isinstance(vocabulary, Vocabulary)
    if whole:
        vectors = rows_of_words(vocabulary)
    elif files := config.vector_files:
        vectors = load_joined(files, vocabulary, normalise=config.normalise, seed=config.seed)
        coverage = sum(word in vectors for word in vocabulary), len(vocabulary)
    else:  # only words of the training data can be learned
        ids = torch.cat([splits[name].ids for name in ("train", "mix") if name in splits])
        words = map(vocabulary.word, ids.unique().tolist())
        size = config.vector_size
        vectors = random_vectors(words, size, normalise=config.normalise, seed=config.seed)
    splits = {name: split.with_table(vectors) for name, split in splits.items()}
    mix = splits.pop("mix", None)
    if mix is not None:
        splits["train"] = joined(splits["train"], mix)
    train = splits["train"]
    if classes_of(config) is None and train.labels is not None and len(train.labels.unique()) == 1:
        label = short(train.label_names[int(train.labels[0])])
        left_out = "".join(f" ({note})" for note in notes["train"])
        raise DataError(
            f"{train.source}: received one label, {label}, for all examples{left_out}; expected at "
            "least two: give the column of the labels, and examples of each"
        )
    return TextData(
        splits, vectors, train.label_names, 0 if mix is None else len(mix), notes, coverage
    )


def without_long(data: EncodedText, longest: int) -> tuple[EncodedText, int]:
    """Leave out the examples with a text of more words than ``longest``."""
    keep = (data.lengths <= longest).all(1)
    if bool(keep.all()):
        return data, 0
    if not bool(keep.any()):
        hint = ", with a blank line between sentences" if data.tagged else ""
        raise InputError(
            f"{data.source}: all examples have a text of more than data.max_length={longest} words; "
            f"expected shorter ones{hint}, or --set data.max_length=N"
        )
    sentences = keep.repeat_interleave(data.texts)
    words = sentences.repeat_interleave(data.offsets.diff())
    lengths = data.offsets.diff()[sentences]
    assert data.labels is not None
    shorter = replace(
        data,
        ids=data.ids[words],
        offsets=torch.cat((lengths.new_zeros(1), lengths.cumsum(0))),
        labels=data.labels[words if data.tagged else keep],
        lines=data.lines[keep],
        heads=None if data.heads is None else data.heads[words],
    )
    return shorter, int((~keep).sum())


def joined(first: EncodedText, second: EncodedText) -> EncodedText:
    """Put one set behind another; both have the same table and labels, and no trees."""
    assert first.labels is not None
    assert second.labels is not None
    return replace(
        first,
        ids=torch.cat((first.ids, second.ids)),
        offsets=torch.cat((first.offsets, first.offsets[-1] + second.offsets[1:])),
        labels=torch.cat((first.labels, second.labels)),
        lines=torch.cat((first.lines, second.lines)),
        source=f"{first.source} and {second.source}",
        parts=tuple(
            part for data in (first, second) for part in data.parts or ((len(data), data.source),)
        ),
    )


# ------------------------------------------------------------------ given trees


def with_trees(data: EncodedText, path: str | os.PathLike[str]) -> EncodedText:
    """Put the trees of a CoNLL-U file beside the sentences of a split.

    Trees and sentences come in the same order and are matched by their words; escapes of the Penn
    Treebank, quotes and, if the split is lowercased, capitals make no difference. Trees of examples
    that the split skipped, such as the neutral ones of SST, are skipped too.
    """
    return replace(data, heads=torch.tensor(_matched_heads(data, path), dtype=torch.int32))


def _matched_heads(data: EncodedText, path: str | os.PathLike[str]) -> list[int]:
    vocabulary = data.table
    assert isinstance(vocabulary, Vocabulary)
    lower, complete = vocabulary.lower, not data.notes
    plain = ["", *(_plain(word, lower) for word in vocabulary)]
    ids = data.ids.tolist()
    trees, read = read_conllu(path), 0
    heads: list[int] = []
    for sentence, (begin, end) in enumerate(pairwise(data.offsets.tolist())):
        words = [plain[number] for number in ids[begin:end]]
        first, tree = read + 1, None  # the tree that should be it
        for block in trees:
            read += 1
            forms = [_plain(word, lower) for word in block.words]
            tree = tree or (block, forms)
            if forms == words or complete:  # then there is no tree to skip
                break
        if tree is None or forms != words:
            line = "" if tree is None else f", line {tree[0].line}"
            received = "the end of the file" if tree is None else _words(tree[1], words)
            raise DataError(
                f"{path}{line}, sentence {first}: received {received}; expected "
                f"{_words(words, tree[1] if tree else ())} of {data.where(sentence // data.texts)}: "
                "give trees of the same words in the same order"
            )
        heads.extend(check_tree(block, f"{path}, line {block.line}, sentence {read}"))
    if complete and (more := next(trees, None)) is not None:
        raise DataError(
            f"{path}, line {more.line}, sentence {read + 1}: is one too many; expected "
            f"{counted(read, 'sentence')}, as many as {data.source} has"
        )
    return heads


def _plain(word: str, lower: bool) -> str:
    """A word as it is compared: parsers differ in brackets, quotes and spaces."""
    word = plain_word(one_word(word))
    return word.lower() if lower else word


def _words(words: Sequence[str], others: Sequence[str]) -> str:
    """Words for a message, from the first that differs."""
    same = len(list(takewhile(bool, map(eq, words, others))))
    place = f" from word {same + 1}" if same else ""
    return f"{short(' '.join(words[same:]))}{place}"
