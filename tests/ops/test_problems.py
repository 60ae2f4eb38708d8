"""What a GPU finds wrong, said later: the kernel that looks, in Triton's interpreter, and its words.

The interpreter runs in a process of its own; this file is also the script that it executes.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import sys

import pytest
import torch
from test_triton import run_parts

import treelax as tx
from treelax import ops
from treelax.errors import InputError, NoTreeError, TreelaxError
from treelax.ops import cky, eisner, problems

INFINITY = float("inf")
STRUCTURES = {"projective": tx.Projective(), "tree": tx.NonProjective(), "binary": tx.Binary()}


def said(call, *given, **options):
    try:
        call(*given, **options)
    except TreelaxError as error:
        return [type(error).__name__, str(error)]
    return None


def cases(structure):
    """Scores and lengths, wrong in one way each; the first and the last are right."""
    size = 4 + structure.rooted

    def case(place=None, value=0.0, length=3):
        scores = torch.randn(3, size, size, generator=torch.Generator().manual_seed(0))
        if place is not None:
            scores[place] = value
        return scores, torch.tensor([4, length, 4])

    yield case()
    yield case((1, 1, 2), float("nan"))
    yield case((2, 1, 3), INFINITY)
    yield case(length=7)
    yield case(length=-3)
    yield case(2, -INFINITY)
    yield case((1, slice(None), size - 1), float("nan"))  # padding


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="triton is not installed")
def test_the_kernel_says_what_the_others_say():
    (results,) = run_parts("look", [""], script=__file__, TRITON_INTERPRET="1")
    assert results.keys() == STRUCTURES.keys()
    for name, structure in STRUCTURES.items():
        expected = [said(structure.argmax, *case) for case in cases(structure)]
        assert results[name] == expected
        kinds = [error and error[0] for error in expected]
        assert kinds == [None, *["InputError"] * 4, "NoTreeError", None]


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="triton is not installed")
def test_the_kernel_compiles_ahead_of_time():
    (results,) = run_parts("compile", [""], script=__file__)
    assert all(size > 1000 for size in results)


def test_numbers_and_what_they_stand_for():
    def number(kind, size, sentence, first, second):
        return kind | size << 3 | sentence << 18 | first << 36 | second << 50

    projective, binary = eisner.ALGORITHM, cky.ALGORITHM
    error = problems.error(projective, number(problems.NO_TREE, 641, 2**18 - 1, 2**14 - 1, 640))
    assert isinstance(error, NoTreeError)
    assert "Sentence 262143 (of the flattened batch; 640 words) has no tree: 16383" in str(error)
    error = problems.error(binary, number(problems.LENGTH, 8, 5, 2**14 - 2, 2**14 - 1))
    assert "lengths[5] (of the flattened batch) is -2; expected 0 to 8 (scores" in str(error)
    error = problems.error(binary, number(problems.IS_INFINITE, 9, 1, 3, 8))
    assert str(error).startswith("scores[1, 3, 8] (of the flattened batch) is inf;")
    assert str(error).endswith("for a forbidden span.")


def test_raised_once():
    device = torch.device("cpu")
    memory = problems.error_slot(cky.ALGORITHM, device)
    assert problems.error_slot(cky.ALGORITHM, device) is memory
    problems.raise_on_error(device)
    ctypes.c_uint64.from_address(memory.data_ptr()).value = problems.IS_NAN | 3 << 3
    with pytest.raises(InputError, match=r"scores\[0, 0, 0\].* is nan"):
        problems.raise_on_error(device)
    problems.raise_on_error(device)


def test_now_is_as_good_as_true_on_a_cpu():
    bad = torch.full((2, 2), float("nan"))
    for operation in (ops.soft_tree, ops.best_tree, ops.log_partition, ops.select_heads):
        with pytest.raises(InputError, match=r"scores\[0, 0, 1\]"):
            operation(bad, validate="now")
    for validate in ("now", 1, 0, None):
        assert ops.best_tree(torch.zeros(2, 2), validate=validate)[0, 1] == 1
    with pytest.raises(InputError, match="validate is 'later'; expected True, False or 'now'"):
        ops.soft_tree(torch.zeros(2, 2), validate="later")
    ops.synchronize()


def compiled():
    """Sizes of the kernel's variants, compiled for an H200."""
    import triton
    from triton.backends.compiler import GPUTarget

    from treelax.ops.problems_kernel import validation_kernel

    for number in ("*fp32", "*fp64"):
        for rooted in (1, 0):
            types = {"scores": number, "lengths": "*i64", "value": number, "slot": "*i64"}
            constants = {"ROOTED": rooted, "BLOCK": 1024}
            signature = {**types, "size": "i32", **dict.fromkeys(constants, "constexpr")}
            source = triton.compiler.ASTSource(validation_kernel, signature, constants)
            yield len(triton.compile(source, target=GPUTarget("cuda", 90, 32)).asm["cubin"])


if __name__ == "__main__":
    if sys.argv[1] == "compile":
        print(json.dumps(list(compiled())))
        sys.exit()
    found = {
        name: [said(structure.argmax, *case, backend="triton") for case in cases(structure)]
        for name, structure in STRUCTURES.items()
    }
    print(json.dumps(found))
