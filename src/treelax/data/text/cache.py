"""Encoded text kept in files, so that a data set is read, tokenised and encoded once.

A split is one safetensors file, mapped into memory when it is read. Its name is a hash of what it
was made from: the contents of the files, how they were read, how they were cut into words and
encoded, and the version of the format. So it is never out of date, and a data set that is used by
several experiments is kept once. Files may be deleted at any time.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from pathlib import Path

import torch

from treelax.data.tensor_files import DamagedError, check_sum, open_tensors, write_tensors
from treelax.data.text.encoded import EncodedText
from treelax.data.text.encoding import Overlong, encode_records
from treelax.data.text.records import Record
from treelax.data.text.tokenizer import VERSION as TOKENIZER_VERSION
from treelax.data.text.vocabulary import Vocabulary
from treelax.errors import DataError, InputError
from treelax.files import sha256

__all__ = ["EncodeSettings", "SplitProgress", "TextSource", "cache_folder", "cached_splits"]

FORMAT, VERSION = "treelax text", "3"
ENVIRONMENT = "TREELAX_CACHE"
SplitProgress = Callable[[str, int, int | None], None]  # split, records done, all if known
_FACTS = ("texts", "tagged", "truncated", "dropped", "label_names", "notes")


@dataclass(frozen=True)
class TextSource:
    """Where a split comes from.

    Attributes:
        files: all files that it is read from; a change of their contents makes the cache read anew.
        read: gives the records; called only if they are not in the cache.
        reader: the reader and its options, in words: part of the cache's key, so that one file read
            in two ways is kept twice.
        name: what messages call it, with the member of an archive say; its files by default.

    Example:
        >>> from treelax.data.text.records import Record
        >>> source = TextSource(("a.tsv",), lambda: [Record(("a b",), "x", 1)], "tsv")
    """

    files: Sequence[str | os.PathLike[str]]
    read: Callable[[], Iterable[Record]]
    reader: str
    name: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.files, str | os.PathLike) or not self.files:
            raise InputError(f"files: received {self.files!r}; expected a list of one or more")


@dataclass(frozen=True)
class EncodeSettings:
    """How text is encoded.

    Attributes:
        lower: put words into lower case.
        max_length: the longest sentence allowed, in words; None for no limit.
        overlong: ``"truncate"`` longer sentences or ``"drop"`` their examples.

    Example:
        >>> EncodeSettings(max_length=100, overlong="drop").lower
        False
    """

    lower: bool = False
    max_length: int | None = None
    overlong: Overlong = "truncate"


def cached_splits(
    sources: Mapping[str, TextSource],
    settings: EncodeSettings | None = None,
    *,
    folder: str | os.PathLike[str] | None = None,
    labels: Sequence[str] | None = None,
    progress: SplitProgress | None = None,
) -> dict[str, EncodedText]:
    """Encode some splits of a data set, or take them from the cache.

    Each split is kept for itself. A file in the cache that is damaged, or of another version, is
    made anew, with a warning; if the cache cannot be written, a warning says so and nothing is
    lost. Processes may share a cache.

    Args:
        sources: the splits by name; the training data come first, and their labels are all there
            are, unless ``labels`` says otherwise.
        settings: how text is encoded.
        folder: of the cache; by default `cache_folder`.
        labels: the names of the labels in their order.
        progress: called now and then with the split being encoded, its records done, and all of
            them if the number is known.

    Returns:
        The splits by name. They share one `Vocabulary`, their ``table``, in which the words of the
        first split come first; see `EncodedText.with_table` for vectors.

    Raises:
        DataError: as `encode_records` and the readers; or a label of a later split is not among
            those of the first. The message names the file and the line.
        InputError: as `encode_records`.
        BackendError: the safetensors library is not installed; or as `encode_records`.

    Example:
        >>> import tempfile
        >>> from treelax.data.text.records import Record
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder, "train.txt")
        ...     count = file.write_text("dogs bark")
        ...     source = TextSource([file], lambda: [Record((file.read_text(),), "x", 1)], "plain")
        ...     for name in ("first", "again"):
        ...         splits = cached_splits({"train": source}, folder=folder)
        ...     splits["train"].words(0), len(list(Path(folder).glob("*.safetensors")))
        (['dogs', 'bark'], 1)
    """
    settings = settings or EncodeSettings()
    place = cache_folder() if folder is None else Path(folder)
    splits: dict[str, EncodedText] = {}
    vocabulary = Vocabulary(lower=settings.lower)
    for name, source in sources.items():
        split = _cached(name, source, settings, place, progress)
        if labels is None and split.labels is not None:
            labels = split.label_names
        splits[name] = split.with_table(vocabulary).with_labels(labels or ())
    return splits


def cache_folder() -> Path:
    """The folder for what is encoded or fetched once.

    It is ``$TREELAX_CACHE``, else ``treelax`` in the user's folder for caches: ``XDG_CACHE_HOME`` or
    ``~/.cache``, ``~/Library/Caches`` on macOS, ``LOCALAPPDATA`` on Windows.

    Returns:
        The folder, which need not exist.

    Example:
        >>> cache_folder().is_absolute()
        True
    """
    chosen = os.environ.get(ENVIRONMENT)
    if chosen:
        return Path(chosen).expanduser().absolute()
    if sys.platform == "win32":
        parent = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        parent = Path.home() / "Library" / "Caches"
    else:
        parent = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return parent / "treelax"


def _cached(
    name: str,
    source: TextSource,
    settings: EncodeSettings,
    folder: Path,
    progress: SplitProgress | None,
) -> EncodedText:
    """A split with a vocabulary of its own, from the cache or put there."""
    key = _key(source, settings)
    file = folder / f"{key}.safetensors"
    shown = source.name or ", ".join(str(Path(path)) for path in source.files)
    try:
        kept = _load(file, key, settings.lower)
    except _UnusableError as error:
        kept = None
        warnings.warn(
            f"treelax: {file} {error}; {shown} is encoded again", RuntimeWarning, stacklevel=3
        )
    if kept is not None:
        return replace(kept, source=shown)
    vocabulary = Vocabulary(lower=settings.lower)
    encoded = encode_records(
        source.read(),
        vocabulary,
        max_length=settings.max_length,
        overlong=settings.overlong,
        progress=None if progress is None else lambda done, total: progress(name, done, total),
    )
    try:
        _store(file, key, encoded, vocabulary)
    except (DataError, OSError) as error:
        warnings.warn(
            f"treelax: {shown} was encoded but not put into the cache: {error}; free or choose "
            f"another folder with {ENVIRONMENT}",
            RuntimeWarning,
            stacklevel=3,
        )
    return replace(encoded, source=shown)  # as it will be called when it comes from the cache


def _key(source: TextSource, settings: EncodeSettings) -> str:
    """A hash of all that the encoded split depends on."""
    digests = []
    for path in source.files:
        try:
            digests.append(sha256(path))
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror}") from error
    parts = [FORMAT, VERSION, digests, source.reader, asdict(settings), *_tokenizer()]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _tokenizer() -> tuple[int, str]:
    """What decides how raw texts are cut into words."""
    try:
        return TOKENIZER_VERSION, metadata.version("nltk")
    except metadata.PackageNotFoundError:
        return TOKENIZER_VERSION, ""


class _UnusableError(Exception):
    """A file of the cache cannot be used; the message says why."""


def _load(file: Path, key: str, lower: bool) -> EncodedText | None:
    """A split from the cache, mapped into memory; None if it is not there."""
    try:
        with open_tensors(file) as opened:
            header = opened.metadata() or {}
            if (header.get("format"), header.get("version")) != (FORMAT, VERSION):
                raise _UnusableError(f"is of version {header.get('version')}, not {VERSION}")
            check_sum(file, header)
            if header["key"] != key:
                raise _UnusableError("is damaged")
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
        words = bytes(tensors.pop("words").tolist())
        facts = json.loads(header["state"])
        for name in ("label_names", "notes"):
            facts[name] = tuple(facts[name])
        tensors.setdefault("labels", None)
        return EncodedText(**tensors, **facts, table=Vocabulary(json.loads(words), lower=lower))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _UnusableError(f"cannot be read ({error.strerror or error})") from error
    except (ValueError, KeyError, DamagedError) as error:
        raise _UnusableError(f"is damaged ({error})") from error


def _store(file: Path, key: str, encoded: EncodedText, vocabulary: Vocabulary) -> None:
    words = json.dumps(list(vocabulary)).encode()
    tensors = {
        "offsets": encoded.offsets,
        "lines": encoded.lines,
        "ids": encoded.ids,
        "words": torch.frombuffer(bytearray(words), dtype=torch.uint8),
    }
    if encoded.labels is not None:
        tensors["labels"] = encoded.labels
    facts = json.dumps({name: getattr(encoded, name) for name in _FACTS})
    about = {"format": FORMAT, "version": VERSION, "key": key, "state": facts}
    write_tensors(file, tensors, about)
