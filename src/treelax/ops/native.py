"""Binding of the C++ kernel in ``native/``: a plain C interface called through ctypes.

The library holds the same code compiled for several instruction sets; the best one that the
processor can run is chosen when this module is first used. ``TREELAX_NATIVE`` overrides the choice
(``v2``, ``v3``, ``v4``, ``generic``, or ``off``).

A sentence is one SIMD lane, so sentences never influence each other's rounding: a sentence gives the
same bits whatever its neighbours, its padding and the number of threads. Few sentences take a build
of the same code with shorter vectors. In a long sentence, one of more than `LONGEST_IN_LANES` words,
a lane is a split of a cell instead: there are enough of them to fill a vector with one sentence.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib.resources
import mmap
import os
import threading
import weakref
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from treelax.errors import BackendError, ChartMemoryError
from treelax.ops.backend import Algorithm

VARIANTS = ("v4", "v3", "v2", "generic")
ALIGNMENT = 64  # bytes: a whole vector, and what torch gives
TYPES = {torch.float32: "f32", torch.float64: "f64"}
BAD_LENGTH, OUT_OF_MEMORY = 1, 8  # bits of the status, see native/group.h

NO_MEMORY = "Not enough memory for the charts; use smaller batches or shorter sentences."

#: Longer sentences of dynamic programs go alone, see native/group.h.
LONGEST_IN_LANES = 255

#: From this many steps on, half a second of cells times splits, a call can be interrupted.
LONG = 10**8

#: Smaller blocks of memory come from the C library, which keeps them by itself.
SMALLEST_BLOCK = 128 * 1024

Kernel = Callable[..., int]


def block_size(size: int) -> int:
    """At most an eighth more, so that batches of similar shape share blocks."""
    step = max(1 << 16, 1 << max(0, size.bit_length() - 4))
    return -(-size // step) * step


class _Loan(weakref.ref[memoryview]):
    """Notices when nobody needs a block any more; `weakref.finalize` with less Python."""

    __slots__ = ("block",)
    block: mmap.mmap


class Pool:
    """Memory between the forward and the backward pass, used again; about ``limit`` bytes lie idle.

    The C library returns large blocks to the system at once, and the first touch of every 4 KiB then
    costs a page fault, which is felt beside a kernel of a few milliseconds. Taking a block and giving it
    back are single operations on a deque, so threads and the garbage collector may meet here without a
    lock; at worst two of them pass the limit together.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.free: defaultdict[int, deque[mmap.mmap]] = defaultdict(deque)
        self.lent: dict[int, _Loan] = {}  # a reference without a holder is never called

    @property
    def idle(self) -> int:
        """Bytes that wait to be used again."""
        return sum(size * len(blocks) for size, blocks in list(self.free.items()))

    def empty(self, count: int, dtype: torch.dtype) -> Tensor:
        """A tensor with uninitialised memory, like `torch.empty`."""
        size = count * dtype.itemsize
        if size < SMALLEST_BLOCK:
            return torch.empty(count, dtype=dtype)
        size = block_size(size)
        try:
            block = self.free[size].pop()
        except IndexError:
            # private, so that a forked child does not write into its parent's
            try:
                block = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            except OSError as error:
                raise ChartMemoryError(NO_MEMORY) from error
        view = memoryview(block)
        loan = _Loan(view, self.give_back)
        loan.block = block
        self.lent[id(loan)] = loan
        return torch.frombuffer(view, dtype=dtype, count=count)

    def give_back(self, loan: _Loan) -> None:
        """Called when the tensor of a block is gone."""
        del self.lent[id(loan)]
        size = len(loan.block)
        if self.idle + size <= self.limit:  # otherwise the system gets it
            self.free[size].append(loan.block)


#: Twice what 64 sentences of 80 words keep in float32.
pool = Pool(limit=32 * 1024 * 1024)


@functools.cache
def _open() -> tuple[ctypes.CDLL | None, str]:
    """The library and the name of the variant in use, or None and the reason why there is none."""
    wanted = os.environ.get("TREELAX_NATIVE", "")
    if wanted == "off":
        return None, "it was switched off with TREELAX_NATIVE=off"
    path = importlib.resources.files("treelax.ops") / "libtreelax_native.so"
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
def kernel_of(operation: str, dtype: torch.dtype, build: str, arguments: str) -> Kernel:
    """An entry point of a build, ``""``, ``"_narrow"`` or ``"_lone"``; ``arguments`` are ``p`` for
    pointers and ``i`` for integers."""
    library = _open()[0]
    function = getattr(library, f"treelax_{operation}_{TYPES[dtype]}_{variant()}{build}")
    function.restype = ctypes.c_int64
    kinds: dict[str, Any] = {"p": ctypes.c_void_p, "i": ctypes.c_int64}
    function.argtypes = [kinds[a] for a in arguments]
    kernel: Kernel = function
    return kernel


