"""The texts of a config, encoded, with their word vectors."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from treelax.data.fingerprint import fingerprint
from treelax.data.text.cache import SplitProgress, TextSource, cached_splits
from treelax.data.text.encoding import EncodedText
from treelax.data.text.rows import MissingColumnError, counted, short
from treelax.data.text.vectors import Vectors, load_joined, random_vectors
from treelax.data.text.vocabulary import Vocabulary
from treelax.errors import DataError
from treelax.tasks.text.config import SPLIT, DataConfig
from treelax.tasks.text.encoded_sets import joined, without_long
from treelax.tasks.text.given_trees import TreedText, with_trees
from treelax.tasks.text.sources import classes_of, named_columns, text_sources
from treelax.tasks.text.subwords import whole_words as rows_of_words


@dataclass(frozen=True)
class TextData:
    """Encoded splits and the vectors that their ids are rows of.

    Attributes:
        splits: "train", "dev" and, if there is one, "test"; `TreedText` where trees are given.
        vectors: of the words.
        labels: names of the classes or tags, in the order of their numbers.
        mixed: how many of the last training examples are from the mixed-in set.
        notes: what was left out of each split, in words; also of "mix".
        coverage: how many of the different words of all splits have a vector in a file, and how many
            words there are; None where no file is read.
    """

    splits: dict[str, EncodedText]
    vectors: Vectors
    labels: tuple[str, ...]
    mixed: int
    notes: dict[str, tuple[str, ...]]
    coverage: tuple[int, int] | None = None

    @property
    def heads(self) -> dict[str, Tensor]:
        """Given heads of each split, flat as its ids; nothing where no trees are given."""
        return {n: split.heads for n, split in self.splits.items() if isinstance(split, TreedText)}

    def fingerprint(self, splits: Sequence[str] = ("train", "dev"), *, trees: bool = True) -> str:
        """A short text that is another if anything is that figures depend on."""
        chosen = [split for name in splits if (split := self.splits.get(name)) is not None]
        tensors: list[Tensor] = []
        words: list[str] = []
        for split in chosen:
            tensors += [split.offsets] if split.labels is None else [split.offsets, split.labels]
            tensors += [split.heads] if trees and isinstance(split, TreedText) else []
        if chosen:
            rows, places = _by_first_use(torch.cat([split.ids for split in chosen]))
            tensors += [places, self.vectors.matrix[rows]]
            if not self.vectors.dim:  # then words are told by their letters
                names = {row: word for word, row in self.vectors.known.items()}
                words = [names[row] for row in rows.tolist()]
        return fingerprint((self.labels, self.mixed, words), tensors)


def _by_first_use(ids: Tensor) -> tuple[Tensor, Tensor]:
    """The different ids in the order of their first use, and the place of each id among them.

    Which, unlike the ids, do not change with words that other data have in between.
    """
    rows, sorted_places = ids.unique(return_inverse=True)
    first = torch.full_like(rows, len(ids), dtype=torch.int64)
    first.scatter_reduce_(0, sorted_places, torch.arange(len(ids)), "amin")
    order = first.argsort()
    return rows[order], order.argsort()[sorted_places]


_latest: tuple[Any, TextData] | None = None


def load_text(
    config: DataConfig, progress: SplitProgress | None = None, *, whole_words: bool = False
) -> TextData:
    """Read, encode and cache the texts of a config, and load their word vectors.

    The data of the latest call are kept, and given again for the same config while its files have
    not changed: runs of one sweep share them.
    """
    global _latest
    sources = text_sources(config)
    trees = {} if config.trees is None else {n: config.trees.replace(SPLIT, n) for n in sources}
    files = [file for source in sources.values() for file in source.files]
    state = [
        _state(file) for file in (*files, *trees.values(), config.vectors, *config.more_vectors)
    ]
    if _latest is None or _latest[0] != (config, state, whole_words):
        _latest = None  # two at a time may not fit into memory
        data = _load(config, sources, trees, progress, whole_words)
        _latest = ((config, state, whole_words), data)
    return _latest[1]


def check_files(config: DataConfig) -> None:
    """Tell what is missing before anything is read."""
    sources = text_sources(config)
    given = [] if config.trees is None else [config.trees.replace(SPLIT, n) for n in sources]
    vectors = [] if config.vectors is None else [config.vectors, *config.more_vectors]
    for paths, what in ((given, "a CoNLL-U file of given trees"), (vectors, "word vectors")):
        for path in paths:
            if not os.path.isfile(path):
                raise DataError(f"{path}: does not exist; expected {what}")


def encoded_splits(
    config: DataConfig, progress: SplitProgress | None = None
) -> dict[str, EncodedText]:
    """Read, encode and cache the texts of a config as they are: none left out, without vectors."""
    return _encoded(config, text_sources(config), progress)


def _encoded(
    config: DataConfig, sources: dict[str, TextSource], progress: SplitProgress | None
) -> dict[str, EncodedText]:
    try:
        return cached_splits(
            sources,
            lower=config.lower,
            labels=classes_of(config),
            progress=progress,
        )
    except MissingColumnError as error:
        raise DataError(f"{error}{named_columns(config, sources, error)}") from error


def _load(
    config: DataConfig,
    sources: dict[str, TextSource],
    trees: dict[str, str],
    progress: SplitProgress | None,
    whole: bool,
) -> TextData:
    splits = _encoded(config, sources, progress)
    for name, split in splits.items():
        if split.labels is None:  # told now, not when a test set is wanted after days of training
            hint = ": leave out --test" if name == "test" and config.test is not None else ""
            raise DataError(
                f"{split.source}: has no labels; expected labelled data for {name}{hint}"
            )
    notes = {name: split.notes for name, split in splits.items()}
    splits |= {name: with_trees(splits[name], path) for name, path in trees.items()}
    had_one_label, left_out = _has_one_label(splits), 0
    for name in ("train", "mix"):
        if name in splits:
            splits[name], count = without_long(splits[name], config.max_length)
            left_out += count
            if count:
                notes[name] += (_note_of_long(count, config.max_length),)
    coverage = None
    vocabulary = _vocabulary(splits["train"])
    if whole:
        vectors = rows_of_words(vocabulary)
    else:
        vectors = _vectors(config, [splits[name] for name in ("train", "mix") if name in splits])
        if config.vectors is not None:
            coverage = sum(word in vectors for word in vocabulary), len(vocabulary)
    splits = {name: split.with_table(vectors) for name, split in splits.items()}
    mix = splits.pop("mix", None)
    if mix is not None:
        splits["train"] = joined(splits["train"], mix)
    train = splits["train"]
    assert train.labels is not None  # was checked above
    if classes_of(config) is None and len(train.labels.unique()) == 1:
        raise _one_label(train, config.max_length, 0 if had_one_label else left_out)
    return TextData(
        splits, vectors, train.label_names, 0 if mix is None else len(mix), notes, coverage
    )


def _has_one_label(splits: dict[str, EncodedText]) -> bool:
    """Whether all training examples have the same."""
    labels = [splits[name].labels for name in ("train", "mix") if name in splits]
    return len(torch.cat([each for each in labels if each is not None]).unique()) == 1


def _one_label(train: EncodedText, longest: int, left_out: int) -> DataError:
    """The error for training data of one label, which may be left of several without the long texts."""
    assert train.labels is not None
    label = short(train.label_names[int(train.labels[0])])
    if left_out:
        return DataError(
            f"{train.source}: {counted(left_out, 'example')} of more than data.max_length={longest} "
            f"words left out, and the rest have one label, {label}; expected at least two: raise it "
            "with --set data.max_length=N"
        )
    return DataError(
        f"{train.source}: received one label, {label}, for all examples; expected at least two: give "
        "the column of the labels, and examples of each"
    )


def _note_of_long(count: int, longest: int) -> str:
    return (
        f"{counted(count, 'example')} of more than {longest} words left out; --set data.max_length=N "
        f"keeps {'it' if count == 1 else 'them'}"
    )


def _vectors(config: DataConfig, training: list[EncodedText]) -> Vectors:
    vocabulary = _vocabulary(training[0])
    if config.vectors is not None:
        files = (config.vectors, *config.more_vectors)
        return load_joined(files, vocabulary, normalise=config.normalise, seed=config.seed)
    # only words that training has can be learned
    counts = sum(split.ids.bincount(minlength=len(vocabulary) + 1) for split in training)
    assert isinstance(counts, Tensor)
    words = [vocabulary.word(number) for number in counts.nonzero()[:, 0].tolist()]
    return random_vectors(words, config.vector_size, normalise=config.normalise, seed=config.seed)


def _vocabulary(split: EncodedText) -> Vocabulary:
    """The words of all splits."""
    assert isinstance(split.table, Vocabulary)
    return split.table


def _state(file: str | os.PathLike[str] | None) -> Iterable[Any]:
    """What changes when a file does."""
    if file is None or not os.path.exists(file):
        return (file,)
    stat = os.stat(file)
    return (file, stat.st_size, stat.st_mtime_ns)
