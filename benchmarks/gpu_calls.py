"""What soft trees cost on a GPU: device time over batches and lengths, ordinary calls; and a BiLSTM.

    python benchmarks/gpu_calls.py

*Device* rows: forward and backward pass of random scores (softmax relaxation), captured in a CUDA graph
and replayed, for both GPU backends. *Call* rows: the same without a graph, as in a training loop: many
calls, one synchronisation, the contenders in turns, beside ``torch.softmax`` of the same scores.
Figures are medians in microseconds; writes ``results/gpu-calls-<date>.csv``.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

if not __package__:  # run as a script: `benchmarks` is the package, not the search path
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    warnings.filterwarnings("ignore", message="Failed to initialize NumPy")

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn

import treelax as tx
from benchmarks import machine
from benchmarks.cuda import replayed
from benchmarks.report import table, write_rows
from treelax import ops
from treelax.ops import lstm

RESULTS = Path(__file__).resolve().parent / "results"
SHOWN = ("kind", "what", "batch", "n", "microseconds", "over_softmax")
COLUMNS = (*SHOWN, "machine", "torch", "commit")
BATCHES = (
    *((128, n) for n in (10, 20, 40, 80)),
    *((2048, n) for n in (20, 40, 80)),
    *((16, n) for n in (160, 320, 640)),
    *((batch, 160) for batch in (1, 32, 128, 512)),
)
CALLS, ROUNDS = 100, 15
Call = Callable[[], Any]


def with_gradient(function: Callable[[Tensor], Tensor], scores: Tensor, upstream: Tensor) -> Call:
    """A call with its backward pass."""
    scores = scores.clone().requires_grad_()
    return lambda: torch.autograd.grad(function(scores), scores, upstream)


def device_rows(largest: int) -> Iterator[dict[str, Any]]:
    """Device time by batch, length and backend."""
    for batch, n in BATCHES:
        scores, upstream = torch.randn(2, batch, n + 1, n + 1, device="cuda")
        for backend in ("triton", "cuda"):
            if n > largest and backend == "triton":
                continue

            def soft(s: Tensor, backend: str = backend) -> Tensor:
                return ops.soft_tree(s, backend=backend, validate=False)

            seconds = replayed(with_gradient(soft, scores, upstream), 40)
            took = round(1e6 * statistics.median(seconds), 1)
            row = {"kind": "device", "what": backend, "batch": batch, "n": n, "microseconds": took}
            print(row, flush=True)
            yield row


def lstm_rows() -> Iterator[dict[str, Any]]:
    """Device time of a BiLSTM, forward and backward, by our kernel and by cuDNN's.

    Both with matrix products in TF32, which is cuDNN's default.
    """
    torch.backends.cuda.matmul.allow_tf32 = True
    for batch, n in ((64, 20), (64, 100), (512, 40)):
        encoder = tx.nn.BiLSTM(100, 100).cuda()
        vectors = torch.randn(batch, n, 100, device="cuda", requires_grad=True)
        lengths = torch.full((batch,), n, device="cuda")
        inputs, upstream = (vectors, *encoder.parameters()), torch.randn(batch, n, 200).cuda()
        step = partial(both_passes, encoder, inputs, lengths, upstream)
        for what, most in (("BiLSTM, ours", lstm.MOST), ("BiLSTM, cuDNN", 0)):
            with patch.object(lstm, "MOST", most):
                seconds = replayed(step, 40)
            took = round(1e6 * statistics.median(seconds), 1)
            row = {"kind": "device", "what": what, "batch": batch, "n": n, "microseconds": took}
            print(row, flush=True)
            yield row


def both_passes(
    encoder: nn.Module, inputs: tuple[Tensor, ...], lengths: Tensor, upstream: Tensor
) -> Any:
    """Forward and backward pass."""
    return torch.autograd.grad(encoder(inputs[0], lengths), inputs, upstream)


def in_turns(calls: dict[str, Call]) -> dict[str, float]:
    """Microseconds of an ordinary call of each."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS + 2):
        for name, call in calls.items():
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(CALLS):
                call()
            torch.cuda.synchronize()
            times[name].append(1e6 * (time.perf_counter() - start) / CALLS)
    return {name: statistics.median(found[2:]) for name, found in times.items()}  # two warm up


def call_rows(compiled: bool) -> Iterator[dict[str, Any]]:
    """Ordinary calls: soft trees of several lengths, all their ways for 20 words, and a layer."""
    for n in (10, 20, 40, 80):
        yield from soft_tree_rows(n, n == 20, compiled and n == 20)
    yield from layer_rows()


def soft_tree_rows(n: int, more: bool, compiled: bool) -> Iterator[dict[str, Any]]:
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
    found = in_turns(calls)
    for name, took in found.items():
        ratio = round(took / found["torch.softmax"], 2)
        row = {"kind": "call", "what": name, "batch": 128, "n": n, "microseconds": round(took, 1)}
        yield row | {"over_softmax": ratio}


def layer_rows() -> Iterator[dict[str, Any]]:
    """Ordinary calls of a layer."""
    layer, other = (tx.nn.LatentTree(tx.nn.ArcScorer(100, 100)).cuda() for _ in range(2))
    vectors = torch.randn(64, 21, 100, device="cuda")
    short = torch.full((64,), 20, device="cuda")

    # as many linear layers as its scorer has, for what torch itself takes
    linear = nn.Sequential(
        *(nn.Sequential(nn.Linear(100, 100), nn.ReLU()) for _ in range(4))
    ).cuda()

    def step(module: nn.Module, *inputs: Tensor) -> None:
        module.zero_grad()
        module(*inputs).square().sum().backward()

    torch.cuda.make_graphed_callables(other, (vectors, short))  # changes it
    calls = {
        "four linear layers": lambda: step(linear, vectors),
        "LatentTree": lambda: step(layer, vectors, short),
        "LatentTree, make_graphed_callables": lambda: step(other, vectors, short),
    }
    for name, took in in_turns(calls).items():
        row = {"kind": "call", "what": name, "batch": 64, "n": 20}
        yield row | {"microseconds": round(took, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compile", action="store_true", help="torch.compile too")
    parser.add_argument(
        "--triton-up-to", type=int, default=320, help="longest sentences for Triton"
    )
    parser.add_argument("--commit", help="of a copy of the tree without its history")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    rows = [*call_rows(options.compile), *device_rows(options.triton_up_to), *lstm_rows()]
    here = machine.describe("cuda", options.commit)
    path = options.out / f"gpu-calls-{datetime.now():%Y-%m-%d-%H%M}.csv"
    write_rows(path, COLUMNS, rows, here)
    print(table(list(SHOWN), [[str(row.get(name, "")) for name in SHOWN] for row in rows], left=2))
    print(f"{here}\n{path.name}")


if __name__ == "__main__":
    main()
