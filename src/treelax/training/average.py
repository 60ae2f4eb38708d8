r"""A running mean of the weights, which is steadier than they are.

.. math:: s_t = d \, s_{t-1} + (1 - d) \, \theta_t, \qquad \bar\theta_t = s_t / (1 - d^t)

from :math:`s_0 = 0`: the mean of all weights so far, each counting :math:`d` times as much as the next.
The divisor is known without the device, so steps can be captured as a CUDA graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class RunningMean:
    """The mean of some parameters over steps; with a decay of 0, the parameters themselves."""

    def __init__(self, parameters: Sequence[nn.Parameter], decay: float) -> None:
        self.parameters: list[Tensor] = list(parameters)
        self.decay = decay
        self.sums = [torch.zeros_like(p) for p in self.parameters] if decay else []

    @torch.no_grad()
    def add(self) -> None:
        """Count the weights as they are now; without waiting for the device."""
        if self.decay:
            torch._foreach_lerp_(self.sums, self.parameters, 1 - self.decay)

    @contextmanager
    def in_place(self, steps: int) -> Iterator[None]:
        """Let the parameters be the mean over so many steps for a while, as a context manager."""
        if not self.decay:
            yield
            return
        own = [p.detach().clone() for p in self.parameters]
        self._set([value / (1 - self.decay**steps) for value in self.sums])
        try:
            yield
        finally:
            self._set(own)

    @torch.no_grad()
    def restart(self, steps: int) -> None:
        """Forget the weights so far and take those of now for the mean over so many steps."""
        for value, parameter in zip(self.sums, self.parameters, strict=False):
            value.copy_(parameter * (1 - self.decay**steps))

    @torch.no_grad()
    def restore(self, sums: Sequence[Tensor]) -> None:
        """Set the sums, in place, for graphs hold their addresses."""
        for value, old in zip(self.sums, sums, strict=True):
            value.copy_(old)

    @torch.no_grad()
    def _set(self, values: Sequence[Tensor]) -> None:
        for parameter, value in zip(self.parameters, values, strict=True):
            parameter.copy_(value)
        if values and values[0].is_cuda:
            torch.cuda.synchronize(values[0].device)  # steps and evaluation run on other streams
