"""Semi-Markov segmentations: labelled segments that cover a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from treelax.errors import InputError
from treelax.ops import chain, segments
from treelax.ops.chain.rules import PathAlgorithm
from treelax.structures.paths import PathStructure


@dataclass(frozen=True)
class Segments(PathStructure):
    r"""Labelled segments of at most ``max_length`` words that cover a sentence (semi-Markov models).

    Parts are segments: ``scores[..., i, k, c]`` is the score of the segment of ``k + 1`` words from word
    ``i`` on, with label ``c``. With ``transitions``, ``scores[..., i, k, b, c]`` is its score after a
    segment labelled ``b``; at ``i = 0`` only row ``b = 0`` is read. `join` makes such scores.

    Args:
        max_length: words of the longest segment, K.
        transitions: scores depend on the label of the segment before.

    Example:
        >>> words = Segments(max_length=2)(torch.zeros(3, 2, 1))  # 1+1+1, 1+2 and 2+1 words
        >>> words.log_partition.exp()
        tensor(3.)
    """

    max_length: int
    transitions: bool = False
    name: ClassVar[str] = "segments"
    part: ClassVar[str] = "segment"

    def __post_init__(self) -> None:
        if (
            isinstance(self.max_length, bool)
            or not isinstance(self.max_length, int)
            or self.max_length < 1
        ):
            raise InputError(
                f"max_length is {self.max_length!r}; expected a whole number of at least 1, the words "
                "of the longest segment."
            )
        if not isinstance(self.transitions, bool):
            raise InputError(f"transitions is {self.transitions!r}; expected True or False.")

    @property
    def longest(self) -> int:  # type: ignore[override]
        return self.max_length

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return 4 if self.transitions else 3

    @property
    def algorithm(self) -> PathAlgorithm:  # type: ignore[override]
        return chain.ALGORITHM if self.transitions else segments.ALGORITHM

    def check_scores(self, scores: Tensor) -> None:
        super().check_scores(scores)
        shape = tuple(scores.shape)
        labels = shape[-1:] * (2 if self.transitions else 1)
        if shape[-self.event_dim + 1 :] != (self.max_length, *labels) or not shape[-1]:
            form = "(..., n, K, C, C)" if self.transitions else "(..., n, K, C)"
            raise InputError(
                f"scores has shape {shape}; expected {form} for {self}: K = {self.max_length} lengths "
                "of segments and C labels. treelax.Segments.join makes them."
            )

    def sizes(self, *shape: int) -> tuple[int, ...]:
        return shape[0], shape[-1]

    def shape(self, n: int, labels: int) -> tuple[int, ...]:
        return n, self.max_length, *(labels,) * (1 + self.transitions)

    def extent(self, *shape: int) -> tuple[Tensor, Tensor]:
        start = torch.arange(shape[0]).reshape(-1, *(1,) * (self.event_dim - 1))
        length = torch.arange(self.max_length).reshape(-1, *(1,) * (self.event_dim - 2)) + 1
        # a segment that would end beyond the sentence is none
        return start, (start + length).clamp(max=shape[0])

    def part_count(self, lengths: Tensor) -> Tensor:
        return lengths

    @property
    def none_left(self) -> str:
        return "no segments that cover the sentence"

    @property
    def rules(self) -> str:
        return f"segments of at most {self.max_length} words that cover the sentence"

    @staticmethod
    def join(
        emissions: Tensor,
        durations: Tensor | None = None,
        transitions: Tensor | None = None,
        *,
        max_length: int | None = None,
    ) -> Tensor:
        """Scores of segments: the sum of the emissions of their words, and terms for length and labels.

        Args:
            emissions: ``(..., n, C)``, the score of every word under every label.
            durations: ``(K, C)``, a score for every length and label.
            transitions: ``(C, C)``, ``[b, c]`` for label c after label b.
            max_length: K, where there are no durations.

        Returns:
            ``(..., n, K, C)``, with transitions ``(..., n, K, C, C)``.

        Example:
            >>> Segments.join(torch.tensor([[1.0], [2.0], [4.0]]), max_length=2)[..., 0]
            tensor([[1., 3.],
                    [2., 6.],
                    [4., 4.]])
        """
        if emissions.dim() < 2:
            raise InputError(
                f"emissions has shape {tuple(emissions.shape)}; expected (..., n, C): a score for "
                "each of C labels at each word."
            )
        n, labels = emissions.shape[-2:]
        longest = max_length if durations is None or durations.dim() == 0 else durations.shape[0]
        if not isinstance(longest, int) or longest < 1 or max_length not in (None, longest):
            raise InputError(
                f"max_length is {max_length}; expected a whole number of at least 1, or durations "
                "(K, C), a score for each of K lengths."
            )
        if durations is not None and tuple(durations.shape) != (longest, labels):
            raise InputError(
                f"durations has shape {tuple(durations.shape)}; expected (K, {labels}) for the {labels} "
                "labels of emissions."
            )
        if transitions is not None and tuple(transitions.shape) != (labels, labels):
            raise InputError(
                f"transitions has shape {tuple(transitions.shape)}; expected {(labels, labels)} for the "
                f"{labels} labels of emissions."
            )
        # windows of K words, summed up from their first one: differences of sums would lose digits
        padded = F.pad(emissions, (0, 0, 0, longest - (n > 0)))
        scores = padded.unfold(-2, longest, 1).cumsum(-1).movedim(-1, -2)[..., :n, :, :]
        if durations is not None:
            scores = scores + durations
        if transitions is None:
            return scores
        first = (torch.arange(n, device=emissions.device) == 0)[:, None, None, None]
        return scores[..., None, :] + transitions.masked_fill(first, 0)
