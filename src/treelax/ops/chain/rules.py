"""Programs over positions as data, from which every sweep follows: `reference` and `plain` run any.

A program is a graph without cycles. Its nodes come in levels; a node chooses among the edges that enter
it, and the program's relaxation says how:

    v(node) = <v(tail) + score(part)>   over the edges of the node

An edge has a score if it is a part. Node 0 is the start, of value 0, and the goal of a sentence chooses
among the nodes at which it may end. A structure is a path from the start to the goal, its score the sum
of the scores on it. Where trees have a cell for every span, a path has one for every position and state.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from treelax.errors import InputError, NoTreeError
from treelax.ops.backend import Algorithm

#: Of scores that a GPU has looked at.
shapes: dict[torch.Size, int] = {}
#: No edge, in a table of tails; an edge without a score, in a table of parts.
NONE = -1


@dataclass(frozen=True)
class Level:
    """Edges ``(nodes, edges)`` into the next nodes: the nodes that they leave, and their parts in the
    flattened scores of a sentence."""

    tails: Tensor
    parts: Tensor


class Program(Protocol):
    """A kind of path over scores ``(B, *shape)``."""

    #: Numbers that say how long a sentence is, as the first sizes of its scores do: lengths are ``(B,)``
    #: or ``(B, 2)``.
    dims: int
    #: The smallest of them.
    least: int
    #: Dimensions of a sentence's scores.
    rank: int

    @property
    def optional(self) -> int | None:
        """A dimension of size 1 that scores may come without."""

    def levels(self, shape: torch.Size) -> Iterator[Level]:
        """The levels of the longest sentence, in an order in which nodes can be computed."""

    def goals(self, lengths: Tensor, shape: torch.Size) -> Tensor:
        """The nodes ``(B, ends)`` at which a sentence may end, `NONE` for fewer."""

    def parts(self, lengths: Tensor, shape: torch.Size) -> Tensor:
        """``(B, *shape)``, true at the parts of a sentence."""

    def decisions(self, *shape: int) -> int:
        """Uniform variables that a sample takes at most: one for each node on it, and one for its end if
        there are several."""


@dataclass(frozen=True)
class Steps:
    """Paths over positions 0 … n in steps of 1 … K, between states: chains and segments.

    Scores are ``(n, K, S, C)``: ``[i, k, b, c]`` for the step from state b at position i to state c at
    position i + k + 1. At position 0 there is state 0 alone. ``joined`` paths forget the state, so S is
    1: a node of its own chooses among the states of every position.
    """

    joined: bool = False
    dims = 1
    least = 0
    rank = 4

    @property
    def optional(self) -> int:
        return 2 if self.joined else 1

    def node(self, position: Tensor, state: Tensor, states: int) -> Tensor:
        """The node of a state; of a joined program, state ``states`` is the one that joins them."""
        width = states + self.joined
        return torch.where(position > 0, 1 + (position - 1) * width + state, 0)

    def levels(self, shape: torch.Size) -> Iterator[Level]:
        n, longest, tails, states = shape
        k, b = (
            x.flatten() for x in torch.meshgrid(*map(torch.arange, (longest, tails)), indexing="ij")
        )
        c = torch.arange(states)[:, None]
        for position in range(1, n + 1):
            start = position - 1 - k
            tail = self.node(start, torch.full_like(b, states) if self.joined else b, states)
            none = (start < 0) | ((start == 0) & (b > 0))
            part = ((start * longest + k) * tails + b) * states + c
            tail = tail.masked_fill(none, NONE).expand_as(part)
            yield Level(tail, part.masked_fill(none, NONE))
            if self.joined:
                ends = self.node(torch.tensor(position), c.mT, states)
                yield Level(ends, torch.full_like(ends, NONE))

    def goals(self, lengths: Tensor, shape: torch.Size) -> Tensor:
        states = shape[-1]
        ends = torch.arange(states, device=lengths.device)
        ends = ends[-1:] + 1 if self.joined else ends
        goals = self.node(lengths[:, None], ends, states)
        return goals.masked_fill((lengths == 0)[:, None] & (ends != ends[0]), NONE)

    def parts(self, lengths: Tensor, shape: torch.Size) -> Tensor:
        n, longest, tails, states = shape
        i, k, b = (torch.arange(size, device=lengths.device) for size in shape[:-1])
        ends = i[:, None] + k + 1 <= lengths[:, None, None]
        begins = (i[:, None, None] > 0) | (b == 0)
        return (ends[..., None] & begins)[..., None].expand(-1, n, longest, tails, states)

    def decisions(self, *shape: int) -> int:
        return 2 * shape[0] if self.joined else shape[0] + 1


@dataclass(frozen=True)
class Grid:
    """Paths through an n × m grid from cell (0, 0) to the last one.

    Scores are ``(n, m, 3)``: ``[i, j, move]`` for the move into cell (i, j) from (i-1, j-1), (i-1, j) or
    (i, j-1). The move [0, 0, 0] comes from the start. Cells of an anti-diagonal i + j make a level.
    """

    dims = 2
    least = 1  # a grid has a cell
    rank = 3
    optional = None

    def levels(self, shape: torch.Size) -> Iterator[Level]:
        n, m, _ = shape
        i, move = torch.arange(n)[:, None], torch.arange(3)
        before_i, before_j = i - (move != 2).long(), (move != 1).long()
        for diagonal in range(n + m - 1):
            j = diagonal - i
            tail = 1 + (before_i + j - before_j) * n + before_i
            none = (j < 0) | (j >= m) | (before_i < 0) | (j < before_j)
            tail = tail.masked_fill(none, NONE)
            if diagonal == 0:
                tail[0, 0] = 0
            part = (i * m + j) * 3 + move
            yield Level(tail, part.masked_fill(tail == NONE, NONE))

    def goals(self, lengths: Tensor, shape: torch.Size) -> Tensor:
        i, j = (lengths - 1).unbind(-1)
        return (1 + (i + j) * shape[0] + i)[:, None]

    def parts(self, lengths: Tensor, shape: torch.Size) -> Tensor:
        n, m, _ = shape
        i = torch.arange(n, device=lengths.device)[:, None, None]
        j = torch.arange(m, device=lengths.device)[:, None]
        move = torch.arange(3, device=lengths.device)
        start = (i == 0) & (j == 0) & (move == 0)
        moves = ((i > 0) | (move == 2)) & ((j > 0) | (move == 1)) | start
        last_i, last_j = lengths[:, None, None, None].unbind(-1)
        return moves & (i < last_i) & (j < last_j)

    def decisions(self, *shape: int) -> int:
        return shape[0] + shape[1]


@dataclass(frozen=True, eq=False)
class PathAlgorithm(Algorithm):
    """An algorithm that a program over positions describes."""

    #: Steps unless it says otherwise.
    program: Program = Steps()
    #: What a path is made of, for messages.
    made_of: str = "part"

    @classmethod
    def of(cls, program: Program, name: str, trees: str, made_of: str) -> PathAlgorithm:
        """What a program and the words for messages say of an algorithm."""
        return cls(
            *(name, trees, False, program.decisions, ("reference", "diagonal", "native", "triton")),
            program=program,
            made_of=made_of,
        )

    @property
    def part(self) -> str:
        return self.made_of

    def canonical(self, event: torch.Size) -> tuple[int, ...]:
        """Chains have no lengths of steps, joined segments no tails."""
        place = self.program.optional
        if place is None or len(event) == self.program.rank:
            return event
        return (*event[:place], 1, *event[place:])

    def fits(self, *shape: int) -> bool:
        return len(shape) == self.program.rank

    def parts(self, lengths: Tensor, *shape: int) -> Tensor:
        event = torch.Size(shape)
        batch = lengths.shape if self.program.dims == 1 else lengths.shape[:-1]
        flat = lengths.reshape(-1, *lengths.shape[len(batch) :])
        return self.program.parts(flat, torch.Size(self.canonical(event))).reshape(batch + event)

    def room(self, *shape: int) -> tuple[int, ...]:
        return shape[: self.program.dims]

    def check_lengths(self, lengths: Tensor, *shape: int) -> None:
        pairs = lengths if lengths.dim() == 2 else lengths[:, None]
        least = self.program.least
        room = torch.tensor(self.room(*shape), device=lengths.device)
        wrong = (pairs < least) | (pairs > room)
        if bool(wrong.any()):
            sentence, place = wrong.nonzero()[0].tolist()
            raise self.no_room(sentence, int(pairs[sentence, place]), place, int(room[place]))

    def no_room(self, sentence: int, length: int, place: int, room: int) -> InputError:
        """The error for a length, the one at a ``place`` of several."""
        least = self.program.least
        where = f"{sentence}, {place}" if self.program.dims > 1 else f"{sentence}"
        return InputError(
            f"lengths[{where}] (of the flattened batch) is {length}; expected {least} to {room}, for "
            "which scores have room."
        )

    def form(self, shape: torch.Size) -> int:
        """A number for every shape; after 2¹⁵ of them an error may be said of another one."""
        return shapes.setdefault(shape[1:], len(shapes)) % 2**15

    def wrong_length(self, sentence: int, length: int, form: int, place: int = 0) -> InputError:
        return self.no_room(sentence, length, place, [*shapes][form][place])

    def part_at(self, first: int, second: int, form: int) -> list[int]:
        shape, flat = [*shapes][form], first | second << 14
        digits = [flat // shape[dim + 1 :].numel() % shape[dim] for dim in range(len(shape))]
        return self.place([0, *digits], torch.Size((1, *shape)))[1:]

    def place(self, place: list[int], shape: torch.Size) -> list[int]:
        """Without the dimension of size 1 that `canonical` puts in."""
        added = self.program.optional
        if added is None or shape[added + 1] > 1:
            return place
        return [at for dim, at in enumerate(place) if dim != added + 1]

    def most_parts(self, *shape: int) -> int:
        return sum(shape[: self.program.dims])

    def no_tree(self, sentence: int, words: int, forbidden: int) -> NoTreeError:
        return NoTreeError(
            f"Sentence {sentence} (of the flattened batch) has no {self.trees}: {forbidden} forbidden "
            f"{self.part}s (-inf) leave none; expected at least one. Allow more {self.part}s."
        )
