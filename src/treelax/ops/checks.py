"""Every validation of what a user hands to an operation.

Shape, type and device are checked always: they cost nothing. Values (NaN, ``+inf``, lengths out
of range, sentences without a tree) are checked unless the caller says ``validate=False``, inside the
custom operations, so under `torch.compile` too. On a GPU its kernels look (`treelax.ops.problems`).
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from numbers import Real
from typing import Any

import torch
from torch import Tensor

from treelax.errors import InputError
from treelax.ops.internals import mapped

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


def check_scores(scores: Any, rooted: bool = True, labelled: bool = False, least: int = 0) -> None:
    """Raise unless ``scores`` is a dense floating-point tensor ``(..., n+1, n+1)``, or, of spans,
    ``(..., n, n)``; labels have a dimension behind these. Of neither, it has ``least`` dimensions."""
    if not isinstance(scores, Tensor):
        raise InputError(f"scores is a {type(scores).__name__}; expected a torch.Tensor.")
    if scores.dtype not in FLOAT_TYPES:
        raise InputError(
            f"scores has dtype {scores.dtype}; expected a floating-point type "
            "(float32, float64, float16 or bfloat16)."
        )
    # the backward pass of a function that is compiled may not ask
    if not torch.compiler.is_compiling() and scores.layout != torch.strided:
        raise InputError(f"scores has layout {scores.layout}; expected a dense tensor.")
    shape = tuple(scores.shape)
    if least:
        if len(shape) < least:
            raise InputError(f"scores has shape {shape}; expected at least {least} dimensions.")
        return
    square = shape[:-1] if labelled else shape
    wrong = len(square) < 2 or square[-1] != square[-2] or (rooted and square[-1] == 0)
    if wrong or (labelled and shape[-1] == 0):
        arcs = (
            "n+1, n+1",
            "h, m",
            "the weight of the arc from head h to modifier m and index 0 is the root",
        )
        spans = ("n, n", "i, j", "the score of the span from word i to word j, both included")
        sizes, places, meaning = arcs if rooted else spans
        more, label = (", labels", ", l") if labelled else ("", "")
        raise InputError(
            f"scores has shape {shape}; expected (..., {sizes}{more}), where scores[..., {places}"
            f"{label}] is {meaning}{' with label l' if labelled else ''}."
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
    if not torch.compiler.is_compiling() and lengths.layout != torch.strided:
        raise InputError(f"lengths has layout {lengths.layout}; expected a dense tensor.")
    if tuple(lengths.shape) != batch:
        given = tuple(lengths.shape)
        raise InputError(f"lengths has shape {given}; expected {batch}, the batch shape.")
    if lengths.device != device:
        raise InputError(f"lengths is on {lengths.device}; expected {device}, as the batch.")


def check_temperature(
    temperature: Any, scores: Tensor | None = None, validate: bool = True, dims: int = 2
) -> None:
    """Raise unless ``temperature`` is a positive number, or a tensor of such that fits the batch."""
    if isinstance(temperature, Tensor) and scores is not None:
        batch = tuple(scores.shape[:-dims])
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
        if validate and readable(temperature):
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
    """Whether values may be read: not while `torch.compile` traces or a CUDA graph is being captured,
    nor those of many tensors at once (`torch.vmap`)."""
    if torch.compiler.is_compiling():
        return False
    if tensor.is_cuda and torch.cuda.is_current_stream_capturing():
        return False
    return not mapped(tensor)


def broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    """Whether a tensor of one shape expands to the other."""
    padded = (1,) * (len(to) - len(shape)) + shape
    return len(padded) == len(to) and all(a in (1, b) for a, b in zip(padded, to, strict=True))


def check_length_values(
    lengths: Tensor,
    size: int,
    rooted: bool = True,
    error: Callable[[int, int, int], InputError] | None = None,
) -> None:
    """Raise an ``error``, `wrong_length`, unless ``0 <= lengths <= n``; reads the values."""
    if lengths.numel() == 0:
        return
    low, high = (int(x) for x in torch.aminmax(lengths))
    most = size - rooted
    if low < 0 or high > most:
        wrong = int(((lengths < 0) | (lengths > most)).nonzero()[0, 0])
        found = wrong, int(lengths[wrong]), size
        raise error(*found) if error else wrong_length(*found, rooted)


def wrong_length(sentence: int, length: int, size: int, rooted: bool) -> InputError:
    """The error for a length for which scores of a size have no room."""
    most = size - rooted
    room = (
        f"the root, at index 0, and {most} words; lengths do not count the root, which treelax.nn.Root "
        "puts in front of word vectors"
    )
    return InputError(
        f"lengths[{sentence}] (of the flattened batch) is {length}; expected "
        f"0 to {most} (scores has room for {room if rooted else f'{most} words'})."
    )


def arc_mask(lengths: Tensor, size: int) -> Tensor:
    """``(..., N, N)``, true where ``[h, m]`` is an arc of the sentence: ``1 <= m``, ``h != m``, both
    within the length."""
    position = torch.arange(size, device=lengths.device)
    within = position <= lengths[..., None]
    arcs = within[..., :, None] & within[..., None, :] & (position > 0)
    return arcs & (position[:, None] != position)


def span_mask(lengths: Tensor, size: int) -> Tensor:
    """``(..., N, N)``, true where ``[i, j]`` is a span of the sentence: ``i <= j < length``."""
    position = torch.arange(size, device=lengths.device)
    return (position[:, None] <= position) & (position < lengths[..., None, None])


def check_finite(
    scores: Tensor,
    parts: Tensor,
    part: str = "arc",
    shown: Callable[[list[int], torch.Size], list[int]] = lambda place, _: place,
) -> None:
    """Raise if a part of a sentence has score NaN or ``+inf``; padding may hold anything. Users see the
    place that ``shown`` makes of one."""
    wrong = parts & ~(scores < float("inf"))
    if bool(wrong.any()):
        place = wrong.nonzero()[0].tolist()
        raise wrong_score(shown(place, scores.shape), float(scores[tuple(place)]), part)


def wrong_score(place: list[int], value: float, part: str) -> InputError:
    """The error for a score that is NaN or ``+inf``."""
    return InputError(
        f"scores{place} (of the flattened batch) is {value}; expected "
        f"a finite number, or -inf for a forbidden {part}."
    )
