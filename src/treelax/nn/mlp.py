"""Multilayer perceptron, initialised as in the paper's library."""

from __future__ import annotations

from itertools import pairwise

from torch import Tensor, nn

from treelax.errors import InputError
from treelax.nn.checks import check_dropout, check_size, check_vectors
from treelax.nn.dropout import Dropout
from treelax.nn.layout import PADDED, Padded


class MLP(nn.Sequential):
    r"""Layers of :math:`\mathrm{ReLU}(\mathrm{dropout}(W x + b))`.

    Matrices start from Glorot's uniform distribution, biases from zero. Dropout comes before the
    activation, as in the GCN layers of the authors' library.

    Args:
        sizes: of the input and of every layer.
        dropout: probability of dropping a unit while training.
        activate_last: apply dropout and ReLU after the last layer too.

    Shape:
        ``(..., sizes[0])`` to ``(..., sizes[-1])``.

    Example:
        >>> import torch
        >>> MLP(8, 16, 4)(torch.zeros(2, 3, 8)).shape
        torch.Size([2, 3, 4])

    Reference:
        Glorot & Bengio (2010), Understanding the difficulty of training deep feedforward neural
        networks, AISTATS.
    """

    def __init__(self, *sizes: int, dropout: float = 0.0, activate_last: bool = True) -> None:
        if len(sizes) < 2:
            raise InputError(f"sizes is {sizes}; expected at least two, of input and layers.")
        check_size(**{f"sizes[{number}]": size for number, size in enumerate(sizes)})
        check_dropout(dropout)
        layers: list[nn.Module] = []
        for number, (before, after) in enumerate(pairwise(sizes), 1):
            last = number == len(sizes) - 1
            layers.append(linear(before, after))
            if activate_last or not last:
                if dropout:
                    layers.append(Dropout(dropout))
                layers.append(nn.ReLU())
        super().__init__(*layers)
        self.input_size = sizes[0]
        self.output_size = sizes[-1]

    def forward(self, input: Tensor, layout: Padded = PADDED) -> Tensor:
        check_vectors("input", input, "...", self.input_size)
        return self.after_first(self[0](input), layout)

    def after_first(self, input: Tensor, layout: Padded = PADDED) -> Tensor:
        """Apply what follows the first linear layer."""
        layers = list(self)[1:]
        while layers:
            layer = layers.pop(0)
            if not isinstance(layer, Dropout):
                input = layer(input)
            elif layers and type(layers[0]) is nn.ReLU:
                input = layer.relu(input, layout)
                layers.pop(0)
            else:
                input = layer(input, layout)
        return input


def linear(before: int, after: int, *, bias: bool = True) -> nn.Linear:
    """A linear layer with Glorot's initial weights and zero biases."""
    layer = nn.Linear(before, after, bias=bias)
    nn.init.xavier_uniform_(layer.weight)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer
