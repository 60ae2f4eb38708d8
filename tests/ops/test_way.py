"""From a layer to the kernel: the functions that scores pass; torch without its private names."""

import ast
import json
import os
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


def private_names():
    """Of the imports and attributes of `treelax.ops.internals`."""
    for node in ast.walk(ast.parse(getsource(internals))):
        if isinstance(node, ast.ImportFrom) and node.module.startswith(("torch._C", "torch._fun")):
            yield from ((node.module, alias.name) for alias in node.names)
    yield "torch.autograd.forward_ad", "_current_level"
    yield "torch", "_disable_dynamo"


WITHOUT = """
import importlib, json, os, sys, torch, torch._dynamo
scores = torch.randn(2, 5, 5, generator=torch.Generator().manual_seed(0))
results = []
for module, name in [[None, None], *json.loads(sys.argv[1])]:
    read, write = os.pipe()
    if os.fork() == 0:
        try:
            if module:  # torch itself would know the new name, so it has its own back afterwards
                module = importlib.import_module(module)
                hidden = getattr(module, name)
                delattr(module, name)
            import treelax, treelax.ops, treelax.nn
            projective = treelax.Projective()
            if module:
                setattr(module, name, hidden)
            leaf = scores.clone().requires_grad_()
            tree = projective.relaxed(leaf, torch.tensor([4, 2]))
            loss = tree.square().sum() + projective.log_partition(leaf).sum()
            loss.backward()
            mapped = torch.vmap(projective.relaxed)(scores[None])[0]
            values = leaf.grad, tree, mapped, projective.argmax(scores)
            answer = [value.tolist() for value in values]
        except BaseException as error:
            answer = repr(error)
        os.write(write, json.dumps(answer).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        results.append(json.loads(pipe.read()))
    os.wait()
print(json.dumps(results))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_without_any_one_of_the_private_names():
    """`import treelax` works, and trees and gradients are the same."""
    names = list(private_names())
    assert len(names) >= 14
    command = [sys.executable, "-c", WITHOUT, json.dumps(names)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    expected, *results = json.loads(done.stdout)
    for name, result in zip(names, results, strict=True):
        assert result == expected, (name, result)


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
