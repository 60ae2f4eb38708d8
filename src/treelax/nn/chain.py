"""Scores of chains of tags: emissions and learned transitions."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from treelax.errors import InputError
from treelax.nn.checks import check_size, check_vectors
from treelax.nn.mlp import linear
from treelax.structures import Chain


class ChainScorer(nn.Module):
    r"""Scores every tag of a word after every tag of the word before, for `treelax.Chain`.

    .. math:: W_{t,i,j} = (A e_t + b)_j + T_{i,j} + [t = 1]\, s_j + [t = n]\, f_j

    The emissions :math:`A e + b` are a linear layer; transitions :math:`T` and the scores :math:`s` of
    the first and :math:`f` of the last tag are learned from 0, which is a softmax for every word.

    Args:
        input_size: of the vectors.
        num_tags: number of tags, C.
        constraint: scores ``(C, C)`` of transitions and ``(C,)`` of the first and the last tag that are
            added and not learned, such as those of `treelax.Chain.bio`; ``-inf`` forbids.

    Shape:
        vectors ``(..., n, input_size)`` and lengths ``(...)``, or None if all have ``n`` words, to
        scores ``(..., n, C, C)``.

    Example:
        >>> layer = ChainScorer(8, 3, constraint=Chain.bio(["O", "B-LOC", "I-LOC"]))
        >>> vectors, lengths = torch.randn(2, 5, 8), torch.tensor([5, 3])
        >>> chain = Chain()(layer(vectors, lengths), lengths)
        >>> chain.marginals[:, 0, 0, 2]  # no sentence begins with I-LOC
        tensor([0., 0.], grad_fn=<SelectBackward0>)

    Reference:
        Lafferty, McCallum & Pereira (2001), Conditional random fields, ICML.
    """

    #: What it scores, as `treelax.structures.Structure.part`.
    part: ClassVar[str] = "transition"
    #: `LatentTree` calls it with lengths: the last tag of a sentence has a score of its own.
    takes_lengths: ClassVar[bool] = True

    transitions: Tensor
    start: Tensor
    end: Tensor
    fixed_transitions: Tensor
    fixed_start: Tensor
    fixed_end: Tensor

    def __init__(
        self,
        input_size: int,
        num_tags: int,
        *,
        constraint: tuple[Tensor, Tensor, Tensor] | None = None,
    ) -> None:
        super().__init__()
        check_size(input_size=input_size, num_tags=num_tags)
        self.input_size, self.num_tags = input_size, num_tags
        self.emissions = linear(input_size, num_tags)
        shapes = (num_tags, num_tags), (num_tags,), (num_tags,)
        fixed = [torch.zeros(shape) for shape in shapes] if constraint is None else [*constraint]
        given = [tuple(term.shape) for term in fixed if term.is_floating_point()]
        if given != [*shapes]:
            raise InputError(
                f"constraint has {', '.join(f'{t.dtype} {tuple(t.shape)}' for t in fixed)}; expected "
                f"scores {shapes[0]} of transitions and {shapes[1]} of the first and the last tag: 0, "
                "or -inf to forbid."
            )
        for name, term in zip(("transitions", "start", "end"), fixed, strict=True):
            self.register_parameter(name, nn.Parameter(torch.zeros_like(term)))
            self.register_buffer(f"fixed_{name}", term.clone(), persistent=False)

    def forward(self, vectors: Tensor, lengths: Tensor | None = None) -> Tensor:
        check_vectors("vectors", vectors, "...", "n", self.input_size)
        return self.join(self.emissions(vectors), lengths)

    def join(self, emissions: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Scores ``(..., n, C, C)`` of emissions ``(..., n, C)`` that another layer made."""
        transitions, start, end = self.terms()
        return Chain.join(emissions, transitions, start, end, lengths)

    def log_likelihood(
        self, emissions: Tensor, tags: Tensor, lengths: Tensor | None = None
    ) -> Tensor:
        """Log-probability ``(...)`` of tags ``(..., n)``, as `treelax.Chain.log_likelihood`."""
        transitions, start, end = self.terms()
        return Chain.log_likelihood(emissions, transitions, tags, start, end, lengths)

    def terms(self) -> tuple[Tensor, Tensor, Tensor]:
        """Scores of transitions, first and last tag."""
        return (
            self.transitions + self.fixed_transitions,
            self.start + self.fixed_start,
            self.end + self.fixed_end,
        )

    def extra_repr(self) -> str:
        return f"num_tags={self.num_tags}"
