"""The files that readers read: plain or compressed, in a folder or in a zip archive."""

from __future__ import annotations

import io
import os
import re
import zipfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

from treelax.errors import DataError, InputError
from treelax.files import DAMAGE, REFUSED, Line, compressed, decoded_lines
from treelax.ops.checks import one_of

PathLike = str | os.PathLike[str]
COMPRESSED = (".gz", ".xz", ".bz2")
NAMES_SHOWN = 8


class NoSuchSplitError(DataError):
    """The folder or archive of a data set has no file for a split."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file, or a file in a zip archive."""

    file: Path
    member: str | None = None

    @property
    def name(self) -> str:
        """The file and where in it, for messages."""
        return str(self.file) if self.member is None else f"{self.file}: {_shown(self.member)}"

    @property
    def base(self) -> str:
        """The name of the file, or of the one in the archive, without folders."""
        return self.file.name if self.member is None else PurePosixPath(self.member).name

    @property
    def suffix(self) -> str:
        """The last suffix, in lower case, that is no compression; it may be empty."""
        path = PurePosixPath(self.base.lower())
        return PurePosixPath(path.stem).suffix if path.suffix in COMPRESSED else path.suffix

    @contextmanager
    def opened(self) -> Iterator[IO[bytes]]:
        """The file, decompressed."""
        with ExitStack() as stack:
            raw: Any = stack.enter_context(self.file.open("rb"))
            if self.member is not None:
                member = stack.enter_context(zipfile.ZipFile(raw)).open(self.member)
                raw = stack.enter_context(io.BufferedReader(member))  # type: ignore[type-var]
            yield stack.enter_context(compressed(raw, self.base, "rb"))

    def lines(self) -> Iterator[Line]:
        """The lines with their numbers, counted from 1."""
        return decoded_lines(self.opened(), self.name)


def one_file(
    path: PathLike, *, preferred: Collection[str] = (), expected: str = "a file"
) -> Source:
    """The file that a path names, or the only one in a zip archive, or the only preferred one."""
    sources = _sources(Path(path), expected)
    fitting = [source for source in sources if source.suffix in preferred] or sources
    if len(fitting) != 1:
        names = listed(str(source.member) for source in fitting)
        raise DataError(
            f"{path}: holds {len(fitting)} files that fit ({names}); expected one: unpack it and give "
            "the file itself"
        )
    return fitting[0]


def find_split(
    path: PathLike, split: str | None, splits: Sequence[str], archive: str, patterns: Sequence[str]
) -> Source:
    """The file of a split in the folder or zip archive of a data set; a file stands for itself.

    The first pattern that fits a name wins.
    """
    if split is not None:
        one_of("split", split, splits)
    file = Path(path)
    if file.is_dir():
        files = sorted(p for p in [*file.glob("*"), *file.glob("*/*")] if p.is_file())
        sources = [Source(p) for p in files if not p.name.startswith(".")]
    else:
        sources = _sources(file, f"{archive}, its folder or a file from it")
        if sources == [Source(file)]:
            return sources[0]
    if split is None:
        raise InputError(f"split is None for {file}; expected the name of a split")
    for pattern in patterns:
        whole = re.compile(rf"(?:{pattern})(?:\.gz|\.xz|\.bz2)?", re.IGNORECASE)
        fitting = [s for s in sources if whole.fullmatch(s.base)]
        if len(fitting) > 1:
            names = listed(s.base for s in fitting)
            raise DataError(f"{file}: holds several files for {split}: {names}; expected one")
        if fitting:
            return fitting[0]
    zipped = [s.file for s in sources if s.file.name == archive and s.member is None]
    if zipped:
        return find_split(zipped[0], split, splits, archive, patterns)
    expected = patterns[0].replace("\\", "")
    raise NoSuchSplitError(
        f"{file}: holds {listed(s.base for s in sources)}; expected {expected} for {split}"
    )


def _sources(file: Path, expected: str) -> list[Source]:
    """A file, or the files in a zip archive, without what macOS adds to it."""
    if not file.is_file():
        # a pipe can be read only once, and most files are read more often
        what = "is a folder" if file.is_dir() else "is not a regular file"
        what = what if file.exists() else "does not exist"
        raise DataError(f"{file}: {what}; expected {expected}")
    if file.suffix.lower() != ".zip":
        return [Source(file)]
    try:
        with zipfile.ZipFile(file) as opened:
            names = [info.filename for info in opened.infolist() if not info.is_dir()]
    except (*DAMAGE, *REFUSED) as error:
        raise DataError(f"{file}: cannot be read as a zip archive: {error}") from error
    hidden = re.compile(r"(?:^|/)(?:__MACOSX/|\.[^/]*$)")
    return [Source(file, name) for name in names if not hidden.search(name)]


def listed(names: Iterable[str]) -> str:
    """Names of files for a message, the first ones if there are many."""
    names = list(names)
    shown = [*map(_shown, names[:NAMES_SHOWN]), *(["…"] if len(names) > NAMES_SHOWN else [])]
    return ", ".join(shown) or "nothing"


def _shown(name: str) -> str:
    """A name without control characters, which would act on a terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in name)
