"""Graph convolutions over a tree, discrete or soft."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from treelax.errors import InputError
from treelax.nn.checks import check_size, check_vectors
from treelax.nn.dropout import Dropout
from treelax.nn.layout import PADDED, Padded
from treelax.nn.mlp import linear
from treelax.nn.root import without_root_arcs


class TreeGCN(nn.Module):
    r"""Lets every word see its head and its modifiers, ``layers`` arcs far.

    .. math:: E^{t+1} = \sigma\big(f(E^t) + T^\top g(E^t) + T\, h(E^t)\big)

    with a row of :math:`E` for each vertex; :math:`f, g, h` are linear layers with a bias, other
    ones in every layer, for the vertex itself, its head and its modifiers; :math:`\sigma` is dropout
    and ReLU. (The paper has columns where this has rows.)

    Padding has no arcs, so it sees itself only and nobody sees it; its output is not zero. Numbers there
    that are not finite count as 0.

    Args:
        input_size: of the vectors.
        size: of the output of all ``layers``.
        dense: each layer's output is put behind its input, so vectors grow by ``size`` a layer.
        dropout: before the activation.
        root_arcs: use arcs from the root; if False no word sees the root, and the root sees no word.

    Shape:
        vectors ``(..., n + 1, input_size)``, the root's first, and tree ``(..., n + 1, n + 1)``, to
        ``(..., n + 1, output_size)``. The leading dimensions broadcast: one tree for a whole batch,
        or several trees for each sentence.

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
        root_arcs: bool = True,
    ) -> None:
        super().__init__()
        check_size(input_size=input_size, size=size, layers=layers)
        self.input_size = input_size
        self.dense = dense
        self.root_arcs = root_arcs
        self.own, self.head, self.modifier = nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        for _ in range(layers):
            for part in (self.own, self.head, self.modifier):
                part.append(linear(input_size, size))
            input_size = input_size + size if dense else size
        self.output_size = input_size
        self.dropout = Dropout(dropout)

    def forward(self, vectors: Tensor, tree: Tensor, layout: Padded = PADDED) -> Tensor:
        check_vectors("vectors", vectors, "...", "n + 1", self.input_size)
        if layout is PADDED:
            vectors = vectors.expand(*_common_batch(vectors, tree), -1, -1)
            alone = ~(tree.any(-1) | tree.any(-2))
            # 0 times NaN is NaN
            vectors = torch.where(alone[..., None], vectors.nan_to_num(0, 0, 0), vectors)
        tree = tree.to(vectors.dtype)
        if not self.root_arcs:
            tree = without_root_arcs(tree)
        to_modifiers = tree.mT
        for transform, head, modifier in zip(self.own, self.head, self.modifier, strict=True):
            heads, modifiers = layout.pad(head(vectors)), layout.pad(modifier(vectors))
            if layout is PADDED:
                mixed = _add_product(transform(vectors), to_modifiers, heads)
                mixed = _add_product(mixed, tree, modifiers)
            else:
                near = _add_product(to_modifiers @ heads, tree, modifiers)
                mixed = layout.pack(near).add_(transform(vectors))
            output = self.dropout.relu(mixed, layout)
            vectors = torch.cat((vectors, output), -1) if self.dense else output
        return vectors

    def extra_repr(self) -> str:
        return f"dense={self.dense}, root_arcs={self.root_arcs}"


def _add_product(to: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """``to + a @ b``; in one pass over memory where there is one dimension of batches."""
    if a.dim() == b.dim() == to.dim() == 3 and len(a) == len(b):
        return torch.baddbmm(to, a, b)
    return to + a @ b


def _common_batch(vectors: Tensor, tree: Tensor) -> torch.Size:
    """The leading dimensions of both together; raises if they do not fit."""
    if not isinstance(tree, Tensor):
        raise InputError(
            f"tree is a {type(tree).__name__}; expected a torch.Tensor (..., n + 1, n + 1): "
            "treelax.trees.heads_to_tree makes one from heads."
        )
    size = vectors.shape[-2]
    shapes = f"tree has shape {tuple(tree.shape)} and vectors {tuple(vectors.shape)}"
    if tuple(tree.shape[-2:]) != (size, size):
        raise InputError(
            f"{shapes}; expected tree (..., {size}, {size}), with a vector for the root and each word: "
            "treelax.nn.Root puts the root in front."
        )
    try:
        return torch.broadcast_shapes(vectors.shape[:-2], tree.shape[:-2])
    except RuntimeError:
        raise InputError(f"{shapes}; expected leading dimensions that broadcast.") from None
