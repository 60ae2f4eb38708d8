"""Noise and dropout of a share of a batch, as they would be drawn for the whole batch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from treelax.errors import TrainingError
from treelax.training.distributed import World

FILLS = {
    torch.Tensor.bernoulli_,
    torch.Tensor.exponential_,
    torch.Tensor.normal_,
    torch.Tensor.random_,
    torch.Tensor.uniform_,
}


class WholeBatchDraws(TorchFunctionMode):
    """Draws random numbers for a whole batch and keeps those of this process's share.

    Generators of all processes start from the same seed, and each draws for all examples: so an
    example has the noise that it would have in a single process. It acts, as a context manager, on
    ``exponential_`` and the like (Gumbel noise), on gamma variables (sum-of-gamma noise), on dropout
    and on the dropout inside ``scaled_dot_product_attention``, and expects examples in their first
    dimension, once or several times (first the first texts of all pairs, then the second ones).
    Scalars are left alone: they are the same everywhere.
    """

    def __init__(self, world: World, count: int) -> None:
        super().__init__()
        self.world, self.count, self.part = world, count, world.share(count)

    def __torch_function__(
        self,
        func: Any,
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if func in FILLS and args[0].dim():
            return args[0].copy_(self._cut(func(self._room(args[0]), *args[1:], **kwargs)))
        if func is torch._standard_gamma:
            return self._gamma(*args, **kwargs)
        if func is F.dropout:
            return self._dropout(*args, **kwargs)
        if func is F.scaled_dot_product_attention:
            return self._attention(*args, **kwargs)
        return func(*args, **kwargs)

    def _gamma(self, concentration: Tensor, generator: torch.Generator | None = None) -> Tensor:
        # how many numbers a draw takes depends on the concentration, also on that of other shares
        whole = self.world.sum_(self._padded(concentration))
        return self._cut(torch._standard_gamma(whole, generator=generator))

    def _dropout(
        self, input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
    ) -> Tensor:
        if not training or not p:
            return input
        return input * self._cut(F.dropout(self._room(input).fill_(1), p))

    def _attention(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        **options: Any,
    ) -> Tensor:
        if not dropout_p:
            return F.scaled_dot_product_attention(query, key, value, attn_mask, **options)
        # its kernels draw inside, so they get a whole batch, of which the other shares are zeros
        query, key, value = (self._padded(part) for part in (query, key, value))
        if attn_mask is not None and attn_mask.dim() == query.dim() and len(attn_mask) > 1:
            attn_mask = self._padded(attn_mask, 1 if attn_mask.dtype == torch.bool else 0)
        return self._cut(
            F.scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, **options)
        )

    def _padded(self, share: Tensor, value: float = 0) -> Tensor:
        """The share with room for the others, which holds one value."""
        times = share.unflatten(0, (self._times(share), -1 if len(share) else 0))
        around = (self.part.start, self.count - self.part.stop)
        return F.pad(times, (0, 0) * (share.dim() - 1) + around, value=value).flatten(0, 1)

    def _cut(self, whole: Tensor) -> Tensor:
        """The share of a whole batch."""
        return whole.unflatten(0, (-1, self.count))[:, self.part].flatten(0, 1)

    def _room(self, share: Tensor) -> Tensor:
        """An empty tensor for the whole batch."""
        size = (self._times(share) * self.count, *share.shape[1:])
        return torch.empty(size, dtype=share.dtype, device=share.device)

    def _times(self, share: Tensor) -> int:
        """How often the examples follow each other in the first dimension."""
        own = self.part.stop - self.part.start
        if own == len(share):
            return 1
        if not own or len(share) % own:
            raise TrainingError(
                f"random numbers of shape {tuple(share.shape)} were drawn for a share of {own} "
                "examples; expected the examples in the first dimension: train this model in one "
                "process"
            )
        return len(share) // own
