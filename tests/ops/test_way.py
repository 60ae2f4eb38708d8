"""From a layer to the kernel: the functions that scores pass; torch without its private names."""

import ast
import json
import re
import subprocess
import sys
from inspect import getsource
from pathlib import Path

import pytest
import torch
from torch import nn

import treelax as tx
from treelax.ops import internals

MOST = 11  # functions


class Scores(nn.Module):
    """Scores that do not depend on the vectors."""

    part = "arc"

    def __init__(self, shape):
        super().__init__()
        self.scores = nn.Parameter(torch.randn(shape))

    def forward(self, vectors):
        return self.scores * 1


@pytest.mark.parametrize("training", [True, False])
def test_scores_pass_few_functions_on_their_way_to_the_kernel(training):
    vectors, lengths = torch.randn(3, 6, 4), torch.tensor([5, 4, 3])
    estimator = tx.Relaxed(noise=None)  # noise is drawn beside the way
    layer = tx.nn.LatentTree(Scores((3, 6, 6)), tx.Projective(), estimator).train(training)
    layer(vectors, lengths)
    way = []

    def is_scores(value):
        if isinstance(value, tuple):
            return any(map(is_scores, value))
        return isinstance(value, torch.Tensor) and value.shape[-2:] == (6, 6)

    def watch(frame, event, argument):
        if event == "c_call" and getattr(argument, "__name__", "") == "data_ptr":
            sys.setprofile(None)  # the kernel is called with the addresses
        elif event == "call" and frame.f_globals.get("__name__", "").startswith("treelax."):
            way.extend({frame.f_code.co_qualname for x in frame.f_locals.values() if is_scores(x)})

    sys.setprofile(watch)
    try:
        layer(vectors, lengths)
    finally:
        sys.setprofile(None)
    assert "make_call" in way
    assert "NativeProgram" in way[-1]
    assert len(set(way)) <= MOST, way


WITHOUT = """
import json, sys, torch, torch._dynamo
hidden = [(torch._C, "_get_tracing_state"), (torch, "_disable_dynamo")]
values = [getattr(*place) for place in hidden]
if "complete" not in sys.argv:
    [delattr(*place) for place in hidden]
import treelax, treelax.ops, treelax.nn
projective = treelax.Projective()
# torch itself would know new names, so it has its own back
[setattr(*place, value) for place, value in zip(hidden, values)]
scores = torch.randn(2, 5, 5, generator=torch.Generator().manual_seed(0), requires_grad=True)
tree = projective.relaxed(scores, torch.tensor([4, 2]))
(tree.square().sum() + projective.log_partition(scores).sum()).backward()
mapped = torch.vmap(projective.relaxed)(scores.detach()[None])[0]
results = scores.grad, tree, mapped, projective.argmax(scores)
print(json.dumps([treelax.ops.internals.COMPLETE, *(value.tolist() for value in results)]))
"""


def test_without_private_names():
    """`import treelax` works, and trees and gradients are the same."""
    home = ast.parse(getsource(internals))
    (guarded,) = (node for node in home.body if isinstance(node, ast.Try))
    for node in ast.walk(home):
        if isinstance(node, ast.ImportFrom) and node.module.startswith(("torch._C", "torch._fun")):
            assert node in guarded.body
    results = []
    for names in ("complete", "incomplete"):
        done = subprocess.run(
            [sys.executable, "-c", WITHOUT, names], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        results.append(json.loads(done.stdout))
    complete, incomplete = results
    assert complete.pop(0) is True
    assert incomplete.pop(0) is False
    assert complete == incomplete


def test_private_names_of_torch_have_one_home():
    package = Path(tx.__file__).parent
    library = [path.relative_to(package) for path in package.rglob("*.py")]
    private = re.compile(r"torch\._C|torch\._functorch|_disable_dynamo")
    homes = {
        str(path)
        for path in library
        if path.parts[0] not in ("apps", "lab") and private.search((package / path).read_text())
    }
    assert homes == {"ops/internals.py", "ops/nvrtc.py"}
