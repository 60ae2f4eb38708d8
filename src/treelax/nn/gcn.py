"""Graph convolutions over a tree, discrete or soft."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from treelax.errors import InputError
from treelax.nn.mlp import linear


class TreeGCN(nn.Module):
    r"""Lets every word see its head and its modifiers, ``layers`` arcs far.

    .. math:: E^{t+1} = \sigma\big(f(E^t) + T^\top g(E^t) + T\, h(E^t)\big)

    with a row of :math:`E` for each vertex; :math:`f, g, h` are linear layers for the vertex
    itself, its head and its modifiers, and :math:`\sigma` is dropout and ReLU.

    Args:
        input_size: of the vectors.
        size: of each layer's output.
        layers: number of them.
        dense: each layer's output is put behind its input, so vectors grow by ``size`` a layer.
        dropout: before the activation.

    Shape:
        vectors ``(..., n + 1, input_size)``, the root's first, and tree ``(..., n + 1, n + 1)``, to
        ``(..., n + 1, output_size)``.

    Raises:
        InputError: fewer layers than one; or, when called, vectors and tree that do not fit.

    Example:
        >>> gcn = TreeGCN(8, 16, layers=2, dense=True)
        >>> gcn.output_size
        40
        >>> gcn(torch.zeros(2, 5, 8), torch.zeros(2, 5, 5)).shape
        torch.Size([2, 5, 40])

    Reference:
        Corro & Titov (2019), section 2.2.
    """

    def __init__(
        self,
        input_size: int,
        size: int,
        *,
        layers: int = 1,
        dense: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if layers < 1:
            raise InputError(f"layers is {layers}; expected at least 1")
        self.dense = dense
        self.own, self.head, self.modifier = nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        for _ in range(layers):
            for part in (self.own, self.head, self.modifier):
                part.append(linear(input_size, size))
            input_size = input_size + size if dense else size
        self.output_size = input_size
        self.dropout = nn.Dropout(dropout)

    def forward(self, vectors: Tensor, tree: Tensor) -> Tensor:
        """Apply all layers."""
        if vectors.shape[-2] != tree.shape[-1]:
            raise InputError(
                f"vectors is of shape {tuple(vectors.shape)} and tree {tuple(tree.shape)}; expected "
                f"one vector for the root and each word: treelax.nn.Root puts the root in front"
            )
        tree = tree.to(vectors.dtype)
        to_modifiers = tree.transpose(-1, -2)
        for own, head, modifier in zip(self.own, self.head, self.modifier, strict=True):
            mixed = own(vectors) + to_modifiers @ head(vectors) + tree @ modifier(vectors)
            output = torch.relu(self.dropout(mixed))
            vectors = torch.cat((vectors, output), -1) if self.dense else output
        return vectors
