"""Fetching the archives of the corpora from where their authors keep them.

A file appears under its name only when it is whole and its checksum is right. Until then it is
called ``NAME.part``, and stays when the connection is cut: the next try goes on from there.
"""

from __future__ import annotations

import http.client
import os
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import treelax
from treelax.data.text.cache import cache_folder
from treelax.errors import DataError
from treelax.files import sha256, try_lock

__all__ = ["ARCHIVES", "Archive", "cache_folder", "download"]

CHUNK = 1 << 18
TRIES = 4  # in a row without a single byte
CUT = (OSError, http.client.HTTPException)
PASSING = {408, 425, 429, 500, 502, 503, 504}  # statuses after which another try may help

Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Archive:
    """A file to be fetched.

    Attributes:
        url: its address; the last part is its name.
        sha256: its checksum, in hexadecimal.
        size: its bytes.

    Example:
        >>> Archive("https://example.org/data/a.zip", "00" * 32, 1024).name
        'a.zip'
    """

    url: str
    sha256: str
    size: int

    @property
    def name(self) -> str:
        """The name of the file."""
        return self.url.rpartition("/")[2]


# The authors publish no checksums. These, and the sizes, are what public projects that fetch the
# same files independently of each other have on record: the datasets library of Hugging Face for
# all three, ParlAI for SNLI and MultiNLI, Flux's model zoo for SST.
ARCHIVES = {
    "snli": Archive(
        "https://nlp.stanford.edu/projects/snli/snli_1.0.zip",
        "afb3d70a5af5d8de0d9d81e2637e0fb8c22d1235c2749d83125ca43dab0dbd3e",
        94_550_081,
    ),
    "multinli": Archive(
        "https://cims.nyu.edu/~sbowman/multinli/multinli_1.0.zip",
        "049f507b9e36b1fcb756cfd5aeb3b7a0cfcb84bf023793652987f7e7e0957822",
        226_850_426,
    ),
    "sst": Archive(
        "https://nlp.stanford.edu/sentiment/trainDevTestTrees_PTB.zip",
        "5c613a4f673fc74097d523a2c83f38e0cc462984d847b82c7aaf36b01cbbbfcc",
        789_539,
    ),
}


def download(
    archive: Archive,
    folder: str | os.PathLike[str],
    *,
    progress: Progress | None = None,
    timeout: float = 30.0,
    wait: float = 1.0,
) -> Path:
    """Fetch a file over the network, unless it is there already.

    A connection that is cut is taken up again where it was cut, here and in the next call.

    Args:
        archive: what to fetch.
        folder: where to put it; made if it is not there.
        progress: called with the number of bytes that are there.
        timeout: how long to wait for an answer, in seconds.
        wait: how long to wait before the second try, in seconds; twice as long before each further
            one.

    Returns:
        The file, whole and with the right checksum.

    Raises:
        DataError: the file cannot be fetched or written, has another checksum, or another process
            is fetching it. The message says what to do.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     there = Path(folder, "a.zip")
        ...     count = there.write_bytes(b"")
        ...     nothing = sha256(os.devnull)
        ...     download(Archive("https://example.org/a.zip", nothing, 0), folder) == there
        True
    """
    file = Path(folder) / archive.name
    part = file.with_name(f"{file.name}.part")
    if file.exists():
        if (received := sha256(file)) != archive.sha256:
            raise DataError(
                f"{file}: has the SHA-256 {received}; expected {archive.sha256}: remove it to "
                "fetch it again, or pass it with --from if it is what you want"
            )
        return file
    ours = False
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with part.open("ab") as out:
            if not (ours := try_lock(out.fileno())):
                raise DataError(
                    f"{part}: another process is fetching it; wait until that ends, and run this "
                    "again"
                )
            transfer = _Transfer(archive.url, out, progress or _no_progress, timeout, wait)
            goes_on = transfer.done > 0
            if not goes_on or sha256(part) != archive.sha256:
                transfer.run()
            if goes_on and sha256(part) != archive.sha256:
                # the beginning may be that of another file: once more from the start
                transfer.start_over()
                transfer.run()
            os.fsync(out.fileno())
        if (received := sha256(part)) != archive.sha256:
            size = part.stat().st_size
            part.unlink()
            raise DataError(
                f"{archive.url}: received {size:,} bytes with the SHA-256 {received}; expected "
                f"{archive.sha256}: try again, or get {archive.name} elsewhere and pass it with "
                "--from"
            )
        os.replace(part, file)
    except OSError as error:
        raise DataError(f"{file}: was not written: {error}") from error
    finally:
        with suppress(OSError):
            if ours and part.stat().st_size == 0:
                part.unlink()
    return file


