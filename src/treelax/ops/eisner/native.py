"""Binding of the C++ kernel in ``native/``: a plain C interface called through ctypes.

The library holds the same code compiled for several instruction sets; the best one that the
processor can run is chosen when this module is first used. ``TREELAX_NATIVE`` overrides the choice
(``v2``, ``v3``, ``v4``, ``generic``, or ``off``).

A sentence is one SIMD lane, so sentences never influence each other's rounding: a sentence gives the
same bits whatever its neighbours, its padding and the number of threads.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.resources
import os
import threading
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from treelax.errors import BackendError, ChartMemoryError
from treelax.ops.checks import check_length_values
from treelax.ops.eisner.memory import pool

VARIANTS = ("v4", "v3", "v2", "generic")
PLANES = 10  # `saved_planes` in native/group.h
ALIGNMENT = 64  # bytes: a whole vector, and what torch gives
TYPES = {torch.float32: "f32", torch.float64: "f64"}
BAD_LENGTH, OUT_OF_MEMORY = 1, 8  # bits of the status, see native/group.h

Kernel = Callable[..., int]

# GNU OpenMP's threads do not survive a fork; a forked child works on one thread.
_forked = False


def _mark_forked() -> None:
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_mark_forked)


@functools.cache
def _open() -> tuple[ctypes.CDLL | None, str]:
    """The library and the name of the variant in use, or None and the reason why there is none."""
    wanted = os.environ.get("TREELAX_NATIVE", "")
    if wanted == "off":
        return None, "it was switched off with TREELAX_NATIVE=off"
    path = importlib.resources.files("treelax.ops.eisner") / "libtreelax_native.so"
    if not path.is_file():
        return None, "the C++ kernel was not built when treelax was installed"
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        return None, f"the C++ kernel cannot be loaded: {error}"
    runs = [v for v in VARIANTS if library.treelax_supports(v.encode())]
    if wanted and wanted not in runs:
        return None, f"TREELAX_NATIVE={wanted}, but this machine runs {', '.join(runs) or 'none'}"
    if not runs:
        return None, "no compiled variant runs on this processor"
    return library, wanted or runs[0]


def supported() -> list[str]:
    """The variants that were compiled and run on this processor, best first."""
    library = _open()[0]
    return [v for v in VARIANTS if library and library.treelax_supports(v.encode())]


def unavailable() -> str | None:
    """Why the kernel cannot be used, or None if it can."""
    library, reason = _open()
    return reason if library is None else None


def variant() -> str:
    """The instruction set in use: ``v2``, ``v3``, ``v4`` or ``generic``."""
    library, name = _open()
    if library is None:
        raise BackendError(f"backend 'native' cannot run here: {name}.")
    return name


@functools.cache
def _kernel(operation: str, dtype: torch.dtype, *arguments: str) -> Kernel:
    """An entry point; ``arguments`` are ``p`` for pointers and ``i`` for integers."""
    name = variant()
    library = _open()[0]
    function = getattr(library, f"treelax_{operation}_{TYPES[dtype]}_{name}")
    function.restype = ctypes.c_int64
    kinds: dict[str, Any] = {"p": ctypes.c_void_p, "i": ctypes.c_int64}
    function.argtypes = [kinds[a] for a in "".join(arguments)]
    kernel: Kernel = function
    return kernel


def lanes(dtype: torch.dtype) -> int:
    """Sentences per SIMD register."""
    return _kernel("lanes", dtype)()


def _threads() -> int:
    return 1 if _forked else torch.get_num_threads()


_last = threading.local()


def suspicious() -> bool:
    """Did this thread's last call meet a score that is no number, or a sentence without a tree?

    The kernel sees every score anyway, so that nobody else need look; such a sentence has a value of
    NaN or far below any tree.
    """
    return bool(_last.status)


def _note(status: int, lengths: Tensor, size: int) -> None:
    """Remember the status, and raise for what leaves nothing computed."""
    _last.status = status
    if not status:
        return
    if status & OUT_OF_MEMORY:
        raise ChartMemoryError(
            "Not enough memory for the charts; use smaller batches or shorter sentences."
        )
    if status & BAD_LENGTH:
        check_length_values(lengths, size)


def saved_shape(batch: int, size: int, dtype: torch.dtype) -> tuple[int, ...]:
    width = lanes(dtype)
    return ((batch + width - 1) // width, PLANES, size * size, width)


def _soft_tree(
    scores: Tensor,
    lengths: Tensor,
    entropy: bool,
    single_root: bool,
    tree: Tensor | None,
    saved: Tensor | None,
) -> Tensor:
    batch, size, _ = scores.shape
    value = scores.new_empty(batch)
    status = _kernel("soft_tree", scores.dtype, "ppiiiipppi")(
        scores.data_ptr(),
        lengths.data_ptr(),
        batch,
        size,
        entropy,
        single_root,
        None if tree is None else tree.data_ptr(),
        value.data_ptr(),
        None if saved is None else saved.data_ptr(),
        _threads(),
    )
    _note(status, lengths, size)
    return value


def soft_tree(
    scores: Tensor, lengths: Tensor, relaxation: str, single_root: bool, save: bool
) -> tuple[Tensor, Tensor, Tensor]:
    batch, size, _ = scores.shape
    tree = torch.empty_like(scores)
    if save:
        saved = pool.empty(saved_shape(batch, size, scores.dtype), scores.dtype)
    else:
        saved = scores.new_empty(0)
    value = _soft_tree(
        scores, lengths, relaxation == "entropy", single_root, tree, saved if save else None
    )
    return tree, value, saved


def soft_tree_backward(
    grad_tree: Tensor,
    grad_value: Tensor,
    saved: Tensor,
    lengths: Tensor,
    relaxation: str,
    single_root: bool,
) -> Tensor:
    batch, size, _ = grad_tree.shape
    if saved.data_ptr() % ALIGNMENT:  # a hook on saved tensors may have moved it
        saved = saved.clone()
    grad_scores = torch.empty_like(grad_tree)
    status = _kernel("soft_tree_backward", grad_tree.dtype, "ppppiiiipi")(
        grad_tree.data_ptr(),
        grad_value.data_ptr(),
        saved.data_ptr(),
        lengths.data_ptr(),
        batch,
        size,
        relaxation == "entropy",
        single_root,
        grad_scores.data_ptr(),
        _threads(),
    )
    _note(status, lengths, size)
    return grad_scores


def log_partition(scores: Tensor, lengths: Tensor, single_root: bool) -> Tensor:
    return _soft_tree(scores, lengths, True, single_root, None, None)


def best_tree(scores: Tensor, lengths: Tensor, single_root: bool) -> tuple[Tensor, Tensor]:
    batch, size, _ = scores.shape
    tree, value = torch.empty_like(scores), scores.new_empty(batch)
    status = _kernel("best_tree", scores.dtype, "ppiiippi")(
        scores.data_ptr(),
        lengths.data_ptr(),
        batch,
        size,
        single_root,
        tree.data_ptr(),
        value.data_ptr(),
        _threads(),
    )
    _note(status, lengths, size)
    return tree, value


def sample_tree(
    scores: Tensor, lengths: Tensor, uniforms: Tensor, single_root: bool
) -> tuple[Tensor, Tensor]:
    batch, size, _ = scores.shape
    samples = uniforms.shape[0]
    trees = scores.new_empty((samples, batch, size, size))
    value = scores.new_empty(batch)
    status = _kernel("sample_tree", scores.dtype, "pppiiiippi")(
        scores.data_ptr(),
        lengths.data_ptr(),
        uniforms.data_ptr(),
        samples,
        batch,
        size,
        single_root,
        trees.data_ptr(),
        value.data_ptr(),
        _threads(),
    )
    _note(status, lengths, size)
    return trees, value
