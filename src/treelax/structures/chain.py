"""Linear chains: a tag for every position."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from treelax.errors import InputError
from treelax.ops.call import HALF_TYPES
from treelax.ops.chain import ALGORITHM, shared
from treelax.ops.checks import broadcasts, check_lengths, is_integer, readable
from treelax.ops.internals import can_bypass_dispatcher
from treelax.structures.paths import PathStructure


@dataclass(frozen=True)
class Chain(PathStructure):
    r"""Linear chains (conditional random fields): one of C tags at each of n positions.

    Parts are transitions: ``scores[..., t, i, j]`` is the score of tag ``j`` at position ``t`` after tag
    ``i`` at the position before; at ``t = 0`` only row ``i = 0`` is read. There are :math:`C^n` chains.
    `join` makes such scores of those of tags and of pairs of tags.

    Example:
        >>> emissions = torch.tensor([[0.0, 2.0], [1.0, 0.0], [0.0, 1.0]])
        >>> scores = Chain.join(emissions, torch.tensor([[0.5, 0.0], [0.0, 1.0]]))
        >>> chain = Chain()(scores)
        >>> Chain.tags(chain.mode)
        tensor([1, 1, 1])
        >>> Chain()(torch.zeros(3, 2, 2)).log_partition.exp()  # two tags at three positions
        tensor(8.)
    """

    name: ClassVar[str] = "chain"
    event_dim: ClassVar[int] = 3
    part: ClassVar[str] = "transition"
    algorithm: ClassVar[Any] = ALGORITHM

    def check_scores(self, scores: Tensor) -> None:
        super().check_scores(scores)
        shape = tuple(scores.shape)
        if len(shape) < 3 or shape[-1] != shape[-2] or shape[-1] == 0:
            raise InputError(
                f"scores has shape {shape}; expected (..., n, C, C), where scores[..., t, i, j] is the "
                "score of tag j at position t after tag i. treelax.Chain.join makes them."
            )

    def sizes(self, *shape: int) -> tuple[int, ...]:
        return shape[0], shape[2]

    def shape(self, n: int, num_tags: int) -> tuple[int, ...]:
        return n, num_tags, num_tags

    def extent(self, *shape: int) -> tuple[Tensor, Tensor]:
        start = torch.arange(shape[0])[:, None, None]
        return start, start + 1

    def shared_score(self, best: Tensor, at_best: Tensor) -> Tensor:
        return at_best.sum((-2, -1), keepdim=True)  # a chain has one part at every position

    def part_count(self, lengths: Tensor) -> Tensor:
        return lengths

    @property
    def rules(self) -> str:
        return "one transition [t, i, j] at each position t, i the tag before, 0 at t = 0"

    @staticmethod
    def join(
        emissions: Tensor,
        transitions: Tensor,
        start: Tensor | None = None,
        end: Tensor | None = None,
        lengths: Tensor | None = None,
    ) -> Tensor:
        """Scores ``(..., n, C, C)`` of tags ``(..., n, C)`` and of pairs of tags.

        Args:
            emissions: the score of every tag at every position.
            transitions: ``[..., i, j]``, the score of tag j after tag i; ``(C, C)``, or with positions
                ``(..., n, C, C)``.
            start: scores ``(C,)`` of the first tag.
            end: scores ``(C,)`` of the last tag; where sentences differ in length, with ``lengths``.
            lengths: the positions of every sentence, all by default.

        Example:
            >>> Chain.join(torch.zeros(4, 2), torch.tensor([[0.0, 1.0], [2.0, 3.0]]))[1]
            tensor([[0., 1.],
                    [2., 3.]])
        """
        batch, n, _ = _check_terms(emissions, transitions, start, end)
        if start is not None:
            emissions = torch.cat((emissions[..., :1, :] + start, emissions[..., 1:, :]), -2)
        if end is not None:
            if lengths is not None:
                check_lengths(lengths, tuple(batch), emissions.device)
            last = n - 1 if lengths is None else lengths[..., None] - 1
            last = torch.arange(n, device=emissions.device) == last
            emissions = torch.where(last[..., None], emissions + end, emissions)  # 0 · inf is NaN
        first = (torch.arange(n, device=emissions.device) == 0)[:, None, None]
        return emissions[..., None, :] + transitions.masked_fill(first, 0)

    @staticmethod
    def log_likelihood(
        emissions: Tensor,
        transitions: Tensor,
        tags: Tensor,
        start: Tensor | None = None,
        end: Tensor | None = None,
        lengths: Tensor | None = None,
    ) -> Tensor:
        """Log-probability ``(...)`` of tags ``(..., n)``, by scores as `join` takes them.

        Equals `log_prob` of `parts`, but on a CPU the scores ``(..., n, C, C)`` are never built.

        Example:
            >>> Chain.log_likelihood(torch.zeros(3, 2), torch.zeros(2, 2), torch.tensor([0, 1, 1])).exp()
            tensor(0.1250)
        """
        batch, n, num_tags = _check_terms(emissions, transitions, start, end)
        if tuple(tags.shape) != (*batch, n):
            raise InputError(
                f"tags has shape {tuple(tags.shape)}; expected {(*batch, n)}, a tag for each position "
                f"of emissions {tuple(emissions.shape)}."
            )
        dtype = emissions.dtype
        emissions = emissions.float() if dtype in HALF_TYPES else emissions
        terms = [emissions.new_zeros(num_tags) if x is None else x for x in (start, end)]
        total = None
        plain = emissions.is_cpu and can_bypass_dispatcher(emissions) and transitions.dim() == 2
        if plain and n:
            flat = torch.full(batch, n) if lengths is None else lengths
            given = emissions.reshape(-1, n, num_tags)
            total = shared.log_partition(flat.reshape(-1), given, transitions, *terms)
        if total is None:
            dist = Chain()(Chain.join(emissions, transitions, start, end, lengths), lengths)
            chosen = Chain.parts(tags, lengths, num_tags=num_tags)
            return (dist.score(chosen) - dist.log_partition).to(dtype)
        tags, inside = _check_tags(tags, lengths, num_tags)
        words = emissions.gather(-1, tags[..., None])[..., 0]
        pairs = _taken(transitions.flatten(), num_tags * tags[..., :-1] + tags[..., 1:])
        last = tags.gather(-1, inside.sum(-1, keepdim=True) - 1)[..., 0]
        score = torch.where(inside, words, 0).sum(-1, dtype=torch.float64)
        score = score + torch.where(inside[..., 1:], pairs, 0).sum(-1, dtype=torch.float64)
        score = score + _taken(terms[0], tags[..., 0]) + _taken(terms[1], last)
        return (score - total.reshape(batch)).to(dtype)

    @staticmethod
    def bio(tags: Sequence[str]) -> tuple[Tensor, Tensor, Tensor]:
        """What BIO tags forbid, as scores of transitions, first and last tag for `join`: 0 or ``-inf``.

        ``I-X`` continues a chunk that ``B-X`` began, as does ``E-X``, which ends it. With ``E-X`` or
        ``S-X`` among the tags every chunk has an end (BIOES).

        Args:
            tags: the names of all C tags, in the order of their numbers; ``X`` may be left out.

        Returns:
            ``(C, C)``, ``(C,)`` and ``(C,)``.

        Example:
            >>> transitions, start, end = Chain.bio(["O", "B-LOC", "I-LOC"])
            >>> transitions
            tensor([[0., 0., -inf],
                    [0., 0., 0.],
                    [0., 0., 0.]])
            >>> scores = Chain.join(torch.zeros(3, 3), transitions, start, end)
            >>> Chain()(scores).log_partition.exp()  # chains of three words without a lone I
            tensor(13.0000)
        """
        kinds = [tuple(tag.partition("-")[::2]) for tag in tags]
        for number, (prefix, kind) in enumerate(kinds):
            if prefix not in ("B", "I", "O", "E", "S") or (prefix == "O" and kind):
                raise InputError(
                    f"tags[{number}] is {tags[number]!r}; expected O or, with or without a name, B-X, "
                    "I-X, E-X or S-X."
                )
        must_end = any(prefix in "ES" for prefix, _ in kinds)

        def allowed(before: tuple[str, ...], after: tuple[str, ...]) -> bool:
            within = before[0] in "BI"  # a chunk may go on
            if after[0] in "IE":
                return within and before[1] == after[1]
            return not (within and must_end)

        kinds.append(("O", ""))  # what is outside the sentence
        table = torch.tensor([[allowed(before, after) for after in kinds] for before in kinds])
        terms = torch.zeros(table.shape).masked_fill(~table, -math.inf)
        return terms[:-1, :-1], terms[-1, :-1], terms[:-1, -1]

    @staticmethod
    def parts(tags: Tensor, lengths: Tensor | None = None, *, num_tags: int) -> Tensor:
        """The chain ``(..., n, C, C)`` of tags ``(..., n)``, as `log_prob` takes it.

        Example:
            >>> Chain.parts(torch.tensor([1, 0]), num_tags=2)
            tensor([[[0., 1.],
                     [0., 0.]],
            <BLANKLINE>
                    [[0., 0.],
                     [1., 0.]]])
        """
        tags, inside = _check_tags(tags, lengths, num_tags)
        n = tags.shape[-1]
        before = F.pad(tags, (1, 0))[..., :n]
        pairs = torch.arange(num_tags**2, device=tags.device)
        flat = ((before * num_tags + tags)[..., None] == pairs) & inside[..., None]
        return flat.unflatten(-1, (num_tags, num_tags)).to(torch.get_default_dtype())

    @staticmethod
    def tags(value: Tensor, lengths: Tensor | None = None) -> Tensor:
        """The tags ``(..., n)`` of chains ``(..., n, C, C)``, -1 in the padding."""
        tags = value.sum(-2).argmax(-1)
        if lengths is None:
            return tags
        batch = value.shape[:-3]
        check_lengths(lengths, tuple(batch[len(batch) - lengths.dim() :]), value.device)
        return tags.masked_fill(
            torch.arange(tags.shape[-1], device=tags.device) >= lengths[..., None], -1
        )


def _check_terms(
    emissions: Tensor, transitions: Tensor, start: Tensor | None, end: Tensor | None
) -> tuple[tuple[int, ...], int, int]:
    """Raise unless they fit each other; the batch, positions and tags of emissions."""
    if emissions.dim() < 2:
        raise InputError(
            f"emissions has shape {tuple(emissions.shape)}; expected (..., n, C): a score for each of C "
            "tags at each position."
        )
    *batch, n, tags = emissions.shape
    for name, given, expected in (
        ("transitions", transitions, (tags, tags)),
        ("start", start, (tags,)),
        ("end", end, (tags,)),
    ):
        if given is None:
            continue
        before = given.shape[: -len(expected)] if name == "transitions" else given.shape[:-1]
        fits = broadcasts(tuple(before), (*batch, n) if name == "transitions" else ())
        if not fits or tuple(given.shape[-len(expected) :]) != expected:
            raise InputError(
                f"{name} has shape {tuple(given.shape)}; expected {expected} for the {tags} tags of "
                f"emissions {tuple(emissions.shape)}."
            )
    return tuple(batch), n, tags


def _taken(values: Tensor, places: Tensor) -> Tensor:
    """``values[places]``, with a faster gradient."""
    return values.index_select(0, places.flatten()).view_as(places)


def _check_tags(tags: Tensor, lengths: Tensor | None, num_tags: int) -> tuple[Tensor, Tensor]:
    """Raise unless tags are numbers below ``num_tags``; the tags, 0 in the padding, and where they are
    not padding."""
    if not is_integer(tags) or tags.dim() == 0:
        raise InputError(
            f"tags is {getattr(tags, 'dtype', type(tags).__name__)} "
            f"{tuple(getattr(tags, 'shape', ()))}; expected whole numbers (..., n)."
        )
    inside = torch.ones_like(tags, dtype=torch.bool)
    if lengths is not None:
        check_lengths(lengths, tuple(tags.shape[:-1]), tags.device)
        inside = torch.arange(tags.shape[-1], device=tags.device) < lengths[..., None]
    wrong = inside & ((tags < 0) | (tags >= num_tags))
    if readable(wrong) and bool(wrong.any()):
        raise InputError(
            f"tags holds {int(tags[wrong][0])}; expected 0 to {num_tags - 1} (num_tags is {num_tags})."
        )
    return tags.masked_fill(~inside, 0).long(), inside
