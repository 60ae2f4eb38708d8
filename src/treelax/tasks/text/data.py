"""The texts of a config, encoded, with their word vectors."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from treelax.data.text.cache import EncodeSettings, SplitProgress, TextSource, cached_splits
from treelax.data.text.encoded import EncodedText
from treelax.data.text.joined_vectors import join_vectors
from treelax.data.text.readers_nli import NLI_CLASSES, read_multinli, read_snli
from treelax.data.text.readers_sst import SST_CLASSES, read_sst
from treelax.data.text.readers_table import read_table
from treelax.data.text.readers_tagging import read_tagging
from treelax.data.text.records import Records
from treelax.data.text.sources import NoSuchSplitError
from treelax.data.text.vectors import Vectors, load_vectors, random_vectors
from treelax.data.text.vocabulary import Vocabulary
from treelax.errors import DataError, InputError
from treelax.tasks.text.config import SPLIT, DataConfig
from treelax.tasks.text.given_trees import TreedText, with_trees
from treelax.tasks.text.subwords import whole_words as rows_of_words

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
        splits: "train", "dev" and, if there is one, "test"; `TreedText` where trees are given.
        vectors: of the words.
        labels: names of the classes or tags, in the order of their numbers.
        mixed: how many of the last training examples are from the mixed-in set.
        notes: what was left out of each split, in words; also of "mix".
    """

    splits: dict[str, EncodedText]
    vectors: Vectors
    labels: tuple[str, ...]
    mixed: int
    notes: dict[str, tuple[str, ...]]

    @property
    def heads(self) -> dict[str, Tensor]:
        """Given heads of each split, flat as its ids; nothing where no trees are given."""
        return {n: split.heads for n, split in self.splits.items() if isinstance(split, TreedText)}

    def fingerprint(self) -> str:
        """A short text that is another if anything is that training and dev figures depend on.

        Example:
            >>> import torch
            >>> vectors = Vectors(torch.eye(5), {"dog": 4}, unknown=2)
            >>> one, other = (TextData({}, vectors, labels, 0, {}) for labels in (("a",), ("b",)))
            >>> one.fingerprint() == one.fingerprint(), one.fingerprint() == other.fingerprint()
            (True, False)
        """
        made = hashlib.sha256(repr((self.labels, self.mixed, list(self.vectors.known))).encode())
        tensors = [self.vectors.matrix]
        for name in ("train", "dev"):  # others change no weight and choose no model
            if (split := self.splits.get(name)) is not None:
                tensors += [split.ids, split.offsets]
                tensors += [] if split.labels is None else [split.labels]
                tensors += [split.heads] if isinstance(split, TreedText) else []
        for tensor in tensors:
            made.update(tensor.detach().cpu().contiguous().numpy().tobytes())
        return made.hexdigest()[:32]


_latest: tuple[Any, TextData] | None = None


def load_text(
    config: DataConfig, progress: SplitProgress | None = None, *, whole_words: bool = False
) -> TextData:
    """Read, encode and cache the texts of a config, and load their word vectors.

    The data of the latest call are kept, and given again for the same config while its files have
    not changed: runs of one sweep share them.

    Args:
        config: which texts.
        progress: called while something is encoded.
        whole_words: give every word of every split a row and none a vector, for a transformer, which
            needs to know words by their letters.

    Returns:
        The data.

    Raises:
        DataError: a file cannot be read or has no labels; dev or test has a label that training has
            not; or given trees do not fit.
        InputError: a file is not named, or all training texts are longer than allowed.

    Example:
        >>> load_text(DataConfig(format="sst"))
        Traceback (most recent call last):
        ...
        treelax.errors.InputError: data.path is none; expected the folder or archive of sst: give \
--from PATH or --set data.path=PATH
    """
    global _latest
    sources = _sources(config)
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
    """Tell what is missing before anything is read.

    Args:
        config: which texts.

    Raises:
        DataError: a file does not exist.
        InputError: a file is not named.

    Example:
        >>> check_files(DataConfig(format="snli", path="nowhere"))
        Traceback (most recent call last):
        ...
        treelax.errors.DataError: nowhere: does not exist; expected ...
    """
    sources = _sources(config)
    given = [] if config.trees is None else [config.trees.replace(SPLIT, n) for n in sources]
    vectors = [] if config.vectors is None else [config.vectors, *config.more_vectors]
    for paths, what in ((given, "a CoNLL-U file of given trees"), (vectors, "word vectors")):
        for path in paths:
            if not os.path.isfile(path):
                raise DataError(f"{path}: does not exist; expected {what}")


def encoded_splits(
    config: DataConfig, progress: SplitProgress | None = None
) -> dict[str, EncodedText]:
    """Read, encode and cache the texts of a config as they are: none left out, without vectors.

    Args:
        config: which texts.
        progress: called while something is encoded.

    Returns:
        "train", "dev" and, if there are such, "test" and "mix"; one `Vocabulary` has their words.

    Raises:
        DataError: a file cannot be read, or dev or test has a label that training has not.
        InputError: a file is not named.

    Example:
        >>> encoded_splits(DataConfig())
        Traceback (most recent call last):
        ...
        treelax.errors.InputError: data.train is none; expected a file: give --train FILE
    """
    return _encoded(config, _sources(config), progress)


