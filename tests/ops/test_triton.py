"""The Triton backend without a GPU: in Triton's interpreter against the reference, and compiled.

The interpreter must be chosen before Triton is imported and excludes compiling, so both parts run
in processes of their own: this file is also the script they execute, ``test_triton.py PART
ARGUMENT``, which prints one line of JSON per check. Uninitialised memory holds NaN there.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

ROOT = Path(__file__).parents[2]
#: Rounding of a few hundred additions and products of numbers of size 10 at each precision.
TOLERANCES = {"float64": 1e-10, "float32": 1e-5}
#: Architecture and precision; tests/test_cuda.py runs what these leave out.
COMPILED = ["80 float32", "90 float64"]

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="triton is not installed"
)


def run_parts(
    part: str, arguments: list[str], script: str = __file__, **variables: str
) -> list[dict[str, object]]:
    """Run a script once per argument, all at the same time, and collect what the runs print."""
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    environment |= {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1", **variables}
    runs = [
        subprocess.Popen(
            [sys.executable, script, part, argument],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for argument in arguments
    ]
    results = []
    for run in runs:
        output, errors = run.communicate()
        assert run.returncode == 0, errors
        results += [json.loads(line) for line in output.splitlines()]
    return results


def test_kernels_agree_with_the_reference_in_the_interpreter():
    results = run_parts("interpret", list(TOLERANCES), TRITON_INTERPRET="1")
    assert len(results) > 50
    # not `error > tolerance`: a NaN must fail
    failures = [r for r in results if not float(r["error"]) <= TOLERANCES[str(r["dtype"])]]
    assert not failures, "\n".join(map(str, failures))


def test_kernels_compile_ahead_of_time():
    results = run_parts("compile", COMPILED)
    kinds = {(r["target"], r["kernel"]) for r in results}
    assert len(kinds) == len(COMPILED) * 8 + 1  # centring is for float32 alone
    for result in results:
        assert int(result["cubin"]) > 0, result
        # a change of layout is a barrier and a trip through shared memory in every width
        assert result["layout_changes"] == 0, result
        # one barrier after the preparation and one a width in each sweep, in the machine code too
        kernel = str(result["kernel"])
        sweeps = 2 if kernel.startswith(("soft_tree", "best_tree")) else 1
        looks = 0 if "backward" in kernel or kernel == "sample_tree" else 1  # for NaN, once
        if kernel != "centre":  # looks at the scores first, which takes barriers of its own
            assert result["barriers"] == 1 + looks + sweeps, result
        # ptxas spills a number or two where it prefers more warps to more registers
        assert result["stack"] is None or int(result["stack"]) <= 32, result


# ------------------------------------------------------------------ what runs in the subprocesses
def random_problem(size: int, dtype: torch.dtype, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Scores, some −inf; the same with NaN wherever nothing may be read; ragged lengths."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.tensor([size - 1, max(1, size // 2)])
    scores = 3 * torch.randn(2, size, size, generator=generator, dtype=torch.float64)
    if size > 3:
        scores[0, 2, 3] = scores[1, 0, 2:] = -torch.inf
        scores[0, 2:, 1] = -torch.inf  # every I←(1,j)
    scores = scores.to(dtype)
    position = torch.arange(size)
    outside = (position[:, None] == position) | (position == 0)
    beyond = position > lengths[:, None]
    outside = outside | beyond[:, :, None] | beyond[:, None, :]
    return scores.masked_fill(outside, 0), scores.masked_fill(outside, torch.nan), lengths


def check(what: str, got: Tensor, expected: Tensor, **where: object) -> dict[str, object]:
    """One line of a report: the largest error, relative to numbers above 1."""
    error = ((got.double() - expected) / expected.double().abs().clamp(min=1)).abs().max().item()
    return {"dtype": str(got.dtype).removeprefix("torch."), "what": what, "error": error, **where}


def soft_checks(
    scores: Tensor,
    exact: Tensor,
    lengths: Tensor,
    relaxation: str,
    single_root: bool,
    tiles: object,
) -> Iterator[dict[str, object]]:
    """Soft tree, value and gradient; of the sentences in ``exact``, which may be fewer."""
    from treelax.ops.eisner import reference, triton

    where = {"relaxation": relaxation, "single_root": single_root, "tiles": tiles}
    options, count = (relaxation, single_root), len(exact)
    tree, value, saved = triton.soft_tree(scores, lengths, *options, True, tiles=tiles)
    assert saved.shape == triton.saved_shape(*scores.shape[:2], scores.dtype)
    grad_tree, grad_value = torch.randn_like(tree), torch.randn_like(value)
    grad = triton.soft_tree_backward(grad_tree, grad_value, saved, lengths, *options, tiles=tiles)
    want_tree, want_value, kept = reference.soft_tree(exact, lengths[:count], *options, True)
    want_grad = reference.soft_tree_backward(
        grad_tree[:count].double(), grad_value[:count].double(), kept, lengths[:count], *options
    )
    yield check("soft tree", tree[:count], want_tree, **where)
    yield check("value", value[:count], want_value, **where)
    yield check("gradient", grad[:count], want_grad, **where)
    outside = scores.isnan()
    for got in (tree[outside], grad[outside]):
        yield check("outside", torch.cat((got, got.new_zeros(1))), torch.zeros(1), **where)


def centring_checks() -> Iterator[dict[str, object]]:
    """float32 against float64: large scores, small ones, large ones with forbidden arcs, no tree."""
    from treelax.ops.eisner import reference, triton

    size = 7
    lengths = torch.tensor([6, 3, 4, 2])
    scores = torch.randn(4, size, size) * torch.tensor([200.0, 1, 200, 200])[:, None, None]
    scores[2, 2, 3] = scores[2, 0, 4:] = scores[3, :, 2] = -torch.inf
    exact = scores.double()
    for single_root, relaxation, tiles in (
        (False, "softmax", triton.Tiles(8, 8, 4)),
        (True, "entropy", triton.Tiles(4, 4, 2)),
    ):
        chart = scores.new_empty(triton.saved_shape(*scores.shape[:2], scores.dtype))
        shift = triton.centring(scores, lengths, chart, single_root, tiles)
        assert shift is not None
        best, value = reference.best_tree(exact, lengths, single_root)
        expected = (best * exact.nan_to_num(0, neginf=0)).sum(1)
        expected[:, 0] = value
        expected[[1, 3]] = 0
        yield check("shift", shift, expected, single_root=single_root)
        # the last sentence has no tree, and what it gets instead is not agreed on
        yield from soft_checks(scores, exact[:3], lengths, relaxation, single_root, tiles)
        want = reference.log_partition(exact, lengths, single_root)
        if single_root:
            got = triton.log_partition(scores, lengths, single_root, tiles=tiles)
        else:
            uniforms = torch.rand(1, len(scores), 2 * (size - 1))
            trees, got = triton.sample_tree(scores, lengths, uniforms, single_root, tiles=tiles)
            want_trees, _ = reference.sample_tree(exact, lengths, uniforms.double(), False)
            yield check("samples", trees[:, :3], want_trees[:, :3], single_root=single_root)
        yield check("log-partition", got, want, single_root=single_root)


def wrong_input_checks() -> Iterator[dict[str, object]]:
    """Lengths out of range, NaN and infinity: every function ends and stays inside its memory."""
    from treelax.ops.checks import arc_mask
    from treelax.ops.eisner import triton

    size, lengths, tiles = 4, torch.tensor([0, 7, -(10**12), 10**12, 3]), triton.Tiles(4, 4, 1)
    scores = torch.randn(5, size, size)
    scores[4, 1, 2], scores[4, 0, 3] = torch.nan, torch.inf
    uniforms = torch.rand(1, 5, 2 * (size - 1))
    soft, value, saved = triton.soft_tree(scores, lengths, "softmax", True, True, tiles=tiles)
    grad = triton.soft_tree_backward(
        torch.ones_like(soft), torch.ones(5), saved, lengths, "softmax", True, tiles=tiles
    )
    samples, other = triton.sample_tree(scores, lengths, uniforms, True, tiles=tiles)
    best, score = triton.best_tree(scores, lengths, True, tiles=tiles)
    spoilt = arc_mask(lengths[4:], size)[0]
    for what, got in {"soft": soft, "grad": grad, "sample": samples[0], "best": best}.items():
        # the nearest length: the empty tree, or one of all words; NaN in its own sentence only
        words = got[:4].sum((1, 2)) if what != "grad" else torch.tensor([0.0, 3, 0, 3])
        error = (words - torch.tensor([0, 3, 0, 3])).abs().max().item()
        error += float((got[4].isnan() != spoilt).sum()) + float(got[:4].isnan().sum())
        yield {"dtype": "float32", "what": f"wrong input, {what}", "error": error}
    for what, got in {"value": value, "log-partition": other, "score": score}.items():
        error = float((got.isnan() != torch.tensor([False] * 4 + [True])).sum())
        error += float(got[[0, 2]].abs().sum())
        yield {"dtype": "float32", "what": f"wrong input, {what}", "error": error}


def interpreter_checks(dtype_name: str) -> Iterator[dict[str, object]]:
    from treelax.ops.eisner import reference, triton

    dtype = getattr(torch, dtype_name)
    if dtype == torch.float32:
        yield from centring_checks()
        yield from wrong_input_checks()
    # one tile for all cells and splits of a width, or loops over blocks of either
    covering, blocks = triton.Tiles(16, 16, 4), triton.Tiles(2, 2, 1)
    every = [(False, "softmax"), (True, "entropy"), (True, "softmax"), (False, "entropy")]
    problems = [(2, covering, every[:2]), (3, covering, every), (5, blocks, every[:2])]
    for size, tiles, cases in problems if dtype == torch.float64 else [(4, covering, every[:1])]:
        scores, poisoned, lengths = random_problem(size, dtype, seed=size)
        exact = scores.double()
        for single_root, relaxation in cases:
            yield from soft_checks(poisoned, exact, lengths, relaxation, single_root, tiles)
        for single_root in {single for single, _ in cases}:
            where = {"size": size, "single_root": single_root, "tiles": tiles}
            got = triton.log_partition(poisoned, lengths, single_root, tiles=tiles)
            want = reference.log_partition(exact, lengths, single_root)
            yield check("log-partition", got, want, **where)
            for arcs in (poisoned, poisoned.round()):  # the second has ties
                tree, value = triton.best_tree(arcs, lengths, single_root, tiles=tiles)
                want_tree, want_value = reference.best_tree(
                    arcs.nan_to_num(0, neginf=-torch.inf), lengths, single_root
                )
                yield check("best tree", tree, want_tree, **where)
                yield check("best value", value, want_value, **where)
            if dtype == torch.float64:
                uniforms = torch.rand(2, len(scores), 2 * (size - 1), dtype=dtype)
                uniforms[0, 0] = 1 - 2**-53  # the largest number below 1
                trees, value = triton.sample_tree(
                    poisoned, lengths, uniforms, single_root, tiles=tiles
                )
                want_trees, want = reference.sample_tree(scores, lengths, uniforms, single_root)
                yield check("samples", trees, want_trees, **where)
                yield check("log-partition", value, want, **where)


def kernel_variants(dtype: torch.dtype) -> Iterator[tuple[str, str, dict[str, object]]]:
    """Every kernel in every form in which it is launched: a name, the kernel's, its constants."""
    from treelax.ops.eisner.triton import planes

    shape = {"ROWS": 16, "LANES": 16}
    centres = dtype == torch.float32
    first = shape if centres else {"shift": None, **shape}
    for relaxation, mean in (("softmax", True), ("entropy", False)):
        constants = {"MEAN": mean, "SAVE": True, **first}
        yield f"soft_tree[{relaxation}]", "soft_tree", constants
        yield f"soft_tree_backward[{relaxation}]", "soft_tree_backward", {"MEAN": mean, **shape}
    for keep in (False, True):
        purpose = "SAMPLE" if keep else "CENTRE" if centres else "VALUE"
        constants = {"PLANES": planes(purpose), "KEEP": keep, **first}
        yield f"log_partition[keep={keep}]", "log_partition", constants
    if centres:
        yield "centre", "centre", {"PLANES": planes("CHART"), **shape}
    yield "best_tree", "best_tree", shape
    yield "sample_tree", "sample_tree", {"BLOCK": 32}


