"""Every validation of what a user hands to an operation.

Shape, type and device are checked always: they cost nothing. Values (NaN, ``+inf``, lengths out
of range, sentences without a tree) are checked unless the caller says ``validate=False``; on a GPU
that is one synchronisation per call. The value checks run inside the custom operations, so they work
under `torch.compile` too.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from numbers import Real
from typing import Any

import torch
from torch import Tensor

from treelax.errors import InputError, NoTreeError

FLOAT_TYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
MOST_THREADS = 1024  # of torch on the CPU, wherever a number of them is asked for
#: Scores are divided by the temperature; below this, float32 would not hold the quotients.
LOWEST_TEMPERATURE = 1e-20


def one_of(name: str, value: str, choices: Iterable[str]) -> None:
    """Raise unless ``value`` is one of ``choices``; the message offers the nearest one."""
    choices = tuple(choices)
    if value in choices:
        return
    near = difflib.get_close_matches(str(value), choices, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise InputError(f"{name} is {value!r}; expected one of {', '.join(map(repr, choices))}.{hint}")


def check_scores(scores: Any) -> None:
    """Raise unless ``scores`` is a dense floating-point tensor ``(..., n+1, n+1)``."""
    if not isinstance(scores, Tensor):
        raise InputError(f"scores is a {type(scores).__name__}; expected a torch.Tensor.")
    if scores.dtype not in FLOAT_TYPES:
        raise InputError(
            f"scores has dtype {scores.dtype}; expected a floating-point type "
            "(float32, float64, float16 or bfloat16)."
        )
    if scores.layout != torch.strided:
        raise InputError(f"scores has layout {scores.layout}; expected a dense tensor.")
    shape = tuple(scores.shape)
    if scores.dim() < 2 or shape[-1] != shape[-2] or shape[-1] == 0:
        raise InputError(
            f"scores has shape {shape}; expected (..., n+1, n+1), where scores[..., h, m] is the "
            "weight of the arc from head h to modifier m and index 0 is the root."
        )


def is_integer(value: object) -> bool:
    """Whether a value is a tensor of whole numbers, Booleans not among them."""
    return isinstance(value, Tensor) and not (
        value.is_floating_point() or value.is_complex() or value.dtype == torch.bool
    )


def check_lengths(lengths: Any, batch: tuple[int, ...], device: torch.device) -> None:
    """Raise unless ``lengths`` is an integer tensor of a batch's shape and device."""
    batch = tuple(batch)
    if not isinstance(lengths, Tensor):
        raise InputError(
            f"lengths is a {type(lengths).__name__}; expected an integer tensor of shape {batch} "
            "(words per sentence, the root not counted) or None."
        )
    if not is_integer(lengths):
        hint = "mask.sum(-1)" if lengths.dtype == torch.bool else "lengths.long()"
        raise InputError(
            f"lengths has dtype {lengths.dtype}; expected integers, the words of each sentence "
            f"without the root: use {hint}."
        )
    if lengths.layout != torch.strided:
        raise InputError(f"lengths has layout {lengths.layout}; expected a dense tensor.")
    if tuple(lengths.shape) != batch:
        given = tuple(lengths.shape)
        raise InputError(f"lengths has shape {given}; expected {batch}, the batch shape.")
    if lengths.device != device:
        raise InputError(f"lengths is on {lengths.device}; expected {device}, as the batch.")


