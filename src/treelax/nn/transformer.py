"""Word vectors from a transformer that reads sub-words.

A ragged table on the device says which sub-words each word has. Sequences of sub-words are built from it
there, in a few operations of fixed shape; afterwards sub-word vectors are combined into word vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Literal, Self, get_args

import torch
from torch import Tensor, nn

from treelax.errors import InputError
from treelax.nn.checks import check_size
from treelax.ops.checks import one_of

Subwords = Literal["mean", "first"]


class SubwordTransformer(nn.Module):
    """Gives each word the mean of its sub-words' vectors, or the first of them.

    From ids ``(batch, n)`` and lengths ``(batch)`` to vectors ``(batch, n, size)``, 0 in the padding.
    Words without sub-words, such as a NULL token, are not seen by the transformer and share one learned
    vector.

    A frozen transformer is always in evaluation mode, has no gradient and is no part of ``parameters()``
    and ``state_dict()``: what never changes need not be saved with every epoch. It still moves with the
    module from device to device and from type to type.

    Args:
        model: called with ``input_ids`` and ``attention_mask``, both ``(batch, sub-words)``; its result
            has ``last_hidden_state``.
        size: of its vectors.
        prefix: sub-words in front of every sentence, for example ``[CLS]``; ``suffix`` behind it.
        padding: the sub-word to pad with.
        limit: the most sub-words of a sentence, prefix and suffix counted.
        subwords: whose vectors a word has.
        frozen: leave the transformer as it is.
    """

    pieces: Tensor
    starts: Tensor
    prefix: Tensor
    suffix: Tensor

    def __init__(
        self,
        model: nn.Module,
        size: int,
        *,
        prefix: Sequence[int] = (),
        suffix: Sequence[int] = (),
        padding: int = 0,
        limit: int | None = None,
        subwords: Subwords = "mean",
        frozen: bool = False,
    ) -> None:
        super().__init__()
        check_size(size=size)
        one_of("subwords", subwords, get_args(Subwords))
        self.size, self.padding, self.limit, self.subwords = size, padding, limit, subwords
        self.model: nn.Module | None = None
        self._frozen: list[nn.Module] = []  # in a list it is no part of the module
        if frozen:
            self._frozen.append(model.eval().requires_grad_(False))
        else:
            self.model = model
        self.without = nn.Parameter(torch.zeros(size))
        self.register_buffer("prefix", torch.tensor(prefix, dtype=torch.int64), persistent=False)
        self.register_buffer("suffix", torch.tensor(suffix, dtype=torch.int64), persistent=False)
        self.set_pieces([[]])

    @property
    def frozen(self) -> bool:
        """Whether the transformer stays as it is."""
        return bool(self._frozen)

    @property
    def around(self) -> int:
        """Number of sub-words around the words of every sentence."""
        return len(self.prefix) + len(self.suffix)

    def set_pieces(self, rows: Sequence[Sequence[int]]) -> None:
        """Set the sub-words of each id; none for id 0, which is padding."""
        device = self.without.device
        flat = [piece for row in rows for piece in row]
        starts = list(accumulate(map(len, rows), initial=0))
        for name, values in (("pieces", flat), ("starts", starts)):
            numbers = torch.tensor(values, dtype=torch.int64, device=device)
            self.register_buffer(name, numbers, persistent=False)

    def add_pieces(self, rows: Sequence[Sequence[int]]) -> None:
        """Append words, with the sub-words of each, under the next ids."""
        flat = [piece for row in rows for piece in row]
        ends = list(accumulate(map(len, rows)))
        self.pieces = torch.cat((self.pieces, self.pieces.new_tensor(flat)))
        self.starts = torch.cat((self.starts, self.starts[-1] + self.starts.new_tensor(ends)))

    def keep_pieces(self, count: int) -> None:
        """Keep only the first ``count`` ids."""
        self.starts = self.starts[: count + 1].clone()
        self.pieces = self.pieces[: int(self.starts[-1])].clone()

    def count(self, ids: Tensor) -> Tensor:
        """Sub-words per word."""
        return self.starts[ids + 1] - self.starts[ids]

    def sequences(self, ids: Tensor, length: int | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Sub-words ``(batch, length)`` of ids ``(batch, n)``; which of them are no padding; and the
        index of each one's word, or -1.

        ``length`` defaults to that of the longest sentence, which waits for the device; if given, longer
        sentences are cut.
        """
        first, counts = self.starts[ids], self.count(ids)  # (batch, n)
        ends = counts.cumsum(1)
        total = ends[:, -1:]
        if length is None:
            length = max(int(total.max()) + self.around, 1)
            if self.limit is not None and length > self.limit:
                raise InputError(
                    f"a text has {length} sub-words with special tokens; expected at most "
                    f"{self.limit}, which the transformer takes: shorten it"
                )
        position = torch.arange(length, device=ids.device) - len(self.prefix)
        position = position.expand(len(ids), -1).contiguous()  # (batch, length)
        inside = (position >= 0) & (position < total)
        word = torch.searchsorted(ends, position, right=True).clamp(max=ids.shape[1] - 1)
        tokens = torch.full_like(position, self.padding)
        if len(self.pieces):
            place = (first - ends + counts).gather(1, word) + position
            tokens = torch.where(inside, self.pieces[place.clamp(0, len(self.pieces) - 1)], tokens)
        if len(self.suffix):
            behind = position - total
            last = self.suffix[behind.clamp(0, len(self.suffix) - 1)]
            tokens = torch.where((behind >= 0) & (behind < len(self.suffix)), last, tokens)
        tokens[:, : len(self.prefix)] = self.prefix
        present = position < total + len(self.suffix)
        return tokens, present, word.masked_fill(~inside, -1)

    def forward(self, ids: Tensor, lengths: Tensor, length: int | None = None) -> Tensor:
        """Word vectors; ``length`` is that of `sequences`."""
        tokens, present, word = self.sequences(ids, length)
        model = self._frozen[0] if self.model is None else self.model
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.frozen):
            hidden = model(input_ids=tokens, attention_mask=present.long()).last_hidden_state
        hidden = hidden.to(torch.promote_types(hidden.dtype, self.without.dtype))
        counts = self.count(ids)
        position = torch.arange(ids.shape[1], device=ids.device)  # (n)
        # a product, not a sum by index: the same to the bit in every run on a GPU
        share = word[:, None, :] == position[:, None]  # (batch, n, sub-words)
        if self.subwords == "first":
            share &= share.cumsum(-1) == 1
            weights = share.to(hidden.dtype)
        else:
            weights = share.to(hidden.dtype) / counts.clamp(min=1)[..., None]
        vectors = weights @ hidden
        vectors = torch.where((counts > 0)[..., None], vectors, self.without.to(vectors.dtype))
        return vectors.masked_fill((position >= lengths[:, None])[..., None], 0)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        for model in self._frozen:
            model._apply(fn, recurse)
        return super()._apply(fn, recurse)  # type: ignore[no-untyped-call]

    def extra_repr(self) -> str:
        return f"{self.size}, words={len(self.starts) - 1}, frozen={self.frozen}"
