"""What a GPU finds wrong with scores and lengths, said without waiting for it.

A kernel that meets a wrong sentence writes one number into the host's memory. The next operation that
validates, a backward pass or `synchronize` raises what it stands for; of several wrong sentences, any.
Graphs write it too when they are replayed.

From its lowest bit on, the number holds the kind of problem (3 bits), the algorithm (2), the size of the
scores (13), the sentence (18), and two numbers of 14 bits: an arc, forbidden arcs and words of a
sentence without a tree, or, as one of 28 bits, a length. What does not fit is cut to what does.
"""

from __future__ import annotations

import ctypes
import threading
from typing import Literal

import torch
from torch import Tensor

from treelax.errors import InputError, TreelaxError
from treelax.ops import checks
from treelax.ops.backend import ALGORITHMS, Algorithm

#: Whether values are checked; on a GPU True means soon, and "now" waits for the answer.
Validate = bool | Literal["now"]
LENGTH, IS_NAN, IS_INFINITE, NO_TREE = 1, 2, 3, 4

_words: dict[torch.device, tuple[Tensor, ctypes.c_uint64]] = {}
_making = threading.Lock()


def word(device: torch.device) -> Tensor | None:
    """Where kernels of a device write; None if it cannot be made now, within a graph's capture."""
    if device not in _words:
        cuda = device.type == "cuda"
        if cuda and torch.cuda.is_current_stream_capturing():
            return None
        with _making:
            if device not in _words:
                memory = torch.zeros(1, dtype=torch.int64, device="cpu", pin_memory=cuda)
                _words[device] = memory, ctypes.c_uint64.from_address(memory.data_ptr())
    return _words[device][0]


def look(algorithm: Algorithm, scores: Tensor, lengths: Tensor, value: Tensor) -> None:
    """Have a kernel look at what an operation was given and at the values of its charts."""
    memory = word(scores.device)
    if memory is not None:
        from treelax.ops import problems_kernel

        problems_kernel.launch(algorithm, scores, lengths, value, memory)


def raise_found(device: torch.device) -> None:
    """Raise what kernels of a device have found by now."""
    found = _words.get(device)
    if found is not None and (number := found[1].value):
        if device.type == "cuda" and not torch.cuda.is_current_stream_capturing():
            torch.cuda.synchronize(device)  # or the same call would say it again
        found[1].value = 0
        raise error(number)


def wait(device: torch.device) -> None:
    """Raise what the calls so far find, when they have ended."""
    if device.type == "cuda" and not torch.cuda.is_current_stream_capturing():
        torch.cuda.synchronize(device)
        raise_found(device)


def settle(scores: Tensor, validate: Validate) -> None:
    """Wait after a call if its caller wants to know now, but in a function that is compiled."""
    if isinstance(validate, str):
        if validate != "now":
            raise InputError(f"validate is {validate!r}; expected True, False or 'now'.")
        if type(scores) in (Tensor, torch.nn.Parameter) and not torch.compiler.is_compiling():
            wait(scores.device)


def synchronize() -> None:
    """Wait for every GPU that treelax has checked values on, and raise what was found.

    On a GPU, operations that validate return before it has looked at their values. What is wrong is
    raised by the next one, by a backward pass, or here, for example at the end of an epoch.
    """
    for device in list(_words):
        wait(device)


def error(number: int) -> TreelaxError:
    """What a number stands for."""
    fields = []
    for bits in (3, 2, 13, 18, 14, 14):
        fields.append(number & ((1 << bits) - 1))
        number >>= bits
    kind, index, size, sentence, first, second = fields
    algorithm = tuple(ALGORITHMS.values())[index]
    if kind == LENGTH:
        length = first | second << 14
        length -= (length >> 27) << 28
        return checks.wrong_length(sentence, length, size, algorithm.rooted)
    if kind == NO_TREE:
        return algorithm.no_tree(sentence, second, first)
    value = float("nan" if kind == IS_NAN else "inf")
    return checks.wrong_score(sentence, first, second, value, algorithm.part)
