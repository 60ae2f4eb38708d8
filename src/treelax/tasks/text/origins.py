"""The files that a run was trained with: where they were and what was in them, in ``data.json``."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from treelax.errors import DataError, InputError
from treelax.files import atomic_write, sha256
from treelax.tasks.text.config import SPLIT, DataConfig
from treelax.tasks.text.sources import distribution, text_sources

__all__ = [
    "CORPUS",
    "Origin",
    "find_again",
    "origins_of",
    "read_origins",
    "refuse_missing",
    "refuse_other_test",
    "trained_with",
    "trees_of",
    "write_origins",
]

FILE = "data.json"
CORPUS = "--set data.path=PATH"  # names a corpus in every command; some have an option of their own
VECTORS = "vectors"  # which no record has
SPLITS = ("train", "dev", "test")
SHOWN = 40  # characters of a value in a message


@dataclass(frozen=True)
class Origin:
    """A file as it was when a run was trained with it.

    Attributes:
        path: where it was, absolute; of a corpus its folder or archive.
        sha256: the sum of what was in it; of a folder, of the file in it that was read.
    """

    path: str
    sha256: str


def trees_of(split: str) -> str:
    """What the given trees of a split are called among the origins."""
    return f"{split} trees"


def origins_of(config: DataConfig) -> dict[str, Origin]:
    """The files of a config as they are now."""
    sums: dict[str, str] = {}  # one archive has several splits

    def origin(path: str, file: str | os.PathLike[str]) -> Origin:
        if (key := os.fspath(file)) not in sums:
            sums[key] = _sum(file)
        return Origin(os.path.abspath(path), sums[key])

    return {name: origin(path, file) for name, path, file in _read(config)}


def write_origins(folder: Path, config: DataConfig) -> None:
    """Write down which files a run is trained with."""
    record = {name: asdict(origin) for name, origin in origins_of(config).items()}
    with atomic_write(folder / FILE, "w") as out:
        out.write(json.dumps(record, indent=1) + "\n")


def read_origins(folder: Path) -> dict[str, Origin]:
    """What `write_origins` wrote."""
    file = folder / FILE
    if not file.exists():
        return {}
    try:
        record = _object(json.loads(file.read_text(encoding="utf-8")), "it", "files by name")
        return {name: _origin(name, entry) for name, entry in record.items()}
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(
            f"{file}: cannot be read as a record of files ({_damage(error)}); restore it, or remove it "
            "to go on without its check of the run's files"
        ) from error


def refuse_missing(folder: Path, config: DataConfig, *, corpus: str = CORPUS) -> None:
    """Tell which file of a run is not there, where it was, and how to go on.

    Args:
        folder: of the run.
        config: its texts, with the names that its files have now.
        corpus: the option that names the folder or archive of a corpus.

    Raises:
        DataError: a file is not there; or the record, which is read in this case only, is damaged.
        InputError: a file is not named.

    Example:
        >>> refuse_missing(Path("nowhere"), DataConfig(train="/nowhere/a.tsv", dev="/nowhere/b.tsv"))
        Traceback (most recent call last):
        ...
        treelax.errors.DataError: /nowhere/a.tsv: does not exist; expected the train data of the run: \