def check_temperature(
    temperature: Any, scores: Tensor | None = None, validate: bool = True
) -> None:
    """Raise unless ``temperature`` is a positive number, or a tensor of such that fits the batch."""
    if isinstance(temperature, Tensor) and scores is not None:
        batch = tuple(scores.shape[:-2])
        kind = temperature.dtype
        if not kind.is_floating_point:
            raise InputError(f"temperature has dtype {kind}; expected a floating-point type.")
        if not broadcasts(tuple(temperature.shape), batch):
            raise InputError(
                f"temperature has shape {tuple(temperature.shape)}; expected one that broadcasts to "
                f"{batch}, the batch shape of scores: one for all or one per sentence."
            )
        if temperature.device != scores.device:
            where = temperature.device
            raise InputError(f"temperature is on {where}; expected {scores.device}, as scores.")
        if validate and not torch.compiler.is_compiling() and readable(temperature):
            wrong = ~((temperature >= LOWEST_TEMPERATURE) & (temperature < float("inf")))
            if bool(wrong.any()):
                raise InputError(
                    f"temperature holds {float(temperature[wrong][0])}; expected finite numbers of "
                    f"at least {LOWEST_TEMPERATURE}. For the limit at 0 use best_tree."
                )
        return
    if isinstance(temperature, bool) or not isinstance(temperature, (int, float, Real)):
        raise InputError(
            f"temperature is a {type(temperature).__name__}; expected a positive number or tensor."
        )
    if not LOWEST_TEMPERATURE <= float(temperature) < float("inf"):
        raise InputError(
            f"temperature is {temperature}; expected a finite number of at least "
            f"{LOWEST_TEMPERATURE}. For the limit at 0 use best_tree."
        )


def sample_size(sample_shape: Any) -> torch.Size:
    """``sample_shape`` as a `torch.Size`; raise unless it is a sequence of whole numbers."""
    try:
        shape = torch.Size(sample_shape)
    except TypeError:
        shape = torch.Size((-1,))
    if any(count < 0 for count in shape):
        raise InputError(
            f"sample_shape is {sample_shape!r}; expected a tuple of whole numbers such as (5,)."
        )
    return shape


def readable(tensor: Tensor) -> bool:
    """Whether values may be read: not while a CUDA graph is being captured."""
    return not (tensor.is_cuda and torch.cuda.is_current_stream_capturing())


def broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    """Whether a tensor of one shape expands to the other."""
    padded = (1,) * (len(to) - len(shape)) + shape
    return len(padded) == len(to) and all(a in (1, b) for a, b in zip(padded, to, strict=True))


def check_length_values(lengths: Tensor, size: int) -> None:
    """Raise unless ``0 <= lengths <= n``; reads the values."""
    if lengths.numel() == 0:
        return
    low, high = (int(x) for x in torch.aminmax(lengths))
    if low < 0 or high >= size:
        wrong = ((lengths < 0) | (lengths >= size)).nonzero()[0, 0]
        raise InputError(
            f"lengths[{int(wrong)}] (of the flattened batch) is {int(lengths[wrong])}; expected "
            f"0 to {size - 1} (scores has room for the root, at index 0, and {size - 1} words; "
            "lengths do not count the root)."
        )


def arc_mask(lengths: Tensor, size: int) -> Tensor:
    """``(..., N, N)``, true where ``[h, m]`` is an arc of the sentence: ``1 <= m``, ``h != m``, both
    within the length."""
    position = torch.arange(size, device=lengths.device)
    within = position <= lengths[..., None]
    arcs = within[..., :, None] & within[..., None, :] & (position > 0)
    return arcs & (position[:, None] != position)


def check_finite(scores: Tensor, lengths: Tensor) -> None:
    """Raise if an arc of a sentence has score NaN or ``+inf``; padding may hold anything."""
    wrong = arc_mask(lengths, scores.shape[-1]) & ~(scores < float("inf"))
    if bool(wrong.any()):
        b, h, m = (int(x) for x in wrong.nonzero()[0])
        raise InputError(
            f"scores[{b}, {h}, {m}] (of the flattened batch) is {float(scores[b, h, m])}; expected "
            "a finite number, or -inf for a forbidden arc."
        )


def explain(scores: Tensor, lengths: Tensor, value: Tensor, no_tree: float) -> None:
    """Find out why a result looks wrong and raise the error that says so; canonical form.

    Called only when something is suspicious, so it may be slow and read values.
    """
    check_length_values(lengths, scores.shape[-1])
    check_finite(scores, lengths)
    suspects = (~(value > no_tree)).nonzero()[:, 0]
    if len(suspects):
        b = int(suspects[0])
        length = int(lengths[b])
        forbidden = int((scores[b] == float("-inf"))[: length + 1, 1 : length + 1].sum())
        raise NoTreeError(
            f"Sentence {b} (of the flattened batch; {length} words) has no tree: {forbidden} "
            "forbidden arcs (-inf) leave no projective tree under the chosen root rule; expected "
            "at least one. Allow more arcs, for example every arc from the root."
        )
