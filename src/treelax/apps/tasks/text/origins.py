"""The files that a run was trained with: where they were and what was in them, in ``data.json``."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from treelax.apps.tasks.text.config import SPLIT, DataConfig
from treelax.apps.tasks.text.sources import distribution, text_sources
from treelax.errors import DataError, InputError
from treelax.files import atomic_write, sha256

FILE = "data.json"
SPLITS = ("train", "dev", "test")
PathLike = str | os.PathLike[str]


@dataclass(frozen=True)
class Origin:
    """A file as it was when a run was trained with it."""

    path: str  # absolute; of a corpus its folder or archive
    sha256: str  # of a folder, that of the file in it that was read


def trees_of(split: str) -> str:
    """What the given trees of a split are called among the origins."""
    return f"{split} trees"


def origins_of(config: DataConfig) -> dict[str, Origin]:
    """The files of a config as they are now."""
    checksum = cache(_sum)  # one archive has several splits
    read = _read(config)
    return {
        name: Origin(os.path.abspath(path), checksum(os.fspath(file))) for name, path, file in read
    }


def write_origins(folder: Path, config: DataConfig) -> None:
    """Record the files that a run is trained with."""
    record = {name: asdict(origin) for name, origin in origins_of(config).items()}
    with atomic_write(folder / FILE, "w") as out:
        out.write(json.dumps(record, indent=1) + "\n")


def read_origins(folder: Path) -> dict[str, Origin]:
    """What `write_origins` wrote; nothing for older runs without such a record."""
    file = folder / FILE
    if not file.exists():
        return {}
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        return {name: Origin(os.fspath(row["path"]), row["sha256"]) for name, row in record.items()}
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{file}: cannot be read as a record of files ({error}); restore it, or remove it to go on "
            "without its check of the run's files"
        ) from error


def refuse_other_data(folder: Path, config: DataConfig) -> None:
    """Refuse to continue a run whose files are missing, or whose test data differ.

    The checkpoint checks training and dev data. A run without test data may be given some.
    """
    origins = read_origins(folder)
    for name, path in _named(config):
        if not os.path.exists(path):
            raise _missing(path, origins.get(name), _in_words(name), _option(config, name))
    files = {name: file for name, _, file in _read(config)} if "test" in origins else {}
    for name in ("test", trees_of("test")):
        was = origins.get(name)
        if was is None or (name != "test" and name not in files):
            continue
        if name not in files or _sum(files[name]) != was.sha256:
            there = os.path.abspath(files[name]) if name in files else "nothing"
            raise InputError(
                f"{there}: is not the {_in_words(name)} that the run began with, {was.path} ({FILE} has "
                f"another sum); expected the same content: restore it, or give {_option(config, name)}"
            )


def trained_with(file: Path, origins: Mapping[str, Origin], config: DataConfig) -> str | None:
    """What a file that exists is to a run with these origins and this config."""
    for name, origin in origins.items():
        place = Path(origin.path)
        # of a corpus the record has the folder, and the sum of the file in it
        inside = place.is_dir() and place.resolve() in file.resolve().parents
        if _same(file, place) or (inside and _sum(file) == origin.sha256):
            return _in_words(name)
    # a run may have been moved together with its files
    named = _named(config)
    return next((_in_words(name) for name, path in named if _same(file, Path(path))), None)


def find_again(
    path: str | None,
    origin: Origin | None,
    what: str,
    *,
    file_of: Callable[[str], PathLike] = Path,
) -> str:
    """The path of a file that a run was trained with: as the config names it, or where it was.

    A run and its files may have been moved together, so the name in the config comes first. A file
    with other content is never taken. ``file_of`` finds the file in the folder or archive of a corpus.
    """
    was_at = None if origin is None else origin.path
    tried = [place for place in (path, was_at) if place is not None]
    there = [place for place in tried if os.path.exists(place)]
    for place in there:
        with suppress(DataError):  # another folder of that name
            if origin is None or _sum(file_of(place)) == origin.sha256:
                return place
    if there:
        raise InputError(
            f"{os.path.abspath(there[0])}: is not the {what} that the run was trained with, {was_at} "
            "(it has changed since); expected the same content: restore it, or give --data FILE"
        )
    raise _missing(tried[0], origin, what, "--data FILE")


def _missing(path: str, origin: Origin | None, what: str, option: str) -> DataError:
    here = os.path.abspath(path)
    was = f", which was {origin.path}" if origin is not None and origin.path != here else ""
    return DataError(
        f"{here}: does not exist; expected the {what} of the run{was}: restore it, or give {option}"
    )


def _option(config: DataConfig, name: str) -> str:
    if name in SPLITS:
        return "--from PATH" if getattr(config, name) is None else f"--{name} FILE"
    options = {"mix": "--set data.mix=PATH", "vectors": "--vectors FILE for each of them"}
    return options.get(name, "--set data.trees=FILES")


def _read(config: DataConfig) -> Iterator[tuple[str, str, PathLike]]:
    """Names among the origins, paths, and the files read there."""
    for name, source in text_sources(config).items():
        [file] = source.files
        yield name, getattr(config, name) or distribution(config) or str(file), file
        if config.trees is not None:
            trees = config.trees.replace(SPLIT, name)
            yield trees_of(name), trees, trees


def _named(config: DataConfig) -> Iterator[tuple[str, str]]:
    """Names among the origins and paths as the config has them."""
    for split in SPLITS:
        if (path := getattr(config, split) or distribution(config)) is not None:
            yield split, path
            # a corpus need not have test data, and so no trees for it
            if config.trees is not None and (split != "test" or config.test is not None):
                yield trees_of(split), config.trees.replace(SPLIT, split)
    if config.mix is not None:
        yield "mix", config.mix
    # word vectors have no origin: the sum of so large a file would take its time
    for vectors in filter(None, (config.vectors, *config.more_vectors)):
        yield "vectors", vectors


def _in_words(name: str) -> str:
    others = {"mix": "data mixed in", "vectors": "word vectors"}
    return others.get(name) or (f"{name} data" if name in SPLITS else f"file of {name}")


def _same(file: Path, other: Path) -> bool:
    return other.exists() and file.samefile(other)


def _sum(file: PathLike) -> str:
    try:
        return sha256(file)
    except OSError as error:
        raise DataError(f"{os.fspath(file)}: cannot be read: {error.strerror}") from error
