"""The CUDA kernels on a CPU, a fibre for each of their threads, against other backends."""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import math
import shutil
import subprocess
from itertools import product
from pathlib import Path

import pytest
import torch
from test_triton import said, wrong_cases

import treelax as tx
from treelax import ops
from treelax.ops.backend import Batch
from treelax.ops.checks import arc_mask
from treelax.ops.eisner import diagonal, reference
from treelax.ops.problems import raise_on_error

COMPILER = shutil.which("c++")
needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="triton is not installed"
)
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler")
TOLERANCES = {torch.float64: 1e-12, torch.float32: 1e-5}
#: Words, deviation of the scores, single root.
SHORT = ((1, 1, False), (6, 3, True), (11, 1, False), (7, 3000, True), (5, 1e29, False))
TILES = (
    *((words, 1, words % 2 == 0) for words in (2, 14, 15, 16, 17, 31, 32, 33, 49, 69)),
    *((16, 1, True), (33, 1, False), (129, 1, False)),
    *((19, 3000, True), (33, 1e29, False)),
)


class OnCpu:
    """What `treelax.ops.nvrtc.Module` is on a GPU."""

    def __init__(self, folder: Path, source: str, names: tuple[str, ...], **defined) -> None:
        built = folder / f"{hash((source, *defined.items()))}.so"
        defined |= {"SOURCE": f'"{source}"', "FORWARD": names[0], "BACKWARD": names[1]}
        options = [f"-D{name}={value}" for name, value in defined.items()]
        options += [f"-I{Path(ops.__file__).parent}", "-U_FORTIFY_SOURCE"]  # which forbids fibres
        command = [COMPILER, "-std=c++20", "-O1", "-shared", "-fPIC", *options]
        emulator = Path(__file__).with_name("cuda_on_cpu.cpp")
        subprocess.run([*command, str(emulator), "-o", str(built)], check=True)
        self.launch = ctypes.CDLL(str(built)).launch


class Launch:
    """What `treelax.ops.nvrtc.Launch` is on a GPU; every second one starts with the last thread."""

    launches = 0

    def __init__(self, module: OnCpu, name: str, blocks: int, threads: int, shared: int) -> None:
        self.module, self.backward = module, int(name.endswith("_backward"))
        self.shape = blocks, threads, shared

    def __call__(self, device: int, arguments: bytes) -> None:
        given = ctypes.create_string_buffer(arguments)
        Launch.launches += 1
        assert not self.module.launch(self.backward, given, *self.shape, self.launches % 2)


