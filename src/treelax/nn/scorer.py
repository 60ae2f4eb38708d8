"""Scores of arcs: deep dotted attention with a bias for distance."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from treelax.errors import InputError
from treelax.nn.checks import check_size, check_vectors
from treelax.nn.layout import PADDED, Padded
from treelax.nn.mlp import MLP
from treelax.nn.root import without_root_arcs


class ArcScorer(nn.Module):
    r"""Scores every possible arc of a sentence.

    .. math:: W_{h,m} = \mathrm{MLP}_{head}(e_h)^\top \, \mathrm{MLP}_{mod}(e_m) + b_{h-m}

    The bias :math:`b` is learned for every signed distance, from 0 at the start; distances beyond
    ``distances`` share the bias of ``±distances``. The entry of ``distance`` for ``h - m`` is
    ``h - m + distances``, so the first half belongs to heads on the left of their modifier.

    Args:
        input_size: of the vectors.
        size: of all ``layers`` of the two perceptrons, with ``dropout`` inside.
        distances: largest distance with a separate bias; None for no bias at all.
        root_arcs: score arcs from the root; if False their score is 0, and a word is attached to the
            root where its other heads score less.

    Shape:
        vectors ``(..., n + 1, input_size)``, the root's first, to scores ``(..., n + 1, n + 1)``;
        ``scores[..., h, m]`` is that of the arc from head ``h`` to modifier ``m``.

    Example:
        >>> ArcScorer(8, 16)(torch.zeros(2, 5, 8)).shape
        torch.Size([2, 5, 5])

    Reference:
        Corro & Titov (2019), equation 1.
    """

    #: What it scores, as `treelax.structures.Structure.part`.
    part: ClassVar[str] = "arc"
    distance: nn.Parameter

    def __init__(
        self,
        input_size: int,
        size: int,
        *,
        layers: int = 2,
        distances: int | None = 11,
        dropout: float = 0.0,
        root_arcs: bool = True,
    ) -> None:
        super().__init__()
        check_size(input_size=input_size, size=size, layers=layers)
        if distances is not None:
            check_size(distances=distances)
        sizes = (input_size, *[size] * layers)
        self.head = MLP(*sizes, dropout=dropout)
        self.modifier = MLP(*sizes, dropout=dropout)
        self.input_size = input_size
        self.distances = distances
        self.root_arcs = root_arcs
        if distances is not None:
            self.distance = nn.Parameter(torch.zeros(2 * distances + 1))

    def forward(self, vectors: Tensor, layout: Padded = PADDED) -> Tensor:
        check_vectors("vectors", vectors, "...", "n + 1", self.input_size)
        heads, modifiers = (
            layout.pad(part(vectors, layout)) for part in (self.head, self.modifier)
        )
        scores: Tensor = heads @ modifiers.transpose(-1, -2)
        if self.distances is not None:
            scores = scores + self.distance_bias(scores.shape[-1]).to(scores.dtype)
        return scores if self.root_arcs else without_root_arcs(scores)

    def distance_bias(self, size: int) -> Tensor:
        """``(size, size)``: the bias of every pair, by its signed distance ``h - m``.

        Example:
            >>> scorer = ArcScorer(8, 16, distances=2)
            >>> _ = scorer.distance.data.copy_(torch.tensor([-2.0, -1, 0, 1, 2]))
            >>> scorer.distance_bias(4).int().tolist()
            [[0, -1, -2, -2], [1, 0, -1, -2], [2, 1, 0, -1], [2, 2, 1, 0]]
        """
        if self.distances is None:
            raise InputError("distances is None; expected a number, for example distances=11.")
        values: Tensor = self.distance
        beyond = size - 1 - self.distances
        if beyond < 0:
            values = values[-beyond : len(values) + beyond + 1]
        else:
            left, right = values[0].expand(beyond), values[-1].expand(beyond + 1)
            values = torch.cat((left, values, right))
        # From the bias of 1 - size on, and one more: repeated and cut into rows that are one shorter,
        # it moves one place from row to row. A GPU would sort indices to add up their gradients.
        rows = values.expand(size, -1).reshape(-1)[size - 1 :][: size * (2 * size - 1)]
        return rows.view(size, max(0, 2 * size - 1))[:, :size].mT

    def start_bias(self, *, left: float = 0.0, per_step: float = 0.0) -> None:
        """Set the initial distance bias.

        Until the scores of words say something, a perturbed tree is a random one; a bias for heads
        on the left or for short arcs gives every sentence much the same tree from the start, which
        the layers above can begin to use.

        Args:
            left: bias of a head on the left of its modifier.
            per_step: what every step of the distance beyond the first adds, below 0 for short arcs.

        Example:
            >>> scorer = ArcScorer(8, 16, distances=2)
            >>> scorer.start_bias(left=2.0, per_step=-0.5)
            >>> scorer.distance.tolist()
            [1.5, 2.0, 0.0, 0.0, -0.5]
        """
        if self.distances is None:
            if left or per_step:
                raise InputError(f"left={left}, per_step={per_step}; expected 0 without distances.")
            return
        apart = torch.arange(-self.distances, self.distances + 1)
        steps = (apart.abs() - 1).clamp(min=0)
        self.distance.data.copy_(left * (apart < 0) + per_step * steps)

    def extra_repr(self) -> str:
        return f"distances={self.distances}, root_arcs={self.root_arcs}"
