"""The texts of a config, encoded, with their word vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import torch

from treelax.data.text.cache import EncodeSettings, SplitProgress, TextSource, cached_splits
from treelax.data.text.encoded import EncodedText
from treelax.data.text.readers_nli import read_multinli, read_snli
from treelax.data.text.readers_sst import read_sst
from treelax.data.text.readers_table import read_table
from treelax.data.text.readers_tagging import read_tagging
from treelax.data.text.records import Records
from treelax.data.text.vectors import Vectors, load_vectors, random_vectors
from treelax.data.text.vocabulary import Vocabulary
from treelax.errors import InputError
from treelax.tasks.text.config import DataConfig

# splits of a distribution that play the part of dev, and of test
NAMES = {
    "snli": {"train": "train", "dev": "dev", "test": "test"},
    "multinli": {"train": "train", "dev": "dev_matched", "test": "dev_mismatched"},
    "sst": {"train": "train", "dev": "dev", "test": "test"},
}


@dataclass(frozen=True)
class TextData:
    """Encoded splits and the vectors that their ids are rows of.

    Attributes:
        splits: "train", "dev" and, if there is one, "test".
        vectors: of the words.
        labels: names of the classes or tags.
        mixed: how many of the last training examples are from the mixed-in set.
        notes: what was left out of each split, in words.
    """

    splits: dict[str, EncodedText]
    vectors: Vectors
    labels: tuple[str, ...]
    mixed: int
    notes: dict[str, tuple[str, ...]]


def load_text(config: DataConfig, progress: SplitProgress | None = None) -> TextData:
    """Read, encode and cache the texts of a config, and load their word vectors.

    Args:
        config: which texts.
        progress: called while something is encoded.

    Returns:
        The data.

    Raises:
        DataError: a file cannot be read, or dev or test has a label that training has not.
        InputError: a file is not named.
    """
    return _load(config, progress)


@lru_cache(maxsize=1)
def _load(config: DataConfig, progress: SplitProgress | None) -> TextData:
    sources = {"train": _source(config, "train"), "dev": _source(config, "dev")}
    if config.test is not None or config.format in NAMES:
        sources["test"] = _source(config, "test")
    if config.mix is not None:
        sources["mix"] = _snli_source(config.mix)
    splits = cached_splits(sources, EncodeSettings(lower=config.lower), progress=progress)
    vocabulary = splits["train"].table
    assert isinstance(vocabulary, Vocabulary)
    vectors = _vectors(config, splits, vocabulary)
    splits = {name: split.with_table(vectors) for name, split in splits.items()}
    notes = {name: split.notes for name, split in splits.items()}
    train, left_out = without_long(splits["train"], config.max_length)
    if left_out:
        notes["train"] += (f"{left_out:,} examples longer than {config.max_length} words left out",)
    mixed = 0
    if "mix" in splits:
        mix, _ = without_long(splits.pop("mix"), config.max_length)
        mixed = len(mix)
        train = joined(train, mix)
    return TextData(splits | {"train": train}, vectors, train.label_names, mixed, notes)


def without_long(data: EncodedText, longest: int) -> tuple[EncodedText, int]:
    """The examples without a text of more words than ``longest``, and how many were left out."""
    keep = (data.lengths <= longest).all(1)
    if bool(keep.all()):
        return data, 0
    if not bool(keep.any()):
        raise InputError(
            f"{data.source}: all texts have more than {longest} words; expected some that have not: "
            "raise data.max_length"
        )
    sentences = keep.repeat_interleave(data.texts)
    words = sentences.repeat_interleave(data.offsets.diff())
    lengths = data.offsets.diff()[sentences]
    labels = data.labels
    if labels is not None:
        labels = labels[words] if data.tagged else labels[keep]
    shorter = replace(
        data,
        ids=data.ids[words],
        offsets=torch.cat((lengths.new_zeros(1), lengths.cumsum(0))),
        labels=labels,
        lines=data.lines[keep],
    )
    return shorter, int((~keep).sum())


def joined(first: EncodedText, second: EncodedText) -> EncodedText:
    """Two sets, one behind the other; both have the same table and labels."""
    assert first.labels is not None
    assert second.labels is not None
    return replace(
        first,
        ids=torch.cat((first.ids, second.ids)),
        offsets=torch.cat((first.offsets, first.offsets[-1] + second.offsets[1:])),
        labels=torch.cat((first.labels, second.labels)),
        lines=torch.cat((first.lines, second.lines)),
    )


def _vectors(config: DataConfig, splits: dict[str, EncodedText], vocabulary: Vocabulary) -> Vectors:
    if config.vectors is not None:
        return load_vectors(
            config.vectors, vocabulary, normalise=config.normalise, seed=config.seed
        )
    # only words that training has can be learned; they come first in the vocabulary
    known = int(max(int(splits[name].ids.max()) for name in ("train", "mix") if name in splits))
    words = [word for number, word in enumerate(vocabulary, 1) if number <= known]
    return random_vectors(words, config.vector_size, seed=config.seed)


def _source(config: DataConfig, split: str) -> TextSource:
    own = getattr(config, split)
    if config.format in NAMES:
        path, name = (own or config.path), NAMES[config.format][split]
        if path is None:
            raise InputError(
                f"data.path is none; expected the folder or archive of {config.format}: give "
                "--from PATH or --set data.path=PATH"
            )
        if config.format == "snli":
            return _of(lambda: read_snli(path, name), f"snli {name}")
        if config.format == "multinli":
            return _of(lambda: read_multinli(path, name), f"multinli {name}")
        return _of(lambda: read_sst(path, name, config.classes), f"sst {name} {config.classes}")
    if own is None:
        raise InputError(f"data.{split} is none; expected a file: give --{split} FILE")
    if config.format == "tagging":
        return _of(lambda: read_tagging(own), "tagging")
    about = f"table {config.text} {config.label} {config.tokens}"
    return _of(lambda: read_table(own, config.text, config.label, tokens=config.tokens), about)


def _snli_source(path: str) -> TextSource:
    return _of(lambda: read_snli(path, "train"), "snli train")


def _of(read: Callable[[], Records], about: str) -> TextSource:
    file = read().file
    assert file is not None  # all readers here read a file
    return TextSource((file,), read, about)
