"""The Triton backend of non-projective trees without a GPU: in Triton's interpreter, and compiled.

As in ``test_triton.py`` this file is also the script that the subprocesses execute.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from test_triton import TOLERANCES, check, compiled, run_parts
from torch import Tensor

from treelax.ops.checks import arc_mask

#: Architecture and precision of the scores; logarithms are float64.
COMPILED = ["90 float32"]

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="triton is not installed"
)


def test_kernels_agree_with_the_reference_in_the_interpreter():
    results = run_parts("interpret", list(TOLERANCES), script=__file__, TRITON_INTERPRET="1")
    assert len(results) == 52
    # not `error > tolerance`: a NaN must fail
    failures = [r for r in results if not float(r["error"]) <= TOLERANCES[str(r["dtype"])]]
    assert not failures, "\n".join(map(str, failures))


def test_kernels_compile_ahead_of_time():
    results = run_parts("compile", COMPILED, script=__file__)
    assert len(results) == len(COMPILED) * 7
    for result in results:
        assert int(result["cubin"]) > 0, result
        # a change of layout is a barrier and a trip through shared memory in every step
        assert result["layout_changes"] == 0, result
        # ptxas spills a number or two where it prefers more warps to more registers, and more of them
        # in the second launch, with logarithms, that few sentences need
        most = 128 if "True" in str(result["kernel"]) else 32
        assert result["stack"] is None or int(result["stack"]) <= most, result


# ------------------------------------------------------------------ what runs in the subprocesses
def random_problem(size: int, scale: float, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Scores, some −inf, with NaN wherever nothing may be read; ragged lengths."""
    lengths = torch.tensor([size - 1, size // 2])
    scores = scale * torch.randn(2, size, size, dtype=dtype)
    if size > 4:
        scores[0, 1:, 2] = scores[0, 1, 3] = -torch.inf  # word 2 must hang off the root
    return scores.masked_fill(~arc_mask(lengths, size), torch.nan), lengths


def soft_checks(
    scores: Tensor, lengths: Tensor, single_root: bool, tiles: object
) -> Iterator[dict[str, object]]:
    """Marginals, log-partition and gradient."""
    from treelax.ops.matrix_tree import reference, triton

    where = {"size": scores.shape[-1], "single_root": single_root, "tiles": tiles}
    options = ("entropy", single_root)
    tree, value, saved = triton.soft_tree(scores, lengths, *options, True, tiles=tiles)
    assert saved.shape == triton.saved_shape(*scores.shape[:2], scores.dtype)
    grad_tree, grad_value = torch.randn_like(tree), torch.randn_like(value)
    grad = triton.soft_tree_backward(grad_tree, grad_value, saved, lengths, *options, tiles=tiles)
    exact = scores.double()
    want_tree, want_value, kept = reference.soft_tree(exact, lengths, *options, True)
    want_grad = reference.soft_tree_backward(
        grad_tree.double(), grad_value.double(), kept, lengths, *options
    )
    yield check("marginals", tree, want_tree, **where)
    yield check("log-partition", value, want_value, **where)
    yield check("gradient", grad, want_grad, **where)


def discrete_checks(
    scores: Tensor, lengths: Tensor, single_root: bool, tiles: object
) -> Iterator[dict[str, object]]:
    """Best tree, with ties and huge scores too, and samples."""
    from treelax.ops.matrix_tree import reference, triton

    where = {"size": scores.shape[-1], "single_root": single_root, "tiles": tiles}
    masked = scores.round().masked_fill(torch.rand_like(scores) < 0.3, -1e30)
    for arcs in (scores, masked):
        tree, value = triton.best_tree(arcs, lengths, single_root, tiles=tiles)
        _, want = reference.best_tree(arcs.double(), lengths, single_root)
        heads = tree.sum(1) - arc_mask(lengths, tree.shape[-1]).any(1).to(tree)
        yield check("best value", value, want, **where)
        yield check("heads", heads, torch.zeros_like(heads), **where)
    uniforms = torch.rand(1, *scores.shape[:2], dtype=scores.dtype)
    uniforms[0, 0] = 1 - 2**-24  # the largest number below 1
    trees, value = triton.sample_tree(scores, lengths, uniforms, single_root, tiles=tiles)
    want_trees, want_value = reference.sample_tree(
        scores.double(), lengths, uniforms.double(), single_root
    )
    yield check("samples", trees, want_trees, **where)
    yield check("log-partition", value, want_value, **where)


def wrong_input_checks(tiles: object) -> Iterator[dict[str, object]]:
    """Lengths out of range, NaN, infinity, no tree: every function stays inside its memory."""
    from treelax.ops.backend import NO_TREE
    from treelax.ops.matrix_tree import triton

    size = 3
    lengths = torch.tensor([7, -(10**12), 2, 2, 2])
    scores = torch.randn(5, size, size)
    scores[2, 1, 2], scores[2, 0, 2] = torch.nan, torch.inf
    scores[3, 1:] = -torch.inf  # two words that only the root can take
    scores[4, 0] = -torch.inf
    soft, value, saved = triton.soft_tree(scores, lengths, "entropy", True, True, tiles=tiles)
    grad = triton.soft_tree_backward(
        torch.ones_like(soft), torch.ones(5), saved, lengths, "entropy", True, tiles=tiles
    )
    samples, other = triton.sample_tree(scores, lengths, torch.rand(1, 5, 3), True, tiles=tiles)
    best, score = triton.best_tree(scores, lengths, True, tiles=tiles)
    spoilt = arc_mask(lengths, size)[2]
    for what, got in {"soft": soft, "grad": grad, "sample": samples[0], "best": best}.items():
        # the nearest length: one tree of all words, or the empty one; NaN in its own sentence only
        error = (got[:2].sum((1, 2)) - torch.tensor([2.0, 0])).abs().max().item()
        error += float((got[2].isnan() != spoilt).sum() + (~got[[0, 1, 3, 4]].isfinite()).sum())
        yield {"dtype": "float32", "what": f"wrong input, {what}", "error": error}
    for what, got in {"value": value, "log-partition": other, "score": score}.items():
        error = float((got.isnan() != torch.tensor([False, False, True, False, False])).sum())
        error += float(got[1].abs() + (got[3:] > NO_TREE).sum())
        yield {"dtype": "float32", "what": f"wrong input, {what}", "error": error}


def interpreter_checks(dtype_name: str) -> Iterator[dict[str, object]]:
    from treelax.ops.matrix_tree.triton import Tiles

    dtype = getattr(torch, dtype_name)
    # one tile for all rows and heads, or loops over blocks of either
    covering, blocks = Tiles(8, 8, 2), Tiles(4, 4, 1)
    if dtype == torch.float64:
        problems = [(2, 1.0, True, covering), (5, 1.0, False, blocks), (5, 1.0, True, covering)]
    else:  # wide scores, which take logarithms
        problems = [(5, 300.0, False, covering), (5, 300.0, True, blocks)]
        yield from wrong_input_checks(covering)
    for size, scale, single_root, tiles in problems:
        scores, lengths = random_problem(size, scale, dtype)
        yield from soft_checks(scores, lengths, single_root, tiles)
        yield from discrete_checks(scores, lengths, single_root, tiles)


def kernel_variants(
    tiles: Any, sample_tiles: Any
) -> Iterator[tuple[str, Any, Any, dict[str, Any]]]:
    """Every kernel in every form that is launched: a name, the kernel, tiles, constants."""
    from treelax.ops.matrix_tree import triton_discrete, triton_kernels

    for log in (False, True):
        constants = {"LOG": log}
        yield f"soft_tree[{log}]", triton_kernels.soft_tree_kernel, tiles, constants
        yield f"backward[{log}]", triton_kernels.soft_tree_backward_kernel, tiles, constants
        constants = {"LOG": log, "BLOCK": 32}
        yield f"sample_tree[{log}]", triton_discrete.sample_tree_kernel, sample_tiles, constants
    yield "best_tree", triton_discrete.best_tree_kernel, tiles, {}


def compile_checks(target: str) -> Iterator[dict[str, object]]:
    from treelax.ops.matrix_tree.triton import SAMPLE_TILES, TILES

    types = {"whole": "*i32", "tops": "*i32", "again": "*i32", "gains": "*fp64"}
    types |= dict.fromkeys(("levels", "entries"), "i32")
    for name, kernel, tiles, form in kernel_variants(TILES, SAMPLE_TILES):
        constants = {"ROWS": tiles.rows, "LANES": tiles.lanes, **form}
        if form.get("LOG"):
            types["chain"] = "*fp64"
        yield compiled(kernel, constants, target, tiles.warps, **types) | {"kernel": name}


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)  # torch.empty now gives NaN
    warnings.simplefilter("ignore")  # 0/0 where a sentence needs logarithms
    part, argument = sys.argv[1:]
    for result in {"interpret": interpreter_checks, "compile": compile_checks}[part](argument):
        print(json.dumps(result), flush=True)