give --train FILE
    """
    for name, path, what, again in _files(config, corpus):
        if os.path.exists(path):
            continue
        origins = read_origins(folder)
        if origins and name not in origins and name != VECTORS:  # the run did not begin with such
            raise DataError(
                f"{os.path.abspath(path)}: does not exist; expected an existing file: give {again}"
            )
        origin = origins.get(name)
        if origin is not None and os.path.exists(origin.path):
            raise _elsewhere(path, origin, what, again)
        tried = [path] if origin is None else [path, origin.path]
        raise _missing(tried, origin, what, again)


def refuse_other_test(folder: Path, config: DataConfig, *, corpus: str = CORPUS) -> None:
    """Refuse to go on with other test data than a run began with.

    They have no part in training, so the checkpoint does not tell them. A run that began without
    may be given some.
    """
    origins = read_origins(folder)
    known = {name: origins[name] for name in ("test", trees_of("test")) if name in origins}
    if "test" not in known:
        return
    names = {name: (what, again) for name, _, what, again in _files(config, corpus)}
    files = list(_read(config))
    if all(name != "test" for name, *_ in files):
        _, again = names.get("test", ("", "--test FILE"))
        raise InputError(
            f"{known['test'].path}: the run began with the test data there, and now has none; expected "
            f"the same content: restore it, or give {again}"
        )
    for name, path, file in files:
        if name in known and _sum(file) != known[name].sha256:
            (what, again), was = names[name], known[name].path
            began = "" if os.path.abspath(path) == was else f", {was}"
            raise InputError(
                f"{os.path.abspath(file)}: is not the {what} that the run began with{began} ({FILE} has "
                f"another sum); expected the same content: restore it, or give {again}"
            )


def trained_with(file: Path, origins: Mapping[str, Origin], config: DataConfig) -> str | None:
    """What a file that exists is to a run with these origins and this config."""
    for name, origin in origins.items():
        place = Path(origin.path)
        if _same(file, place):
            return _in_words(name)
        # of a corpus the record has the folder, and the sum of the file in it
        inside = place.is_dir() and place.resolve() in file.resolve().parents
        if inside and _sum(file) == origin.sha256:
            return _in_words(name)
    # a run may have been moved together with its files, whose names are then seen from here
    named = _paths(config, SPLITS)
    return next((_in_words(name) for name, path in named if _same(file, Path(path))), None)


def find_again(
    path: str | None,
    origin: Origin | None,
    what: str,
    *,
    file_of: Callable[[str], str | os.PathLike[str]] = Path,
) -> str:
    """The path of a file that a run was trained with: as it is named, seen from here, or where it was.

    A run and its files may have been moved together, so a relative name is looked for from here
    first. What has another content is not taken, whatever it is called.

    Args:
        path: as the config of the run has it; None where it says nothing.
        origin: what is known of it; None for a run of before there was such a record, which has to
            be believed.
        what: it is, in words.
        file_of: finds the file in the folder or archive of a corpus.

    Returns:
        The path.

    Raises:
        DataError: there is no such file any more, or it cannot be read.
        InputError: what is there has another content.

    Example:
        >>> find_again("/nowhere/dev.tsv", None, "dev data")
        Traceback (most recent call last):
        ...
        treelax.errors.DataError: /nowhere/dev.tsv: does not exist; expected the dev data of the run: \
