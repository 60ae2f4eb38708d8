"""Chains, segments, spanning trees: log-partitions and gradients, beside torch-struct and pytorch-crf.

    python benchmarks/run.py paths                  one thread of the CPU, CPU time; two minutes
    python benchmarks/run.py paths --device cuda    treelax alone, device time, larger problems

Results are compared first; what disagrees is not timed. `megabytes` is the most that a call holds beyond
what was there before it, on a GPU beyond the gradient too; `ratio` is the peer's time over ours.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Any

import torch
from torch import Tensor

import treelax as tx
from benchmarks.agreement import Disagreement
from benchmarks.measure import Row, take_turns

Call = Callable[[], tuple[Tensor, ...]]
Make = Callable[[], dict[str, Call]]


def gradient(value: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
    """A sum and its gradient."""
    return value.detach().sum(), *torch.autograd.grad(value.sum(), inputs)


def chains(batch: int, n: int, tags: int) -> dict[str, Call]:
    """Scores of torch-struct's form, and ours of the same numbers."""
    from torch_struct import LinearChainCRF

    theirs = torch.randn(batch, n - 1, tags, tags, requires_grad=True)
    padded = torch.nn.functional.pad(theirs.detach().mT, (0, 0, 0, 0, 1, 0))
    ours = padded.contiguous().requires_grad_()
    return {
        "treelax": lambda: moved(gradient(tx.Chain()(ours).log_partition, ours)),
        "torch-struct": lambda: gradient(LinearChainCRF(theirs).partition, theirs),
    }


def moved(result: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """A chain's gradient in torch-struct's form."""
    return result[0], result[1][:, 1:].mT


def likelihoods(batch: int, n: int, tags: int) -> dict[str, Call]:
    """From emissions and transitions to their gradients."""
    from torchcrf import CRF

    crf = CRF(tags, batch_first=True)
    emissions = torch.randn(batch, n, tags, requires_grad=True)
    gold = torch.randint(tags, (batch, n))
    terms = crf.transitions, crf.start_transitions, crf.end_transitions
    leaves = emissions, *terms

    def ours() -> Tensor:
        return tx.Chain.log_likelihood(emissions, crf.transitions, gold, *terms[1:])

    return {
        "treelax": lambda: gradient(ours(), *leaves),
        "pytorch-crf": lambda: gradient(crf(emissions, gold), *leaves),
    }


def segments(batch: int, n: int, longest: int, labels: int) -> dict[str, Call]:
    """With transitions, which torch-struct always has; before the first segment it sums over labels."""
    from torch_struct import SemiMarkovCRF

    theirs = torch.randn(batch, n, longest + 1, labels, labels, requires_grad=True)
    structure, ours = tx.Segments(longest, transitions=True), theirs.detach().requires_grad_()

    def call() -> tuple[Tensor, ...]:
        scores = ours[:, :, 1:].mT
        first = scores[:, :1].logsumexp(-2, keepdim=True).expand_as(scores[:, :1])
        return gradient(structure(torch.cat((first, scores[:, 1:]), 1)).log_partition, ours)

    return {
        "treelax": call,
        "torch-struct": lambda: gradient(SemiMarkovCRF(theirs).partition, theirs),
    }


ON_CPU: dict[str, Make] = {
    "chain, B=64, n=40, C=10": partial(chains, 64, 40, 10),
    "chain, B=64, n=40, C=50": partial(chains, 64, 40, 50),
    "likelihood, B=64, n=40, C=10": partial(likelihoods, 64, 40, 10),
    "likelihood, B=64, n=40, C=50": partial(likelihoods, 64, 40, 50),
    "segments, B=16, n=100, K=10, C=5": partial(segments, 16, 100, 10, 5),
}
ON_GPU: dict[str, tuple[Any, tuple[int, ...]]] = {
    "chain, n=512": (tx.Chain(), (128, 512, 32, 32)),
    "chain, n=4096": (tx.Chain(), (128, 4096, 32, 32)),
    "segments": (tx.Segments(100), (64, 512, 100, 16)),
    "segments after labels": (tx.Segments(100, transitions=True), (8, 512, 100, 16, 16)),
    "alignment": (tx.Alignment(), (64, 512, 512, 3)),
    "spanning trees": (tx.Spanning(), (1, 1000, 1000)),
}


def measure(device: str = "cpu", rounds: int = 3) -> Iterator[Row]:
    """All rows."""
    yield from (cpu_rows(rounds) if device == "cpu" else gpu_rows())


def cpu_rows(rounds: int) -> Iterator[Row]:
    """Ours and a peer's in turns."""
    torch.set_num_threads(1)
    for name, make in ON_CPU.items():
        memory = {who: in_child(make, who) for who in make()}
        calls = make()
        results = [call() for call in calls.values()]
        for one, other in zip(*results, strict=True):
            gap = float((one - other).abs().max() / other.abs().max())
            if not gap < 1e-3:
                raise Disagreement(f"{name}: results differ by {gap:.1e}; nothing is timed")
        times = take_turns(calls, seconds=5, rounds=rounds)
        medians = {who: statistics.median(taken.cpu) for who, taken in times.items()}
        for who, seconds in medians.items():
            row = {"case": name, "library": who, "milliseconds": round(1e3 * seconds, 3)}
            ratio = round(seconds / medians["treelax"], 1)
            yield row | {"ratio": ratio, "megabytes": memory[who]}


def in_child(make: Make, who: str) -> float:
    """Peak memory of a call, in a process of its own."""
    with ProcessPoolExecutor(1, get_context("fork")) as pool:
        return pool.submit(peak_of, make, who).result()


def peak_of(make: Make, who: str) -> float:
    """See `benchmarks.memory`; the process is spoilt afterwards."""
    from benchmarks.memory import peak_above

    return round(peak_above(make()[who]) / 1e6, 1)


def gpu_rows() -> Iterator[Row]:
    """Device time of a log-partition and its gradient; of spanning trees, marginals and a gradient."""
    from benchmarks.cuda import replayed

    for name, (structure, shape) in ON_GPU.items():
        scores = torch.randn(shape, device="cuda", requires_grad=True)
        weights = torch.randn(shape, device="cuda") if isinstance(structure, tx.Spanning) else None

        def call(
            structure: Any = structure, scores: Tensor = scores, weights: Any = weights
        ) -> Any:
            dist = structure(scores, validate_args=False)
            value = dist.log_partition if weights is None else dist.marginals * weights
            return torch.autograd.grad(value.sum(), scores)

        call()
        torch.cuda.reset_peak_memory_stats()
        base = torch.cuda.memory_allocated() + scores.nbytes
        call()
        more = (torch.cuda.max_memory_allocated() - base) / 1e6
        took = 1e3 * statistics.median(replayed(call, 20))
        size = "×".join(map(str, shape))
        yield {
            "case": name,
            "scores": size,
            "milliseconds": round(took, 3),
            "megabytes": round(more, 1),
        }
