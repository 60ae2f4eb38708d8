"""Errors in scores and lengths that a GPU finds, reported without waiting for it.

A kernel that meets a wrong sentence writes one number into the host's memory, where each algorithm has
a slot. The next operation that validates, a backward pass or `synchronize` raises what it stands for; of
several wrong sentences, any. Graphs write it too when they are replayed.

From its lowest bit on, the number holds the kind of problem (3 bits), the form of the scores (15, see
`Algorithm.form`), the sentence (18), and two numbers of 14 bits: an arc, forbidden arcs and words of a
sentence without a tree, or, as one of 28 bits, a length or the place of a part. Larger numbers are
clamped.
"""

from __future__ import annotations

import ctypes
import threading
from typing import Literal

import torch
from torch import Tensor

from treelax.errors import TreelaxError
from treelax.ops import checks
from treelax.ops.backend import Algorithm

#: Whether values are checked; on a GPU True reports errors later, "now" waits for them.
Validate = bool | Literal["now"]
LENGTH, IS_NAN, IS_INFINITE, NO_TREE, SECOND_LENGTH = 1, 2, 3, 4, 5

Slot = tuple[Tensor, ctypes.c_uint64]
_slots: dict[torch.device, dict[Algorithm, Slot]] = {}
_making = threading.Lock()


def error_slot(algorithm: Algorithm, device: torch.device) -> Tensor | None:
    """Where kernels of a device report errors; None if it cannot be made, while a graph is captured."""
    slots = _slots.get(device, {})
    if algorithm not in slots:
        cuda = device.type == "cuda"
        if cuda and torch.cuda.is_current_stream_capturing():
            return None
        with _making:
            slots = _slots.get(device, {})
            if algorithm not in slots:
                memory = torch.zeros(1, dtype=torch.int64, device="cpu", pin_memory=cuda)
                number = ctypes.c_uint64.from_address(memory.data_ptr())
                slots = _slots[device] = {**slots, algorithm: (memory, number)}
    return slots[algorithm][0]


def launch_validation(algorithm: Algorithm, scores: Tensor, lengths: Tensor, value: Tensor) -> None:
    """Launch a kernel that checks what an operation was given and the values of its charts."""
    memory = error_slot(algorithm, scores.device)
    if memory is not None:
        from treelax.ops import problems_kernel

        problems_kernel.launch(algorithm, scores, lengths, value, memory)


def raise_on_error(device: torch.device) -> None:
    """Raise what kernels of a device have reported by now."""
    for algorithm, (_, slot) in _slots.get(device, {}).items():
        if number := slot.value:
            if device.type == "cuda" and not torch.cuda.is_current_stream_capturing():
                torch.cuda.synchronize(device)  # or the same call would report it again
            slot.value = 0
            raise error(algorithm, number)


def wait(device: torch.device) -> None:
    """Raise what the calls so far report, when they have ended."""
    if device.type == "cuda" and not torch.cuda.is_current_stream_capturing():
        torch.cuda.synchronize(device)
        raise_on_error(device)


def wait_unless_compiled(scores: Tensor) -> None:
    """`wait` for a call that validates "now", except in a function that is compiled."""
    if type(scores) in (Tensor, torch.nn.Parameter) and not torch.compiler.is_compiling():
        wait(scores.device)


def synchronize() -> None:
    """Wait for every GPU that treelax has checked values on, and raise what was found.

    On a GPU, operations that validate return before it has looked at their values. What is wrong is
    raised by the next one, by a backward pass, or here, for example at the end of an epoch.
    """
    for device in list(_slots):
        wait(device)


def error(algorithm: Algorithm, number: int) -> TreelaxError:
    """What a number stands for."""
    fields = []
    for bits in (3, 15, 18, 14, 14):
        fields.append(number & ((1 << bits) - 1))
        number >>= bits
    kind, form, sentence, first, second = fields
    if kind in (LENGTH, SECOND_LENGTH):
        length = first | second << 14
        length -= (length >> 27) << 28
        return algorithm.wrong_length(sentence, length, form, int(kind == SECOND_LENGTH))
    if kind == NO_TREE:
        return algorithm.no_tree(sentence, second, first)
    value = float("nan" if kind == IS_NAN else "inf")
    return checks.wrong_score(
        [sentence, *algorithm.part_at(first, second, form)], value, algorithm.part
    )
