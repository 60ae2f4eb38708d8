"""The CUDA kernels without a GPU: on the CPU, a thread for each of theirs, against the reference."""

from __future__ import annotations

import ctypes
import importlib.util
import shutil
import subprocess
from itertools import product
from pathlib import Path

import pytest
import torch

from treelax.ops.checks import arc_mask
from treelax.ops.eisner import reference

COMPILER = shutil.which("c++")
needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="triton is not installed"
)
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler")
TOLERANCES = {torch.float64: 1e-12, torch.float32: 1e-5}
#: Words, deviation of the scores, single root.
CASES = ((1, 1, False), (6, 3, True), (11, 1, False), (7, 3000, True), (5, 1e29, False))


class OnCpu:
    """What `treelax.ops.nvrtc.Module` is on a GPU."""

    def __init__(self, folder: Path, dtype: torch.dtype, relaxation: str, blocks: int) -> None:
        source = Path(__file__).with_name("cuda_on_cpu.cpp")
        built = folder / f"{dtype}-{relaxation}-{blocks}.so"
        real = "double" if dtype == torch.float64 else "float"
        given = {"REAL": real, "MEAN": int(relaxation == "softmax"), "CLUSTER_BLOCKS": blocks}
        options = [f"-D{name}={value}" for name, value in given.items()]
        command = [COMPILER, "-std=c++20", "-O1", "-shared", "-fPIC", "-pthread", *options]
        subprocess.run([*command, str(source), "-o", str(built)], check=True)
        self.library = ctypes.CDLL(str(built))

    def launch(self, name: str, blocks: int, threads: int, shared: int, arguments: bytes) -> None:
        given = ctypes.create_string_buffer(arguments)
        self.library.launch(int(name == "soft_tree_backward"), given, blocks, threads)


def make(n, scale, dtype):
    generator = torch.Generator().manual_seed(n)
    scores = scale * torch.randn(5, n + 1, n + 1, generator=generator, dtype=torch.float64)
    scores[1, 1, n] = -torch.inf
    scores[2, 0, 1] = torch.nan
    upstream = torch.randn(5, n + 1, n + 1, generator=generator, dtype=torch.float64)
    lengths = torch.tensor([n, max(n - 1, 1), n, 0, n // 2])
    return scores.to(dtype), lengths, upstream.to(dtype)


def far(got, expected):
    """The largest difference, relative to numbers above 1."""
    assert torch.equal(got.isnan(), expected.isnan())
    return float(((got - expected).abs() / (1 + expected.abs())).nan_to_num(0).max())


@needs_triton
@needs_compiler
@pytest.mark.parametrize(
    ("dtype", "shape"),
    [(torch.float64, (32, 0)), (torch.float64, (32, 2)), (torch.float32, (64, 0))],
)
def test_kernels_agree_with_the_reference(monkeypatch, tmp_path, dtype, shape):
    from treelax.ops.eisner import cuda

    shape = cuda.Shape(*shape)
    monkeypatch.setattr(cuda, "choose", lambda *_: shape)
    for relaxation in ("softmax", "entropy"):
        module = OnCpu(tmp_path, dtype, relaxation, shape.blocks)
        monkeypatch.setattr(cuda, "module", lambda *_, module=module: module)
        for n, scale, root in CASES:
            scores, lengths, upstream = make(n, scale, dtype)
            options = (relaxation, root)
            tree, value, saved = reference.soft_tree(scores.double(), lengths, *options, True)
            wrong = torch.tensor([False, False, True, False, False])
            wide = (upstream.double(), upstream[:, 0, 1].double())
            grad = reference.soft_tree_backward(*wide, saved, lengths, *options)
            arcs = arc_mask(lengths, n + 1) & wrong[:, None, None]
            value[wrong] = tree[arcs] = grad[arcs] = torch.nan
            got, got_value, kept = cuda.soft_tree(scores, lengths, *options, True)
            assert kept.shape == cuda.saved_shape(5, n + 1, dtype)
            outer = (upstream, upstream[:, 0, 1].contiguous())
            got_grad = cuda.soft_tree_backward(*outer, kept, lengths, *options)
            bar = TOLERANCES[dtype] * (1 if scale < 100 else 100)
            assert far(got, tree) < bar, (n, scale, options)
            assert far(got_value, value) < bar
            assert far(got_grad, grad) < 10 * bar
            again = cuda.soft_tree_backward(*outer, kept, lengths, *options)
            assert far(again, got_grad) == 0


@needs_triton
def test_shapes():
    from treelax.ops import nvrtc
    from treelax.ops.eisner import cuda

    for batch, n, dtype in product(
        (1, 32, 128, 2048), (1, 20, 32, 40, 64, 80, 90, 320), TOLERANCES
    ):
        shape = cuda.choose(batch, n + 1, dtype)
        if shape is None:
            assert batch > cuda.FEW
            assert n > 80 or dtype == torch.float64
            continue
        assert shape.threads * max(shape.blocks, 1) >= 2 * n
        for kernel in cuda.PLANES:
            assert shape.shared(kernel, n + 1, dtype.itemsize) <= nvrtc.MOST_SHARED_MEMORY
