"""Tensors in safetensors files, checksummed, with equal bytes for equal content; and their hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from torch import Tensor

from treelax.errors import BackendError, install_command
from treelax.files import atomic_write

__all__ = ["DamagedError", "check_sum", "fingerprint", "open_tensors", "require", "write_tensors"]


class DamagedError(Exception):
    """A file is no safetensors file, or not the one that was written."""


def write_tensors(file: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write dense tensors, which may share memory, and metadata, whose "state" is checksummed."""
    require("safetensors", "numpy")  # to read takes no NumPy
    from safetensors.torch import save

    separate: dict[str, Tensor] = {}  # on the host, without gaps, as the format requires
    seen: set[int] = set()
    for name, tensor in tensors.items():
        host = tensor.detach().cpu().contiguous()
        memory = host.untyped_storage().data_ptr()
        separate[name] = host.clone() if memory in seen else host
        seen.add(memory)
    content = save(separate, dict(metadata))
    end = 8 + int.from_bytes(content[:8], "little")
    header, data = json.loads(content[8:end]), memoryview(content)[end:]
    digest = hashlib.sha256(metadata["state"].encode())
    digest.update(data)
    header["__metadata__"]["sha256"] = digest.hexdigest()
    text = json.dumps(header, sort_keys=True).encode()  # the library's order is random
    text += b" " * (-len(text) % 8)  # tensors are aligned
    file.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(file) as out:
        out.write(len(text).to_bytes(8, "little") + text)
        out.write(data)


@contextmanager
def open_tensors(file: Path) -> Iterator[Any]:
    """The file as ``safetensors.safe_open`` gives it; its errors become `DamagedError`."""
    require("safetensors")
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="pt") as opened:
            yield opened
    except SafetensorError as error:
        raise DamagedError(str(error)) from error


def check_sum(file: Path, metadata: Mapping[str, str]) -> None:
    """Raise `DamagedError` unless the content is what was written; old files have no checksum."""
    with file.open("rb") as raw:
        raw.seek(8 + int.from_bytes(raw.read(8), "little"))
        start = hashlib.sha256(metadata["state"].encode())
        digest = hashlib.file_digest(raw, lambda: start).hexdigest()
    if metadata.get("sha256", digest) != digest:
        raise DamagedError("its content is not what was saved")


def require(*libraries: str) -> None:
    """Raise unless these libraries are installed."""
    for name in libraries:
        if find_spec(name) is None:
            raise BackendError(f"{name} is not installed: {install_command('train')}")


def fingerprint(facts: object, tensors: Iterable[Tensor]) -> str:
    """Hash of `facts` and `tensors`."""
    made = hashlib.sha256(repr(facts).encode("utf-8", "surrogatepass"))
    for tensor in tensors:
        made.update(repr((tensor.dtype, tuple(tensor.shape))).encode())
        made.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return made.hexdigest()[:32]
