"""Word vectors: a fixed table with a few learned rows."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from treelax.errors import InputError


class WordEmbedding(nn.Module):
    """Looks up word vectors; the first rows are learned, the rest stay as they were given.

    The table is no parameter and not part of ``state_dict``: it belongs to the vocabulary, may be
    large, and never changes. It may be of a half type to save memory; vectors come out in the type of
    the learned rows.

    Args:
        table: ``(words, size)``; row 0 is padding and must be 0.
        learned: rows ``1 … learned`` are parameters, started from the table's.

    Shape:
        ids ``(...)`` to vectors ``(..., size)``.

    Raises:
        InputError: the table is no matrix or has fewer rows than are to be learned.

    Example:
        >>> embedding = WordEmbedding(torch.tensor([[0.0], [1.0], [2.0]]), learned=1)
        >>> embedding(torch.tensor([2, 1, 0])).tolist()
        [[2.0], [1.0], [0.0]]
        >>> [tuple(p.shape) for p in embedding.parameters()]
        [(1, 1)]
    """

    table: Tensor

    def __init__(self, table: Tensor, *, learned: int = 0) -> None:
        super().__init__()
        if table.dim() != 2 or not 0 <= learned < len(table):
            raise InputError(
                f"table has shape {tuple(table.shape)} and learned is {learned}; expected "
                "(words, size) with more words than learned rows"
            )
        self.size = table.shape[1]
        self.register_buffer("table", table, persistent=False)
        self.learned = nn.Parameter(table[1 : learned + 1].float().clone()) if learned else None

    def forward(self, ids: Tensor) -> Tensor:
        """Look up."""
        fixed = self.table[ids].to(
            torch.get_default_dtype() if self.learned is None else self.learned.dtype
        )
        if self.learned is None:
            return fixed
        own = (ids > 0) & (ids <= len(self.learned))
        rows = nn.functional.embedding((ids - 1).clamp(0, len(self.learned) - 1), self.learned)
        return torch.where(own[..., None], rows, fixed)