def full_lanes(dtype: torch.dtype) -> int:
    """Numbers per SIMD register of the ordinary build."""
    return _lanes(dtype, False)


@functools.cache
def _lanes(dtype: torch.dtype, narrow: bool) -> int:
    """Sentences per SIMD register; 0 where there is no build with shorter vectors."""
    if narrow and variant() not in ("v3", "v4"):
        return 0
    return kernel_of("lanes", dtype, "_narrow" if narrow else "", "")()


def forget() -> None:
    """Open the library again when it is next used, for tests that set ``TREELAX_NATIVE``."""
    for cache in caches:
        cache.cache_clear()


#: What depends on the variant in use.
caches: list[Any] = [_open, kernel_of, _lanes]


def lanes(dtype: torch.dtype, batch: int) -> int:
    """Sentences per SIMD register in a call with ``batch`` sentences."""
    # bool: a batch of unknown size is decided upon when it is traced
    return _lanes(dtype, bool(batch <= _lanes(dtype, True)))


def build_for(dtype: torch.dtype, batch: int) -> str:
    """The build for a call with ``batch`` sentences, long ones aside."""
    return "_narrow" if batch <= _lanes(dtype, True) else ""


def call(
    operation: str,
    arguments: str,
    dtype: torch.dtype,
    lengths: Tensor,
    size: int,
    *values: Any,
    algorithm: Algorithm,
    lone: bool = False,
    times: int = 1,
) -> None:
    """Run an entry point for sentences in lanes, and see to its status.

    ``lone`` is for the long sentences of a batch, after the call for the others. Of n words, a sentence
    takes at most ``times`` n³ steps.
    """
    batch = lengths.shape[0]
    build = "_lone" if lone else build_for(dtype, batch)
    kernel = kernel_of(operation, dtype, build, arguments)
    flagged = _last.status if lone else 0
    status = run(kernel, batch * size**3 * times, *values)
    _last.status = status | flagged
    if status:
        raise_for_status(status, lengths, size, algorithm)


def run(kernel: Kernel, steps: int, *values: Any) -> int:
    """The status of an entry point, whose last two arguments are added here; a call of many steps can be
    interrupted."""
    threads = torch.get_num_threads()
    stop: ctypes.c_int | None = getattr(_last, "stop", None)
    if stop is not None:
        status = kernel(*values, threads, ctypes.addressof(stop))
        if stop.value:
            raise Stopped
    elif steps < LONG:
        status = kernel(*values, threads, None)
    else:
        status = _interruptible(kernel, *values, threads)
    _last.status = status
    return status


def _interruptible(kernel: Kernel, *values: Any) -> int:
    """Run a kernel in a thread of its own: this one can then take a Ctrl-C, and stop it."""
    stop, done = ctypes.c_int(0), threading.Event()
    status: list[int] = []

    def work() -> None:
        status.append(kernel(*values, ctypes.addressof(stop)))
        done.set()

    threading.Thread(target=work, daemon=True).start()
    try:
        done.wait()
    except BaseException:
        stop.value = 1
        while not done.is_set():  # the kernel still writes to the tensors of this call
            with contextlib.suppress(KeyboardInterrupt):
                done.wait()
        raise
    return status[0]


_last = threading.local()


class Stopped(Exception):
    """A call in a `stoppable` block ended early; there is no result."""


@contextlib.contextmanager
def stoppable(stop: ctypes.c_int) -> Iterator[None]:
    """Calls of this thread end with `Stopped` once another thread sets ``stop`` to 1."""
    _last.stop = stop
    try:
        yield
    finally:
        del _last.stop


def last_call_flagged() -> bool:
    """Whether this thread's last call met a NaN or infinite score, or a sentence without a tree.

    The kernel sees every score anyway; such a sentence has a value of NaN or far below any tree.
    """
    return bool(_last.status)


def aligned(saved: Tensor) -> Tensor:
    """A tensor where a kernel can read it: a hook on saved tensors may have moved it."""
    return saved.clone() if saved.data_ptr() % ALIGNMENT else saved


def raise_for_status(status: int, lengths: Tensor, size: int, algorithm: Algorithm) -> None:
    """Raise where a kernel computed nothing."""
    raise_if_out_of_memory(status)
    if status & BAD_LENGTH:
        algorithm.check_lengths(lengths, size, size)


def raise_if_out_of_memory(status: int) -> None:
    """Raise where there was too little memory."""
    if status & OUT_OF_MEMORY:
        raise ChartMemoryError(NO_MEMORY)
