"""SparseMAP in Triton without a GPU: in Triton's interpreter, and compiled.

As in ``test_triton.py`` this file is also the script that the subprocesses execute.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator

import pytest
import torch
from test_triton import compiled, run_parts

#: Two float64 computations of the same projection by different supports' sums.
TOLERANCE = 1e-10
KINDS = ["eisner 0", "eisner 1", "cky 0", "matrix_tree 0", "matrix_tree 1"]

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="triton is not installed"
)


def test_kernels_agree_with_the_loop_in_the_interpreter():
    results = run_parts("interpret", KINDS, script=__file__, TRITON_INTERPRET="1")
    assert len(results) == len(KINDS) * 2 * 4
    # not `error > tolerance`: a NaN must fail
    failures = [r for r in results if not float(r["error"]) <= TOLERANCE]
    assert not failures, "\n".join(map(str, failures))


def test_kernels_compile_ahead_of_time():
    results = run_parts("compile", ["90"], script=__file__)
    assert len(results) == 4
    for result in results:
        assert int(result["cubin"]) > 0, result
        assert result["stack"] is None or int(result["stack"]) <= 256, result


# ------------------------------------------------------------------ what runs in the subprocesses
def interpreter_checks(kind: str) -> Iterator[dict[str, object]]:
    from treelax.ops.chart.triton import Tiles
    from treelax.ops.dispatch import described
    from treelax.ops.sparsemap import function, plain, triton

    name, single = kind.split()
    algorithm, single_root = described(name), single == "1"
    size = 4 + algorithm.rooted
    lengths = torch.tensor([4, 3, 1, 0])
    scores = torch.randn(4, size, size, dtype=torch.float64) / 2
    scores[0, 1, 3] = -torch.inf
    for most in (None, 2):
        ready = plain.prepared(scores, algorithm.parts(lengths, size), algorithm.rooted)
        start = torch.ops.treelax.best_tree(
            scores, lengths, name, "entropy", single_root, "diagonal", True
        )
        best = function.oracle(algorithm, lengths, single_root, "diagonal")
        most_parts = algorithm.most_parts(size)
        want = plain.solve(ready, start, best, most_parts, algorithm.room(size), most)
        options = (lengths, start, algorithm, single_root, most)
        got = triton.solve(ready, *options, tiles=Tiles(8, 4, 1))
        grad = torch.randn_like(ready)
        pairs = {
            "tree": (got.tree, want.tree),
            "gap": (got.gap, want.gap),
            "gradient": (
                triton.backward(grad, got.indices, got.inverse),
                plain.backward(grad, want.indices, want.inverse),
            ),
            "support": (plain.spread(got.indices, got.weights, size * size), got.tree.flatten(1)),
        }
        for what, (a, b) in pairs.items():
            yield {"kind": kind, "most": most, "what": what, "error": float((a - b).abs().max())}


def compile_checks(arch: str) -> Iterator[dict[str, object]]:
    from treelax.ops.chart.triton import Tiles
    from treelax.ops.sparsemap import triton_kernels as kernels

    nothing = {"whole": None, "gains": None}
    variants = [
        (kernels.sparsemap_kernel, {"KIND": 0, **nothing}, Tiles(16, 8, 4)),
        (kernels.sparsemap_kernel, {"KIND": 1, **nothing}, Tiles(16, 16, 8)),
        (kernels.sparsemap_kernel, {"KIND": 2}, Tiles(32, 8, 8)),
        (kernels.backward_kernel, {"BLOCK": 128}, Tiles(16, 8, 4)),
    ]
    types = {"trees": "*i64", "found": "*i64", "whole": "*i32", "full": "*i32"}
    types |= dict.fromkeys(("levels", "room", "row", "most", "count"), "i32")
    for kernel, constants, tiles in variants:
        if "KIND" in constants:
            constants = {**constants, "ROWS": tiles.rows, "LANES": tiles.lanes}
        yield compiled(kernel, constants, f"{arch} float64", tiles.warps, **types)


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)  # torch.empty now gives NaN
    part, argument = sys.argv[1:]
    for result in {"interpret": interpreter_checks, "compile": compile_checks}[part](argument):
        print(json.dumps(result), flush=True)
