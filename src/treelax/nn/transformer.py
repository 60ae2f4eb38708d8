"""Word vectors from a transformer that reads sub-words.

The words of a batch come as ids, as for any other encoder. A ragged table on the device tells which
sub-words each of them has; from it the sequences of sub-words are put together there, in a few
operations of fixed shape, and afterwards the sub-words' vectors are put together to words'.
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

__all__ = ["SubwordTransformer", "Subwords"]

Subwords = Literal["mean", "first"]


class SubwordTransformer(nn.Module):
    """Gives each word the mean of its sub-words' vectors, or the first of them.

    A word without sub-words, a NULL token for example, is not seen by the transformer and has a
    vector of its own that is learned; there is one such vector.

    A frozen transformer is in evaluation mode always, has no gradient and is no part of
    ``parameters()`` and ``state_dict()``: what never changes need not be saved with every epoch. It
    moves with the module from device to device and from type to type.

    Args:
        model: the transformer, called with ``input_ids`` and ``attention_mask``, both
            ``(batch, sub-words)``, whose result has ``last_hidden_state``.
        size: of its vectors.
        prefix: sub-words in front of every sentence, ``[CLS]`` say.
        suffix: sub-words behind it.
        padding: the sub-word to pad with.
        limit: the most sub-words of a sentence, prefix and suffix counted; None for no limit.
        subwords: "mean" or "first".
        frozen: leave the transformer as it is.

    Shape:
        ids ``(batch, n)`` and lengths ``(batch)`` to vectors ``(batch, n, size)``, 0 in the padding.

    Raises:
        InputError: a size or a name is not as expected.

    Example:
        >>> from types import SimpleNamespace
        >>> class Lookup(nn.Embedding):
        ...     def forward(self, input_ids, attention_mask):
        ...         return SimpleNamespace(last_hidden_state=super().forward(input_ids))
        >>> layer = SubwordTransformer(Lookup.from_pretrained(torch.eye(4)), 4, prefix=[3])
        >>> layer.set_pieces([[], [1], [1, 2]])  # of rows 0, for padding, 1 and 2
        >>> layer(torch.tensor([[2, 1]]), torch.tensor([2]))
        tensor([[[0.0000, 0.5000, 0.5000, 0.0000],
                 [0.0000, 1.0000, 0.0000, 0.0000]]], grad_fn=<MaskedFillBackward0>)
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
        check_size("size", size)
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
        """How many sub-words stand in front of and behind the words of every sentence."""
        return len(self.prefix) + len(self.suffix)

    def set_pieces(self, rows: Sequence[Sequence[int]]) -> None:
        """Say which sub-words each word has.

        Args:
            rows: for each id its sub-words; none for id 0, which is padding.
        """
        device = self.without.device
        flat = [piece for row in rows for piece in row]
        starts = list(accumulate(map(len, rows), initial=0))
        self.register_buffer("pieces", torch.tensor(flat, dtype=torch.int64), persistent=False)
        self.register_buffer("starts", torch.tensor(starts, dtype=torch.int64), persistent=False)
        self.pieces, self.starts = self.pieces.to(device), self.starts.to(device)

    def add_pieces(self, rows: Sequence[Sequence[int]]) -> None:
        """Add words with the next ids.

        Args:
            rows: for each of them its sub-words.
        """
        flat = [piece for row in rows for piece in row]
        ends = list(accumulate(map(len, rows)))
        self.pieces = torch.cat((self.pieces, self.pieces.new_tensor(flat)))
        self.starts = torch.cat((self.starts, self.starts[-1] + self.starts.new_tensor(ends)))

    def keep_pieces(self, count: int) -> None:
        """Forget all words but the first.

        Args:
            count: how many ids to keep.
        """
        self.starts = self.starts[: count + 1].clone()
        self.pieces = self.pieces[: int(self.starts[-1])].clone()

    def count(self, ids: Tensor) -> Tensor:
        """How many sub-words each word has.

        Args:
            ids: ``(...)``, on the module's device.

        Returns:
            ``(...)``, int64.
        """
        return self.starts[ids + 1] - self.starts[ids]

    def sequences(self, ids: Tensor, length: int | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Put the sub-words of sentences together.

        Args:
            ids: ``(batch, n)`` of words, 0 for padding.
            length: how many columns; by default those of the longest sentence, which waits for the
                device. Given, it is not checked: a longer sentence is cut.

        Returns:
            Sub-words ``(batch, length)``, padded; which of them are no padding, bool; and for each
            the number of its word, counted from 0, or -1 if it has none.

        Raises:
            InputError: a sentence has more sub-words than the transformer takes.
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
        """Vectors of words.

        Args:
            ids: ``(batch, n)`` of words, 0 for padding.
            lengths: ``(batch)`` in words.
            length: of the longest sentence in sub-words, see `sequences`.

        Returns:
            ``(batch, n, size)``.

        Raises:
            InputError: as `sequences`.
        """
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
        """The sizes."""
        return f"{self.size}, words={len(self.starts) - 1}, frozen={self.frozen}"
