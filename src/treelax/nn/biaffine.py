"""Scores of arcs and of their labels: deep biaffine attention."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from treelax.errors import InputError
from treelax.nn.checks import check_size, check_vectors
from treelax.nn.mlp import MLP


class BiaffineScorer(nn.Module):
    r"""Scores every possible arc of a sentence, or every arc with every label.

    .. math:: W_{h,m,l} = [\mathrm{MLP}_{head}(e_h); 1]^\top \, U_l \, [\mathrm{MLP}_{mod}(e_m); 1]

    The matrices :math:`U_l` start from 0, so that all trees are equally likely at first.

    Args:
        input_size: of the vectors.
        size: of the layer of each of the two perceptrons, with ``dropout`` inside.
        labels: number of labels; None to score arcs without labels.

    Shape:
        vectors ``(..., n + 1, input_size)``, the root's first, to scores ``(..., n + 1, n + 1)``, or
        ``(..., n + 1, n + 1, labels)``; ``scores[..., h, m]`` is of the arc from head ``h`` to
        modifier ``m``.

    Example:
        >>> BiaffineScorer(8, 16)(torch.zeros(2, 5, 8)).shape
        torch.Size([2, 5, 5])
        >>> BiaffineScorer(8, 16, labels=3)(torch.zeros(2, 5, 8)).shape
        torch.Size([2, 5, 5, 3])

    Reference:
        Dozat & Manning (2017), Deep biaffine attention for neural dependency parsing, ICLR.
    """

    #: What it scores, as `treelax.structures.Structure.part`.
    part: ClassVar[str] = "arc"

    def __init__(
        self, input_size: int, size: int, labels: int | None = None, *, dropout: float = 0.0
    ) -> None:
        super().__init__()
        check_size(input_size=input_size, size=size)
        if labels is not None:
            check_size(labels=labels)
        self.head = MLP(input_size, size, dropout=dropout)
        self.modifier = MLP(input_size, size, dropout=dropout)
        self.input_size, self.labels = input_size, labels
        self.weight = nn.Parameter(torch.zeros(labels or 1, size + 1, size + 1))

    def forward(self, vectors: Tensor) -> Tensor:
        head, modifier = self._both(vectors)
        scores = head[..., None, :, :] @ self.weight @ modifier[..., None, :, :].transpose(-1, -2)
        return scores[..., 0, :, :] if self.labels is None else scores.movedim(-3, -1)

    def of_heads(self, vectors: Tensor, heads: Tensor) -> Tensor:
        """Score one arc of each word, from its head among ``(..., n)``, where 0 is the root.

        ``(..., n)``, or ``(..., n, labels)``: what `forward` has at these arcs, in less time.

        Example:
            >>> BiaffineScorer(8, 16, labels=3).of_heads(torch.zeros(3, 8), torch.tensor([2, 0])).shape
            torch.Size([2, 3])
        """
        head, modifier = self._both(vectors)
        if heads.shape != (*modifier.shape[:-2], modifier.shape[-2] - 1):
            raise InputError(
                f"heads has shape {tuple(heads.shape)} for vectors {tuple(vectors.shape)}; expected a "
                "head for every word, and the root's vector in front"
            )
        head = head.gather(-2, heads[..., None].expand(*heads.shape, head.shape[-1]))
        labels, size, _ = self.weight.shape
        weighted = (head @ self.weight.transpose(0, 1).reshape(size, -1)).unflatten(
            -1, (labels, -1)
        )
        scores = (weighted @ modifier[..., 1:, :, None])[..., 0]
        return scores[..., 0] if self.labels is None else scores

    def _both(self, vectors: Tensor) -> tuple[Tensor, Tensor]:
        """``(..., n + 1, size + 1)``: each word as a head and as a modifier, with a 1 behind."""
        check_vectors("vectors", vectors, "...", "n + 1", self.input_size)
        return F.pad(self.head(vectors), (0, 1), value=1), F.pad(
            self.modifier(vectors), (0, 1), value=1
        )

    def extra_repr(self) -> str:
        return f"labels={self.labels}"
