"""What the tests of layers share: weights away from their initial values, and errors."""

from typing import Any

import torch
from tolerances import largest_error
from torch import Tensor, nn


def drawn(layer: Any, seed: int = 5, std: float = 1.0) -> Any:
    """The layer in float64 with no weight at its initial value: zeros sit on the edge of ReLU."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in layer.double().parameters():
            weight.copy_(std * torch.randn(weight.shape, dtype=weight.dtype, generator=generator))
    return layer


def some_vectors(*shape: int, seed: int = 7) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


def error(got: Tensor, expected: Tensor) -> float:
    return largest_error(got.detach(), expected.detach())


def loops(layers: nn.Module, vector: Tensor) -> Tensor:
    """ReLU(Wx + b), layer by layer."""
    for layer in layers:
        if isinstance(layer, nn.Linear):
            vector = (layer.weight @ vector + layer.bias).clamp(min=0)
    return vector


class Given(nn.Module):
    """A scorer that returns what it was made with."""

    def __init__(self, scores: Tensor) -> None:
        super().__init__()
        self.scores = scores

    def forward(self, vectors: Tensor) -> Tensor:
        return self.scores
