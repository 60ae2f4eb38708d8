"""Where lines come from: a file, plain or compressed, in a folder or in a zip archive."""

from __future__ import annotations

import io
import itertools
import os
import re
import zipfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from treelax.errors import DataError, InputError
from treelax.files import DAMAGE, REFUSED, Line, compressed, decoded_lines, read_lines

__all__ = [
    "NoSuchSplitError",
    "Source",
    "find_split",
    "is_archive",
    "listed",
    "members_of",
    "no_file",
    "one_file",
]

PathLike = str | os.PathLike[str]
COMPRESSED = (".gz", ".xz", ".bz2")
NAMES_SHOWN = 8
START_SHOWN, END_SHOWN = 40, 60  # characters of a long name; its end says what it is


class NoSuchSplitError(DataError):
    """The folder or archive of a data set has no file for a split."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file, or a file in a zip archive.

    Attributes:
        file: the file or the archive.
        member: the name in the archive; None for a file.

    Example:
        >>> Source(Path("snli_1.0.zip"), "snli_1.0/snli_1.0_dev.jsonl").name
        'snli_1.0.zip: snli_1.0/snli_1.0_dev.jsonl'
    """

    file: Path
    member: str | None = None

    @property
    def name(self) -> str:
        """The file and where in it, for messages."""
        file = _printable(str(self.file))
        return file if self.member is None else f"{file}: {_shown(self.member)}"

    @property
    def base(self) -> str:
        """The name of the file, or of the one in the archive, without folders."""
        return self.file.name if self.member is None else PurePosixPath(self.member).name

    @property
    def suffix(self) -> str:
        """The last suffix, in small letters, that is no compression; it may be empty."""
        return _suffix(self.member or self.file.name)

    def lines(self) -> Iterator[Line]:
        """The lines with their numbers, as `treelax.files.read_lines` gives them.

        Raises:
            DataError: the file is missing, or cannot be read or decoded; or it has the line ends of
                old Macs.
        """
        if self.member is None:
            lines = read_lines(self.file)
        else:
            lines = decoded_lines(_opened(self.file, self.member), self.name)
        return _with_ends(lines, self.name)


def one_file(
    path: PathLike,
    *,
    suffixes: Collection[str] = (),
    preferred: Collection[str] = (),
    member: str | None = None,
    expected: str = "a file",
) -> Source:
    """The file that a path names, or the right one in a zip archive.

    Args:
        path: a file.
        suffixes: in an archive, look only at files with these, ``".tsv"`` say; all by default.
        preferred: in an archive, look at other files only if none has one of these, so that a README
            or a licence may lie beside ``".conllu"``, say.
        member: which one in the archive; the only one by default. The end of its path is enough.
        expected: what it should be, for the message if there is nothing.

    Returns:
        The file, or the archive and the name in it.

    Raises:
        DataError: the file is missing, is a folder, or is an archive that is damaged or in which
            no file or several fit; the message names them.
        InputError: ``member`` is given for what is no archive.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with zipfile.ZipFile(Path(folder, "a.zip"), "w") as archive:
        ...         archive.writestr("a/b.tsv", "x")
        ...         archive.writestr("a/README.txt", "y")
        ...     one_file(Path(folder, "a.zip"), suffixes=[".tsv"]).member
        'a/b.tsv'
    """
    file = Path(path)
    if not file.is_file():
        raise no_file(file, expected)
    if not is_archive(file):
        if member is not None:
            raise InputError(f"member: received {member!r} for {file}; expected a .zip archive")
        return Source(file)
    names = _members(file)
    if member is not None:
        fitting = [n for n in names if n == member] or [
            n for n in names if n.endswith(f"/{member}")
        ]
        wanted = repr(member)
    else:
        fitting = [name for name in names if not suffixes or _suffix(name) in suffixes]
        fitting = [name for name in fitting if _suffix(name) in preferred] or fitting
        wanted = f"a file in {' or '.join(suffixes)}" if suffixes else "a file"
    if len(fitting) == 1:
        return Source(file, fitting[0])
    if fitting:
        raise DataError(
            f"{file}: holds {len(fitting)} files that fit ({listed(fitting)}); expected one: "
            "unpack it and give the file itself"
        )
    raise DataError(f"{file}: holds {listed(names)}; expected {wanted} in it")


