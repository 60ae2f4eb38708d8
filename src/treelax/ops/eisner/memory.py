"""Memory that the C++ kernel keeps between the forward and the backward pass, used again and again.

The C library gives large blocks back to the system as soon as they are free and asks for them anew,
and the first touch of every 4 KiB then costs a page fault, which is felt beside a kernel of a few
milliseconds. A `Pool` hands out blocks as tensors and takes a block back when its tensor dies.
"""

from __future__ import annotations

import mmap
import weakref
from collections import defaultdict, deque

import torch
from torch import Tensor

from treelax.errors import TreelaxError

#: Smaller blocks come from the C library, which keeps them by itself.
SMALLEST = 128 * 1024


def rounded(size: int) -> int:
    """A size class: at most an eighth more, so that batches of similar shape share blocks.

    Example:
        >>> rounded(1_000_000), rounded(1_048_577)
        (1048576, 1179648)
    """
    step = max(1 << 16, 1 << max(0, size.bit_length() - 4))
    return -(-size // step) * step


def fresh(size: int) -> mmap.mmap:
    """A block from the system; private, so that a forked child does not write into its parent's."""
    try:
        return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise TreelaxError(
            f"No memory for {size} bytes that the backward pass needs ({error}); expected them to fit. "
            "Use smaller batches or shorter sentences."
        ) from error


class Pool:
    """Blocks by size; about ``limit`` bytes lie idle at most.

    Taking and giving back are single operations on a deque, so threads and the garbage collector may
    meet here without a lock; at worst two of them pass the limit together.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.free: defaultdict[int, deque[mmap.mmap]] = defaultdict(deque)

    @property
    def idle(self) -> int:
        """Bytes that wait to be used again."""
        return sum(size * len(blocks) for size, blocks in list(self.free.items()))

    def empty(self, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """A tensor with uninitialised memory, like `torch.empty`."""
        count = torch.Size(shape).numel()
        size = count * dtype.itemsize
        if size < SMALLEST:
            return torch.empty(shape, dtype=dtype)
        size = rounded(size)
        try:
            block = self.free[size].pop()
        except IndexError:
            block = fresh(size)
        view = memoryview(block)
        weakref.finalize(view, self.give_back, block).atexit = False
        return torch.frombuffer(view, dtype=dtype, count=count).view(shape)

    def give_back(self, block: mmap.mmap) -> None:
        """Called when the tensor of a block is gone."""
        size = len(block)
        if self.idle + size <= self.limit:  # otherwise the system gets it
            self.free[size].append(block)


#: Idle memory of the whole process: twice what 64 sentences of 80 words keep in float32.
pool = Pool(limit=32 * 1024 * 1024)
