"""Check the Triton kernels on a GPU, then time every sensible tile size for 128 sentences.

    PYTHONPATH=src python3 benchmarks/tune_triton.py --out benchmarks/results/tune_triton.csv

Prints the best tiles per length, to be copied to ``FORWARD_TILES`` and ``BACKWARD_TILES`` in
``src/treelax/ops/eisner/triton.py``. Nothing is timed unless the checks pass. Variants are compiled
in parallel processes first, which fills Triton's cache on disk. About two minutes on an H200.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import torch
from torch import Tensor

from treelax.ops.eisner import reference
from treelax.ops.eisner import triton as backend
from treelax.ops.eisner.triton import Tiles

BATCH = 128
LENGTHS = (10, 20, 40, 80)
RELAXATIONS = ("softmax", "entropy")
DTYPES = (torch.float32, torch.float64)
#: Forward plus backward, in microseconds, by length.
GOALS = {10: 100, 20: 200, 40: 500, 80: 1900}
START = time.perf_counter()


def say(text: str) -> None:
    print(f"[{time.perf_counter() - START:6.1f} s] {text}", flush=True)


def candidates(length: int) -> Iterator[Tiles]:
    """Tiles with 1, 2 or 4 entries a thread and not many more rows than a width has cells.

    More than 1024 entries spill registers, whatever the number of warps.
    """
    for rows in (8, 16, 32, 64, 128):
        if not (length + 1) / 4 <= rows < 2 * (length + 1):
            continue
        for lanes in (8, 16, 32):
            if lanes >= 2 * (length + 1) or rows * lanes > 1024:
                continue
            for warps in (1, 2, 4, 8, 16, 32):
                if 1 <= rows * lanes / (32 * warps) <= 4:
                    yield Tiles(rows, lanes, warps)


def problem(
    batch: int, length: int, dtype: torch.dtype, ragged: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Scores, lengths, and adjoints of the tree and of the value."""
    generator = torch.Generator().manual_seed(length)
    shape = (batch, length + 1, length + 1)
    scores = torch.randn(shape, generator=generator, dtype=torch.float64)
    if ragged:
        lengths = torch.randint(1, length + 1, (batch,), generator=generator)
        lengths[0] = length
    else:
        lengths = torch.full((batch,), length)
    grad_tree = torch.randn(shape, generator=generator, dtype=torch.float64)
    grad_value = torch.randn(batch, generator=generator, dtype=torch.float64)
    return scores.to(dtype), lengths, grad_tree.to(dtype), grad_value.to(dtype)


