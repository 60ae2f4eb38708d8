"""What soft trees cost on a GPU: device time over batches and lengths, and ordinary calls.

*Device* rows: forward and backward pass of random scores (softmax relaxation), captured in a CUDA graph
and replayed, for both GPU backends. *Call* rows: the same without a graph, as in a training loop: many
calls, one synchronisation, the contenders in turns, beside ``torch.softmax`` of the same scores;
``--compile`` adds ``torch.compile``. Figures are medians in microseconds.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

import treelax as tx
from benchmarks.cuda import replayed
from benchmarks.measure import Row, turns
from treelax import ops

DEVICE = "cuda"
BATCHES = (
    *((128, n) for n in (10, 20, 40, 80)),
    *((2048, n) for n in (20, 40, 80)),
    *((16, n) for n in (160, 320, 640)),
    *((batch, 160) for batch in (1, 32, 128, 512)),
)
Call = Callable[[], Any]


def measure(compile: bool = False, triton_up_to: int = 320) -> Iterator[Row]:
    """All rows; ``triton_up_to`` is the longest sentence that Triton's kernels get."""
    for n in (10, 20, 40, 80):
        calls = soft_tree_calls(n, n == 20, compile and n == 20)
        yield from call_rows(calls, 128, n, over="torch.softmax")
    yield from call_rows(layer_calls(), 64, 20)
    for batch, n in BATCHES:
        scores, upstream = torch.randn(2, batch, n + 1, n + 1, device="cuda")
        for backend in ("triton", "cuda"):
            if n <= triton_up_to or backend == "cuda":
                soft = partial(ops.soft_tree, backend=backend, validate=False)
                yield device_row(backend, batch, n, with_gradient(soft, scores, upstream))


def with_gradient(function: Callable[[Tensor], Tensor], scores: Tensor, upstream: Tensor) -> Call:
    """A call with its backward pass."""
    scores = scores.clone().requires_grad_()
    return lambda: torch.autograd.grad(function(scores), scores, upstream)


def device_row(what: str, batch: int, n: int, call: Call) -> Row:
    """Device time of a call."""
    took = round(1e6 * statistics.median(replayed(call, 40)), 1)
    return {"kind": "device", "what": what, "batch": batch, "n": n, "microseconds": took}


def call_rows(calls: dict[str, Call], batch: int, n: int, over: str = "") -> Iterator[Row]:
    """Ordinary calls, and how many times as long as one of them they take."""
    times = turns(calls, rounds=15, calls=100, device="cuda", warm_up=2)
    medians = {name: 1e6 * statistics.median(taken) for name, taken in times.items()}
    for name, took in medians.items():
        row = {"kind": "call", "what": name, "batch": batch, "n": n, "microseconds": round(took, 1)}
        yield row | ({"over_softmax": round(took / medians[over], 2)} if over else {})


def soft_tree_calls(n: int, more: bool, compiled: bool) -> dict[str, Call]:
    """Ordinary calls of soft trees with n words, beside torch.softmax."""
    scores, upstream = torch.randn(2, 128, n + 1, n + 1, device="cuda")
    lengths = torch.full((128,), n, device="cuda")
    grads: dict[str, Callable[[Tensor], Tensor]] = {
        "torch.softmax": lambda s: torch.softmax(s, -2),
        "soft_tree": lambda s: ops.soft_tree(s, lengths),
    }
    if more:
        grads |= {
            "soft_tree, validate=False": lambda s: ops.soft_tree(s, lengths, validate=False),
            "soft_tree, triton": lambda s: ops.soft_tree(s, lengths, backend="triton"),
        }
    if compiled:
        for name in ("torch.softmax", "soft_tree"):
            grads[f"{name}, reduce-overhead"] = torch.compile(grads[name], mode="reduce-overhead")
    calls = {name: with_gradient(call, scores, upstream) for name, call in grads.items()}
    calls["soft_tree without gradient"] = lambda: ops.soft_tree(scores, lengths)
    if compiled:

        def both(scores: Tensor) -> Tensor:
            back: Tensor = torch.func.vjp(grads["soft_tree"], scores)[1](upstream)[0]
            return back

        once = torch.compile(both, mode="reduce-overhead")
        calls["soft_tree and its gradient in one, reduce-overhead"] = lambda: once(scores)
    return calls


def layer_calls() -> dict[str, Call]:
    """Ordinary calls of a layer, beside as many linear layers as its scorer has."""
    layer, other = (tx.nn.LatentTree(tx.nn.ArcScorer(100, 100)).cuda() for _ in range(2))
    vectors = torch.randn(64, 21, 100, device="cuda")
    short = torch.full((64,), 20, device="cuda")
    linear = nn.Sequential(
        *(nn.Sequential(nn.Linear(100, 100), nn.ReLU()) for _ in range(4))
    ).cuda()

    def step(module: nn.Module, *inputs: Tensor) -> None:
        module.zero_grad()
        module(*inputs).square().sum().backward()

    torch.cuda.make_graphed_callables(other, (vectors, short))  # changes it
    return {
        "four linear layers": lambda: step(linear, vectors),
        "LatentTree": lambda: step(layer, vectors, short),
        "LatentTree, make_graphed_callables": lambda: step(other, vectors, short),
    }
