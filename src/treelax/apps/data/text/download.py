"""Fetching the archives of the corpora; an unfinished ``NAME.part`` is continued the next time."""

from __future__ import annotations

import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import treelax
from treelax.apps.data.text.cache import cache_folder
from treelax.errors import DataError
from treelax.files import sha256, try_lock

__all__ = ["ARCHIVES", "Archive", "cache_folder", "download"]

CHUNK = 1 << 18
# other kinds of OSError are the disk's
NETWORK = (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError)


@dataclass(frozen=True, slots=True)
class Archive:
    """A file to fetch: its address, SHA-256 in hexadecimal, and size in bytes."""

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
    progress: Callable[[int], None] = lambda done: None,
    timeout: float = 30.0,
) -> Path:
    """Fetch an archive into a folder unless it is there; `progress` gets the bytes so far."""
    file = Path(folder) / archive.name
    if file.exists():
        if (received := sha256(file)) != archive.sha256:
            expected = f"expected {archive.sha256}: remove it, or pass it with --from to use it"
            raise DataError(f"{file}: has the SHA-256 {received}; {expected}")
        return file
    part = file.with_name(f"{file.name}.part")
    elsewhere = f"get {archive.name} elsewhere and pass it with --from"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with part.open("ab") as out:
            if not try_lock(out.fileno()):
                raise DataError(f"{part}: another process is fetching it; run this again later")
            if out.tell() < archive.size:
                _append(archive.url, out, progress, timeout)
            if out.tell() < archive.size:
                raise ConnectionError("the connection was closed too early")
        if (received := sha256(part)) != archive.sha256:
            part.unlink()
            expected = f"expected {archive.sha256}: try again, or {elsewhere}"
            raise DataError(
                f"{archive.url}: received a file with the SHA-256 {received}; {expected}"
            )
        os.replace(part, file)
    except NETWORK as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        if is_empty := not part.stat().st_size:
            part.unlink()
        again = "" if is_empty else "run this again to go on, or "
        raise DataError(
            f"{archive.url}: cannot be fetched ({error}): {again}{elsewhere}"
        ) from error
    except OSError as error:
        raise DataError(f"{file}: was not written: {error}") from error
    return file


def _append(url: str, out: IO[bytes], progress: Callable[[int], None], timeout: float) -> None:
    """Ask for what is still missing and write what comes."""
    headers = {"User-Agent": f"treelax/{treelax.__version__}", "Accept-Encoding": "identity"}
    if out.tell():
        headers["Range"] = f"bytes={out.tell()}-"
    request = urllib.request.Request(url, headers=headers)
    with urllib.request.urlopen(request, timeout=timeout) as response:
        if response.status != http.client.PARTIAL_CONTENT:
            out.truncate(0)
        progress(out.tell())
        while chunk := response.read(CHUNK):
            out.write(chunk)
            progress(out.tell())