@dataclass(slots=True)
class _Transfer:
    """The bytes of an address on their way into a file, in as many tries as it takes."""

    url: str
    out: IO[bytes]
    progress: Progress
    timeout: float
    wait: float
    total: int | None = None

    @property
    def done(self) -> int:
        return self.out.tell()

    def start_over(self) -> None:
        self.out.seek(0)
        self.out.truncate()
        self.total = None

    def run(self) -> None:
        failures, received = 0, False
        while True:
            before = self.done
            try:
                self._try()
            except _NotWritten as error:
                raise error.reason from None
            except urllib.error.HTTPError as error:
                error.close()
                reason: Exception = error
                if error.code == 416 and before:  # no such range: the part is no part of it
                    self.start_over()
                elif error.code not in PASSING:
                    raise self._unreachable(_status(error)) from error
            except CUT as error:
                reason = error
                if not received and self.done == before:
                    why = getattr(error, "reason", None) or error
                    raise self._unreachable(str(why) or type(why).__name__) from error
            else:
                return
            finally:
                self.out.flush()
            received = received or self.done > before
            failures = 0 if self.done > before else failures + 1
            if failures == TRIES:
                raise (self._cut(reason) if self.done else self._refused(reason)) from reason
            time.sleep(self.wait * 2**failures)

    def _try(self) -> None:
        headers = {"User-Agent": f"treelax/{treelax.__version__}", "Accept-Encoding": "identity"}
        if self.done:
            headers["Range"] = f"bytes={self.done}-"
        request = urllib.request.Request(self.url, headers=headers)
        with urllib.request.urlopen(request, timeout=self.timeout) as response:
            if self.done and not self._goes_on(response):
                self.start_over()
            length = response.headers.get("Content-Length", "")
            self.total = self.done + int(length) if length.isdecimal() else None
            self.progress(self.done)
            while chunk := response.read(CHUNK):
                try:
                    self.out.write(chunk)
                except OSError as error:
                    raise _NotWritten(error) from error
                self.progress(self.done)
        if self.total is not None and self.done < self.total:
            raise ConnectionError("the connection was closed too early")

    def _goes_on(self, response: http.client.HTTPResponse) -> bool:
        """Whether the server sends the rest, and not everything."""
        begins = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
        return response.status == 206 and begins is not None and int(begins[1]) == self.done

    def _unreachable(self, why: str) -> DataError:
        return DataError(
            f"{self.url}: cannot be fetched ({why}): get it elsewhere and pass it with --from"
        )

    def _refused(self, why: Exception) -> DataError:
        """Nothing came, though the server was there: it may come later."""
        return DataError(
            f"{self.url}: cannot be fetched ({_status(why)}, {TRIES} times): try again later, or get "
            "it elsewhere and pass it with --from"
        )

    def _cut(self, why: Exception) -> DataError:
        of = "" if self.total is None else f" of {self.total:,}"
        return DataError(
            f"{self.url}: was cut off after {self.done:,}{of} bytes ({why}): run this again to go "
            "on from there, or get it elsewhere and pass it with --from"
        )


def _status(error: Exception) -> str:
    """What a server answered, or what else went wrong."""
    if isinstance(error, urllib.error.HTTPError):
        return f"HTTP {error.code} {error.reason}"
    return str(error)


class _NotWritten(Exception):
    """The disk is at fault, not the network."""

    def __init__(self, reason: OSError) -> None:
        super().__init__(str(reason))
        self.reason = reason


def _no_progress(done: int) -> None:
    pass
