"""What every backend of every algorithm shares.

Canonical form, which `treelax.ops.call` prepares and every backend receives:

- ``scores``: ``(B, N, N)``, contiguous, float32 or float64, scores of parts: of arcs, ``N = n + 1``,
  ``scores[b, h, m]`` from head ``h`` to modifier ``m``, index 0 the root; or of spans, ``N = n``,
  ``scores[b, i, j]`` from word ``i`` to word ``j``, both included. What is no part of a sentence
  (`Algorithm.parts`) is never read.
- ``lengths``: ``(B,)``, int64, on the same device, words without the root, ``0 <= length <= n``.

Paths over positions have scores and lengths of their own (`treelax.ops.chain.rules`).

A sentence with a NaN among its parts comes out as NaN: in its value, in every part of its trees and in
their gradient. Other sentences are unaffected.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import torch
from torch import Tensor

from treelax.errors import InputError, NoTreeError
from treelax.ops.checks import (
    arc_mask,
    check_finite,
    check_length_values,
    span_mask,
    wrong_length,
)

Relaxation = Literal["softmax", "entropy"]
RELAXATIONS: tuple[str, ...] = ("softmax", "entropy")

#: Stands for minus infinity inside a chart. Finite, so differences of two forbidden items are 0
#: and not NaN, and far enough below `LIMIT` that no sum of allowed parts makes up for one.
FORBIDDEN = -1e36
#: Finite scores are clamped to ``[-LIMIT, LIMIT]``.
LIMIT = 1e30
#: Scores of this size differ by 0 or by more than any probability can show.
HUGE = 1e25
#: A value below this holds at least one forbidden part.
NO_TREE = FORBIDDEN / 2


@dataclass(frozen=True, eq=False)
class Algorithm:
    """Static description of an algorithm, `ALGORITHM` of its folder in ops.

    For each of its backends the folder has a module, or an object by that name.
    """

    #: Of the folder.
    name: str
    #: What its results are, for messages.
    trees: str
    #: Scores have a row and a column for the root, and parts are arcs; else parts are spans.
    rooted: bool = True
    #: Uniform variables that a sample takes, of scores of a shape.
    decisions: Callable[..., int] = lambda size, _: int(size)
    #: What the folder has. Where the fastest of a device is missing, `diagonal`, plain PyTorch, serves.
    backends: tuple[str, ...] = ("reference", "diagonal", "native", "triton")
    #: Its number in the kernels that all algorithms share, those of SparseMAP.
    kind: int = -1

    @property
    def part(self) -> str:
        """What a tree is made of, for messages."""
        return "arc" if self.rooted else "span"

    def canonical(self, event: torch.Size) -> tuple[int, ...]:
        """The shape in which kernels take the scores of a sentence."""
        return event

    def fits(self, *shape: int) -> bool:
        """Whether scores of a sentence can have a shape."""
        return len(shape) == 2 and shape[0] == shape[1]

    def parts(self, lengths: Tensor, *shape: int) -> Tensor:
        """``(..., *shape)``, true at the entries that are parts of a sentence."""
        return (arc_mask if self.rooted else span_mask)(lengths, shape[0])

    def room(self, *shape: int) -> tuple[int, ...]:
        """The lengths of the longest sentence for which scores have room."""
        return (shape[0] - self.rooted,)

    def check_lengths(self, lengths: Tensor, *shape: int) -> None:
        """Raise unless there is room for sentences of these lengths; reads the values."""
        check_length_values(lengths, shape[0], self.rooted, self.wrong_length)

    def form(self, shape: torch.Size) -> int:
        """What a GPU says of the shape ``(B, …)`` of scores that it finds wrong: 15 bits."""
        return shape[1]

    def wrong_length(self, sentence: int, length: int, form: int, place: int = 0) -> InputError:
        """The error for a length, the one at a ``place`` where there are several, for which scores of a
        form have no room."""
        return wrong_length(sentence, length, form, self.rooted)

    def part_at(self, first: int, second: int, form: int) -> list[int]:
        """Where the user has the part that a GPU names by two numbers of 14 bits."""
        return [first, second]

    def no_words(self, shape: torch.Size) -> bool:
        """Whether scores of a shape have no sentence, or no room for a word."""
        return shape[0] == 0 or 0 in self.room(*shape[1:])

    def place(self, place: list[int], shape: torch.Size) -> list[int]:
        """Where the user has what stands at a place of the flattened batch ``shape``."""
        return place

    def most_parts(self, *shape: int) -> int:
        """Parts of a tree over all the words that there is room for."""
        return shape[0] - 1 if self.rooted else max(2 * shape[0] - 1, 0)

    def no_tree(self, sentence: int, words: int, forbidden: int) -> NoTreeError:
        """The error for a sentence whose forbidden parts leave no tree."""
        root = ("the chosen root rule", ", for example every arc from the root")
        under, example = root if self.rooted else ("these", "")
        return NoTreeError(
            f"Sentence {sentence} (of the flattened batch; {words} words) has no tree: {forbidden} "
            f"forbidden {self.part}s (-inf) leave no {self.trees} under {under}; expected "
            f"at least one. Allow more {self.part}s{example}."
        )

    def raise_cause(self, scores: Tensor, lengths: Tensor, value: Tensor) -> None:
        """Find out why a result looks wrong and raise the error; reads values and may be slow."""
        self.check_lengths(lengths, *scores.shape[1:])
        parts = self.parts(lengths, *scores.shape[1:])
        check_finite(scores, parts, self.part, self.place)
        suspects = (~(value > NO_TREE)).nonzero()[:, 0]
        if len(suspects):
            b = int(suspects[0])
            forbidden = int(((scores[b] == float("-inf")) & parts[b]).sum())
            raise self.no_tree(b, int(lengths[b].sum()), forbidden)


def bounded(scores: Tensor, parts: Tensor) -> Tensor:
    """Scores as a chart takes them, in a new tensor: ``-inf`` becomes `FORBIDDEN`, the rest is
    clamped to ``±LIMIT``; NaN, and whatever is not a part of the sentence, becomes 0."""
    finite = scores.clamp(-LIMIT, LIMIT).masked_fill(scores == float("-inf"), FORBIDDEN)
    return torch.where(parts & ~scores.isnan(), finite, 0)


def within_limit(scores: Tensor, dims: int) -> Tensor:
    """Scores that the algorithms need not clamp, with the same structures of any probability.

    Where a score of a sentence exceeds `LIMIT`, huge ones are divided by a power of 2. Differences of
    those decide, however small they become, unless they are 0 and stay so.
    """
    sizes = scores.detach().abs()
    largest = sizes.masked_fill(~sizes.isfinite(), 0).flatten(-dims).amax(-1)
    exponent = (largest / LIMIT).log2().ceil().clamp(min=0)
    factor = (-exponent).exp2().reshape(exponent.shape + (1,) * dims)
    return torch.where(sizes > HUGE, scores * factor, scores)


def spoil(scores: Tensor, parts: Tensor, *results: Tensor) -> None:
    """Write NaN for sentences that hold one: values ``(B,)``, parts of trees ``(..., B, N, N)``."""
    wrong = (scores.isnan() & parts).flatten(1).any(1)
    for result in results:
        mask = wrong if result.dim() == 1 else wrong.reshape(-1, *(1,) * (parts.dim() - 1)) & parts
        result.masked_fill_(mask, float("nan"))


def inner(weights: Tensor, scores: Tensor, dims: int = 2, discrete: bool = False) -> Tensor:
    """``Σ weights · scores`` in float64 over parts with weight, the last dimensions: ``-inf`` where one
    of them is forbidden, with a gradient that does not know about it. ``discrete`` weights are 0 or 1.

    Scores count as the algorithms take them, within ±`LIMIT`.
    """
    wide = scores.dtype if scores.device.type == "mps" else torch.float64  # MPS has no float64
    counted = torch.where(weights != 0, scores, 0)
    finite = counted.clamp(-LIMIT, LIMIT)
    if not discrete:
        finite = weights.to(wide) * finite.to(wide)
    total = finite.flatten(-dims).sum(-1, dtype=wide)
    return total.masked_fill((counted == float("-inf")).flatten(-dims).any(-1), float("-inf"))


class Batch(NamedTuple):
    """Scores and lengths in canonical form, and what is to be computed of them."""

    scores: Tensor
    lengths: Tensor
    relaxation: str = "entropy"
    single_root: bool = False


class Backend(Protocol):
    """What a backend module offers. All tensors are in canonical form."""

    def saved_shape(self, shape: torch.Size, dtype: torch.dtype) -> tuple[int, ...]:
        """Shape of what `soft_tree` keeps of scores of a shape for `soft_tree_backward`."""

    def soft_tree(self, given: Batch, save: bool) -> tuple[Tensor, Tensor, Tensor]:
        """Soft tree ``(B, N, N)``, value of the whole chart ``(B,)``, and the saved tensor
        (of shape ``(0,)`` unless ``save``)."""

    def soft_tree_backward(
        self, grad_tree: Tensor, grad_value: Tensor | None, saved: Tensor, given: Batch
    ) -> Tensor:
        """Gradient with respect to the scores ``(B, N, N)``; native and cuda take None, for 0."""

    def log_partition(self, given: Batch) -> Tensor:
        """``log Σ_T exp(score(T))``, shape ``(B,)``."""

    def best_tree(self, given: Batch) -> tuple[Tensor, Tensor]:
        """The best tree as 0/1 ``(B, N, N)`` and its value ``(B,)``; ties: the smallest split."""

    def sample_tree(self, given: Batch, uniforms: Tensor) -> tuple[Tensor, Tensor]:
        """Exact samples ``(S, B, N, N)`` from uniforms; the log-partition ``(B,)``.

        Uniforms are ``(S, B, decisions)``, and each decision takes the first choice whose cumulative
        probability exceeds its uniform. Decisions of a dynamic program are taken depth first from the
        whole sentence, the left antecedent of an item before its right one; those of non-projective
        trees are the root's child, if only one may be, and then the head of each word.
        """