def make(n, scale, dtype):
    generator = torch.Generator().manual_seed(n)
    scores = scale * torch.randn(5, n + 1, n + 1, generator=generator, dtype=torch.float64)
    scores[1, 1, n] = -torch.inf
    scores[1, 1:, n // 2] = -torch.inf
    scores[2, 0, 1] = torch.nan
    upstream = torch.randn(5, n + 1, n + 1, generator=generator, dtype=torch.float64)
    lengths = torch.tensor([n, max(n - 1, 1), n, 0, n // 2])
    return scores.to(dtype), lengths, upstream.to(dtype)


def far(got, expected):
    """The largest difference, relative to numbers above 1."""
    assert torch.equal(got.isnan(), expected.isnan())
    return float(((got - expected).abs() / (1 + expected.abs())).nan_to_num(0).max())


def on_cpu(monkeypatch, folder, relaxation, dtype, shape):
    """The backend, with kernels of one shape on a CPU."""
    from treelax.ops.eisner import cuda

    shape = cuda.Shape(*shape)
    module = OnCpu(
        folder,
        "eisner/soft_tree.cu",
        tuple(cuda.PLANES),
        REAL="double" if dtype == torch.float64 else "float",
        MEAN=int(relaxation == "softmax"),
        CLUSTER_BLOCKS=shape.blocks,
        THREADS_AT_MOST=shape.threads,
    )
    monkeypatch.setattr(cuda, "choose", lambda *_: shape)
    monkeypatch.setattr(cuda, "module", lambda *_: module)
    monkeypatch.setattr(cuda, "plan", cuda.plan.__wrapped__)
    monkeypatch.setattr(cuda.nvrtc, "Launch", Launch)
    monkeypatch.setattr(torch.cuda, "device", contextlib.nullcontext)
    return cuda


@needs_triton
@needs_compiler
@pytest.mark.parametrize(
    ("dtype", "shape", "words"),
    [
        (torch.float64, (32, 0), SHORT),
        (torch.float32, (64, 0), SHORT),
        (torch.float64, (256, 2), TILES),
        (torch.float32, (256, 3), TILES),
    ],
)
@pytest.mark.parametrize("relaxation", ["softmax", "entropy"])
def test_kernels_agree_with_others(monkeypatch, tmp_path, relaxation, dtype, shape, words):
    cuda = on_cpu(monkeypatch, tmp_path, relaxation, dtype, shape)
    wrong = torch.tensor([False, False, True, False, False])
    for n, scale, root in words:
        scores, lengths, upstream = make(n, scale, dtype)
        options = (relaxation, root)
        given = Batch(scores, lengths, *options)
        wide = given._replace(scores=scores.double())
        other = reference if n < 20 else diagonal
        tree, value, saved = other.soft_tree(wide, True)
        outer = (upstream.double(), upstream[:, 0, 1].double())
        grad = other.soft_tree_backward(*outer, saved, wide)
        arcs = arc_mask(lengths, n + 1) & wrong[:, None, None]
        value[wrong] = tree[arcs] = grad[arcs] = torch.nan
        got, got_value, kept = cuda.soft_tree(given, True)
        assert kept.shape == cuda.saved_shape(torch.Size((5, n + 1, n + 1)), dtype)
        outer = (upstream, upstream[:, 0, 1].contiguous())
        got_grad = cuda.soft_tree_backward(*outer, kept, given)
        bar = TOLERANCES[dtype] * (1 if scale < 100 else 100)
        assert far(got, tree) < bar, (n, scale, options)
        assert far(got_value, value) < bar
        assert far(got_grad, grad) < 10 * bar
        again = cuda.soft_tree_backward(*outer, kept, given)
        assert far(again, got_grad) == 0


@needs_triton
@needs_compiler
@pytest.mark.parametrize("shape", [(512, 0), (256, 2)])
@pytest.mark.parametrize("relaxation", ["softmax", "entropy"])
def test_kernels_keep_values_small(monkeypatch, tmp_path, relaxation, shape):
    """So that float32 has digits for their differences."""
    cuda = on_cpu(monkeypatch, tmp_path, relaxation, torch.float32, shape)
    for scale in (0, 1, 5, 100):
        scores, lengths = scale * make(80, 1, torch.float32)[0][:1], torch.tensor([80])
        chart = cuda.soft_tree(Batch(scores, lengths, relaxation), True)[2]
        assert abs(float(chart[0, 0, 80])) < 128 / math.log(2)  # of the whole sentence, in bits


@needs_triton
@needs_compiler
@pytest.mark.parametrize("shape", [(32, 0), (256, 2)])
def test_kernels_say_what_is_wrong(monkeypatch, tmp_path, shape):
    cuda = on_cpu(monkeypatch, tmp_path, "softmax", torch.float32, shape)
    for scores, lengths in wrong_cases(tx.Projective()):
        expected = said(ops.soft_tree, scores, lengths)
        for validate in (False, True):
            cuda.soft_tree(Batch(scores, lengths, "softmax"), True, validate)
            found = said(raise_on_error, scores.device)
            assert found == (expected if validate else None)


@needs_triton
def test_shapes():
    from treelax.ops import nvrtc
    from treelax.ops.eisner import cuda

    for batch, n, dtype in product(
        (1, 32, 128, 2048), (1, 20, 32, 40, 64, 80, 90, 320, 2000), TOLERANCES
    ):
        shape = cuda.choose(batch, n + 1, dtype)
        assert shape is not None
        assert shape.threads == 256 if shape.blocks else shape.threads >= 2 * n
        for kernel in cuda.PLANES:
            assert shape.shared(kernel, n + 1, dtype.itemsize) <= nvrtc.MOST_SHARED_MEMORY
