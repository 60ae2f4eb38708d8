"""What commands that write trees share: files or standard output, and a word before long work."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, get_args

from treelax.cli.console import error_console
from treelax.errors import InputError

if TYPE_CHECKING:
    from treelax.data.conllu import Sentence

LONG = 1_000  # words or tokens


def refuse_same_file(out: Path | None, *files: str | Path | None) -> None:
    """Refuse to write into a file that is read."""
    for file in files:
        if out is None or file is None or not (out.exists() and Path(file).exists()):
            continue
        if out.samefile(file):
            raise InputError(f"--out: received {out}, the file that is read; expected another")


def refuse_files_of_run(out: Path | None, run: Path) -> None:
    """Refuse to write into a file that a run on sentences was trained with."""
    from treelax.tasks.text.config import Kind, TextConfig
    from treelax.tasks.text.origins import trained_with
    from treelax.training.run import CONFIG, Run

    if out is None or not (out.exists() and (run / CONFIG).is_file()):
        return
    trained = Run.open(run)
    if trained.task not in get_args(Kind):
        return
    if (what := trained_with(out, run, trained.config(TextConfig).data)) is not None:
        raise InputError(f"--out: received {out}, the {what} of {run}; expected another file")


def refuse_folder(out: Path | None) -> None:
    """Refuse a file that is a folder, or that has none to be in, before any work is done."""
    if out is None:
        return
    if out.is_dir():
        raise InputError(f"{out}: is a folder; expected a file: give another --out")
    if not out.parent.is_dir():
        raise InputError(
            f"{out}: there is no folder {out.parent}; expected one: make it or give another --out"
        )


@contextmanager
def folder_to_write(folder: Path) -> Iterator[Path]:
    """Make a folder and one in it for unfinished files; a new one goes again after an error."""
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


def write_lines(lines: Iterable[str], out: Path | None) -> None:
    """Write lines into a file, whole or not at all and compressed as its name says, or to stdout."""
    from treelax.files import atomic_write, compressed

    if out is None:
        for line in lines:
            sys.stdout.write(line + "\n")
        return
    with atomic_write(out) as raw, compressed(raw, out, "wb") as file:
        for line in lines:
            # half a character, which JSON can write, is then as JSON writes it
            file.write((line + "\n").encode(errors="backslashreplace"))


def write_sentences(sentences: Iterable[Sentence], out: Path | None) -> None:
    """Write trees as CoNLL-U into a file, or to standard output."""
    from treelax.data.conllu import write_conllu

    if out is not None:
        write_conllu(out, sentences)
        return
    with TemporaryDirectory() as folder:
        file = Path(folder, "trees.conllu")
        write_conllu(file, sentences)
        with file.open(encoding="utf-8", newline="") as whole:
            shutil.copyfileobj(whole, sys.stdout)


def warn_of_long(source: str, what: str, length: int, unit: str) -> None:
    """Say what makes a command take long: time grows with the cube of the length."""
    if length > LONG:
        error_console.print(
            f"{source}: {what} has {length:,} {unit}, which may take long; --max-length {LONG} "
            "leaves out such"
        )
