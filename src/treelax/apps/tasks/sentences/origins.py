"""The files that a run was trained with: where they were and what was in them, in ``data.json``."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from treelax.errors import DataError, InputError
from treelax.files import atomic_write, sha256
from treelax.ops.checks import one_of

FILE = "data.json"
SPLITS = ("train", "dev", "test")
PathLike = str | os.PathLike[str]


@dataclass(frozen=True)
class Origin:
    """A file as it was when a run was trained with it."""

    path: str  # absolute; of a corpus its folder or archive
    sha256: str  # of a folder, that of the file in it that was read


@dataclass(frozen=True)
class TrainingFile:
    """A file that a config names."""

    name: str  # "train", "dev", "test", "mix", "vectors" or `trees_of` a split
    path: str  # as in the config
    option: str  # which names another
    find: Callable[[], PathLike] | None = None  # the file in the folder or archive of a corpus

    @property
    def what(self) -> str:
        """What it is, for messages."""
        others = {"mix": "data mixed in", "vectors": "word vectors"}
        fallback = f"{self.name} data" if self.name in SPLITS else f"file of {self.name}"
        return others.get(self.name, fallback)

    @property
    def file(self) -> PathLike:
        """The file that is read."""
        return self.path if self.find is None else self.find()


def trees_of(split: str) -> str:
    """What the given trees of a split are called among the origins."""
    return f"{split} trees"


def origins_of(files: Iterable[TrainingFile]) -> dict[str, Origin]:
    """The files as they are now, except word vectors: the sum of so large a file takes its time."""
    checksum = cache(_sum)  # one archive has several splits
    return {
        file.name: Origin(os.path.abspath(file.path), checksum(os.fspath(file.file)))
        for file in files
        if file.name != "vectors"
    }


def write_origins(folder: Path, files: Iterable[TrainingFile]) -> None:
    """Record the files that a run is trained with."""
    record = {name: asdict(origin) for name, origin in origins_of(files).items()}
    with atomic_write(folder / FILE, "w") as out:
        out.write(json.dumps(record, indent=1) + "\n")


def read_origins(folder: Path) -> dict[str, Origin]:
    """What `write_origins` wrote; nothing if there is no record."""
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


def refuse_other_data(folder: Path, files: Iterable[TrainingFile]) -> None:
    """Refuse to continue a run whose files are missing, or whose test data differ.

    The checkpoint checks training and dev data. A run without test data may be given some.
    """
    origins, named = read_origins(folder), {}
    for file in files:
        if not os.path.exists(file.path):
            raise _missing(file.path, origins.get(file.name), file.what, file.option)
        named[file.name] = file
    for name in ("test", trees_of("test")):
        was, now = origins.get(name), named.get(name)
        if was is None or (now is None and name != "test"):
            continue
        if now is None or _sum(now.file) != was.sha256:
            there = "nothing" if now is None else os.path.abspath(now.file)
            what, option = ("test data", "--test FILE") if now is None else (now.what, now.option)
            raise InputError(
                f"{there}: is not the {what} that the run began with, {was.path} ({FILE} has "
                f"another sum); expected the same content: restore it, or give {option}"
            )


def trained_with(
    file: Path, origins: Mapping[str, Origin], files: Iterable[TrainingFile]
) -> str | None:
    """What a file that exists is to a run with these origins, whose config names these files."""
    for name, origin in origins.items():
        place = Path(origin.path)
        # of a corpus the record has the folder, and the sum of the file in it
        inside = place.is_dir() and place.resolve() in file.resolve().parents
        if _same(file, place) or (inside and _sum(file) == origin.sha256):
            return TrainingFile(name, origin.path, "").what
    # a run may have been moved together with its files
    return next((named.what for named in files if _same(file, Path(named.path))), None)


def find_split(
    data: Any,
    split: str,
    origins: Mapping[str, Origin],
    corpus: str | None = None,
    *,
    file_of: Callable[[str], PathLike] = Path,
) -> str:
    """The path of a split of a run, whose settings of data these are; see `find_again`."""
    one_of("split", split, SPLITS)
    named = getattr(data, split) or corpus
    if named is None and split not in origins:
        there = " or ".join(name for name in SPLITS if getattr(data, name))
        raise InputError(
            f"the run was trained without {split} data; expected --data FILE or, for analyse and "
            f"report, --split {there}"
        )
    return find_again(named, origins.get(split), f"{split} data", file_of=file_of)


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


def _same(file: Path, other: Path) -> bool:
    return other.exists() and file.samefile(other)


def _sum(file: PathLike) -> str:
    try:
        return sha256(file)
    except OSError as error:
        raise DataError(f"{os.fspath(file)}: cannot be read: {error.strerror}") from error
