"""Attention within a sentence and between two sentences."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from treelax.nn.checks import check_lengths, check_size, check_vectors
from treelax.nn.layout import PADDED, Padded
from treelax.nn.mlp import MLP, linear
from treelax.nn.scorer import ArcScorer
from treelax.ops.checks import one_of

Pooling = Literal["max", "sum"]
POOLINGS = ("max", "sum")


def word_mask(lengths: Tensor, size: int) -> Tensor:
    """``(batch, size)``, true for words and false for padding."""
    return torch.arange(size, device=lengths.device) < lengths[:, None]


class IntraAttention(nn.Module):
    r"""Puts behind each word vector a mean of all words, weighted by arc scores.

    .. math:: a'_m = \sum_h \mathrm{softmax}_h(W_{h,m}) \, a_h

    over all words :math:`h` of the sentence, :math:`m` itself too, with the scores :math:`W` of
    `ArcScorer`: the baseline without a tree in the paper's tables.

    The settings are those of `ArcScorer`.

    Shape:
        vectors ``(batch, n, input_size)`` and lengths ``(batch)`` to ``(batch, n, 2 * input_size)``.
        Every sentence has at least one word. Padding may hold anything; it changes no word's output, and
        its output is not zero.

    Example:
        >>> IntraAttention(8, 16)(torch.zeros(2, 5, 8), torch.tensor([5, 3])).shape
        torch.Size([2, 5, 16])

    Reference:
        Parikh et al. (2016), section 3.4; Corro & Titov (2019), section 6.1.
    """

    def __init__(
        self,
        input_size: int,
        size: int,
        *,
        layers: int = 1,
        distances: int | None = 11,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.scorer = ArcScorer(
            input_size, size, layers=layers, distances=distances, dropout=dropout
        )
        self.output_size = 2 * input_size

    def forward(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        check_vectors("vectors", vectors, "batch", "n", self.scorer.input_size)
        check_lengths(lengths, vectors)
        padding = ~word_mask(lengths, vectors.shape[-2])
        words = vectors.masked_fill(padding[..., None], 0)
        scores = self.scorer(words)
        weights = scores.masked_fill(padding[:, :, None], -torch.inf).softmax(-2)
        return torch.cat((vectors, weights.transpose(-1, -2) @ words), -1)


class DecomposableAttention(nn.Module):
    r"""Compares two sentences word by word and gives logits of their relation.

    Attend, compare, aggregate:

    .. math::
        e_{ij} &= F(a_i)^\top F(b_j) \\
        \beta_i &= \sum_j \mathrm{softmax}_j(e_{ij}) \, b_j, \qquad
        \alpha_j = \sum_i \mathrm{softmax}_i(e_{ij}) \, a_i \\
        v_a &= \mathrm{pool}_i \, G([a_i; \beta_i]), \qquad
        v_b = \mathrm{pool}_j \, G([b_j; \alpha_j]) \\
        y &= H([v_a; v_b])

    Args:
        input_size: of the vectors.
        size: of the hidden layers.
        classes: how many relations there are.
        dropout: inside the perceptrons; ``attend_dropout`` inside F, the same by default.
        pooling: over the words, "max" (Corro & Titov) or "sum" (Parikh et al.).

    Shape:
        two batches of vectors ``(batch, n, input_size)``, ``(batch, m, input_size)`` and their lengths
        ``(batch)`` to logits ``(batch, classes)``. Every sentence has at least one word. Padding may
        hold anything and changes nothing.

    Example:
        >>> layer = DecomposableAttention(8, 16, 3)
        >>> a, b = torch.zeros(2, 5, 8), torch.zeros(2, 4, 8)
        >>> layer(a, torch.tensor([5, 3]), b, torch.tensor([2, 4])).shape
        torch.Size([2, 3])

    Reference:
        Parikh et al. (2016), section 3; Corro & Titov (2019), section 6.1 and appendix A.2.
    """

    def __init__(
        self,
        input_size: int,
        size: int,
        classes: int,
        *,
        dropout: float = 0.0,
        attend_dropout: float | None = None,
        pooling: Pooling = "max",
    ) -> None:
        super().__init__()
        check_size(classes=classes)
        one_of("pooling", pooling, POOLINGS)
        self.pooling = pooling
        attend_dropout = dropout if attend_dropout is None else attend_dropout
        self.attend = MLP(input_size, size, size, dropout=attend_dropout)
        self.compare = MLP(2 * input_size, size, size, dropout=dropout)
        self.aggregate = MLP(2 * size, size, size, dropout=dropout)
        self.output = linear(size, classes)

    def forward(self, a: Tensor, a_lengths: Tensor, b: Tensor, b_lengths: Tensor) -> Tensor:
        for name, vectors, lengths in (("a", a, a_lengths), ("b", b, b_lengths)):
            check_vectors(name, vectors, "batch", "n", self.attend.input_size)
            check_lengths(lengths, vectors)
        size = max(a.shape[-2], b.shape[-2])
        a, b = (F.pad(vectors, (0, 0, 0, size - vectors.shape[-2])) for vectors in (a, b))
        vectors, lengths = torch.cat((a, b)), torch.cat((a_lengths, b_lengths))
        return self.both(vectors.masked_fill(~word_mask(lengths, size)[..., None], 0), lengths)

    def both(self, vectors: Tensor, lengths: Tensor, layout: Padded = PADDED) -> Tensor:
        """The same for one batch, all first sentences before all second ones: half the kernels. Padding
        must hold finite numbers here."""
        seen = layout.pad(self.attend(vectors, layout))
        padding = ~word_mask(lengths, seen.shape[-2])
        a_padding, b_padding = padding.chunk(2)
        a_seen, b_seen = seen.chunk(2)
        scores = a_seen @ b_seen.transpose(-1, -2)
        to_b = scores.masked_fill(b_padding[:, None, :], -torch.inf).softmax(-1)
        to_a = scores.masked_fill(a_padding[:, :, None], -torch.inf).softmax(-2)
        # G's first layer before the mean: W [v; Σ p u] = W₁ v + Σ p W₂ u, of fewer numbers
        first: nn.Linear = self.compare[0]  # type: ignore[assignment]
        own_weight, other_weight = first.weight.chunk(2, -1)
        a, b = layout.pad(F.linear(vectors, other_weight)).chunk(2)
        other = torch.cat((to_b @ b, to_a.transpose(-1, -2) @ a))
        compared = layout.pack(other) + F.linear(vectors, own_weight, first.bias)
        compared = layout.pad(self.compare.after_first(compared, layout))
        # after a ReLU nothing is below 0, so zeros at padding change neither maximum nor sum
        if layout is PADDED:
            compared = compared.masked_fill(padding[..., None], 0)
        pooled = compared.max(-2).values if self.pooling == "max" else compared.sum(-2)
        logits: Tensor = self.output(self.aggregate(torch.cat(pooled.chunk(2), -1)))
        return logits

    def extra_repr(self) -> str:
        return f"pooling={self.pooling!r}"
