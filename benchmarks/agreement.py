"""No speed without agreement: contenders that should compute the same thing must do so.

Tolerances, for float32 and unit-scale scores. They bound what rounding does to the least accurate
contender (marginals by automatic differentiation through logsumexp), with room for another
machine's order of summation; a wrong convention or a wrong gradient misses them by orders of
magnitude.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from benchmarks.problem import OPERATIONS, Contender, make_problem, structure_of

#: Largest difference allowed, and whether it is relative to the largest entry.
TOLERANCES: dict[str, tuple[float, bool]] = {
    "tree": (1e-4, False),  # entries are probabilities
    "gradient": (1e-3, True),
    "best score": (1e-5, True),
}
#: Single-root trees are compared up to this n (they are not timed).
LARGEST_SINGLE_ROOT = 20


Results = dict[str, Tensor]


class Disagreement(Exception):
    """Two contenders that should agree do not; nothing may be timed."""


def difference(quantity: str, got: Tensor, expected: Tensor) -> float:
    """The largest difference, in the units of `TOLERANCES`."""
    if got.shape != expected.shape:
        return float("inf")
    got, expected = got.double(), expected.double()
    gap = float((got - expected).abs().max())
    return gap / float(expected.abs().max()) if TOLERANCES[quantity][1] else gap


@dataclass
class Agreement:
    """What a comparison shows."""

    worst: dict[str, float]  # the largest difference met, per quantity
    comparisons: int  # of pairs of tensors
    seconds: dict[tuple[str, str, int], float]  # of a first call, per (operation, contender, n)


def compare(
    agreement: Agreement, where: str, names: tuple[str, str], one: Results, other: Results
) -> None:
    """Compares the results of two contenders."""
    for quantity, value in one.items():
        gap = difference(quantity, value, other[quantity])
        agreement.worst[quantity] = max(gap, agreement.worst.get(quantity, 0.0))
        agreement.comparisons += 1
        allowed, relative = TOLERANCES[quantity]
        if not gap <= allowed:  # NaN disagrees too
            kind = "relative to the largest entry" if relative else "absolute"
            raise Disagreement(
                f"{names[0]} and {names[1]} disagree on the {quantity} of {where}: "
                f"difference {gap:.2e} ({kind}), allowed {allowed:.0e}"
            )


def check(
    contenders: Sequence[Contender],
    batch: int,
    sizes: Sequence[int],
    device: str,
    say: Callable[[str], None],
) -> Agreement:
    """Compares every contender with the first of its family, at every size.

    Raises:
        Disagreement: naming the two, the quantity and the size.
    """
    agreement = Agreement({}, 0, {})
    cases = [
        (n, single_root, operation)
        for n in sizes
        for single_root in ((False, True) if n <= LARGEST_SINGLE_ROOT else (False,))
        for operation in OPERATIONS
        if structure_of(operation).rooted or not single_root
    ]
    for n, single_root, operation in cases:
        where = f"{operation} at n={n}, {'single' if single_root else 'multi'} root"
        say(f"comparing {where}")
        firsts: dict[str, tuple[str, Results]] = {}
        for contender in contenders:
            if not contender.takes(operation, n):
                continue
            problem = make_problem(batch, n, operation, ragged=contender.ragged, device=device)
            call = contender.prepare(operation, problem, single_root)
            start = time.perf_counter()
            out = call.run()
            if device == "cuda":
                torch.cuda.synchronize()
            agreement.seconds[operation, contender.name, n] = time.perf_counter() - start
            result = call.read(out)
            name, expected = firsts.setdefault(
                contender.family(operation), (contender.name, result)
            )
            if name != contender.name:
                compare(agreement, where, (contender.name, name), result, expected)
    return agreement
