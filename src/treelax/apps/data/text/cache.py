"""Encoded text in safetensors files, named by a hash of what they were made from.

Files may be deleted at any time.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import metadata
from pathlib import Path

import torch

from treelax.apps.data.tensor_files import DamagedError, check_sum, open_tensors, write_tensors
from treelax.apps.data.text.encoding import EncodedText, encode_records
from treelax.apps.data.text.records import Record
from treelax.apps.data.text.tokenizer import VERSION as TOKENIZER_VERSION
from treelax.apps.data.text.vocabulary import Vocabulary
from treelax.errors import DataError
from treelax.files import sha256

FORMAT, VERSION = "treelax text", "4"
ENVIRONMENT = "TREELAX_CACHE"
SplitProgress = Callable[[str, int, int | None], None]  # split, records done, all if known
_FACTS = ("texts", "tagged", "label_names", "notes")


@dataclass(frozen=True)
class TextSource:
    """Where a split comes from; `reader`, the reader and its options in words, is part of the key."""

    files: Sequence[str | os.PathLike[str]]
    read: Callable[[], Iterable[Record]]
    reader: str
    name: str


def cached_splits(
    sources: Mapping[str, TextSource],
    *,
    lower: bool = False,
    folder: str | os.PathLike[str] | None = None,
    labels: Sequence[str] | None = None,
    progress: SplitProgress | None = None,
) -> dict[str, EncodedText]:
    """Encode some splits of a data set, or take them from the cache, which processes may share.

    They share one vocabulary and, unless others are given, the labels of the first, the training data.
    """
    place = cache_folder() if folder is None else Path(folder)
    splits: dict[str, EncodedText] = {}
    vocabulary = Vocabulary(lower=lower)
    for name, source in sources.items():
        split = _cached(name, source, lower, place, progress)
        if labels is None and split.labels is not None:
            labels = split.label_names
        splits[name] = split.with_table(vocabulary).with_labels(labels or ())
    return splits


def cache_folder() -> Path:
    """``$TREELAX_CACHE``, else ``treelax`` in the user's folder for caches; it need not exist."""
    chosen = os.environ.get(ENVIRONMENT)
    if chosen:
        return Path(chosen).expanduser().absolute()
    home, environ = Path.home(), os.environ
    if sys.platform == "win32":
        return Path(environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / "treelax"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "treelax"
    return Path(environ.get("XDG_CACHE_HOME") or home / ".cache") / "treelax"


def _cached(
    name: str, source: TextSource, lower: bool, folder: Path, progress: SplitProgress | None
) -> EncodedText:
    """A split with a separate vocabulary, from the cache or put there."""
    file = folder / f"{_key(source, lower)}.safetensors"
    try:
        if (cached := _load(file, lower)) is not None:
            return replace(cached, source=source.name)
    except (OSError, ValueError, KeyError, DamagedError) as error:
        message = f"treelax: {file} is damaged ({error}); {source.name} is encoded again"
        warnings.warn(message, RuntimeWarning, stacklevel=3)
    vocabulary = Vocabulary(lower=lower)
    split_progress = None if progress is None else partial(progress, name)
    encoded = encode_records(source.read(), vocabulary, progress=split_progress)
    words = torch.frombuffer(bytearray(json.dumps(list(vocabulary)).encode()), dtype=torch.uint8)
    tensors = {name: getattr(encoded, name) for name in ("offsets", "lines", "ids", "labels")}
    tensors = {name: tensor for name, tensor in tensors.items() if tensor is not None}
    facts = json.dumps({name: getattr(encoded, name) for name in _FACTS})
    about = {"format": FORMAT, "version": VERSION, "state": facts}
    try:
        write_tensors(file, {**tensors, "words": words}, about)
    except (DataError, OSError) as error:
        message = f"treelax: {source.name} was encoded but not put into the cache: {error}"
        warnings.warn(f"{message}; choose another with {ENVIRONMENT}", RuntimeWarning, stacklevel=3)
    return replace(encoded, source=source.name)  # as it will be called when it comes from the cache


def _key(source: TextSource, lower: bool) -> str:
    """A hash of all that the encoded split depends on."""
    digests = [sha256(path) for path in source.files]
    try:
        nltk = metadata.version("nltk")
    except metadata.PackageNotFoundError:
        nltk = ""
    parts = [FORMAT, VERSION, digests, source.reader, lower, TOKENIZER_VERSION, nltk]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _load(file: Path, lower: bool) -> EncodedText | None:
    """A split from the cache, mapped into memory; None if it is not there."""
    try:
        with open_tensors(file) as opened:
            header = opened.metadata() or {}
            check_sum(file, header)
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    except (FileNotFoundError, NotADirectoryError):
        return None
    words = bytes(tensors.pop("words").tolist())
    facts = json.loads(header["state"])
    facts |= {name: tuple(facts[name]) for name in ("label_names", "notes")}
    tensors.setdefault("labels", None)
    return EncodedText(**tensors, **facts, table=Vocabulary(json.loads(words), lower=lower))
