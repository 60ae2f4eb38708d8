"""Files of word vectors for tests."""

import io
import zipfile
from pathlib import Path

import numpy as np

from treelax.data.text.vectors import FIRST_UNKNOWN, Vectors

GLOVE = "the 3 4\ndog -0.5 1e-1\n. . . 7 8\ncafé 5 6\n1 9 9.5\n"
WORDS = ["café", "the", "1", "bird", "dog", ". . ."]
FIRST = FIRST_UNKNOWN + 100


def written(folder: Path, content: str | bytes, name: str = "vectors.txt") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def zipped(folder: Path, **members: str) -> Path:
    path = folder / "vectors.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.mkdir("folder")
        for name, content in members.items():
            archive.writestr(f"folder/{name}.txt", content)
    return path


def locked(path: Path) -> Path:
    """Have every file of an archive ask for a password."""
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        starts = [info.header_offset for info in archive.infolist()]
        place = archive.start_dir
    for start in starts:
        data[start + 6] |= 1  # in the header of the file
        data[place + 8] |= 1  # and in the directory
        place = data.find(b"PK\x01\x02", place + 1)
    path.write_bytes(data)
    return path


def one_array() -> bytes:
    """A file of NumPy that is no archive."""
    file = io.BytesIO()
    np.save(file, np.ones(1))
    return file.getvalue()


def archived(folder: Path, **arrays: object) -> Path:
    path = folder / "vectors.npz"
    np.savez(path, **arrays)
    return path


def rows_of(vectors: Vectors) -> dict[str, list[float]]:
    return {word: vectors.matrix[row].tolist() for word, row in vectors.known.items()}
