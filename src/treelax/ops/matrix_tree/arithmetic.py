"""The numbers that `treelax.ops.matrix_tree.diagonal` computes with.

``x[0]`` is a tensor of weights; ``x[1]``, where it is there, their derivatives in one direction.
`Linear` holds them as they are, `Log` as logarithms and derivatives of logarithms.
"""

from __future__ import annotations

import torch
from torch import Tensor

from treelax.ops.backend import FORBIDDEN


def fold(x: Tensor) -> Tensor:
    """Sum over the first dimension, neighbours first: zeros at its end change no bit."""
    while len(x) > 1:
        even = len(x) // 2 * 2
        pairs = x[:even:2] + x[1:even:2]
        x = pairs if even == len(x) else torch.cat((pairs, x[even:]))
    return x[0]


class Linear:
    """Weights as they are: fast, and exact while no normaliser comes near underflow."""

    zero, one = 0.0, 1.0

    def of(self, log_weights: Tensor, *tangent: Tensor) -> Tensor:
        """From logarithms, and their derivatives."""
        weights = log_weights.exp()
        return torch.stack((weights, *(weights * t for t in tangent)))

    def log(self, x: Tensor) -> Tensor:
        """The logarithm, without derivative."""
        return x[0].log()

    def plain(self, x: Tensor) -> Tensor:
        """Weights and derivatives as they are."""
        return x

    def scaled(self, x: Tensor) -> Tensor:
        """Weights whose sum over dimension 1 may be compared with them."""
        return x

    def times(self, a: Tensor, b: Tensor) -> Tensor:
        """``a · b``."""
        product = a * b[:1]
        if len(a) == 2:
            product[1] += a[0] * b[1]
        return product

    def over(self, a: Tensor, b: Tensor) -> Tensor:
        """``a / b``."""
        quotient = a / b[:1]
        if len(a) == 2:
            quotient[1] -= quotient[0] * (b[1] / b[0])
        return quotient

    def total(self, x: Tensor) -> Tensor:
        """Sum over dimension 1."""
        return fold(x.movedim(1, 0))

    def add_product(self, x: Tensor, a: Tensor, b: Tensor) -> None:
        """``x += a · b``."""
        if len(x) == 2:
            x[1].addcmul_(a[1], b[0]).addcmul_(a[0], b[1])
        x[0].addcmul_(a[0], b[0])


class Log(Linear):
    """Logarithms, for weights of any range; the derivative of a sum is a mean of derivatives."""

    zero, one = FORBIDDEN, 0.0

    def of(self, log_weights: Tensor, *tangent: Tensor) -> Tensor:
        """As they are."""
        return torch.stack((log_weights, *tangent))

    def log(self, x: Tensor) -> Tensor:
        """As it is."""
        return x[0]

    def plain(self, x: Tensor) -> Tensor:
        """The derivative of a weight is the weight times that of its logarithm."""
        weights = x[:1].exp()
        return torch.cat((weights, weights * x[1:]))

    def scaled(self, x: Tensor) -> Tensor:
        """With maximum 1: the logarithm of the sum would be lost beside one of 1e30."""
        return torch.cat((x[:1] - x[:1].amax(1, keepdim=True), x[1:]))

    def times(self, a: Tensor, b: Tensor) -> Tensor:
        """``log a + log b``."""
        return a + b

    def over(self, a: Tensor, b: Tensor) -> Tensor:
        """``log a - log b``."""
        return a - b

    def total(self, x: Tensor) -> Tensor:
        """``log Σ exp``, below the maximum."""
        top = x[0].amax(0)
        share = (x[0] - top).exp_()
        weight = fold(share)
        return torch.stack((top + weight.log(), *(fold(share * t) / weight for t in x[1:])))

    def add_product(self, x: Tensor, a: Tensor, b: Tensor) -> None:
        """``x = log(exp x + exp(a + b))``."""
        term = a + b
        ahead = term[0] - x[0]
        # logaddexp and sigmoid by hand: PyTorch's have other bits at the end of a vector
        less = ahead.abs().neg_().exp_()  # the smaller relative to the larger
        if len(x) == 2:
            x[1] += torch.where(ahead > 0, 1, less) / (1 + less) * (term[1] - x[1])
        torch.maximum(x[0], term[0], out=x[0]).add_(less.log1p_())
