"""How the vectors of a batch of sentences lie in memory: with padding, or packed without."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class Padded:
    """Sentences as ``(batch, n, size)``: all functions give back what they get."""

    def pad(self, rows: Tensor) -> Tensor:
        """Vectors ``(batch, n, size)``; packed ones get zeros as padding."""
        return rows

    def pack(self, padded: Tensor) -> Tensor:
        """The vectors of words from ``(batch, n, size)``."""
        return padded

    def with_root(self, rows: Tensor, root: Tensor) -> Tensor:
        """A vector ``(size)`` in front of each sentence; `rooted` is the layout of the result."""
        root = root.expand(*rows.shape[:-2], 1, -1)
        return torch.cat((root, rows), -2)

    def without_root(self, rows: Tensor) -> Tensor:
        """The vectors of words alone."""
        return rows[..., 1:, :]

    def rooted(self) -> Padded:
        """The layout of the same sentences with a root in front."""
        return self


PADDED = Padded()


class Packed(Padded):
    """Sentences as one matrix ``(rows, size)`` without padding; roots come before all words.

    A layer that treats each word alone has less to do, but shapes depend on lengths, which neither a
    CUDA graph nor ``torch.compile`` can follow.
    """

    def __init__(self, places: Tensor, batch: int, size: int) -> None:
        # where each row is among the batch * size padded ones
        self.places, self.batch, self.size = places, batch, size
        padding = torch.ones(batch * size, dtype=torch.bool, device=places.device)
        self.padding = padding.index_fill_(0, places, False).nonzero()[:, 0]
        self.rows = torch.zeros(batch * size, dtype=torch.int64, device=places.device)
        self.rows[places] = torch.arange(len(places), device=places.device)

    def pad(self, rows: Tensor) -> Tensor:
        padded: Tensor = _Moved.apply(rows, self, "pad")  # type: ignore[no-untyped-call]
        return padded

    def pack(self, padded: Tensor) -> Tensor:
        rows: Tensor = _Moved.apply(padded, self, "pack")  # type: ignore[no-untyped-call]
        return rows

    def with_root(self, rows: Tensor, root: Tensor) -> Tensor:
        return torch.cat((root.expand(self.batch, -1), rows))

    def without_root(self, rows: Tensor) -> Tensor:
        # a slice would fill a whole gradient with zeros first
        return rows.split((self.batch, len(rows) - self.batch))[1]

    def rooted(self) -> Packed:
        roots = torch.arange(self.batch, device=self.places.device) * (self.size + 1)
        words = self.places + self.places // self.size + 1
        return Packed(torch.cat((roots, words)), self.batch, self.size + 1)


def best_layout(lengths: Tensor, size: int) -> Padded:
    """Packed on the CPU, where every row costs time, if there is any padding."""
    if lengths.device.type != "cpu" or torch.compiler.is_compiling():
        return PADDED
    word = (torch.arange(size) < lengths[:, None]).flatten()
    places = word.nonzero()[:, 0]
    return PADDED if len(places) in (0, len(word)) else Packed(places, len(lengths), size)


class _Moved(torch.autograd.Function):
    """From one layout to the other, ``to`` being "pad" or "pack".

    Autograd's backward pass would add up rows one by one; each row has one place only.
    """

    @staticmethod
    def forward(rows: Tensor, layout: Packed, to: str) -> Tensor:
        if to == "pack":
            return rows.flatten(0, 1).index_select(0, layout.places)
        padded = rows.index_select(0, layout.rows).index_fill_(0, layout.padding, 0)
        return padded.view(layout.batch, layout.size, *rows.shape[1:])

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Packed, str], output: Tensor) -> None:
        ctx.back = inputs[1].pack if inputs[2] == "pad" else inputs[1].pad

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return ctx.back(grad), None, None