give --data FILE
    """
    was_at = None if origin is None else origin.path
    tried = [place for place in (path, was_at) if place is not None]
    others = []
    for place in tried:
        if not os.path.exists(place):
            continue
        if origin is None or _has(place, origin, file_of):
            return place
        others.append(os.path.abspath(place))
    if origin is not None and others:
        raise _changed(others[0], origin, what)
    raise _missing(tried, origin, what)


def _changed(place: str, origin: Origin, what: str) -> InputError:
    was = "it has changed since" if place == origin.path else f"that was {origin.path}"
    return InputError(
        f"{place}: is not the {what} that the run was trained with ({was}); expected the same "
        "content: restore it, or name the file to study with --data FILE"
    )


def _missing(
    tried: Sequence[str], origin: Origin | None, what: str, again: str = "--data FILE"
) -> DataError:
    here, *more = dict.fromkeys(map(os.path.abspath, tried))
    nor = f", nor does {more[0]}, where it was" if more else ""
    advice = f": give {again}"
    if origin is None and not os.path.isabs(tried[0]):
        advice = f", which was perhaps trained in another folder: go there, or give {again}"
    return DataError(f"{here}: does not exist{nor}; expected the {what} of the run{advice}")


def _elsewhere(path: str, origin: Origin, what: str, again: str) -> DataError:
    """Of a file that is still where it was: its relative name is that of another folder, say."""
    folder = origin.path.removesuffix(os.sep + os.path.normpath(path))
    known = folder != origin.path and not os.path.isabs(path)
    back = f"go back to {folder or os.sep}, or " if known else ""
    return DataError(
        f"{os.path.abspath(path)}: does not exist; expected the {what} of the run, which began with "
        f"{origin.path}: {back}give {again}"
    )


def _read(config: DataConfig) -> Iterator[tuple[str, str, str | os.PathLike[str]]]:
    """Names among the origins, paths, and the files that are read there."""
    for name, source in text_sources(config).items():
        [file] = source.files
        yield name, getattr(config, name) or distribution(config) or str(file), file
        if config.trees is not None:
            trees = config.trees.replace(SPLIT, name)
            yield trees_of(name), trees, trees


def _files(config: DataConfig, corpus: str) -> Iterator[tuple[str, str, str, str]]:
    """Names among the origins, paths, what they are in words, and what names them anew."""
    every = " for each file of them" if config.more_vectors else ""
    options = {"mix": "--set data.mix=PATH", VECTORS: f"--vectors FILE{every}"}
    for split in SPLITS:
        options[split] = corpus if getattr(config, split) is None else f"--{split} FILE"
        options[trees_of(split)] = "--set data.trees=FILES"
    # a corpus need not have test data
    treed = () if config.trees is None else text_sources(config)
    for name, path in _paths(config, treed):
        file_of = "file of " if _is_of_trees(name) else ""
        yield name, path, file_of + _in_words(name), options[name]


def _paths(config: DataConfig, treed: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Names among the origins and paths as the config has them; given trees of some splits."""
    for split in SPLITS:
        if (path := getattr(config, split) or distribution(config)) is not None:
            yield split, path
    if config.mix is not None:
        yield "mix", config.mix
    if config.trees is not None:
        for split in treed:
            yield trees_of(split), config.trees.replace(SPLIT, split)
    # word vectors have no origin: the sum of so large a file would take its time
    for vectors in filter(None, (config.vectors, *config.more_vectors)):
        yield VECTORS, vectors


def _is_of_trees(name: str) -> bool:
    return name in map(trees_of, SPLITS)


def _in_words(name: str) -> str:
    """What a file is, by its name among the origins."""
    others = {"mix": "data mixed in", VECTORS: "word vectors"}
    return others.get(name) or (name if _is_of_trees(name) else f"{name} data")


def _origin(name: str, entry: Any) -> Origin:
    found = _object(entry, name, "path and sha256")
    for key in ("path", "sha256"):
        if key not in found:
            raise DataError(f"{name} has no {key}")
        if not isinstance(found[key], str):
            raise DataError(f"{key} of {name} is {_shown(found[key])}; expected a text")
    return Origin(found["path"], found["sha256"])


def _object(value: Any, what: str, of: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DataError(f"{what} is {_shown(value)}; expected an object of {of}")
    return value


def _shown(value: Any) -> str:
    """A value as the record has it, cut if it is long."""
    text = json.dumps(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _damage(error: OSError | ValueError | RecursionError) -> str:
    """What is wrong with a record, without the words of Python."""
    if isinstance(error, OSError):
        return error.strerror or "not to be read"
    if isinstance(error, json.JSONDecodeError):
        return f"it is no JSON from line {error.lineno} on, perhaps cut off"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return str(error) if isinstance(error, DataError) else "it is no JSON in UTF-8"


def _has(place: str, origin: Origin, file_of: Callable[[str], str | os.PathLike[str]]) -> bool:
    """Whether the file is in that place as it was."""
    try:
        file = file_of(place)
    except DataError:  # something else of that name: a folder without the split, say
        return False
    return _sum(file) == origin.sha256


def _same(file: Path, other: Path) -> bool:
    return other.exists() and file.samefile(other)


def _sum(file: str | os.PathLike[str]) -> str:
    try:
        return sha256(file)
    except OSError as error:
        raise DataError(f"{os.fspath(file)}: cannot be read: {error.strerror}") from error
