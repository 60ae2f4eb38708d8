"""ListOps expressions as padded tensors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor

from treelax.data.listops.expression import TOKEN_IDS, Expression

__all__ = ["EncodedListOps", "encode_listops"]


@dataclass(frozen=True, eq=False, slots=True)
class EncodedListOps:
    """N expressions, the longest of L tokens, as tensors of int64 on one device.

    Attributes:
        tokens: ``(N, L)``, the ids of `TOKEN_IDS`, 1 to 15, padded with 0.
        lengths: ``(N,)``, tokens of each expression.
        heads: ``(N, L)``, the gold heads, counted from 1 with 0 the root, padded with -1.
        tags: ``(N, L)``, the valency of operators, 0 for other tokens, padded with -1.
    """

    tokens: Tensor
    lengths: Tensor
    heads: Tensor
    tags: Tensor

    def __len__(self) -> int:
        return len(self.lengths)

    def to(self, device: torch.device | str) -> EncodedListOps:
        """The same expressions with all tensors on a device."""
        tensors = (self.tokens, self.lengths, self.heads, self.tags)
        return EncodedListOps(*(tensor.to(device) for tensor in tensors))

    def select(self, indices: Tensor | Sequence[int]) -> EncodedListOps:
        """Some expressions, a batch for example, with no more padding than they need."""
        index = torch.as_tensor(indices, device=self.lengths.device)
        lengths = self.lengths[index]
        longest = int(lengths.max())
        return EncodedListOps(
            self.tokens[index, :longest],
            lengths,
            self.heads[index, :longest],
            self.tags[index, :longest],
        )


def encode_listops(expressions: Iterable[Expression]) -> EncodedListOps:
    """Put expressions into padded tensors, on the CPU.

    Example:
        >>> from treelax.data.listops import parse_expression
        >>> data = encode_listops(map(parse_expression, ["[MAX 2 9 ]", "[MIN 2 9 7 ]"]))
        >>> data.tokens
        tensor([[ 2,  8, 15,  5,  0],
                [ 1,  8, 15, 13,  5]])
        >>> data.tags
        tensor([[ 2,  0,  0,  0, -1],
                [ 3,  0,  0,  0,  0]])
    """
    expressions = list(expressions)
    lengths = torch.tensor([len(e) for e in expressions], dtype=torch.int64)
    inside = torch.arange(max(map(len, expressions), default=0)) < lengths[:, None]

    def padded(rows: Iterable[Iterable[int]], padding: int) -> Tensor:
        result = torch.full(inside.shape, padding, dtype=torch.int64)
        result[inside] = torch.tensor(list(chain.from_iterable(rows)), dtype=torch.int64)
        return result

    return EncodedListOps(
        tokens=padded((map(TOKEN_IDS.__getitem__, e.tokens) for e in expressions), 0),
        lengths=lengths,
        heads=padded((e.heads for e in expressions), -1),
        tags=padded((e.valencies for e in expressions), -1),
    )
