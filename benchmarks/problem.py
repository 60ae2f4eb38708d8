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
    """Unit-scale Gaussian scores; ragged lengths are uniform in ``[n/2, n]``.

    The numbers are drawn on the CPU, so that every device gets the same ones.
    """
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
    """One operation, ready to be timed.

    Attributes:
        run: the timed work and nothing else.
        read: turns what ``run`` returned into named tensors in treelax's convention:
            ``tree`` and ``gradient`` of the scores' shape, ``best score`` of shape (batch,).
    """

    run: Callable[[], Any]
    read: Callable[[Any], dict[str, Tensor]]


@dataclass(frozen=True)
class Contender:
    """An implementation of one or more of the `OPERATIONS`.

    Attributes:
        name: unique; appears in the tables.
        library: the library that is measured.
        relaxation: ``softmax`` or ``entropy``; contenders with the same one must agree.
        operations: which operations it takes part in.
        prepare: ``(operation, problem, single_root)`` to a `Call`; conversions happen here.
        ragged: whether it is given sentences of different lengths.
        timed: False if it only takes part in the comparison of results.
        largest: the largest n it can handle in reasonable time, if there is one.
        capturable: whether its calls can be captured in a CUDA graph.
    """

    name: str
    library: str
    relaxation: str
    operations: tuple[str, ...]
    prepare: Callable[[str, Problem, bool], Call]
    ragged: bool = False
    timed: bool = True
    largest: int | None = None
    capturable: bool = False

    def family(self, operation: str) -> str:
        """Contenders of one family compute the same thing."""
        what = BEST_TREE if operation in BEST else self.relaxation
        return what + (", ragged" if self.ragged else "")

    def takes(self, operation: str, n: int) -> bool:
        """Whether it takes part in ``operation`` on sentences of ``n`` words."""
        return operation in self.operations and (self.largest is None or n <= self.largest)

    def unavailable(self, device: str) -> str | None:
        """Why it cannot run here, or None if it can: found out on two sentences of three words.

        A peer may fail in any way. Of treelax only a backend that says it is missing is forgiven;
        other errors are raised.
        """
        try:
            for operation in self.operations:
                problem = make_problem(2, 3, operation, ragged=self.ragged, device=device)
                self.prepare(operation, problem, False).run()
        except Exception as error:
            if self.library == "treelax" and type(error).__name__ != "BackendError":
                raise
            return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        return None
