"""Where the texts of a config come from: the files of its splits and who reads them."""

from __future__ import annotations

import os
from contextlib import suppress

from treelax.data.input_files import NoSuchSplitError
from treelax.data.text.cache import TextSource, cache_folder
from treelax.data.text.download import ARCHIVES
from treelax.data.text.readers_corpora import (
    NLI_CLASSES,
    SST_CLASSES,
    read_multinli,
    read_snli,
    read_sst,
)
from treelax.data.text.readers_table import read_table
from treelax.data.text.readers_tagging import column_of, read_tagging
from treelax.data.text.records import CheckOptions, Records
from treelax.errors import InputError
from treelax.tasks.text.config import DataConfig

# splits of a distribution that play the part of dev, and of test
NAMES = {
    "snli": {"train": "train", "dev": "dev", "test": "test"},
    "multinli": {"train": "train", "dev": "dev_matched", "test": "dev_mismatched"},
    "sst": {"train": "train", "dev": "dev", "test": "test"},
}


def text_sources(config: DataConfig) -> dict[str, TextSource]:
    """The files of all splits of a config."""
    sources = {"train": _source(config, "train"), "dev": _source(config, "dev")}
    if config.test is not None:
        sources["test"] = _source(config, "test")
    elif distribution(config) is not None:
        with suppress(NoSuchSplitError):
            sources["test"] = _source(config, "test")
    if config.mix is not None:
        mix = DataConfig(format="snli", path=config.mix, unusable=config.unusable)
        sources["mix"] = _of(mix, "train", config.mix)
    return sources


def classes_of(config: DataConfig) -> tuple[str, ...] | None:
    """The classes of a distribution, in their own order; None where the training data tell."""
    if config.format == "sst":
        return SST_CLASSES[config.classes]
    return NLI_CLASSES if config.format in NAMES else None


def distribution(config: DataConfig) -> str | None:
    """The folder or archive of a corpus: as told, or what ``treelax data`` has fetched."""
    if config.format not in NAMES:
        return None
    if config.path is not None or _own_files(config):
        return config.path  # one's own files are not to be joined by others unasked
    return _fetched(config.format)


def read_split(config: DataConfig, split: str, path: str) -> Records:
    """The reader of a split."""
    checks: CheckOptions = {"unusable": config.unusable, "advice": "--set data.unusable=drop"}
    name = NAMES.get(config.format, {}).get(split)
    match config.format:
        case "snli":
            return read_snli(path, name, **checks)
        case "multinli":
            return read_multinli(path, name, **checks)
        case "sst":
            return read_sst(path, name, config.classes, **checks)
        case "tagging":
            return read_tagging(path, *_columns(config), **checks)
    columns = config.text, config.label
    return read_table(path, *columns, tokens=config.tokens, quoted=config.quoted, **checks)


def _source(config: DataConfig, split: str) -> TextSource:
    own = getattr(config, split)
    path = own or distribution(config)
    corpus = config.format in NAMES
    if path is None and not corpus:
        raise InputError(f"data.{split} is none; expected a file: give --{split} FILE")
    if path is None and (given := _own_files(config)):
        raise InputError(
            f"data.{split} is none beside {' and '.join(given)}; expected a file too: give --{split} "
            f"FILE, or --from {_fetched(config.format) or 'PATH'} to take it from {config.format}"
        )
    if path is None:
        raise InputError(
            f"data.path is none; expected the folder or archive of {config.format}: fetch it with "
            f"treelax data {config.format}, or give --from PATH"
        )
    if corpus and own is None and os.path.isfile(path) and not path.lower().endswith(".zip"):
        raise InputError(
            f"data.path is {path}, one file, which would serve as every split; expected the folder "
            f"or archive of {config.format}: give --from PATH, or --train, --dev and --test FILE"
        )
    return _of(config, split, path)


def _own_files(config: DataConfig) -> list[str]:
    """The options that name files of single splits."""
    return [f"--{name}" for name in ("train", "dev", "test") if getattr(config, name)]


def _fetched(name: str) -> str | None:
    """The archive of a corpus that ``treelax data`` has fetched."""
    file = cache_folder() / ARCHIVES[name].name
    return str(file) if file.is_file() else None


def _of(config: DataConfig, split: str, path: str) -> TextSource:
    records = read_split(config, split, path)
    assert records.file is not None  # all readers here read a file
    # the suffix tells readers the format, so equal content may be read in two ways
    about = f"{_about(config, split)} {''.join(records.file.suffixes[-2:])}"
    if config.unusable != "error":
        about += f" {config.unusable}"
    return TextSource((records.file,), lambda: records, about, records.source)


def _about(config: DataConfig, split: str) -> str:
    """The reader and its options in words, a part of the cache's key."""
    match config.format:
        case "table":
            return f"table {config.text} {config.label} {config.tokens} {config.quoted}"
        case "tagging":
            columns = _columns(config)
            # the number tells what is read now from what the cache may hold of an older reader
            return "tagging 2" if columns == (None, None) else f"tagging 2 {columns}"
    classes = f" {config.classes}" if config.format == "sst" else ""
    return f"{config.format} {NAMES[config.format][split]}{classes}"


def _columns(config: DataConfig) -> tuple[int | str | None, int | str | None]:
    """Of words and tags."""
    word, tag = (None if name is None else column_of(name) for name in (config.word, config.tag))
    return word, tag
