"""Which backend runs for which device.

========== ======== =========================================================
backend    device   what it is
========== ======== =========================================================
reference  any      loops to be read beside the paper; slow, the ground truth
diagonal   any      plain PyTorch, vectorised: a diagonal of the chart a step
native     CPU      C++ kernel, one sentence per SIMD lane
triton     CUDA     GPU kernels
cuda       CUDA     soft projective trees in CUDA C++, the rest as triton
========== ======== =========================================================
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import warnings
from types import ModuleType
from typing import Any

from treelax.errors import BackendError, install_command
from treelax.ops.backend import Algorithm
from treelax.ops.checks import one_of

BACKENDS = ("reference", "diagonal", "native", "triton", "cuda")


@functools.cache
def load(folder: str, backend: str) -> Any:
    """A backend of a folder of ops: an object of the folder, a module, or the object ``BACKEND`` of that
    module. Triton is imported only here."""
    package = importlib.import_module(f"treelax.ops.{folder}")
    module = vars(package).get(backend)
    if module is None or isinstance(module, ModuleType):
        module = importlib.import_module(f"treelax.ops.{folder}.{backend}")
    return getattr(module, "BACKEND", module)


def why_not(name: str, device_type: str) -> str | None:
    """The reason why a backend cannot run on a kind of device, or None if it can."""
    if name == "native":
        if device_type != "cpu":
            return f"it runs on the CPU and scores is on {device_type}"
        reason: str | None = importlib.import_module("treelax.ops.native").unavailable()
        return reason
    if name in ("triton", "cuda"):
        if importlib.util.find_spec("triton") is None:
            return f"Triton is not installed ({install_command('triton')})"
        if device_type != "cuda" and not (name == "triton" and triton_interprets()):
            return f"it runs on CUDA devices and scores is on {device_type}"
    if name == "cuda":
        reason = importlib.import_module("treelax.ops.nvrtc").unavailable()
        return reason
    return None


def triton_interprets() -> bool:
    """Whether Triton runs in its interpreter, on CPU tensors (``TRITON_INTERPRET=1``, for tests)."""
    return os.environ.get("TRITON_INTERPRET") == "1"


@functools.cache
def choose(backend: str, device_type: str) -> str:
    """The name of the backend to run: the one asked for, or for ``""`` the fastest on the device.

    Warns once if a fast backend is missing.

    Raises:
        BackendError: the backend was asked for by name and cannot run here.
    """
    if backend:
        one_of("backend", backend, BACKENDS)
        reason = why_not(backend, device_type)
        if reason is not None:
            raise BackendError(
                f"backend {backend!r} cannot run here: {reason}. "
                "Leave backend out to have one chosen."
            )
        return backend
    if device_type == "cuda" and why_not("cuda", device_type) is None:
        return "cuda"
    preferred = {"cpu": "native", "cuda": "triton"}.get(device_type, "diagonal")
    reason = why_not(preferred, device_type)
    if reason is None:
        return preferred
    warnings.warn(
        f"treelax: the {preferred} backend is not available ({reason}); using 'diagonal', which "
        "gives the same results more slowly.",
        RuntimeWarning,
        stacklevel=2,
    )
    return "diagonal"


@functools.cache
def described(algorithm: str) -> Algorithm:
    """The description of an algorithm, which its folder holds."""
    description: Algorithm = importlib.import_module(f"treelax.ops.{algorithm}").ALGORITHM
    return description


def find(algorithm: str, backend: str, device_type: str) -> tuple[Algorithm, str, Any]:
    """The algorithm, and name and module of the backend to run."""
    description, name = described(algorithm), choose(backend, device_type)
    if name not in description.backends:
        name = "triton" if name == "cuda" else "diagonal"
    return description, name, load(algorithm, name)
