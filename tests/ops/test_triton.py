"""The Triton kernels without a GPU: in Triton's interpreter against the reference, and compiled.

The interpreter must be chosen before Triton is imported and excludes compiling, so both parts run in
processes of their own: this file is also the script they execute, ``test_triton.py PART ARGUMENT``,
which prints a line of JSON per check. Uninitialised memory holds NaN there.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import treelax as tx
from treelax.errors import TreelaxError

ROOT = Path(__file__).parents[2]
#: Rounding of a few hundred additions and products of numbers of size 10 at each precision; float32 is
#: relative to the largest number.
TOLERANCES = {torch.float64: 1e-10, torch.float32: 1e-5}
FAMILIES = {
    "projective": (tx.Projective(), tx.Projective(single_root=True)),
    "nonprojective": (tx.NonProjective(), tx.NonProjective(single_root=True)),
    "binary": (tx.Binary(),),
    "paths": (tx.Chain(), tx.Segments(3), tx.Segments(2, transitions=True), tx.Alignment()),
}
#: Rows and lanes: one tile for all cells and splits of a width, or loops over blocks of either.
COVERING = (16, 16)
BLOCKS = {"projective": (2, 2), "nonprojective": (4, 4), "binary": (2, 2)}
#: Words, type, whether in blocks, scale and offset of the scores: wide ones are centred or take
#: logarithms.
CASES = (
    (1, torch.float64, False, 3, 0),
    (4, torch.float64, True, 3, 0),
    (4, torch.float32, False, 1, 1000),
    (4, torch.float32, True, 300, 0),
)
#: Architecture and type of each family of kernels; tests/test_cuda.py runs what these leave out.
COMPILED = (
    *("projective 80 fp32", "projective 90 fp64", "binary 90 fp32"),
    *("nonprojective 90 fp32", "sparsemap 90 fp64", "problems 90 fp32", "paths 90 fp32"),
)

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="triton is not installed"
)


def run_parts(part: str, arguments: tuple[str, ...], **variables: str) -> list[dict[str, Any]]:
    """Run this script once per argument, two at a time, and collect what the runs print."""
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    path = f"{ROOT / 'src'}:{ROOT / 'tests'}"
    environment |= {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", **variables}
    groups = [arguments[::2], arguments[1::2]]
    command = [sys.executable, __file__, part]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    runs = [subprocess.Popen([*command, *group], env=environment, **pipes) for group in groups]
    results = []
    for run in runs:
        output, errors = run.communicate()
        assert run.returncode == 0, errors
        results += [json.loads(line) for line in output.splitlines()]
    return results


def test_kernels_agree_with_the_reference_in_the_interpreter():
    jobs = ("projective 0", "projective 1", "binary 0", "nonprojective 0", "nonprojective 1")
    jobs += tuple(f"paths {number}" for number in range(4))
    results = run_parts("interpret", jobs, TRITON_INTERPRET="1")
    assert {result["job"] for result in results} == {*jobs}
    assert all(sum(result["job"] == job for result in results) > 8 for job in jobs)
    # not `error > bar`: a NaN must fail
    failures = [result for result in results if not result["error"] <= result["bar"]]
    assert not failures, "\n".join(map(str, failures))


def test_kernels_compile_ahead_of_time():
    results = run_parts("compile", COMPILED)
    assert {result["job"] for result in results} == {*COMPILED}
    kinds = {(result["job"], result["kernel"]) for result in results}
    assert len(kinds) == len(results) == 9 + 8 + 5 + 7 + 4 + 4 + 15  # centring: float32 alone
    for result in results:
        kernel, family = result["kernel"], result["job"].split()[0]
        assert result["cubin"] > 1000, result
        if family in FAMILIES and family != "paths":
            # a change of layout is a barrier and a trip through shared memory in every width
            assert result["layout_changes"] == 0, result
        if family == "projective" and kernel != "centre":  # looks at the scores first
            # one barrier after the preparation and one a width in each sweep
            sweeps = 2 if kernel.startswith(("soft_tree", "best_tree")) else 1
            looks = 0 if "backward" in kernel or kernel == "sample_tree" else 1  # for NaN, once
            assert result["barriers"] == 1 + looks + sweeps, result
        # ptxas spills a number or two where it prefers more warps to more registers, and more of them
        # in the second launch, with logarithms, that few sentences need
        most = {"sparsemap": 256, "nonprojective": 128 if "True" in kernel else 32}.get(family, 32)
        assert result["stack"] is None or result["stack"] <= most, result


# ── interpreted ──────────────────────────────────────────────────────────────────────────────────


class Checks:
    """Of one structure, each a line of a report."""

    def __init__(self, job: str) -> None:
        self.job = job
        self.family, root = job.split()
        self.structure = FAMILIES[self.family][int(root)]
        self.turn = int(root)

    def error(self, what: str, error: float, bar: float = 0.0) -> None:
        print(json.dumps({"job": self.job, "what": what, "error": float(error), "bar": bar}))

    def compare(self, what: str, got: torch.Tensor, expected: torch.Tensor, **where: Any) -> None:
        from tolerances import largest_error

        self.error(f"{what} {where}", largest_error(got, expected), TOLERANCES[got.dtype])

    def run(self) -> None:
        if self.family == "paths":
            self.paths(torch.float64, "softmax", tile=8)
            self.paths(torch.float32, "entropy", tile=8192)
            return
        for turn, (n, dtype, blocks, scale, offset) in enumerate(CASES):
            set_tiles(*(BLOCKS[self.family] if blocks else COVERING))
            relaxations = self.structure.relaxations
            relaxation = relaxations[(turn + self.turn) % len(relaxations)]
            self.kernels(n, dtype, scale, offset, relaxation)
        set_tiles(*COVERING)
        # the root rule is no matter here
        if self.structure == FAMILIES[self.family][0]:
            self.padding()
            self.messages()
        if self.structure == FAMILIES[self.family][-1]:
            self.wrong_input()
        set_tiles(8, 4)
        self.sparsemap()

    def kernels(
        self, n: int, dtype: torch.dtype, scale: float, offset: float, relaxation: str
    ) -> None:
        """Soft tree, value, gradients, best trees and samples, and best trees of ties."""
        from matrix import problem, total

        p = problem(self.structure, n, 3, scale, offset)
        p.agrees("triton", dtype, relaxations=[relaxation])
        whole = (p.scores / scale).round().masked_fill(~p.mask, 0)
        best, expected = (
            self.structure.argmax(whole, p.lengths, backend=backend)
            for backend in ("triton", "reference")
        )
        if self.family == "nonprojective":  # any of them
            best, expected = total(best, whole), total(expected, whole)
        self.error(f"{n=} {dtype=} {relaxation=}", not torch.equal(best, expected))

    def paths(self, dtype: torch.dtype, relaxation: str, tile: int) -> None:
        """Programs over positions, one of whose sentences has a NaN, against plain PyTorch."""
        from test_paths import CASES

        from treelax.ops.chain import triton

        triton.LARGEST_TILE = tile
        _, shape, lengths = next(case for case in CASES.values() if case[0] == self.structure)
        lengths = torch.tensor(lengths)
        scores = 2 * torch.randn(4, *shape, dtype=dtype)
        scores[0].flatten()[3::7] = -torch.inf
        scores[1].view(-1)[0] = torch.nan
        found = []
        for backend in ("triton", "diagonal"):
            leaf, given = scores.clone().requires_grad_(), {"backend": backend, "validate": False}
            soft = self.structure.relaxed(leaf, lengths, relaxation=relaxation, **given)
            grad = torch.autograd.grad((soft * (soft + 1)).sum(), leaf)[0]
            drawn = {"sample_shape": (3,), "generator": torch.Generator().manual_seed(0)} | given
            best = self.structure.argmax(scores.round(), lengths, **given)
            samples = self.structure.sample(scores, lengths, **drawn)
            value = self.structure.log_partition(scores, lengths, **given)
            found.append([soft.detach(), grad, best, samples, value])
        for what, got, expected in zip(
            ("soft", "gradient", "best", "samples", "value"), *found, strict=True
        ):
            self.error(f"NaN of {what}", not torch.equal(got.isnan(), expected.isnan()))
            self.compare(what, got.nan_to_num(), expected.nan_to_num(), tile=tile)
        parts = self.structure.part_mask(lengths[0], *shape).expand(shape).flatten()
        last = int(parts.nonzero()[-1])
        for place, value in ((0, torch.nan), (last, torch.inf), (slice(None), -torch.inf)):
            scores = torch.zeros(4, *shape)
            scores[0].view(-1)[place] = value
            self.same_words(scores, lengths)
        self.same_words(torch.zeros(4, *shape), lengths + 9 * (lengths == lengths.max()))

    def same_words(self, scores: torch.Tensor, lengths: torch.Tensor) -> None:
        expected, got = (
            said(self.structure.argmax, scores, lengths, backend=backend)
            for backend in ("diagonal", "triton")
        )
        self.error(f"{got} for {expected}", got != expected or got is None)

    def padding(self) -> None:
        """Not a bit of a sentence depends on how far it is padded."""
        from matrix import draw

        structure, lengths = self.structure, torch.tensor([4])
        scores = draw(structure, 1).float()
        size = scores.shape[-1]
        padded = torch.nn.functional.pad(scores, (0, 3, 0, 3), value=torch.nan)
        short, long = (
            structure.marginals(x, lengths, backend="triton", validate=False)
            for x in (scores, padded)
        )
        same = torch.equal(long[0][:, :size, :size], short[0]) and torch.equal(long[1], short[1])
        self.error("padding", not same)

    def wrong_input(self) -> None:
        """Lengths out of range, NaN, infinity, no tree: every function stays inside its memory."""
        from matrix import OPERATIONS, SMOOTH, draw, mask_of

        from treelax.ops.backend import NO_TREE

        structure, n = self.structure, 3
        lengths = torch.tensor([0, 7, -(10**12), 10**12, n, n])
        scores = draw(structure, 6, n=n).float()
        scores[4, 1, 2], scores[4, 0, 2], scores[5, :, 1] = torch.nan, torch.inf, -torch.inf
        spoilt = mask_of(structure, lengths, scores) & (torch.arange(6) == 4)[:, None, None]
        parts = structure.part_count(torch.tensor([0, n, 0, n]))
        scores.requires_grad_()
        for name, operation in OPERATIONS.items():
            got = operation(structure, scores, lengths, backend="triton", validate=False)
            results = {name: got.detach()}
            if name in SMOOTH:
                results[f"gradient of {name}"] = torch.autograd.grad(got.sum(), scores)[0]
            for what, result in results.items():
                if result.dim() == 1:
                    error = (result.isnan() != spoilt.flatten(1).any(1)).sum()
                    error = error + result[[0, 2]].abs().sum() + (result[5] > NO_TREE)
                else:
                    # the nearest length: the empty tree, or one of all words; NaN in its own sentence
                    error = (result.isnan() != spoilt.expand(result.shape)).sum()
                    if "gradient" not in what:
                        error = (
                            error
                            + ((result[..., :4, :, :].sum((-2, -1)) - parts).abs() > 1e-5).sum()
                        )
                self.error(f"wrong input, {what}", error)

    def messages(self) -> None:
        """What the kernel that looks finds wrong is said in the words of the other backends."""
        kinds = []
        for scores, lengths in wrong_cases(self.structure):
            expected = said(self.structure.argmax, scores, lengths)
            got = said(self.structure.argmax, scores, lengths, backend="triton")
            self.error(f"{got} for {expected}", got != expected)
            kinds.append(expected and expected[0])
        self.error("kinds", kinds != [None, *["InputError"] * 4, "NoTreeError", None])

    def sparsemap(self) -> None:
        """The whole loop in one launch, and its gradient, where few trees are enough and where not."""
        from matrix import draw

        from treelax.ops.sparsemap import plain, triton

        structure, lengths = self.structure, torch.tensor([4, 3, 1, 0])
        scores, upstream = draw(structure, 4, scale=0.5), draw(structure, 4, seed=2)
        scores[0, 1, 3] = -torch.inf
        backward = plain.backward
        for most in (None, 2) if self.turn == 0 else (None,):
            found = []
            for backend in ("triton", "diagonal"):
                # on a CPU the gradient is plain PyTorch's otherwise
                plain.backward = triton.backward if backend == "triton" else backward
                leaf = scores.clone().requires_grad_()
                given = {"max_iterations": most, "backend": backend, "validate": False}
                point = structure.sparsemap(leaf, lengths, **given)
                grad = torch.autograd.grad(point.tree, leaf, upstream)[0]
                trees, weights = point.support
                mixture = (weights[..., None, None] * trees).sum(0)
                found.append([x.detach() for x in (point.tree, point.gap, grad, mixture)])
            for what, got, expected in zip(
                ("tree", "gap", "gradient", "support"), *found, strict=True
            ):
                self.compare(f"sparsemap {what}", got, expected, most=most)


def set_tiles(rows: int, lanes: int) -> None:
    """The shape of the work of one program, whatever the size of the scores."""
    from treelax.ops.chart import triton as chart
    from treelax.ops.matrix_tree import triton as nonprojective
    from treelax.ops.sparsemap import triton as sparsemap

    options = {"ROWS": rows, "LANES": lanes, "num_warps": 1, **chart.COMMON_OPTIONS}
    for module in (chart, nonprojective, sparsemap):
        module.tile_options = lambda _: options


def said(call: Any, *given: Any, **options: Any) -> list[str] | None:
    """The error of a call."""
    try:
        call(*given, **options)
    except TreelaxError as error:
        return [type(error).__name__, str(error)]
    return None


def wrong_cases(structure: tx.Structure) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Scores and lengths, wrong in one way each; the first and the last are right."""
    size = 4 + structure.rooted

    def case(place: Any = None, value: float = 0.0, length: int = 3) -> Any:
        scores = torch.randn(3, size, size, generator=torch.Generator().manual_seed(0))
        if place is not None:
            scores[place] = value
        return scores, torch.tensor([4, length, 4])

    yield case()
    yield case((1, 1, 2), torch.nan)
    yield case((2, 1, 3), torch.inf)
    yield case(length=7)
    yield case(length=-3)
    yield case(2, -torch.inf)
    yield case((1, slice(None), size - 1), torch.nan)  # padding


