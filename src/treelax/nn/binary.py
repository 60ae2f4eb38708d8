"""Binary trees in a network: scores of spans, and a TreeLSTM over a discrete or soft tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from treelax.nn.checks import check_lengths, check_size, check_vectors
from treelax.nn.mlp import MLP, linear


class SpanScorer(nn.Module):
    r"""Scores every span of a sentence by the words at its ends.

    .. math:: W_{i,j} = w^\top \mathrm{MLP}(e_i) \circ \mathrm{MLP}'(e_j) \quad (i \le j)

    Args:
        input_size: of the vectors.
        size: of the ``layers`` of each perceptron, with ``dropout`` inside.
        labels: number of labels, for `treelax.Labelled`; None for scores without labels.

    Shape:
        vectors ``(..., n, input_size)``, without a root, to scores ``(..., n, n)`` for
        `treelax.Binary`, or ``(..., n, n, labels)``; ``scores[..., i, j]`` is that of the span from
        word ``i`` to word ``j``. Entries below the diagonal mean nothing.

    Example:
        >>> SpanScorer(8, 16)(torch.zeros(2, 5, 8)).shape
        torch.Size([2, 5, 5])
    """

    #: What it scores, as `treelax.structures.Structure.part`.
    part: ClassVar[str] = "span"

    def __init__(
        self,
        input_size: int,
        size: int,
        *,
        layers: int = 1,
        labels: int | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_size(input_size=input_size, size=size, layers=layers)
        if labels is not None:
            check_size(labels=labels)
        sizes = (input_size, *[size] * layers)
        self.first, self.last = MLP(*sizes, dropout=dropout), MLP(*sizes, dropout=dropout)
        self.output = linear(size, labels or 1)
        self.input_size = input_size
        self.labels = labels

    def forward(self, vectors: Tensor) -> Tensor:
        check_vectors("vectors", vectors, "...", "n", self.input_size)
        first, last = self.first(vectors), self.last(vectors)
        # Σ_d w_d a_id b_jd without an (n, n, d) tensor
        scores = torch.einsum("...id,ld,...jd->...ijl", first, self.output.weight, last)
        scores = scores + self.output.bias
        return scores if self.labels is not None else scores[..., 0]


class BinaryTreeLSTM(nn.Module):
    r"""A TreeLSTM over binary trees, discrete or soft.

    Every span has a state, made of those of the two spans that it splits into:

    .. math:: h_{i,j} = \mathrm{cell}\Bigl(\sum_k \pi_k h_{i,k}, \sum_k \pi_k h_{k+1,j}\Bigr),
        \qquad \pi_k \propto T_{i,k} T_{k+1,j}

    A discrete tree has one split with weight for each of its spans, which makes this the ordinary
    TreeLSTM; a soft one mixes the splits. One cell for each span, :math:`O(n^2)` of them, and
    :math:`O(n^3)` sums, a diagonal of the chart at a time.

    Shape:
        vectors ``(..., n, input_size)`` and a tree ``(..., n, n)`` of `treelax.Binary` to states
        ``(..., n, n, size)``; ``states[..., 0, length - 1, :]`` is the sentence's. With `sentence`
        and `words` one takes the sentence's state, or a vector for each word that knows the spans
        around it. The words are those ``i`` whose span ``tree[..., i, i]`` is not 0; the padding may
        hold anything.

    Example:
        >>> import treelax as tx
        >>> layer = tx.nn.LatentTree(tx.nn.SpanScorer(8, 16), tx.Binary())
        >>> vectors, lengths = torch.randn(2, 5, 8), torch.tensor([5, 3])
        >>> tree = layer(vectors, lengths)
        >>> encoder = BinaryTreeLSTM(8, 16)
        >>> encoder.sentence(encoder(vectors, tree), lengths).shape
        torch.Size([2, 16])

    Reference:
        Tai, Socher & Manning (2015), Improved semantic representations from tree-structured long
        short-term memory networks, ACL, section 3.2.
    """

    def __init__(self, input_size: int, size: int) -> None:
        super().__init__()
        check_size(input_size=input_size, size=size)
        self.leaf = linear(input_size, 3 * size)  # input, output, update
        self.cell = linear(2 * size, 5 * size)  # input, output, update, two forget gates
        with torch.no_grad():
            self.cell.bias[3 * size :] = 1
        self.input_size = input_size
        self.output_size = size

    def forward(self, vectors: Tensor, tree: Tensor) -> Tensor:
        """States of all spans; 0 below the diagonal."""
        check_vectors("vectors", vectors, "...", "n", self.input_size)
        n = vectors.shape[-2]
        check_vectors("tree", tree, "...", n, n)
        tree = tree.to(vectors.dtype)
        vectors = vectors.masked_fill(~_word_mask(tree)[..., None], 0)
        gate, out, update = self.leaf(vectors).chunk(3, -1)
        cell = gate.sigmoid() * update.tanh()
        # by width: chart[w][..., i, :] is the state and the cell of the span from i to i + w
        chart = [torch.cat((out.sigmoid() * cell.tanh(), cell), -1)]
        weights = [tree.diagonal(offset=w, dim1=-2, dim2=-1)[..., None] for w in range(n)]
        for w in range(1, n):
            share = _left(weights, w) * _right(weights, w)  # (..., n - w, splits, 1)
            share = share / share.sum(-2, keepdim=True).clamp(min=torch.finfo(share.dtype).tiny)
            # what is mixed takes O(n³) memory, so the backward pass puts it together again
            mixed = checkpoint(_mixed, share, *chart, use_reentrant=False, preserve_rng_state=False)
            (left, left_cell), (right, right_cell) = (side.chunk(2, -1) for side in mixed)
            gates = self.cell(torch.cat((left, right), -1)).chunk(5, -1)
            gate, out, update, keep_left, keep_right = gates
            cell = gate.sigmoid() * update.tanh()
            cell = cell + keep_left.sigmoid() * left_cell + keep_right.sigmoid() * right_cell
            chart.append(torch.cat((out.sigmoid() * cell.tanh(), cell), -1))
        states = chart[-1].new_zeros(*tree.shape, self.output_size)
        for w, cells in enumerate(chart):
            place = torch.arange(n - w, device=vectors.device)
            states[..., place, place + w, :] = cells[..., : self.output_size].to(states.dtype)
        return states

    def sentence(self, states: Tensor, lengths: Tensor | None = None) -> Tensor:
        """``(..., size)``: the state of the whole sentence; 0 for one without words."""
        check_lengths(lengths, states[..., 0, :])
        first = states[..., 0, :, :]
        if lengths is None:
            return first[..., -1, :]
        last = (
            (lengths - 1).clamp(min=0)[..., None, None].expand(*lengths.shape, 1, first.shape[-1])
        )
        return first.gather(-2, last)[..., 0, :].masked_fill((lengths == 0)[..., None], 0)

    def words(self, states: Tensor, tree: Tensor) -> Tensor:
        """``(..., n, size)``: for each word the states of the spans around it, weighted by the tree."""
        word = _word_mask(tree)
        inside = (word[..., None] & word[..., None, :])[..., None]
        weighted = states.masked_fill(~inside, 0) * tree.to(states.dtype)[..., None]
        # spans (i, j) with i <= word <= j: a prefix sum over i and a suffix sum over j
        around = weighted.cumsum(-3).flip(-2).cumsum(-2).flip(-2)
        return around.diagonal(dim1=-3, dim2=-2).transpose(-1, -2)


def _word_mask(tree: Tensor) -> Tensor:
    """``(..., n)``: every binary tree has the spans of its single words."""
    return tree.diagonal(dim1=-2, dim2=-1) != 0


def _mixed(share: Tensor, *chart: Tensor) -> list[Tensor]:
    """``(..., spans, d)``: of each span of the next width the left part and the right part."""
    return [(share * side(chart, len(chart))).sum(-2) for side in (_left, _right)]


def _left(chart: Sequence[Tensor], width: int) -> Tensor:
    """``(..., spans, splits, d)``: of each span of a width and each of its splits, the left part."""
    count = chart[0].shape[-2] - width
    return torch.stack([chart[k][..., :count, :] for k in range(width)], -2)


def _right(chart: Sequence[Tensor], width: int) -> Tensor:
    """The same of the right part."""
    count = chart[0].shape[-2] - width
    parts = [chart[width - 1 - k][..., k + 1 : k + 1 + count, :] for k in range(width)]
    return torch.stack(parts, -2)
