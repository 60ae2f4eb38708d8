"""Folders that a command fills with files, all of them or none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from treelax.errors import InputError


@contextmanager
def folder_to_write(folder: Path) -> Iterator[Path]:
    """Make a folder and one in it for unfinished files; a new one goes again after an error."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: is a file; expected a folder: give another --out")
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with TemporaryDirectory(prefix=".treelax-", dir=folder) as temporary:
            yield Path(temporary)
    except BaseException:
        if is_new:
            with suppress(OSError):  # not empty
                folder.rmdir()
        raise
