"""The plumbing of `torch.library`: how an operation is defined, faked and given its gradient.

Gradients are hand-written and of first order; each has an operation of its own whose gradient raises, so
that a second derivative is an error and never a wrong number.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NoReturn

import torch
from torch import Tensor
from torch._C import (
    _are_functorch_transforms_active,
    _get_tracing_state,
    _len_torch_dispatch_stack,
    _len_torch_function_stack,
)
from torch._C._autograd import _profiler_enabled
from torch._C._functorch import is_functorch_wrapped_tensor, is_legacy_batchedtensor
from torch._functorch.utils import enable_single_level_autograd_function, unwrap_dead_wrappers
from torch.autograd import forward_ad

from treelax.errors import ForwardModeError, InputError, SecondDerivativeError

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
        impl(_not_compiled(function))
        return function

    return register


def _not_compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, hidden from torch.compile, which traces what compiled code calls."""
    # torch.compiler.disable imports the compiler at once, which takes a second
    disabled = torch._disable_dynamo(function)  # type: ignore[attr-defined]

    def call(*inputs: Any) -> Any:
        return (disabled if "torch._dynamo" in sys.modules else function)(*inputs)

    return call


def fake(name: str) -> Any:
    """Register the decorated function as the fake kernel of an operation."""
    return torch.library.register_fake(f"treelax::{name}", lib=library)


def gradient(name: str, backward: Any, setup_context: Any, vmap: Any = None) -> Callable[..., Any]:
    """Give an operation its gradient: ``setup_context(ctx, inputs, output)`` keeps what
    ``backward(ctx, *grads)`` needs. Returns the operation, to be called from Python.

    ``vmap(call, info, in_dims, *inputs)`` is its rule for `torch.vmap`, by default `folded`.

    What `torch.library.register_autograd` does, with less Python per call: for short sentences that is
    a good part of the time. So is the dispatcher, which takes every call back to Python twice, for the
    gradient and for the function; where nobody would notice, calls go past it.
    """
    op = getattr(torch.ops.treelax, name).default

    def below(*inputs: Any) -> Any:
        with torch._C._AutoDispatchBelowAutograd():
            return op(*inputs)

    plain = _functions[name]
    derived = _differentiable(name, below, backward, setup_context)
    library.impl(name, _not_compiled(derived), "Autograd")
    direct = _differentiable(name, plain, backward, setup_context)

    def call(*inputs: Any) -> Any:
        if not unwatched(inputs[0]):
            if _are_functorch_transforms_active() and not torch.compiler.is_compiling():
                if forward_ad._current_level >= 0:
                    refuse_forward_mode(name, inputs)
                return transformed.apply(*inputs)  # type: ignore[attr-defined]
            return op(*inputs)
        # what `torch.func.vjp` returns is called after its transform, and finds saved tensors of it
        inputs = unwrap_dead_wrappers(inputs)
        # as every gradient is, unless a second one is asked for
        without = not torch.is_grad_enabled() and forward_ad._current_level < 0
        return (plain if without else direct)(*inputs)

    def rule(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> Any:
        return (vmap or folded)(call, info, in_dims, *inputs)

    # the transforms of torch.func peel off their tensors one by one, in this form only
    transformed = type(
        f"treelax_{name}",
        (torch.autograd.Function,),
        {
            "forward": staticmethod(plain),
            "setup_context": staticmethod(setup_context),
            "backward": staticmethod(backward),
            "vmap": staticmethod(rule),
        },
    )
    return call


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


def _differentiable(
    name: str, plain: Callable[..., Any], backward: Any, setup_context: Any
) -> Callable[..., Any]:
    """``plain`` with a gradient."""

    def forward(ctx: Any, *inputs: Any) -> Any:
        # with transforms in a compiled function, those outside have to see what they derive
        with torch.set_grad_enabled(_are_functorch_transforms_active()):
            output = plain(*inputs)
        setup_context(ctx, inputs, output)
        return output

    function = type(
        f"treelax_{name}",
        (torch.autograd.Function,),
        {"forward": staticmethod(forward), "backward": staticmethod(backward)},
    )
    # what its own `apply` comes down to where no transform of functorch is active
    direct = super(torch.autograd.Function, function).apply  # type: ignore[misc]

    def dispatched(*inputs: Any) -> Any:
        # transforms in a compiled function are active, but the dispatcher has dealt with them
        with enable_single_level_autograd_function():
            return direct(*inputs)

    apply = direct if plain is _functions[name] else dispatched

    def autograd(*inputs: Any) -> Any:
        if forward_ad._current_level >= 0:
            refuse_forward_mode(name, inputs)
        if torch.is_grad_enabled() and any(
            isinstance(x, Tensor) and x.requires_grad for x in inputs
        ):
            return apply(*inputs)
        return plain(*inputs)

    return autograd


def unwatched(tensor: Tensor) -> bool:
    """Whether the dispatcher would do no more than call the operation: an ordinary tensor, and nobody
    who compiles, traces, transforms or profiles what is called."""
    return ordinary(tensor) and not _len_torch_function_stack() and not _profiler_enabled()


def ordinary(tensor: Tensor) -> bool:
    """Whether a tensor has numbers that a kernel may read, and nobody compiles, traces or transforms
    what is called."""
    return (
        not torch.compiler.is_compiling()
        and type(tensor) in (Tensor, torch.nn.Parameter)
        and not is_functorch_wrapped_tensor(tensor)  # even after the end of a transform
        and not is_legacy_batchedtensor(tensor)  # of `is_grads_batched`
        and not _are_functorch_transforms_active()
        and not _len_torch_dispatch_stack()
        and _get_tracing_state() is None
    )


def derivable(tensor: Tensor) -> bool:
    """Whether a gradient with respect to a tensor may be asked for."""
    # a tensor that is mapped does not tell what it is made of
    return torch.is_grad_enabled() and (tensor.requires_grad or _are_functorch_transforms_active())


def refuse_forward_mode(name: str, inputs: tuple[Any, ...]) -> None:
    """Raise if an input carries a tangent; it would be dropped without a word."""
    if _are_functorch_transforms_active() or any(
        isinstance(x, Tensor) and forward_ad.unpack_dual(x).tangent is not None for x in inputs
    ):
        raise ForwardModeError(
            f"A derivative in forward mode was asked for through treelax::{name}; expected reverse "
            "mode only. Use backward(), torch.autograd.grad or torch.func.jacrev."
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


def no_second_derivative(name: str, vmap: Any = None) -> Callable[..., Any]:
    """Make the derivative of ``name``, itself a gradient, raise. Returns it as `gradient` does."""

    def backward(ctx: Any, *grads: Tensor) -> NoReturn:
        raise SecondDerivativeError(
            f"A second derivative was asked for through treelax::{name}; expected first derivatives "
            "only. Detach the gradient, or drop create_graph=True."
        )

    return gradient(name, backward, no_context, vmap)


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
