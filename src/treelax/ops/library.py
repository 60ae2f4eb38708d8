"""The plumbing of `torch.library`: how an operation is defined, faked and given its gradient.

Gradients are hand-written and of first order; each has an operation of its own whose gradient raises, so
that a second derivative is an error and never a wrong number.
"""

from __future__ import annotations

from typing import Any, NoReturn

import torch
from torch import Tensor
from torch.autograd import forward_ad

from treelax.errors import ForwardModeError, InputError, SecondDerivativeError

library = torch.library.Library("treelax", "FRAGMENT")


def operation(schema: str) -> Any:
    """Define an operation and register the decorated function for every device."""
    library.define(schema)
    return torch.library.impl(library, schema.partition("(")[0], "CompositeExplicitAutograd")


def fake(name: str) -> Any:
    """Register the decorated function as the fake kernel of an operation."""
    return torch.library.register_fake(f"treelax::{name}", lib=library)


def gradient(name: str, backward: Any, setup_context: Any) -> None:
    """Give an operation its gradient: ``setup_context(ctx, inputs, output)`` keeps what
    ``backward(ctx, *grads)`` needs.

    What `torch.library.register_autograd` does, with less Python per call: for short sentences that is
    a good part of the time.
    """
    op = getattr(torch.ops.treelax, name).default

    def plain(*inputs: Any) -> Any:
        with torch._C._AutoDispatchBelowAutograd():
            return op(*inputs)

    def forward(ctx: Any, *inputs: Any) -> Any:
        output = plain(*inputs)
        setup_context(ctx, inputs, output)
        return output

    function = type(
        f"treelax_{name}",
        (torch.autograd.Function,),
        {"forward": staticmethod(forward), "backward": staticmethod(backward)},
    )

    def autograd(*inputs: Any) -> Any:
        if forward_ad._current_level >= 0:
            refuse_forward_mode(name, inputs)
        if torch.is_grad_enabled() and any(
            isinstance(x, Tensor) and x.requires_grad for x in inputs
        ):
            return function.apply(*inputs)  # type: ignore[attr-defined]
        return plain(*inputs)

    library.impl(name, autograd, "Autograd")


def refuse_forward_mode(name: str, inputs: tuple[Any, ...]) -> None:
    """Raise if an input carries a tangent; it would be dropped without a word."""
    if torch._C._are_functorch_transforms_active() or any(
        isinstance(x, Tensor) and forward_ad.unpack_dual(x).tangent is not None for x in inputs
    ):
        raise ForwardModeError(
            f"A derivative in forward mode was asked for through treelax::{name}; expected reverse "
            "mode only. Use backward() or torch.autograd.grad."
        )


def no_context(ctx: Any, inputs: Any, output: Any) -> None:
    """Nothing to keep for the backward pass."""


def needs_saved(name: str, save: bool) -> None:
    """Raise if an operation was told to keep nothing although a gradient will be asked for."""
    if not save:
        raise InputError(
            f"treelax::{name} received save=False with scores that require a gradient; expected "
            "save=True. Call treelax.ops, which chooses."
        )


def no_second_derivative(name: str) -> None:
    """Make the derivative of ``name``, itself a gradient, raise."""

    def backward(ctx: Any, *grads: Tensor) -> NoReturn:
        raise SecondDerivativeError(
            f"A second derivative was asked for through treelax::{name}; expected first derivatives "
            "only. Detach the gradient, or drop create_graph=True."
        )

    gradient(name, backward, no_context)


def unchanged(
    name: str,
    tensor: Tensor,
    shape: tuple[int, ...],
    gradient: Tensor,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """A tensor that autograd kept, contiguous; raise if a hook on saved tensors made another of it.

    Its type, unless given, and its device are those of the gradient that comes in.
    """
    expected = dtype or gradient.dtype, shape, torch.strided, gradient.device
    received = tensor.dtype, tuple(tensor.shape), tensor.layout, tensor.device
    if received != expected:
        raise InputError(
            f"{name}, saved for the backward pass, is {' '.join(map(str, received))}; expected "
            f"{' '.join(map(str, expected))}: a hook on saved tensors must return what it was given."
        )
    return tensor.contiguous()
