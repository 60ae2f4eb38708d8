"""The root as one more vector in front of the words."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from treelax.nn.checks import check_size, check_vectors
from treelax.nn.layout import PADDED, Padded


class Root(nn.Module):
    """Puts a learned vector, the root's, in front of a sentence's words.

    Index 0 is the root everywhere in treelax; the layers that work on trees expect it.

    Shape:
        words ``(..., n, size)`` to ``(..., n + 1, size)``.

    Example:
        >>> Root(5)(torch.zeros(2, 3, 5)).shape
        torch.Size([2, 4, 5])
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        check_size(size=size)
        self.size = size
        self.vector = nn.Parameter(torch.empty(size))
        nn.init.xavier_uniform_(self.vector.data[None])

    def forward(self, words: Tensor, layout: Padded = PADDED) -> Tensor:
        check_vectors("words", words, "...", "n", self.size)
        return layout.with_root(words, self.vector.to(words.dtype))

    def extra_repr(self) -> str:
        return str(self.size)


def without_root_arcs(arcs: Tensor) -> Tensor:
    """Scores or trees ``(..., n + 1, n + 1)`` with 0 for arcs from the root, which get no gradient."""
    return F.pad(arcs[..., 1:, :], (0, 0, 1, 0))
