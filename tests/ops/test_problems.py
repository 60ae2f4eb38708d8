"""What a GPU finds wrong, said later: what the numbers stand for (the kernel: ``test_triton.py``)."""

import ctypes

import pytest
import torch

from treelax.errors import InputError, NoTreeError
from treelax.ops import cky, eisner, problems


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
