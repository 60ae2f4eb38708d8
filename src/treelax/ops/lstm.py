"""A layer of a BiLSTM on a GPU: the recurrence of a direction in one launch, in CUDA C++.

Libraries launch some kernels for every word, which for states of usual size take longer to launch than
to run. Here the recurrent weights of a direction lie in the registers of a block, which goes through its
sentences word by word. Matrix products over all words, before and after, are torch's.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from treelax.ops import nvrtc
from treelax.ops.library import unwatched

KERNELS = ("lstm", "lstm_backward")
MOST = 128  # numbers in a state
MULTIPROCESSORS = 132


def fits(lstm: nn.LSTM, vectors: Tensor) -> bool:
    """Whether `bilstm` does what the module does, for these vectors."""
    size = lstm.hidden_size
    return (
        vectors.is_cuda
        and size % 4 == 0
        and size <= MOST
        and vectors.dtype == lstm.weight_hh_l0.dtype == torch.float32
        and vectors.numel() > 0
        and unwatched(vectors)
        and not torch.is_autocast_enabled("cuda")
        and nvrtc.unavailable() is None
    )


def bilstm(lstm: nn.LSTM, vectors: Tensor, lengths: Tensor) -> Tensor:
    """Vectors ``(batch, n, input_size)`` to states of both directions ``(batch, n, 2 * size)``, 0 in the
    padding, by a bidirectional layer whose last input is for padding and left out here.

    As in torch's own layers, ``torch.backends.cudnn.allow_tf32`` says how precise products with the
    inputs are; those with states are in float32."""
    parameters = tuple(lstm.parameters())
    keep = torch.is_grad_enabled() and any(x.requires_grad for x in (vectors, *parameters))
    result: Tensor = _BiLSTM.apply(vectors, lengths, keep, *parameters)  # type: ignore[no-untyped-call]
    return result


@contextmanager
def precision_of_cudnn() -> Iterator[None]:
    """Matrix products as precise as those of torch's own LSTM."""
    products = torch.backends.cuda.matmul
    before, products.allow_tf32 = products.allow_tf32, torch.backends.cudnn.allow_tf32
    try:
        yield
    finally:
        products.allow_tf32 = before


def rows_of_block(batch: int) -> int:
    """Sentences that a block goes through together."""
    return 2 if batch <= MULTIPROCESSORS else 4


def threads_of_block(size: int) -> int:
    """One for two rows of weights, in whole warps."""
    return -(-2 * size // 32) * 32


def kept(size: int) -> int:
    """Numbers of a row of weights that registers hold."""
    return min(size, 88)


@functools.cache
def module(device: int, size: int, rows: int) -> nvrtc.Module:
    """Kernels for the current device."""
    return nvrtc.Module(
        "lstm.cu",
        KERNELS,
        HIDDEN=size,
        ROWS=rows,
        KEPT=kept(size),
        CLUSTER_BLOCKS=0,
        THREADS_AT_MOST=threads_of_block(size),
    )


@functools.lru_cache(maxsize=256)
def plan(device: int, size: int, batch: int) -> tuple[nvrtc.Launch, nvrtc.Launch]:
    """Both passes over batches of one size."""
    rows, threads = rows_of_block(batch), threads_of_block(size)
    with torch.cuda.device(device):
        kernels = module(device, size, rows)
    others = 2 * threads * (size - kept(size))
    forward, backward = (
        nvrtc.Launch(
            kernels, name, 2 * -(-batch // rows), threads, 4 * (rows * size * sums + others)
        )
        for name, sums in zip(KERNELS, (5, 8), strict=True)
    )
    return forward, backward


def packed(*tensors: Tensor | None, batch: int, n: int, keep: bool) -> bytes:
    """``Args`` of the kernels."""
    pointers = (0 if x is None else x.data_ptr() for x in tensors)
    return struct.pack("7Q4i", *pointers, batch, n, keep, 0)


class _BiLSTM(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, vectors: Tensor, lengths: Tensor, keep: bool, *parameters: Tensor
    ) -> Tensor:
        input_left, left, *biases_left = parameters[:4]
        input_right, right, *biases_right = parameters[4:]
        batch, n, _ = vectors.shape
        size = left.shape[-1]
        flat, lengths = vectors.reshape(batch * n, -1), lengths.long().contiguous()
        left, right = left.contiguous(), right.contiguous()
        weights = torch.cat((input_left[:, :-1], input_right[:, :-1]))
        bias = torch.cat(biases_left + biases_right).view(2, 2, -1).sum(1).flatten()
        with precision_of_cudnn():
            gates = torch.addmm(bias, flat, weights.T)
        output = flat.new_empty(batch, n, 2 * size)
        saved = flat.new_empty(batch, n, 10 * size) if keep else None
        before = torch.empty_like(output) if keep else None
        tensors = (left, right, gates, lengths, saved, output, before)
        device = vectors.get_device()
        forward, ctx.backward_pass = plan(device, size, batch)
        forward(device, packed(*tensors, batch=batch, n=n, keep=keep))
        if keep:
            ctx.save_for_backward(flat, weights, left, right, lengths, saved, before)
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        flat, weights, left, right, lengths, saved, before = ctx.saved_tensors
        batch, n, both = grad.shape
        gates = grad.new_empty(batch * n, 4 * both)  # dL/dz
        tensors = (left, right, grad.contiguous(), lengths, saved, gates, None)
        ctx.backward_pass(grad.get_device(), packed(*tensors, batch=batch, n=n, keep=False))
        bias, grads = gates.sum(0), []
        with precision_of_cudnn():
            inputs = gates @ weights if ctx.needs_input_grad[0] else None
            # with the column for padding, which nothing trains
            of_inputs = nn.functional.pad(gates.T @ flat, (0, 1))
            for side, previous in enumerate(before.view(batch * n, 2, -1).unbind(1)):
                of_states = gates.chunk(2, 1)[side].T @ previous
                of_bias = bias.chunk(2)[side]
                grads += [of_inputs.chunk(2)[side], of_states, of_bias, of_bias.clone()]
        shape = (batch, n, flat.shape[-1])
        return None if inputs is None else inputs.view(shape), None, None, *grads