def _encoded(
    config: DataConfig, sources: dict[str, TextSource], progress: SplitProgress | None
) -> dict[str, EncodedText]:
    return cached_splits(
        sources,
        EncodeSettings(lower=config.lower),
        labels=_classes(config),
        progress=progress,
    )


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
            raise DataError(f"{split.source}: has no labels; expected labelled data for {name}")
    notes = {name: split.notes for name, split in splits.items()}
    splits |= {name: with_trees(splits[name], path) for name, path in trees.items()}
    for name in ("train", "mix"):
        if name in splits:
            splits[name], left_out = without_long(splits[name], config.max_length)
            if left_out:
                what = "1 example" if left_out == 1 else f"{left_out:,} examples"
                notes[name] += (f"{what} of more than {config.max_length} words left out",)
    if whole:
        vectors = rows_of_words(_vocabulary(splits["train"]))
    else:
        vectors = _vectors(config, [splits[name] for name in ("train", "mix") if name in splits])
    splits = {name: split.with_table(vectors) for name, split in splits.items()}
    mix = splits.pop("mix", None)
    if mix is not None:
        splits["train"] = joined(splits["train"], mix)
    labels = splits["train"].label_names
    return TextData(splits, vectors, labels, 0 if mix is None else len(mix), notes)


def without_long(data: EncodedText, longest: int) -> tuple[EncodedText, int]:
    """Leave out the examples with a text of more words than ``longest``.

    Args:
        data: a split.
        longest: the most words.

    Returns:
        The others, and how many were left out.

    Raises:
        InputError: nothing would be left.

    Example:
        >>> from treelax.data.text.encoding import encode_records
        >>> from treelax.data.text.records import Record
        >>> records = [Record((text,), "x", 1) for text in ("one two three", "four five")]
        >>> data, left_out = without_long(encode_records(records, Vocabulary()), 2)
        >>> data.words(0), left_out
        (['four', 'five'], 1)
    """
    keep = (data.lengths <= longest).all(1)
    if bool(keep.all()):
        return data, 0
    if not bool(keep.any()):
        raise InputError(
            f"data.max_length is {longest} and all examples of {data.source} have a longer text; "
            "expected some that have not: raise it"
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
    if isinstance(shorter, TreedText):
        shorter = replace(shorter, heads=shorter.heads[words])
    return shorter, int((~keep).sum())


def joined(first: EncodedText, second: EncodedText) -> EncodedText:
    """Put one set behind another; both have the same table and labels, and no trees.

    Args:
        first: a set.
        second: another.

    Returns:
        All examples; ``source`` and the like are those of the first.

    Example:
        >>> from treelax.data.text.encoding import encode_records
        >>> from treelax.data.text.records import Record
        >>> data = encode_records([Record(("a b",), "x", 1)], Vocabulary())
        >>> joined(data, data).offsets
        tensor([0, 2, 4])
    """
    assert first.labels is not None
    assert second.labels is not None
    return replace(
        first,
        ids=torch.cat((first.ids, second.ids)),
        offsets=torch.cat((first.offsets, first.offsets[-1] + second.offsets[1:])),
        labels=torch.cat((first.labels, second.labels)),
        lines=torch.cat((first.lines, second.lines)),
    )


def _vectors(config: DataConfig, training: list[EncodedText]) -> Vectors:
    vocabulary = _vocabulary(training[0])
    if config.vectors is not None:
        parts = [
            load_vectors(file, vocabulary, normalise=config.normalise, seed=config.seed)
            for file in (config.vectors, *config.more_vectors)
        ]
        return parts[0] if len(parts) == 1 else join_vectors(parts, normalise=config.normalise)
    # only words that training has can be learned
    counts = sum(split.ids.bincount(minlength=len(vocabulary) + 1) for split in training)
    assert isinstance(counts, Tensor)
    words = [vocabulary.word(number) for number in counts.nonzero()[:, 0].tolist()]
    return random_vectors(words, config.vector_size, normalise=config.normalise, seed=config.seed)


def _vocabulary(split: EncodedText) -> Vocabulary:
    """The words of all splits."""
    assert isinstance(split.table, Vocabulary)
    return split.table


def _classes(config: DataConfig) -> tuple[str, ...] | None:
    """The classes of a distribution, in their own order; None where the training data tell."""
    if config.format == "sst":
        return SST_CLASSES[config.classes]
    return NLI_CLASSES if config.format in NAMES else None


def _sources(config: DataConfig) -> dict[str, TextSource]:
    sources = {"train": _source(config, "train"), "dev": _source(config, "dev")}
    if config.test is not None:
        sources["test"] = _source(config, "test")
    elif config.path is not None and config.format in NAMES:
        with suppress(NoSuchSplitError):
            sources["test"] = _source(config, "test")
    if config.mix is not None:
        mix = config.mix
        sources["mix"] = _of(lambda: read_snli(mix, "train"), "snli train")
    return sources


def _source(config: DataConfig, split: str) -> TextSource:
    own = getattr(config, split)
    if config.format in NAMES:
        path, name = own or config.path, NAMES[config.format][split]
        if path is None:
            raise InputError(
                f"data.path is none; expected the folder or archive of {config.format}: give "
                "--from PATH or --set data.path=PATH"
            )
        if own is None and os.path.isfile(path) and not path.lower().endswith(".zip"):
            raise InputError(
                f"data.path is {path}, one file, which would serve as every split; expected the "
                f"folder or archive of {config.format}: give --from PATH, or --train, --dev and "
                "--test FILE"
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


def _of(read: Callable[[], Records], about: str) -> TextSource:
    file = read().file
    assert file is not None  # all readers here read a file
    # the suffix tells readers the format, so equal content may be read in two ways
    return TextSource((file,), read, f"{about} {''.join(file.suffixes[-2:])}")


def _state(file: str | os.PathLike[str] | None) -> Iterable[Any]:
    """What changes when a file does."""
    if file is None or not os.path.exists(file):
        return (file,)
    stat = os.stat(file)
    return (file, stat.st_size, stat.st_mtime_ns)
