"""What every contender receives, and what it hands back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from treelax.structures import Binary, NonProjective, Projective, Structure

#: Seed of all scores, lengths and upstream gradients.
SEED = 2019

FORWARD = "forward"
FORWARD_BACKWARD = "forward+backward"
BEST_TREE = "best tree"
NONPROJECTIVE_MARGINALS = "non-projective marginals+backward"
NONPROJECTIVE_BEST = "non-projective best tree"
BINARY_MARGINALS = "binary marginals+backward"
BINARY_BEST = "binary best tree"
#: Those without a name of their own are of projective trees.
PROJECTIVE = (FORWARD, FORWARD_BACKWARD, BEST_TREE)
BEST = (BEST_TREE, NONPROJECTIVE_BEST, BINARY_BEST)
MARGINALS = (NONPROJECTIVE_MARGINALS, BINARY_MARGINALS)
BACKWARD = (FORWARD_BACKWARD, *MARGINALS)
OPERATIONS = (
    *PROJECTIVE,
    NONPROJECTIVE_MARGINALS,
    NONPROJECTIVE_BEST,
    BINARY_MARGINALS,
    BINARY_BEST,
)


def structure_of(operation: str, single_root: bool = False) -> Structure:
    """What an operation is about."""
    if operation in (BINARY_MARGINALS, BINARY_BEST):
        return Binary()
    return (Projective if operation in PROJECTIVE else NonProjective)(single_root)


@dataclass(frozen=True)
class Problem:
    """A batch of sentences in treelax's convention.

    ``scores[b, h, m]`` is the weight of the arc from head ``h`` to modifier ``m``, index 0 the root, or
    that of the span from word ``h`` to word ``m``. ``upstream`` is the gradient of some loss with
    respect to the tree, zero where no part can be.
    """

    scores: Tensor  # (batch, n+1, n+1) for arcs, (batch, n, n) for spans, float32
    lengths: Tensor | None  # (batch,), or None: all sentences have n words
    upstream: Tensor  # like scores


def make_problem(
    batch: int, n: int, operation: str = FORWARD, *, ragged: bool = False, device: str = "cpu"
) -> Problem:
    """Unit-scale Gaussian scores, the same on every device; ragged lengths are from ``[n/2, n]``."""
    structure = structure_of(operation)
    random = torch.Generator().manual_seed(SEED + n)
    size = n + structure.rooted
    scores, upstream = (torch.randn(batch, size, size, generator=random) for _ in range(2))
    lengths = None
    words = torch.full((batch,), n)
    if ragged:
        words = torch.randint((n + 1) // 2, n + 1, (batch,), generator=random)
        lengths = words.to(device)
    upstream *= structure.part_mask(words, size)
    return Problem(scores.to(device), lengths, upstream.to(device))


@dataclass(frozen=True)
class Call:
    """One operation, ready to be timed."""

    run: Callable[[], Any]  # the timed work and nothing else
    #: What it returned as tensors in treelax's convention: ``tree`` and ``gradient`` of the scores'
    #: shape, ``best score`` of shape (batch,).
    read: Callable[[Any], dict[str, Tensor]]


@dataclass(frozen=True)
class Contender:
    """An implementation of one or more of the `OPERATIONS`."""

    name: str  # unique; appears in the tables
    library: str  # that is measured
    relaxation: str  # "softmax" or "entropy"; contenders with the same one must agree
    operations: tuple[str, ...]
    #: ``(operation, problem, single_root)`` to a `Call`; conversions happen here.
    prepare: Callable[[str, Problem, bool], Call]
    ragged: bool = False  # given sentences of different lengths
    timed: bool = True  # False: only takes part in the comparison of results
    largest: int | None = None  # the largest n it can handle in reasonable time
    capturable: bool = False  # in a CUDA graph

    def family(self, operation: str) -> str:
        """Contenders of one family compute the same thing."""
        what = BEST_TREE if operation in BEST else self.relaxation
        return what + (", ragged" if self.ragged else "")

    def takes(self, operation: str, n: int) -> bool:
        """Whether it takes part in ``operation`` on sentences of ``n`` words."""
        return operation in self.operations and (self.largest is None or n <= self.largest)

    def unavailable(self, device: str) -> str | None:
        """Why it cannot run here, or None: a peer may fail in any way, treelax only lack a backend."""
        try:
            for operation in self.operations:
                problem = make_problem(2, 3, operation, ragged=self.ragged, device=device)
                self.prepare(operation, problem, False).run()
        except Exception as error:
            if self.library == "treelax" and type(error).__name__ != "BackendError":
                raise
            return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        return None
