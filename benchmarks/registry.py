"""What is measured: the contenders of each device and the sizes of each kind of run."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from benchmarks.adapters import matrix_tree, peers, treelax
from benchmarks.problem import (
    BEST,
    FORWARD,
    FORWARD_BACKWARD,
    MARGINALS,
    NONPROJECTIVE_BEST,
    NONPROJECTIVE_MARGINALS,
    OPERATIONS,
    Contender,
)

SOFT = (FORWARD, FORWARD_BACKWARD)


def ours(
    backend: str, relaxation: str, operations: tuple[str, ...] = SOFT, ragged: bool = False
) -> Contender:
    """A contender that is one of treelax's own backends."""
    parts = ["treelax", backend] + ([] if operations == BEST else [relaxation])
    return Contender(
        name=" ".join(parts) + (" ragged" if ragged else ""),
        library="treelax",
        relaxation=relaxation,
        operations=operations,
        prepare=treelax.prepare_with(backend, relaxation),
        ragged=ragged,
        capturable=backend == "triton",
    )


def reference(relaxation: str, ragged: bool = False) -> Contender:
    """The plain loops in float64: never timed, there to be agreed with at small n."""
    return Contender(
        name=f"treelax reference float64 {relaxation}" + (" ragged" if ragged else ""),
        library="treelax",
        relaxation=relaxation,
        operations=OPERATIONS if relaxation == "entropy" else SOFT,
        prepare=treelax.prepare_with("reference", relaxation, torch.float64),
        ragged=ragged,
        timed=False,
        largest=10,
    )


def others() -> list[Contender]:
    """The other libraries; all compute marginals, which is our relaxation "entropy"."""
    without_best = tuple(o for o in OPERATIONS if o != NONPROJECTIVE_BEST)
    torch_struct, supar = map(peers.prepare_with, ("torch_struct", "supar.structs"))
    plain = (NONPROJECTIVE_MARGINALS,)
    return [
        Contender("torch-struct", "torch-struct", "entropy", without_best, torch_struct),
        Contender("supar", "supar", "entropy", OPERATIONS, supar),
        Contender("plain torch", "torch", "entropy", plain, matrix_tree.prepare),
    ]


def contenders(device: str, with_peers: bool = True) -> list[Contender]:
    """All contenders of a device; the first of each family is the one others are compared with."""
    fast = "native" if device == "cpu" else "triton"
    treelaxes = [
        ours(fast, "softmax"),
        ours(fast, "entropy", (*SOFT, *MARGINALS)),
        ours(fast, "entropy", BEST),
        ours("diagonal", "softmax"),
        ours("diagonal", "entropy", MARGINALS),
        ours("diagonal", "entropy", BEST),
        ours(fast, "softmax", ragged=True),
    ]
    checks = [reference("softmax"), reference("entropy"), reference("softmax", ragged=True)]
    return treelaxes + (others() if with_peers else []) + checks


@dataclass(frozen=True)
class Plan:
    """The sizes and the patience of a run."""

    batch: int  # sentences
    sizes: tuple[int, ...]  # words in a sentence
    threads: tuple[int, ...]  # settings of torch.set_num_threads; CPU alone
    seconds: float  # for all contenders of one operation, size and thread count
    rounds: int  # at least so many, whatever they take
    long_sizes: tuple[tuple[int, int], ...]  # (n, batch) of treelax alone, for the growth exponent
    alone: tuple[int, ...] = ()  # words of a batch of one sentence, of treelax on all threads


PLANS = {
    "cpu": Plan(64, (10, 20, 40, 80), (1, 2), 6.0, 5, ((160, 64), (320, 16)), (320,)),
    "cpu quick": Plan(64, (10, 20), (1,), 1.0, 2, ((40, 16), (80, 16))),
    "cuda": Plan(128, (10, 20, 40, 80), (1,), 1.0, 5, ()),
    "cuda quick": Plan(128, (10, 20), (1,), 0.5, 2, ()),
}
