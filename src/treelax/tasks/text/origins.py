"""The files that a run was trained with: where they were and what was in them, in ``data.json``."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from treelax.errors import DataError, InputError
from treelax.files import atomic_write, sha256
from treelax.tasks.text.config import SPLIT, DataConfig
from treelax.tasks.text.sources import distribution, text_sources

__all__ = ["Origin", "find_again", "origins_of", "read_origins", "trees_of", "write_origins"]

FILE = "data.json"


@dataclass(frozen=True)
class Origin:
    """A file as it was when a run was trained with it.

    Attributes:
        path: where it was, absolute; of a corpus its folder or archive.
        sha256: the sum of what was in it; of a folder, of the file in it that was read.

    Example:
        >>> Origin("/data/dev.tsv", 64 * "0").path
        '/data/dev.tsv'
    """

    path: str
    sha256: str


def trees_of(split: str) -> str:
    """What the given trees of a split are called among the origins.

    Args:
        split: "train", "dev" or "test".

    Returns:
        Their name.

    Example:
        >>> trees_of("dev")
        'dev trees'
    """
    return f"{split} trees"


def origins_of(config: DataConfig) -> dict[str, Origin]:
    """The files of a config as they are now.

    Args:
        config: which texts.

    Returns:
        By the name of the split, "mix" for what is mixed in; given trees as `trees_of` says.

    Raises:
        DataError: a file is not there or cannot be read.
        InputError: a file is not named.

    Example:
        >>> origins_of(DataConfig())
        Traceback (most recent call last):
        ...
        treelax.errors.InputError: data.train is none; expected a file: give --train FILE
    """
    sums: dict[str, str] = {}  # one archive has several splits

    def origin(path: str, file: str | os.PathLike[str]) -> Origin:
        if (key := os.fspath(file)) not in sums:
            sums[key] = _sum(file)
        return Origin(os.path.abspath(path), sums[key])

    found = {}
    for name, source in text_sources(config).items():
        [file] = source.files
        found[name] = origin(getattr(config, name) or distribution(config) or str(file), file)
        if config.trees is not None:
            trees = config.trees.replace(SPLIT, name)
            found[trees_of(name)] = origin(trees, trees)
    return found


def write_origins(folder: Path, config: DataConfig) -> None:
    """Write down which files a run is trained with.

    Args:
        folder: of the run.
        config: which texts.

    Raises:
        DataError: a file cannot be read, or the record not written.
        InputError: a file is not named.
    """
    record = {name: asdict(origin) for name, origin in origins_of(config).items()}
    with atomic_write(folder / FILE, "w") as out:
        out.write(json.dumps(record, indent=1) + "\n")


def read_origins(folder: Path) -> dict[str, Origin]:
    """What `write_origins` wrote.

    Args:
        folder: of the run.

    Returns:
        The files by name; none for a run of before there was such a record.

    Raises:
        DataError: the record is damaged.

    Example:
        >>> read_origins(Path("nowhere"))
        {}
    """
    file = folder / FILE
    if not file.exists():
        return {}
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        found = {str(name): Origin(**origin) for name, origin in record.items()}
        if not all(isinstance(v, str) for each in found.values() for v in asdict(each).values()):
            raise ValueError("a path or a sum is no text")
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise DataError(
            f"{file}: cannot be read as a record of files ({error}); restore it, or remove it to have "
            "the data of the run taken unchecked"
        ) from error
    return found


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


def _missing(tried: Sequence[str], origin: Origin | None, what: str) -> DataError:
    here, *more = dict.fromkeys(map(os.path.abspath, tried))
    nor = f", nor does {more[0]}, where it was" if more else ""
    advice = ": give --data FILE"
    if origin is None and not os.path.isabs(tried[0]):
        advice = ", which was perhaps trained in another folder: go there, or give --data FILE"
    return DataError(f"{here}: does not exist{nor}; expected the {what} of the run{advice}")


def _has(place: str, origin: Origin, file_of: Callable[[str], str | os.PathLike[str]]) -> bool:
    """Whether the file is in that place as it was."""
    try:
        file = file_of(place)
    except DataError:  # something else of that name: a folder without the split, say
        return False
    return _sum(file) == origin.sha256


def _sum(file: str | os.PathLike[str]) -> str:
    try:
        return sha256(file)
    except OSError as error:
        raise DataError(f"{os.fspath(file)}: cannot be read: {error.strerror}") from error