def find_split(
    path: PathLike, patterns: Sequence[str], *, split: str | None, archive: str, expected: str
) -> Source:
    """The file of a split in the folder or zip archive of a data set; a file stands for itself.

    In a folder the files of its subfolders count too, and if none fits, those of the archive with
    the official name.

    Args:
        path: a folder, an archive or a file.
        patterns: regular expressions for the whole name, the best first; compression is put at the
            end of each.
        split: which part, for messages; None is right only for a file.
        archive: the official name of the archive.
        expected: the official name of the file, for messages.

    Returns:
        The file, or the archive and the name in it.

    Raises:
        NoSuchSplitError: there is no such file in it.
        DataError: there is no such path, or several files fit equally well.
        InputError: no split is asked for and the path is not a file.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     count = Path(folder, "dev.txt.gz").write_bytes(b"")
        ...     find_split(
        ...         folder, [r"dev\\.txt"], split="dev", archive="a.zip", expected="dev.txt"
        ...     ).file.name
        'dev.txt.gz'
    """
    file = Path(path)
    if not file.is_file() and not file.is_dir():
        raise no_file(file, f"{archive}, its folder or a file from it")
    if file.is_file() and not is_archive(file):
        return Source(file)
    if split is None:
        raise InputError(f"split: received None for {file}; expected the name of a split")
    if file.is_file():
        sources = [Source(file, name) for name in _members(file)]
    else:
        found = sorted(p for p in [*file.glob("*"), *file.glob("*/*")] if p.is_file())
        sources = [Source(p) for p in found if not p.name.startswith(".")]
    for pattern in patterns:
        whole = re.compile(rf"(?:{pattern})(?:\.gz|\.xz|\.bz2)?", re.IGNORECASE)
        fitting = [s for s in sources if whole.fullmatch(s.base)]
        if len(fitting) > 1:
            raise DataError(
                f"{file}: holds several files for {split}: {listed(s.base for s in fitting)}; "
                "expected one: pass the file itself"
            )
        if fitting:
            return fitting[0]
    zipped = [s.file for s in sources if s.file.name == archive and s.member is None]
    if zipped:
        return find_split(zipped[0], patterns, split=split, archive=archive, expected=expected)
    raise NoSuchSplitError(
        f"{file}: holds {listed(s.base for s in sources)}; expected {expected} for {split}"
    )


def no_file(file: Path, expected: str) -> DataError:
    """The error for a path that names no file to read.

    Args:
        file: the path.
        expected: what it should be.

    Returns:
        The error, to be raised.

    Example:
        >>> print(no_file(Path("nowhere.tsv"), "a table"))
        nowhere.tsv: does not exist; expected a table
    """
    if file.is_dir():
        return DataError(f"{file}: is a folder; expected {expected}")
    if file.exists():  # a pipe can be read once only, and most files are read more often
        return DataError(
            f"{file}: is no plain file but a pipe or a device; expected {expected}: write it to a "
            "file and give that"
        )
    return DataError(f"{file}: does not exist; expected {expected}")


def is_archive(file: Path) -> bool:
    """Whether a file is a ``.zip`` by its name."""
    return file.suffix.lower() == ".zip"


def _suffix(name: str) -> str:
    path = PurePosixPath(name.lower())
    return PurePosixPath(path.stem).suffix if path.suffix in COMPRESSED else path.suffix


def listed(names: Iterable[str]) -> str:
    """Names of files for a message, the first ones if there are many, each cut if it is long.

    Args:
        names: all of them.

    Returns:
        The names, in words; characters that cannot be printed are as Python writes them.

    Example:
        >>> listed(["a.tsv", "b.tsv"]), listed([])
        ('a.tsv, b.tsv', 'nothing')
        >>> listed([f"{'a' * 50}/{'b' * 57}.tsv"]) == f"{'a' * 40}…{'b' * 56}.tsv"
        True
    """
    names = list(names)
    shown = [*map(_shown, names[:NAMES_SHOWN]), *(["…"] if len(names) > NAMES_SHOWN else [])]
    return ", ".join(shown) or "nothing"


def _shown(name: str) -> str:
    """A name for a message: whoever packed an archive may have put anything into it."""
    name = _printable(name)
    is_long = len(name) > START_SHOWN + END_SHOWN
    return f"{name[:START_SHOWN]}…{name[-END_SHOWN:]}" if is_long else name


def _printable(name: str) -> str:
    """The name without what would act on a terminal, written as Python writes it."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in name)


def members_of(archive: zipfile.ZipFile) -> list[str]:
    """The files in an archive, less what macOS adds to it.

    Args:
        archive: open for reading.

    Returns:
        Their names.

    Example:
        >>> with zipfile.ZipFile(io.BytesIO(), "w") as archive:
        ...     for name in ("a/b.tsv", "__MACOSX/a/._b.tsv", "a/.DS_Store"):
        ...         archive.writestr(name, "x")
        ...     members_of(archive)
        ['a/b.tsv']
    """
    names = [info.filename for info in archive.infolist() if not info.is_dir()]
    paths = map(PurePosixPath, names)
    return [
        name
        for name, path in zip(names, paths, strict=True)
        if "__MACOSX" not in path.parts and not path.name.startswith(".")
    ]


def _members(archive: Path) -> list[str]:
    try:
        with zipfile.ZipFile(archive) as members:
            return members_of(members)
    except (*DAMAGE, *REFUSED) as error:
        raise DataError(f"{archive}: cannot be read as a zip archive: {error}") from error


def _with_ends(lines: Iterator[Line], where: str) -> Iterator[Line]:
    """The same lines; an error if the only one has ends of lines inside."""
    for first in itertools.islice(lines, 1):
        second = next(lines, None) if "\r" in first[1] else None
        if "\r" in first[1] and second is None:
            raise DataError(
                f"{where}: received lines that end in CR alone, as on old Macs; expected LF or CRLF: "
                "convert it, tr '\\r' '\\n' say"
            )
        yield first
        if second is not None:
            yield second
        yield from lines


@contextmanager
def _opened(archive: Path, member: str) -> Iterator[IO[bytes]]:
    with (
        zipfile.ZipFile(archive) as members,
        io.BufferedReader(members.open(member)) as raw,  # type: ignore[type-var]
        compressed(raw, member, "rb") as data,
    ):
        yield data