# ── compiled ─────────────────────────────────────────────────────────────────────────────────────

#: Types of the kernels' arguments; all others are pointers to the scores' type.
TYPES = {
    **dict.fromkeys(("lengths", "agenda", "found", "slot"), "*i64"),
    **dict.fromkeys(("whole", "tops", "again", "full"), "*i32"),
    **dict.fromkeys(("batch", "size", "levels", "entries", "single_root"), "i32"),
    **dict.fromkeys(("room", "row", "most", "count", "form", "n", "longest", "tails"), "i32"),
    **dict.fromkeys(("states", "width", "plane", "part_count", "positions", "decisions"), "i32"),
    **dict.fromkeys(("gains", "nodes", "adjoints"), "*fp64"),
}


def kernels(family: str, number: str) -> Iterator[tuple[str, Any, dict[str, Any], int]]:
    """Every kernel in every form that is launched: a name, the kernel, its constants, its warps."""
    from treelax.ops.chain import triton_kernels as paths
    from treelax.ops.cky import triton_kernels as binary
    from treelax.ops.eisner import triton_kernels as projective
    from treelax.ops.eisner.triton import BACKEND
    from treelax.ops.matrix_tree import triton as nonprojective
    from treelax.ops.matrix_tree import triton_discrete, triton_kernels
    from treelax.ops.problems_kernel import validation_kernel
    from treelax.ops.sparsemap import triton_kernels as sparsemap

    tile = {"ROWS": 16, "LANES": 16}
    if family == "projective":
        first = tile | ({} if number == "fp32" else {"shift": None})
        for mean in (True, False):
            constants = {"MEAN": mean, "SAVE": True, **first}
            yield f"soft_tree[{mean}]", projective.soft_tree_kernel, constants, 8
            constants = {"MEAN": mean, **tile}
            yield f"soft_tree_backward[{mean}]", projective.soft_tree_backward_kernel, constants, 8
        for purpose in ("CENTRE" if number == "fp32" else "VALUE", "SAMPLE"):
            constants = {"PLANES": BACKEND.planes(purpose), "KEEP": purpose == "SAMPLE", **first}
            yield f"log_partition[{purpose}]", projective.log_partition_kernel, constants, 8
        if number == "fp32":
            yield "centre", projective.centre_kernel, {"PLANES": BACKEND.planes("CHART"), **tile}, 8
        yield "best_tree", projective.best_tree_kernel, tile, 8
        yield "sample_tree", projective.sample_tree_kernel, {"BLOCK": 32}, 1
    elif family == "binary":
        yield "soft_tree", binary.soft_tree_kernel, {"MEAN": True, "SAVE": True, **tile}, 8
        yield "backward", binary.soft_tree_backward_kernel, {"MEAN": True, **tile}, 8
        yield "log_partition", binary.log_partition_kernel, {"KEEP": True, **tile}, 8
        yield "best_tree", binary.best_tree_kernel, tile, 8
        yield "sample_tree", binary.sample_tree_kernel, {"BLOCK": 32}, 1
    elif family == "nonprojective":
        for log in (False, True):
            form = {"LOG": log}
            rows, lanes, warps = nonprojective.TILES
            tile = {"ROWS": rows, "LANES": lanes}
            yield f"soft_tree[{log}]", triton_kernels.soft_tree_kernel, tile | form, warps
            yield f"backward[{log}]", triton_kernels.soft_tree_backward_kernel, tile | form, warps
            rows, lanes, own = nonprojective.SAMPLE_TILES
            form |= {"BLOCK": 32, "ROWS": rows, "LANES": lanes}
            yield f"sample_tree[{log}]", triton_discrete.sample_tree_kernel, form, own
        yield "best_tree", triton_discrete.best_tree_kernel, tile, warps
    elif family == "sparsemap":
        nothing = {"whole": None, "gains": None}
        forms = ((0, nothing, 16, 8, 4), (1, nothing, 16, 16, 8), (2, {}, 32, 8, 8))
        for kind, absent, rows, lanes, warps in forms:
            constants = {"KIND": kind, "ROWS": rows, "LANES": lanes, **absent}
            yield f"sparsemap[{kind}]", sparsemap.sparsemap_kernel, constants, warps
        yield "backward", sparsemap.backward_kernel, {"BLOCK": 128}, 4
    elif family == "paths":
        absent = dict.fromkeys(("adjoints", "grad_tree", "grad_value"))
        for kind in range(3):
            form = {"KIND": kind, "ROWS": 32, "LANES": 16, "CHOICE": 1}
            yield f"inside[{kind}]", paths.inside_kernel, form, 4
            yield f"mean[{kind}]", paths.mean_kernel, form, 4
            form |= {"STATES": 16, "GRADIENT": True}
            yield f"down[{kind}]", paths.down_kernel, form, 4
            yield f"outside[{kind}]", paths.down_kernel, form | absent | {"GRADIENT": False}, 4
            yield f"follow[{kind}]", paths.follow_kernel, form | {"CHOICE": 2}, 1
    else:
        for kind in range(4):
            yield f"validation[{kind}]", validation_kernel, {"KIND": kind, "BLOCK": 1024}, 4


