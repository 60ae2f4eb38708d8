"""Word vectors: a fixed table with a few learned rows."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from treelax.errors import InputError
from treelax.ops.internals import can_bypass_dispatcher

ID_TYPES = (torch.int64, torch.int32)


class WordEmbedding(nn.Module):
    """Looks up word vectors; the first rows are learned, the rest stay as they were given.

    The table is no parameter and not part of ``state_dict``: it belongs to the vocabulary, may be
    large, and never changes. It may be of a half type to save memory: vectors come out in the type
    of the layers, which is torch's default type when they are built, and afterwards the one that
    the module was moved to (``.double()`` and the like move the table too).

    Args:
        table: ``(words, size)``; row 0 is padding and must be 0. It is not copied.
        learned: rows ``1 … learned`` are parameters, started from the table's.

    Shape:
        ids ``(...)`` to vectors ``(..., size)``.

    Example:
        >>> embedding = WordEmbedding(torch.tensor([[0.0], [1.0], [2.0]]), learned=1)
        >>> embedding(torch.tensor([2, 1, 0])).tolist()
        [[2.0], [1.0], [0.0]]
        >>> [tuple(p.shape) for p in embedding.parameters()]
        [(1, 1)]
    """

    table: Tensor
    like: Tensor

    def __init__(self, table: Tensor, *, learned: int = 0) -> None:
        super().__init__()
        shape = tuple(table.shape)
        if len(shape) != 2 or not table.is_floating_point() or not 0 <= learned < len(table):
            raise InputError(
                f"table has shape {shape} and dtype {table.dtype}, and learned is {learned}; "
                "expected floating-point (words, size) with more words than learned rows"
            )
        if bool(table[0].any()):
            raise InputError("table has a row 0 that is not 0; expected zeros, for padding")
        self.size = shape[1]
        self.register_buffer("table", table.detach(), persistent=False)
        # goes from type to type with the layers, whatever type the table has
        self.register_buffer("like", torch.empty(0), persistent=False)
        self.learned: nn.Parameter | None = None
        if learned:
            rows = self.table[1 : learned + 1].to(self.like.dtype, copy=True)
            self.learned = nn.Parameter(rows)

    def forward(self, ids: Tensor) -> Tensor:
        if ids.dtype not in ID_TYPES:
            raise InputError(f"ids has dtype {ids.dtype}; expected int64 or int32")
        if self.learned is None:
            return F.embedding(ids, self.table).to(self.like.dtype)
        learned = (ids > 0) & (ids <= len(self.learned))
        if learned.device.type == "cpu" and can_bypass_dispatcher(ids) and learned.all():
            return F.embedding(ids - 1, self.learned)
        fixed = F.embedding(ids, self.table).to(self.like.dtype)
        # other words look up any row, which counts for nothing; not all the same one, where their
        # gradients, all 0, would wait for each other to be added
        rows = F.embedding((ids - 1) % len(self.learned), self.learned)
        return torch.where(learned[..., None], rows, fixed)

    def append(self, rows: Tensor) -> None:
        """Append vectors ``(words, size)`` of more words, which are not learned."""
        if rows.dim() != 2 or rows.shape[1] != self.size:
            raise InputError(f"rows has shape {tuple(rows.shape)}; expected (words, {self.size})")
        self.table = torch.cat([self.table, rows.detach().to(self.table)])

    def extra_repr(self) -> str:
        learned = 0 if self.learned is None else len(self.learned)
        return f"{len(self.table)}, {self.size}, learned={learned}"