def compiled(
    kernel: Any, constants: dict[str, object], target: str, warps: int, **types: str
) -> dict[str, object]:
    """About a kernel for an architecture and precision, compiled without a GPU, as a launch would."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from treelax.ops.chart.triton import COMMON_OPTIONS

    arch, dtype = target.split()
    number = {"float32": "*fp32", "float64": "*fp64"}[dtype]
    types = dict.fromkeys(("batch", "size", "single_root"), "i32") | {"lengths": "*i64"} | types
    signature = {
        argument: "constexpr" if argument in constants else types.get(argument, number)
        for argument in kernel.arg_names
    }
    # tensors start at multiples of 16 bytes, and a launch tells the compiler so
    aligned = {
        (place,): [["tt.divisibility", 16]]
        for place, kind in enumerate(signature.values())
        if kind.startswith("*")
    }
    asm = triton.compile(
        ASTSource(kernel, signature, constants, aligned),
        target=GPUTarget("cuda", int(arch), 32),
        options={"num_warps": warps, **COMMON_OPTIONS},
    ).asm
    return {
        "target": target,
        "kernel": kernel.fn.__name__,
        "cubin": len(asm["cubin"]),
        "layout_changes": asm["ttgir"].count("ttg.convert_layout"),
        "barriers": asm["ptx"].count("bar.sync"),
        "stack": stack_bytes(asm["cubin"]),
    }


def compile_checks(target: str) -> Iterator[dict[str, object]]:
    from treelax.ops.eisner import triton_kernels

    for name, kernel_name, constants in kernel_variants(getattr(torch, target.split()[1])):
        kernel = getattr(triton_kernels, f"{kernel_name}_kernel")
        warps = 8 if "ROWS" in constants else 1
        yield compiled(kernel, constants, target, warps, agenda="*i64") | {"kernel": name}


def stack_bytes(cubin: bytes) -> int | None:
    """Bytes of stack a thread uses, that is spilled registers; None without Triton's cuobjdump."""
    import re
    import tempfile

    import triton

    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    if not tool.exists():
        return None
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        usage = subprocess.run([tool, "-res-usage", file.name], capture_output=True, text=True)
    found = re.search(r"STACK:(\d+)", usage.stdout)
    return int(found[1]) if found else None


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)  # torch.empty now gives NaN
    part, argument = sys.argv[1:]
    for result in {"interpret": interpreter_checks, "compile": compile_checks}[part](argument):
        print(json.dumps(result), flush=True)
