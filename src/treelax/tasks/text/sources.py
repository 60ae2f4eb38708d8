"""Where the texts of a config come from: the files of its splits and who reads them."""

from __future__ import annotations

import os
from contextlib import suppress

from treelax.data.input_files import NoSuchSplitError
from treelax.data.text.cache import TextSource, cache_folder
from treelax.data.text.download import ARCHIVES
from treelax.data.text.readers_corpora import (
    GOLD,
    NLI_CLASSES,
    SST_CLASSES,
    read_multinli,
    read_snli,
    read_sst,
)
from treelax.data.text.readers_table import read_table
from treelax.data.text.readers_tagging import column_of, read_tagging
from treelax.data.text.records import CheckOptions, Records
from treelax.data.text.rows import MissingColumnError
from treelax.errors import DataError, InputError
from treelax.tasks.text.config import DataConfig

__all__ = ["classes_of", "distribution", "named_columns", "read_split", "text_sources"]

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
        _check_labels(config, sources)
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


def named_columns(
    config: DataConfig, sources: dict[str, TextSource], missing: MissingColumnError
) -> str:
    """What to do about a column of one's own table that is not there, to be put behind the message."""
    own = config.format == "table" and missing.column in (*config.text, config.label)
    if not own or missing.advised:
        return ""
    if _missing_column(sources["train"]) is None:
        return "; expected it here too, for the training data have it"
    option = "--label" if missing.column == config.label else "--text"
    return f"; name the column with {option}"


def read_split(config: DataConfig, split: str, path: str) -> Records:
    """The reader of a split."""
    checks: CheckOptions = {
        "unusable": config.unusable,
        "advice": "--set data.unusable=drop",
    }
    match config.format:
        case "snli":
            return read_snli(path, NAMES["snli"][split], **checks)
        case "multinli":
            return read_multinli(path, NAMES["multinli"][split], **checks)
        case "sst":
            return read_sst(path, NAMES["sst"][split], config.classes, **checks)
        case "tagging":
            return read_tagging(path, *_columns(config), **checks)
        case _:
            return read_table(
                path,
                config.text,
                config.label,
                tokens=config.tokens,
                quoted=config.quoted,
                **checks,
            )


def _source(config: DataConfig, split: str) -> TextSource:
    own = getattr(config, split)
    if config.format not in NAMES:
        if own is None:
            raise InputError(f"data.{split} is none; expected a file: give --{split} FILE")
        return _of(config, split, own)
    path = own or distribution(config)
    if path is None and (given := _own_files(config)):
        fetched = _fetched(config.format)
        raise InputError(
            f"data.{split} is none beside {' and '.join(given)}; expected a file too: give --{split} "
            f"FILE, or --from {fetched or 'PATH'} to take it from {config.format}"
        )
    if path is None:
        raise InputError(
            f"data.path is none; expected the folder or archive of {config.format}: fetch it with "
            f"treelax data {config.format}, or give --from PATH or --set data.path=PATH"
        )
    if own is None and os.path.isfile(path) and not path.lower().endswith(".zip"):
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


def _check_labels(config: DataConfig, sources: dict[str, TextSource]) -> None:
    """Refuse test data without the labels that training has, before anything is read."""
    missing = _missing_column(sources["test"])
    if missing is None or missing.column not in (config.label, GOLD):
        return
    if _missing_column(sources["train"]) is None:
        raise DataError(f"{missing}; test data need labels: leave out --test")


def _missing_column(source: TextSource) -> MissingColumnError | None:
    """The error of a file that lacks a column; other faults are told when it is read."""
    try:
        next(iter(source.read()), None)
    except MissingColumnError as error:
        return error
    except DataError:
        pass
    return None


def _of(config: DataConfig, split: str, path: str) -> TextSource:
    records = read_split(config, split, path)
    file = records.file
    assert file is not None  # all readers here read a file
    # the suffix tells readers the format, so equal content may be read in two ways
    about = f"{_about(config, split)} {''.join(file.suffixes[-2:])}"
    if config.unusable != "error":
        about += f" {config.unusable}"
    return TextSource((file,), lambda: records, about, records.source)


def _about(config: DataConfig, split: str) -> str:
    """The reader and its options in words, a part of the cache's key."""
    match config.format:
        case "table":
            return f"table {config.text} {config.label} {config.tokens} {config.quoted}"
        case "tagging":
            columns = _columns(config)
            # the number tells what is read now from what the cache may hold of an older reader
            return "tagging 2" if columns == (None, None) else f"tagging 2 {columns}"
        case "sst":
            return f"sst {NAMES['sst'][split]} {config.classes}"
        case _:
            return f"{config.format} {NAMES[config.format][split]}"


def _columns(config: DataConfig) -> tuple[int | str | None, int | str | None]:
    """Of words and tags."""
    word, tag = (None if name is None else column_of(name) for name in (config.word, config.tag))
    return word, tag
