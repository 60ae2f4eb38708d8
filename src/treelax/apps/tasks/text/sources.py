"""Where the texts of a config come from: the files of its splits and who reads them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path

from treelax.apps.data.input_files import NoSuchSplitError, PathLike, one_file
from treelax.apps.data.text.cache import TextSource, cache_folder
from treelax.apps.data.text.download import ARCHIVES
from treelax.apps.data.text.readers_corpora import (
    NLI_CLASSES,
    SST_CLASSES,
    read_multinli,
    read_snli,
    read_sst,
)
from treelax.apps.data.text.readers_table import read_table
from treelax.apps.data.text.readers_tagging import WORD_SUFFIXES, column_of, read_tagging
from treelax.apps.data.text.records import CheckOptions, Records
from treelax.apps.tasks.base import Examples, Source
from treelax.apps.tasks.sentences.inputs import CONLLU, as_example, labelled_treebank
from treelax.apps.tasks.sentences.origins import (
    SPLITS,
    Origin,
    TrainingFile,
    find_again,
    find_split,
    trees_of,
)
from treelax.apps.tasks.text.config import SPLIT, DataConfig, SentenceSettings, TextConfig
from treelax.errors import DataError, InputError

CORPORA = ("snli", "multinli", "sst")
MULTINLI = {"train": "train", "dev": "dev_matched", "test": "dev_mismatched"}


def text_sources(config: DataConfig) -> dict[str, TextSource]:
    """The files of all splits of a config."""
    sources = {split: _source(config, split) for split in ("train", "dev")}
    if config.test is not None:
        sources["test"] = _source(config, "test")
    elif distribution(config) is not None:
        with suppress(NoSuchSplitError):
            sources["test"] = _source(config, "test")
    if config.mix is not None:
        mix = DataConfig(format="snli", train=config.mix, unusable=config.unusable)
        sources["mix"] = _source(mix, "train")
    return sources


def training_files(config: DataConfig) -> Iterator[TrainingFile]:
    """All files that a config names."""
    corpus = distribution(config)
    for split in SPLITS:
        given = getattr(config, split)
        path = given or corpus
        if path is None or (given is None and split == "test" and not _has(config, split)):
            continue
        option = f"--{split} FILE" if given else "--from PATH"
        yield TrainingFile(split, path, option, partial(_file, config, split))
        if config.trees is not None:
            trees = config.trees.replace(SPLIT, split)
            yield TrainingFile(trees_of(split), trees, "--set data.trees=FILES")
    if config.mix is not None:
        find = partial(_file, config, "mix")
        yield TrainingFile("mix", config.mix, "--set data.mix=PATH", find)
    for vectors in config.vector_files:
        yield TrainingFile("vectors", vectors, "--vectors FILE for each of them")


def _file(config: DataConfig, split: str) -> PathLike:
    [file] = text_sources(config)[split].files
    return file


def _has(config: DataConfig, split: str) -> bool:
    """Whether a corpus has a split."""
    with suppress(DataError):
        return bool(_source(config, split))
    return False


def classes_of(config: DataConfig) -> tuple[str, ...] | None:
    """The classes of a distribution, in its order; None where the training data tell."""
    if config.format == "sst":
        return SST_CLASSES[config.classes]
    return NLI_CLASSES if config.format in CORPORA else None


def distribution(config: DataConfig) -> str | None:
    """The folder or archive of a corpus: as given, or the one downloaded."""
    if config.format not in CORPORA:
        return None
    if config.path is not None or _given(config):
        return config.path  # a user's files are not to be joined by others unasked
    return _downloaded(config.format)


def _given(config: DataConfig) -> list[str]:
    return [f"--{name}" for name in SPLITS if getattr(config, name)]


def _downloaded(name: str) -> str | None:
    file = cache_folder() / ARCHIVES[name].name
    return str(file) if file.is_file() else None


def read_split(config: DataConfig, split: str, path: str) -> Records:
    """The reader of a split."""
    checks: CheckOptions = {"unusable": config.unusable, "advice": "--set data.unusable=drop"}
    match config.format:
        case "snli":
            return read_snli(path, split, **checks)
        case "multinli":
            return read_multinli(path, MULTINLI[split], **checks)
        case "sst":
            return read_sst(path, split, config.classes, **checks)
        case "tagging":
            return read_tagging(path, *_columns(config), **checks)
    columns = config.text, config.label
    return read_table(path, *columns, tokens=config.tokens, quoted=config.quoted, **checks)


def _columns(config: DataConfig) -> tuple[int | str | None, int | str | None]:
    """Of words and tags."""
    word, tag = (None if name is None else column_of(name) for name in (config.word, config.tag))
    return word, tag


def _source(config: DataConfig, split: str) -> TextSource:
    path = getattr(config, split) or distribution(config)
    if path is None:
        raise _no_file(config, split)
    corpus = config.format in CORPORA
    one = corpus and os.path.isfile(path) and not path.lower().endswith(".zip")
    if one and getattr(config, split) is None:
        raise InputError(
            f"data.path is {path}, one file, which would serve as every split; expected the folder "
            f"or archive of {config.format}: give --from PATH, or --train, --dev and --test FILE"
        )
    records = read_split(config, split, path)
    assert records.file is not None  # all readers here read a file
    # the reader and its options, a part of the cache's key; numbers change with the reader
    about = {
        "table": f"table {config.text} {config.label} {config.tokens} {config.quoted}",
        "tagging": f"tagging 2 {_columns(config)}" if config.format == "tagging" else "",
    }.get(config.format, f"{config.format} {split} {config.classes}")
    # the suffix tells readers the format, so equal content may be read in two ways
    about += f" {''.join(records.file.suffixes[-2:])} {config.unusable}"
    return TextSource((records.file,), lambda: records, about, records.source)


def _no_file(config: DataConfig, split: str) -> InputError:
    given, name = _given(config), config.format
    if name not in CORPORA:
        return InputError(f"data.{split} is none; expected a file: give --{split} FILE")
    if not given:
        return InputError(
            f"data.path is none; expected the folder or archive of {name}: fetch it with treelax "
            f"data {name}, or give --from PATH"
        )
    return InputError(
        f"data.{split} is none beside {' and '.join(given)}; expected a file: give --{split} FILE, "
        f"or --from {_downloaded(name) or 'PATH'}"
    )


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
    if config.model.trees == "given" and data.trees is not None:
        trees, name = data.trees.replace(SPLIT, split), trees_of(split)
        file = find_again(trees, origins.get(name), f"file of {name}")
        return labelled_treebank(file, settings, Source(), limit)

    def file_of(path: str) -> Path:
        file = read_split(data, split, path).file
        assert file is not None  # all readers of runs read a file
        return file

    path = find_split(data, split, origins, distribution(data), file_of=file_of)
    # as the reader of tagged words finds it in an archive
    if data.format == "tagging" and one_file(path, preferred=WORD_SUFFIXES).suffix == CONLLU:
        return labelled_treebank(path, settings, Source(), limit)
    records = read_split(data, split, path)
    rows = (as_example(record, settings) for record in islice(records, limit))
    return Examples(records.source, rows, lambda: records.report.lines())
