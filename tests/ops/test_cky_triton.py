"""The Triton backend of binary trees without a GPU: in Triton's interpreter, and compiled.

As in ``test_triton.py`` this file is also the script that the subprocesses execute.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator

import pytest
import torch
from test_triton import TOLERANCES, check, compiled, run_parts
from torch import Tensor

from treelax.ops.checks import span_mask

#: Architecture and precision.
COMPILED = ["90 float32", "80 float64"]

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="triton is not installed"
)


def test_kernels_agree_with_the_reference_in_the_interpreter():
    results = run_parts("interpret", list(TOLERANCES), script=__file__, TRITON_INTERPRET="1")
    assert len(results) > 40
    # not `error > tolerance`: a NaN must fail
    failures = [r for r in results if not float(r["error"]) <= TOLERANCES[str(r["dtype"])]]
    assert not failures, "\n".join(map(str, failures))


def test_kernels_compile_ahead_of_time():
    results = run_parts("compile", COMPILED, script=__file__)
    assert len(results) == len(COMPILED) * 5
    for result in results:
        assert int(result["cubin"]) > 0, result
        # a change of layout is a barrier and a trip through shared memory in every width
        assert result["layout_changes"] == 0, result
        # ptxas spills a number or two where it prefers more warps to more registers
        assert result["stack"] is None or int(result["stack"]) <= 32, result


# ------------------------------------------------------------------ what runs in the subprocesses
def random_problem(size: int, scale: float, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Scores, some −inf, with NaN wherever nothing may be read; ragged lengths."""
    lengths = torch.tensor([size, size // 2, 0, 1])
    scores = scale * torch.randn(4, size, size, dtype=dtype)
    if size > 4:
        scores[0, 1, 3] = scores[0, 0, 1:3] = -torch.inf
    return scores.masked_fill(~span_mask(lengths, size), torch.nan), lengths


def soft_checks(
    scores: Tensor, lengths: Tensor, relaxation: str, tiles: object
) -> Iterator[dict[str, object]]:
    """Soft tree, value and gradient."""
    from treelax.ops.cky import reference, triton

    where = {"size": scores.shape[-1], "relaxation": relaxation, "tiles": tiles}
    tree, value, saved = triton.soft_tree(scores, lengths, relaxation, False, True, tiles=tiles)
    assert saved.shape == triton.saved_shape(*scores.shape[:2], scores.dtype)
    grad_tree, grad_value = torch.randn_like(tree), torch.randn_like(value)
    grad = triton.soft_tree_backward(
        grad_tree, grad_value, saved, lengths, relaxation, False, tiles=tiles
    )
    exact = scores.double()
    want_tree, want_value, kept = reference.soft_tree(exact, lengths, relaxation, False, True)
    want_grad = reference.soft_tree_backward(
        grad_tree.double(), grad_value.double(), kept, lengths, relaxation, False
    )
    yield check("soft tree", tree, want_tree, **where)
    yield check("value", value, want_value, **where)
    yield check("gradient", grad, want_grad, **where)


def discrete_checks(scores: Tensor, lengths: Tensor, tiles: object) -> Iterator[dict[str, object]]:
    """Log-partition, best tree, with ties too, and samples."""
    from treelax.ops.cky import reference, triton

    where = {"size": scores.shape[-1], "tiles": tiles}
    exact = scores.double()
    got = triton.log_partition(scores, lengths, False, tiles=tiles)
    yield check("log-partition", got, reference.log_partition(exact, lengths, False), **where)
    for spans in (scores, scores.round()):
        tree, value = triton.best_tree(spans, lengths, False, tiles=tiles)
        want_tree, want_value = reference.best_tree(spans.double(), lengths, False)
        yield check("best tree", tree, want_tree, **where)
        yield check("best value", value, want_value, **where)
    uniforms = torch.rand(2, len(scores), scores.shape[-1] - 1, dtype=scores.dtype)
    uniforms[0, 0] = 1 - 2**-24  # the largest number below 1
    trees, value = triton.sample_tree(scores, lengths, uniforms, False, tiles=tiles)
    want_trees, want_value = reference.sample_tree(exact, lengths, uniforms.double(), False)
    yield check("samples", trees, want_trees, **where)
    yield check("log-partition", value, want_value, **where)


def wrong_input_checks() -> Iterator[dict[str, object]]:
    """Lengths out of range, NaN, infinity, no tree: every function stays inside its memory."""
    from treelax.ops.backend import NO_TREE
    from treelax.ops.cky import triton

    size, tiles = 3, triton.Tiles(4, 4, 1)
    lengths = torch.tensor([0, 7, -(10**12), 10**12, 3, 3])
    scores = torch.randn(6, size, size)
    scores[4, 1, 2], scores[4, 0, 2], scores[5, :, 1] = torch.nan, torch.inf, -torch.inf
    soft, value, saved = triton.soft_tree(scores, lengths, "softmax", True, True, tiles=tiles)
    grad = triton.soft_tree_backward(
        torch.ones_like(soft), torch.ones(6), saved, lengths, "softmax", True, tiles=tiles
    )
    samples, other = triton.sample_tree(scores, lengths, torch.rand(1, 6, 2), True, tiles=tiles)
    best, score = triton.best_tree(scores, lengths, True, tiles=tiles)
    spoilt = torch.ones(size, size).triu().bool()
    for what, got in {"soft": soft, "grad": grad, "sample": samples[0], "best": best}.items():
        # the nearest length: the empty tree, or one of all words; NaN in its own sentence only
        error = (got[:4].sum((1, 2)) - torch.tensor([0.0, 5, 0, 5])).abs().max().item()
        error += float((got[4].isnan() != spoilt).sum() + (~got[[0, 1, 2, 3, 5]].isfinite()).sum())
        yield {"dtype": "float32", "what": f"wrong input, {what}", "error": error}
    for what, got in {"value": value, "log-partition": other, "score": score}.items():
        error = float((got.isnan() != torch.tensor([False] * 4 + [True, False])).sum())
        error += float(got[[0, 2]].abs().sum() + (got[5] > NO_TREE))
        yield {"dtype": "float32", "what": f"wrong input, {what}", "error": error}


def padding_checks() -> Iterator[dict[str, object]]:
    """Not a bit of a sentence depends on how far it is padded."""
    from treelax.ops.cky import triton

    scores, lengths = torch.randn(1, 4, 4), torch.tensor([4])
    padded = torch.nn.functional.pad(scores, (0, 3, 0, 3), value=torch.nan)
    want = triton.soft_tree(scores, lengths, "entropy", False, True)
    got = triton.soft_tree(padded, lengths, "entropy", False, True)
    for what, a, b in zip(("tree", "value"), got, want, strict=False):
        error = float(not torch.equal(a[:, :4, :4] if a.dim() > 1 else a, b))
        yield {"dtype": "float32", "what": f"padding, {what}", "error": error}


def interpreter_checks(dtype_name: str) -> Iterator[dict[str, object]]:
    from treelax.ops.cky.triton import Tiles

    dtype = getattr(torch, dtype_name)
    # one tile for all cells and splits of a width, or loops over blocks of either
    covering, blocks = Tiles(8, 8, 4), Tiles(2, 2, 1)
    problems = [(2, 3.0, covering), (5, 3.0, blocks)]
    if dtype == torch.float32:
        problems = [(5, 300.0, covering)]  # large scores, which are centred
        yield from wrong_input_checks()
        scores, lengths = random_problem(6, 1.0, dtype)  # large ones that differ little
        yield from soft_checks(scores + 1000, lengths, "softmax", covering)
        yield from padding_checks()
    else:
        yield from discrete_checks(*random_problem(1, 3.0, dtype), blocks)
    for size, scale, tiles in problems:
        scores, lengths = random_problem(size, scale, dtype)
        for relaxation in ("softmax", "entropy"):
            yield from soft_checks(scores, lengths, relaxation, tiles)
        yield from discrete_checks(scores, lengths, tiles)


def compile_checks(target: str) -> Iterator[dict[str, object]]:
    from treelax.ops.cky import triton_kernels

    shape = {"ROWS": 16, "LANES": 16}
    variants: dict[str, dict[str, object]] = {
        "soft_tree": {"MEAN": True, "SAVE": True, **shape},
        "soft_tree_backward": {"MEAN": True, **shape},
        "log_partition": {"KEEP": True, **shape},
        "best_tree": shape,
        "sample_tree": {"BLOCK": 32},
    }
    for name, constants in variants.items():
        kernel, warps = getattr(triton_kernels, f"{name}_kernel"), 8 if "ROWS" in constants else 1
        yield compiled(kernel, constants, target, warps, agenda="*i64")


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)  # torch.empty now gives NaN
    part, argument = sys.argv[1:]
    for result in {"interpret": interpreter_checks, "compile": compile_checks}[part](argument):
        print(json.dumps(result), flush=True)
