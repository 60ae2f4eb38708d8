"""The plumbing of `torch.library`: how an operation is defined, faked and given its gradient.

Gradients are hand-written and of first order; each has an operation of its own whose gradient raises, so
that a second derivative is an error and never a wrong number.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn, cast

import torch
from torch import Tensor
from torch.autograd import forward_ad

from treelax.errors import ForwardModeError, InputError, SecondDerivativeError
from treelax.ops import internals
from treelax.ops.internals import can_bypass_dispatcher, not_compiled, transforms_active

library = torch.library.Library("treelax", "FRAGMENT")

#: The function of every operation, by name.
_functions: dict[str, Callable[..., Any]] = {}


def operation(schema: str) -> Any:
    """Define an operation and register the decorated function for every device."""
    library.define(schema)
    name = schema.partition("(")[0]

    def register(function: Callable[..., Any]) -> Any:
        _functions[name] = function
        impl = torch.library.impl(library, name, "CompositeExplicitAutograd")
        impl(not_compiled(function))
        return function

    return register


def fake(name: str) -> Any:
    """Register the decorated function as the fake kernel of an operation."""
    return torch.library.register_fake(f"treelax::{name}", lib=library)


def gradient(
    name: str,
    backward: Any,
    setup_context: Any,
    vmap: Any = None,
    plan: Any = None,
    results: int = sys.maxsize,
) -> Callable[..., Any]:
    """Give an operation its gradient: ``setup_context(ctx, inputs, output)`` keeps what
    ``backward(ctx, *grads)`` needs. Returns the operation, to be called from Python.

    Outputs behind the first ``results`` are saved for the gradient alone; a call may leave them out.
    ``vmap(call, info, in_dims, *inputs)`` is its rule for `torch.vmap`, by default `folded`.

    What `torch.library.register_autograd` does, with less Python per call: for short sentences that is
    a good part of the time. So is the dispatcher, which takes every call back to Python twice, for the
    gradient and for the function. Where it would do no more than that, calls bypass it; then
    ``plan(device, dtype, shape, *settings)``, of the first input and of those that are not tensors, may
    return a function that does the same as the operation's with less Python.
    """
    op = getattr(torch.ops.treelax, name).default
    function = _functions[name]

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        setup_context(ctx, inputs, output)
        if isinstance(output, tuple):
            ctx.mark_non_differentiable(*output[results:])

    if not internals.COMPLETE:
        torch.library.register_autograd(
            f"treelax::{name}", backward, setup_context=setup, lib=library
        )
        torch.library.register_vmap(f"treelax::{name}", partial(vmap or folded, op), lib=library)
        return cast("Callable[..., Any]", op)

    def below(*inputs: Any) -> Any:
        with internals.below_autograd():
            return op(*inputs)

    def forward(ctx: Any, first: Tensor, run: Callable[..., Any], inputs: tuple[Any, ...]) -> Any:
        output = run(*inputs)
        setup_context(ctx, inputs, output)
        return output[:results] if isinstance(output, tuple) else output

    def forward_below(ctx: Any, *inputs: Any) -> Any:
        # with transforms in a compiled function, those outside have to see what they derive
        with torch.set_grad_enabled(transforms_active()):
            output = below(*inputs)
        setup(ctx, inputs, output)
        return output

    def derived(*inputs: Any) -> Any:
        if forward_ad._current_level >= 0:
            refuse_forward_mode(name, inputs)
        if not (
            torch.is_grad_enabled()
            and any(x.requires_grad for x in inputs[:tensors] if x is not None)
        ):
            return below(*inputs)
        # transforms in a compiled function are active, but the dispatcher has dealt with them
        with internals.single_level():
            return apply_below(*inputs)

    def call(*inputs: Any) -> Any:
        first = inputs[0]
        if not can_bypass_dispatcher(first):
            if torch.compiler.is_compiling() or not transforms_active():
                return op(*inputs)
            if forward_ad._current_level >= 0:
                refuse_forward_mode(name, inputs)
            return transformed.apply(*inputs)
        if forward_ad._current_level >= 0:
            refuse_forward_mode(name, inputs)
        run = plan and plan(first.device, first.dtype, first.shape, *inputs[tensors:])
        run = run or function
        if torch.is_grad_enabled():
            if first.requires_grad:
                return apply(first, run, inputs)
            if any(x.requires_grad for x in inputs[1:tensors] if x is not None):
                return op(*inputs)  # for a second derivative, which is an error
        return run(*inputs)

    def complete(*inputs: Any) -> Any:
        """For the rule of `torch.vmap`, which needs all outputs."""
        return call(*inputs) if transforms_active() else op(*inputs)

    # of an operation's arguments the first ones are its tensors
    tensors = sum("Tensor" in str(argument.type) for argument in op._schema.arguments)
    library.impl(name, not_compiled(derived), "Autograd")
    # what `apply` comes down to where no transform of functorch is active
    apply_below, apply = (
        super(torch.autograd.Function, kind).apply
        for kind in (
            _function(name, forward_below, backward),
            _function(name, forward, lambda ctx, *grads: (backward(ctx, *grads)[0], None, None)),
        )
    )
    # the transforms of torch.func peel off their tensors one by one, in this form only; what
    # `torch.func.vjp` returns is called after its transform, and finds saved tensors of it
    transformed = _function(
        name,
        function,
        lambda ctx, *grads: backward(_Unwrapped(ctx), *grads),
        setup_context=staticmethod(setup),
        vmap=staticmethod(partial(vmap or folded, complete)),
    )
    return call


def _function(name: str, forward: Any, backward: Any, **others: Any) -> Any:
    methods = {"forward": staticmethod(forward), "backward": staticmethod(backward), **others}
    return type(f"treelax_{name}", (torch.autograd.Function,), methods)


class _Unwrapped:
    """A context whose saved tensors are not those of a transform that has ended."""

    def __init__(self, ctx: Any) -> None:
        self.saved_tensors = internals.unwrap_dead(ctx.saved_tensors)
        self.options = getattr(ctx, "options", None)


def fold(tensor: Tensor, dim: int | None, size: int, batch: int = 0) -> Tensor:
    """A mapped dimension, or one of ``size`` if there is none, made one with the batch."""
    tensor = tensor.expand(size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
    return tensor.movedim(0, batch).flatten(batch, batch + 1)


def folded(call: Any, info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> Any:
    """The rule for `torch.vmap` of operations that take and return tensors ``(B, ...)``: what is mapped
    becomes part of the batch. A tensor without elements, for nothing saved, is left as it is."""
    size = info.batch_size
    output = call(
        *(
            fold(x, dim, size) if isinstance(x, Tensor) else x
            for x, dim in zip(inputs, in_dims, strict=True)
        )
    )
    if isinstance(output, Tensor):
        return output.unflatten(0, (size, -1)), 0
    dims = tuple(0 if x.numel() else None for x in output)
    unfolded = (
        x if dim is None else x.unflatten(0, (size, -1))
        for x, dim in zip(output, dims, strict=True)
    )
    return tuple(unfolded), dims


def derivable(tensor: Tensor) -> bool:
    """Whether a gradient with respect to a tensor may be asked for."""
    # a tensor that is mapped does not tell what it is made of
    return torch.is_grad_enabled() and (tensor.requires_grad or transforms_active())


def refuse_forward_mode(name: str, inputs: tuple[Any, ...]) -> None:
    """Raise if an input carries a tangent, which would be dropped silently."""
    if transforms_active() or any(
        isinstance(x, Tensor) and forward_ad.unpack_dual(x).tangent is not None for x in inputs
    ):
        raise ForwardModeError(
            f"A derivative in forward mode was asked for through treelax::{name}; expected reverse "
            "mode only. Use backward(), torch.autograd.grad or torch.func.jacrev."
        )


def no_context(ctx: Any, inputs: Any, output: Any) -> None:
    """Nothing to keep for the backward pass."""


def unsaved(name: str) -> InputError:
    """The error for an operation that saves nothing although a gradient will be asked for."""
    return InputError(
        f"treelax::{name} received save=False with scores that require a gradient; expected "
        "save=True. Call treelax.ops, which chooses."
    )


def no_second_derivative(name: str, vmap: Any = None, plan: Any = None) -> Callable[..., Any]:
    """Make the derivative of ``name``, itself a gradient, raise. Returns it as `gradient` does."""

    def backward(ctx: Any, *grads: Tensor) -> NoReturn:
        raise SecondDerivativeError(
            f"A second derivative was asked for through treelax::{name}; expected first derivatives "
            "only. Detach the gradient, or drop create_graph=True."
        )

    return gradient(name, backward, no_context, vmap, plan)


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
    kind = dtype or gradient.dtype
    if not (
        tensor.dtype == kind
        and tensor.shape == shape
        and tensor.layout == torch.strided
        and tensor.device == gradient.device
    ):
        received = tensor.dtype, tuple(tensor.shape), tensor.layout, tensor.device
        expected = kind, shape, torch.strided, gradient.device
        raise InputError(
            f"{name}, saved for the backward pass, is {' '.join(map(str, received))}; expected "
            f"{' '.join(map(str, expected))}: a hook on saved tensors must return what it was given."
        )
    return tensor.contiguous()
