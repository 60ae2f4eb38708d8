"""The private names of torch that the library uses, all of them, and what replaces them.

They make calls cheaper, or tell whether a tracer or a transform is active. Where torch lacks one,
`COMPLETE` is false, no call bypasses the dispatcher, and operations get their gradients from
`torch.library.register_autograd`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

COMPLETE = True
try:
    from torch._C import (
        _are_functorch_transforms_active,
        _AutoDispatchBelowAutograd,
        _get_tracing_state,
        _len_torch_dispatch_stack,
        _len_torch_function_stack,
    )
    from torch._C._autograd import _profiler_enabled
    from torch._C._functorch import (
        get_unwrapped,
        is_batchedtensor,
        is_functorch_wrapped_tensor,
        is_gradtrackingtensor,
        is_legacy_batchedtensor,
    )
    from torch._functorch.utils import (
        enable_single_level_autograd_function,
        unwrap_dead_wrappers,
    )

    forward_ad._current_level  # noqa: B018  raises where it is missing
except (ImportError, AttributeError):
    COMPLETE = False

below_autograd: Any = _AutoDispatchBelowAutograd if COMPLETE else None
single_level: Any = enable_single_level_autograd_function if COMPLETE else None
unwrap_dead: Any = unwrap_dead_wrappers if COMPLETE else None


def transforms_active() -> bool:
    """Whether a transform of `torch.func` may be active."""
    return not COMPLETE or _are_functorch_transforms_active()


def mapped(tensor: Tensor) -> bool:
    """Whether a tensor stands for many at once, in `torch.vmap`."""
    if not COMPLETE:
        return False
    while is_gradtrackingtensor(tensor):  # of `torch.func.grad`, perhaps within `torch.vmap`
        tensor = get_unwrapped(tensor)
    return is_batchedtensor(tensor)


def can_bypass_dispatcher(tensor: Tensor, *, recorded: bool = False) -> bool:
    """Whether the dispatcher would only call the operation: no compiler, tracer or transform is active.

    Neither is a mode or a profiler, unless ``recorded``: then their records of the call do not matter.
    """
    return (
        COMPLETE
        and not torch.compiler.is_compiling()
        and type(tensor) in (Tensor, torch.nn.Parameter)
        and not is_functorch_wrapped_tensor(tensor)  # even after the end of a transform
        and not is_legacy_batchedtensor(tensor)  # of `is_grads_batched`
        and not _are_functorch_transforms_active()
        and not _len_torch_dispatch_stack()
        and _get_tracing_state() is None
        and (recorded or not (_len_torch_function_stack() or _profiler_enabled()))
    )


#: Hides a function from torch.compile; the public one imports the compiler, which takes a second.
never_compiled: Any = getattr(torch, "_disable_dynamo", None) or torch.compiler.disable


def not_compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, hidden from torch.compile, which traces what compiled code calls."""
    hidden = never_compiled(function)

    def call(*inputs: Any) -> Any:
        return (hidden if "torch._dynamo" in sys.modules else function)(*inputs)

    return call


def constant_in_graphs(function: Callable[..., Any]) -> Callable[..., Any]:
    """Have torch.compile call a function while it traces; the public name imports the compiler."""
    function._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return function