def both_passes(
    scores: Tensor, lengths: Tensor, grad_tree: Tensor, grad_value: Tensor,
    relaxation: str, single_root: bool, tiles: Tiles | None,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Soft tree, value and gradient."""
    tree, value, saved = backend.soft_tree(
        scores, lengths, relaxation, single_root, True, tiles=tiles
    )
    grad = backend.soft_tree_backward(
        grad_tree, grad_value, saved, lengths, relaxation, single_root, tiles=tiles
    )
    return tree, value, grad


def compile_variant(relaxation: str, dtype: torch.dtype, tiles: Tiles) -> None:
    """Fill the cache on disk: a launch at any size compiles the kernel of these tiles."""
    data = [x.cuda() for x in problem(1, 2, dtype, False)]
    both_passes(*data, relaxation, False, tiles)
    torch.cuda.synchronize()


def compile_all(variants: list[tuple[str, torch.dtype, Tiles]], processes: int) -> None:
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        done = [pool.submit(compile_variant, *variant) for variant in variants]
        for count, future in enumerate(as_completed(done), 1):
            future.result()
            if count % 20 == 0 or count == len(done):
                say(f"compiled {count} of {len(done)} variants")


def error(got: Tensor, expected: Tensor) -> float:
    """Relative to the expected number where that is larger than 1."""
    expected = expected.cpu().double()
    return ((got.cpu().double() - expected) / expected.abs().clamp(min=1)).abs().max().item()


def check_against_reference(length: int) -> bool:
    """Every function of the backend against the loops in float64 on the CPU, ragged lengths."""
    fine = True
    names = ("tree", "value", "grad")

    def judge(what: str, found: float, allowed: float) -> None:
        nonlocal fine
        good = found <= allowed  # False for NaN
        fine &= good
        if not good:
            say(f"  WRONG n={length} {what}: off by {found:.2e}, allowed {allowed:.0e}")

    # large scores are centred in float32
    for dtype, scale, allowed in (
        (torch.float32, 1, 1e-4),
        (torch.float32, 100, 1e-4),
        (torch.float64, 1, 1e-10),
    ):
        data = problem(4, length, dtype, True)
        data[0].mul_(scale)
        exact = [x.double() if x.is_floating_point() else x for x in data]
        scores, lengths, grad_tree, grad_value = (x.cuda() for x in data)
        for single_root in (False, True):
            for relaxation in RELAXATIONS:
                where = f"{dtype} scale={scale} single_root={single_root} {relaxation}"
                tree, value, kept = reference.soft_tree(
                    exact[0], exact[1], relaxation, single_root, True
                )
                grad = reference.soft_tree_backward(
                    exact[2], exact[3], kept, exact[1], relaxation, single_root
                )
                got = both_passes(
                    scores, lengths, grad_tree, grad_value, relaxation, single_root, None
                )
                for name, x, y in zip(names, got, (tree, value, grad), strict=True):
                    judge(f"{name} {where}", error(x, y), allowed)
            where = f"{dtype} scale={scale} single_root={single_root}"
            got_value = backend.log_partition(scores, lengths, single_root)
            value = reference.log_partition(exact[0], exact[1], single_root)
            judge(f"log-partition {where}", error(got_value, value), allowed)
            for arcs in (data[0], data[0].round()):  # rounded scores have ties
                got_tree, got_value = backend.best_tree(arcs.cuda(), lengths, single_root)
                tree, value = reference.best_tree(arcs, exact[1], single_root)
                judge(f"best tree {where}", error(got_tree, tree), 0.0)
                judge(f"best value {where}", error(got_value, value), 0.0)
            if dtype == torch.float64:
                uniforms = torch.rand(3, 4, 2 * length, dtype=dtype)
                got_tree, _ = backend.sample_tree(scores, lengths, uniforms.cuda(), single_root)
                tree, _ = reference.sample_tree(data[0], exact[1], uniforms, single_root)
                judge(f"samples {where}", error(got_tree, tree), 0.0)
    return fine


def microseconds(run: Callable[[], object]) -> float:
    """Median time of one call inside a CUDA graph: the kernel without Python and launch gaps."""
    run()
    torch.cuda.synchronize()
    calls, graph = 20, torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            run()
    graph.replay()
    torch.cuda.synchronize()
    times = []
    for _ in range(7):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(1000 * start.elapsed_time(end) / calls)
    return sorted(times)[len(times) // 2]


def sweep(length: int, relaxation: str) -> Iterator[dict[str, object]]:
    """Time all candidates; each must give what float64 gives, and the same bits twice."""
    data = [x.cuda() for x in problem(BATCH, length, torch.float32, False)]
    scores, lengths, grad_tree, grad_value = data
    exact = both_passes(
        *(x.double() if x.is_floating_point() else x for x in data), relaxation, False, None
    )
    for tiles in candidates(length):
        got = both_passes(*data, relaxation, False, tiles)
        again = both_passes(*data, relaxation, False, tiles)
        worst = max(error(x, y) for x, y in zip(got, exact, strict=True))
        _, _, saved = backend.soft_tree(scores, lengths, relaxation, False, True, tiles=tiles)

        def forward(tiles: Tiles = tiles) -> object:
            return backend.soft_tree(scores, lengths, relaxation, False, True, tiles=tiles)

        def backward(tiles: Tiles = tiles, saved: Tensor = saved) -> object:
            return backend.soft_tree_backward(
                grad_tree, grad_value, saved, lengths, relaxation, False, tiles=tiles
            )

        yield {
            "device": torch.cuda.get_device_name(),
            "torch": torch.__version__,
            "batch": BATCH,
            "n": length,
            "relaxation": relaxation,
            **tiles._asdict(),
            "forward_us": round(microseconds(forward), 2),
            "backward_us": round(microseconds(backward), 2),
            "worst_error": worst,
            "repeatable": all(torch.equal(x, y) for x, y in zip(got, again, strict=True)),
        }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="CSV file to write")
    parser.add_argument("--processes", type=int, default=12, help="compiling processes")
    parser.add_argument("--entropy", action="store_true", help="time the entropy relaxation too")
    options = parser.parse_args()
    relaxations = RELAXATIONS if options.entropy else RELAXATIONS[:1]

    tiles = sorted({t for length in LENGTHS for t in candidates(length)}, key=lambda t: -t.rows)
    variants = [(r, torch.float32, t) for r in relaxations for t in tiles]
    variants += [
        (relaxation, dtype, backend.choose_tiles(length + 1, table, dtype))
        for relaxation in RELAXATIONS
        for dtype in DTYPES
        for length in LENGTHS
        for table in (backend.FORWARD_TILES, backend.BACKWARD_TILES)
    ]
    variants = list(dict.fromkeys(variants))
    say(f"{torch.cuda.get_device_name()}, torch {torch.__version__}: {len(variants)} variants")
    compile_all(variants, options.processes)

    fine = [check_against_reference(length) for length in LENGTHS if length <= 20]
    if not all(fine):
        say("the kernels are wrong; nothing is timed")
        return 1
    say("all functions agree with the reference")

    options.out.parent.mkdir(parents=True, exist_ok=True)
    wrong = 0
    with options.out.open("w", newline="") as file:
        writer = None
        for relaxation in relaxations:
            for length in LENGTHS:
                rows = []
                for row in sweep(length, relaxation):
                    if writer is None:
                        writer = csv.DictWriter(file, list(row))
                        writer.writeheader()
                    writer.writerow(row)
                    file.flush()
                    good = row["worst_error"] <= 1e-3 and row["repeatable"]
                    wrong += not good
                    if good:
                        rows.append(row)
                    else:
                        say(f"  WRONG {row}")
                for pass_ in ("forward_us", "backward_us"):
                    best = sorted(rows, key=lambda row: row[pass_])[:3]
                    shown = "; ".join(
                        f"Tiles({row['rows']}, {row['lanes']}, {row['warps']}) {row[pass_]} µs"
                        for row in best
                    )
                    say(f"n={length} {relaxation} {pass_[:-3]}: {shown}")
                total = sum(min(row[p] for row in rows) for p in ("forward_us", "backward_us"))
                say(f"n={length} {relaxation}: {total:.1f} µs, goal {GOALS[length]} µs")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
