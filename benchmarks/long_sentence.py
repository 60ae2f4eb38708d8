"""One long sentence on the CPU: today's kernel against a library built from an older commit.

    git worktree add /tmp/before 7f04fb2  # before sentences of 256 words or more went alone
    cmake -S /tmp/before/native -B /tmp/before/build && cmake --build /tmp/before/build
    python benchmarks/long_sentence.py /tmp/before/build/libtreelax_native.so

Forward and backward pass of a soft tree, softmax relaxation, float32, both kernels in turns in one
process, results compared first. Medians of wall time; writes ``results/long-sentence-<date>.csv``.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

if not __package__:  # run as a script: `benchmarks` is the package, not the search path
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    warnings.filterwarnings("ignore", message="Failed to initialize NumPy")

import argparse
import ctypes
import statistics
import time
from collections.abc import Callable
from datetime import datetime

import torch
from torch import Tensor

from benchmarks import machine
from benchmarks.report import table, write_rows
from treelax.ops import native
from treelax.ops.eisner import native as today
from treelax.ops.native_program import BACKWARD, SOFT_TREE

RESULTS = Path(__file__).resolve().parent / "results"
COLUMNS = (
    *("words", "threads", "before_ms", "today_ms", "ratio", "before", "machine", "torch", "commit"),
)
OLD_PLANES = 10  # that the older kernel keeps
Step = Callable[[], tuple[Tensor, Tensor]]


def with_today(scores: Tensor, upstream: Tensor, lengths: Tensor) -> Step:
    """Both passes of the installed kernel."""

    def step() -> tuple[Tensor, Tensor]:
        tree, _, saved = today.soft_tree(scores, lengths, "softmax", False, True)
        grad = today.soft_tree_backward(upstream, None, saved, lengths, "softmax", False)
        return tree, grad

    return step


def with_library(path: Path, scores: Tensor, upstream: Tensor, lengths: Tensor) -> Step:
    """Both passes of the other library, as its commit called it for a few sentences."""
    library = ctypes.CDLL(str(path))
    build = f"f32_{native.variant()}" + ("_narrow" if native.variant() in ("v3", "v4") else "")
    kinds = {"p": ctypes.c_void_p, "i": ctypes.c_int64}
    forward, backward = (
        getattr(library, f"treelax_{name}_{build}") for name in ("soft_tree", "soft_tree_backward")
    )
    forward.argtypes = [kinds[each] for each in SOFT_TREE]
    backward.argtypes = [kinds[each] for each in BACKWARD]
    batch, size, _ = scores.shape
    lanes = getattr(library, f"treelax_lanes_{build}")()
    saved = native.pool.empty(OLD_PLANES * size * size * lanes, scores.dtype)
    value = scores.new_empty(batch)

    def step() -> tuple[Tensor, Tensor]:
        tree, grad = torch.empty_like(scores), torch.empty_like(scores)
        own, threads = saved.data_ptr(), torch.get_num_threads()
        shape = (lengths.data_ptr(), batch, size, False, False)
        forward(scores.data_ptr(), *shape, tree.data_ptr(), value.data_ptr(), own, threads, None)
        backward(upstream.data_ptr(), None, own, *shape, grad.data_ptr(), threads, None)
        return tree, grad

    return step


def in_turns(steps: list[Step], rounds: int) -> list[float]:
    """Milliseconds of each."""
    times: list[list[float]] = [[] for _ in steps]
    for _ in range(rounds):
        for step, found in zip(steps, times, strict=True):
            start = time.perf_counter()
            step()
            found.append(1e3 * (time.perf_counter() - start))
    return [statistics.median(found[2:]) for found in times]  # two warm up


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library", type=Path, help="of an older commit, see above")
    parser.add_argument("--before", default="7f04fb2", help="that commit, for the record")
    parser.add_argument("--rounds", type=int, default=25)
    options = parser.parse_args()
    rows = []
    for words, threads in ((320, 1), (320, 2), (640, 2)):
        torch.set_num_threads(threads)
        scores, upstream = torch.randn(2, 1, words + 1, words + 1)
        lengths = torch.tensor([words])
        steps = [
            with_library(options.library, scores, upstream, lengths),
            with_today(scores, upstream, lengths),
        ]
        for old, new in zip(*(step() for step in steps), strict=True):
            torch.testing.assert_close(new, old, rtol=1e-3, atol=1e-3 * float(old.abs().max()))
        before, now = in_turns(steps, options.rounds)
        row = {"words": words, "threads": threads, "before_ms": round(before, 2)}
        rows.append(
            row
            | {"today_ms": round(now, 2), "ratio": round(before / now, 2), "before": options.before}
        )
    here = machine.describe("cpu", None)
    path = RESULTS / f"long-sentence-{datetime.now():%Y-%m-%d-%H%M}.csv"
    write_rows(path, COLUMNS, rows, here)
    shown = COLUMNS[:5]
    print(table(list(shown), [[str(row[name]) for name in shown] for row in rows], left=0))
    print(f"{here}\n{path.name}")


if __name__ == "__main__":
    main()