def compile_kernels(job: str) -> None:
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from treelax.ops.chart.triton import COMMON_OPTIONS

    family, arch, number = job.split()
    for name, kernel, constants, warps in kernels(family, number):
        types = TYPES | ({"chain": "*fp64"} if constants.get("LOG") else {})
        types |= {"trees": "*i64"} if family == "sparsemap" else {}  # as numbers of their parts
        signature = {
            argument: "constexpr" if argument in constants else types.get(argument, f"*{number}")
            for argument in kernel.arg_names
        }
        constants = {name: value for name, value in constants.items() if name in kernel.arg_names}
        # tensors start at multiples of 16 bytes, and a launch tells the compiler so
        aligned = {
            (place,): [["tt.divisibility", 16]]
            for place, kind in enumerate(signature.values())
            if kind.startswith("*")
        }
        compiled = triton.compile(
            ASTSource(kernel, signature, constants, aligned),
            target=GPUTarget("cuda", int(arch), 32),
            options={"num_warps": warps, **COMMON_OPTIONS},
        )
        result = {
            "job": job,
            "kernel": name,
            "cubin": len(compiled.asm["cubin"]),
            "layout_changes": compiled.asm["ttgir"].count("ttg.convert_layout"),
            "barriers": compiled.asm["ptx"].count("bar.sync"),
            "stack": stack_bytes(compiled.asm["cubin"]),
        }
        print(json.dumps(result))


def stack_bytes(cubin: bytes) -> int | None:
    """Bytes of stack a thread uses, that is spilled registers; None without Triton's cuobjdump."""
    import triton

    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    if not tool.exists():
        return None
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        usage = subprocess.run([tool, "-res-usage", file.name], capture_output=True, text=True)
    stack = re.search(r"STACK:(\d+)", usage.stdout)
    return int(stack[1]) if stack else None


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)  # torch.empty now gives NaN
    warnings.simplefilter("ignore")  # 0/0 where a sentence needs logarithms
    for job in sys.argv[2:]:
        compile_kernels(job) if sys.argv[1] == "compile" else Checks(job).run()
