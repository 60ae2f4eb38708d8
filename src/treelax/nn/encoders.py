"""Encoders: word vectors that know their context."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import torch
from torch import Tensor, nn

from treelax.errors import InputError
from treelax.nn.checks import check_lengths, check_size, check_vectors
from treelax.nn.dropout import Dropout

# Added to the input gates at padding. Its sigmoid is exactly 0 in every floating-point type, and
# float16 can still hold it.
CLOSED = -1e4


class BiLSTM(nn.Module):
    r"""Stacks of a left-to-right and a right-to-left LSTM, for sentences of different lengths.

    Both directions start from a zero state at the true ends of a sentence, so padding changes
    nothing, whatever it holds. Packed sequences would do the same but wait for the GPU and cannot be
    captured in a CUDA graph. Instead each stack gets one more input that is 1 at padding and closes
    all input gates there (its weights are -1e4 for these gates and 0 elsewhere): with
    :math:`c_0 = 0` and :math:`i_t = 0`, :math:`c_t = f_t c_{t-1} + i_t g_t` remains 0 until the
    right-to-left LSTM meets the last word. Those weights have an exactly zero gradient, so no
    optimiser moves them; weight decay would, if slowly, so leave it off for `gates`.

    Matrices start from Glorot's uniform distribution, gate by gate, biases from 0 and the forget
    gate's from 1.

    Args:
        input_size: of the vectors.
        size: of each direction's state; the output has twice as much.
        stacks: how many layers; each reads both directions of the one below.
        dropout: of units of the input and of every layer, the same ones for all words of a sentence.

    Shape:
        vectors ``(batch, n, input_size)``, without the root, and lengths ``(batch)``, or None if
        there is no padding, to ``(batch, n, 2 * size)``; 0 in the padding.

    Example:
        >>> encoder = BiLSTM(8, 16)
        >>> encoder(torch.zeros(2, 5, 8), torch.tensor([5, 3])).shape
        torch.Size([2, 5, 32])

    Reference:
        Corro & Titov (2019), appendix A.1.
    """

    def __init__(
        self, input_size: int, size: int, *, stacks: int = 2, dropout: float = 0.0
    ) -> None:
        super().__init__()
        check_size(input_size=input_size, size=size, stacks=stacks)
        sizes = [input_size] + [2 * size] * (stacks - 1)
        self.stacks = nn.ModuleList(
            nn.LSTM(before + 1, size, bidirectional=True, batch_first=True) for before in sizes
        )
        self.input_size = input_size
        self.output_size = 2 * size
        self.dropout = Dropout(dropout)
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Draw the initial weights."""
        for lstm in self.stacks:
            for name, weight in lstm.named_parameters():
                gates = weight.chunk(4)  # input, forget, cell, output
                if "weight_ih" in name:
                    for gate in gates:
                        nn.init.xavier_uniform_(gate[:, :-1])
                    weight[:, -1] = 0
                    gates[0][:, -1] = CLOSED
                elif "weight_hh" in name:
                    for gate in gates:
                        nn.init.xavier_uniform_(gate)
                else:
                    nn.init.zeros_(weight)
                    if "bias_ih" in name:
                        gates[1].fill_(1)

    def gates(self) -> list[nn.Parameter]:
        """The parameters that must not shrink, for they keep padding out."""
        return [weight for name, weight in self.named_parameters() if "weight_ih" in name]

    def forward(self, vectors: Tensor, lengths: Tensor | None = None) -> Tensor:
        check_vectors("vectors", vectors, "batch", "n", self.input_size)
        check_lengths(lengths, vectors)
        n = vectors.shape[-2]
        if n == 0:
            raise InputError(f"vectors has shape {tuple(vectors.shape)}; expected n of at least 1.")
        if lengths is None:
            lengths = torch.full(vectors.shape[:1], n, device=vectors.device)
        position = torch.arange(n, device=vectors.device)
        padding = (position >= lengths[:, None])[..., None]
        closed = padding.to(vectors.dtype)
        # what stands in the padding could be NaN, or large enough to open a gate
        vectors = vectors.masked_fill(padding, 0)
        for lstm in cast("Iterable[nn.LSTM]", self.stacks):
            vectors, _ = lstm(torch.cat((self._dropped(vectors), closed), -1))
        return self._dropped(vectors).masked_fill(padding, 0)

    def _dropped(self, vectors: Tensor) -> Tensor:
        if not self.training or not self.dropout.probability:
            return vectors
        return vectors * self.dropout(torch.ones_like(vectors[:, :1]))
