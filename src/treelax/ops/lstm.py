"""A layer of a BiLSTM on a GPU: the recurrence of a direction in one launch, in CUDA C++.

The recurrent weights of a direction lie in the registers of a block, which goes through its sentences
word by word and leaves padding out; docs/benchmarks.md has its times beside cuDNN's. Matrix products
over all words, before and after, are torch's.
"""

from __future__ import annotations

import functools
import struct
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from treelax.ops import nvrtc
from treelax.ops.internals import can_bypass_dispatcher
from treelax.ops.library import unchanged

KERNELS = ("lstm", "lstm_backward")
MOST = 128  # numbers in a state
MULTIPROCESSORS = 132  # of an H200


def fits(lstm: nn.LSTM, vectors: Tensor) -> bool:
    """Whether `bilstm` does what the module does, for these vectors."""
    size = lstm.hidden_size
    return (
        vectors.is_cuda
        and size % 4 == 0
        and size <= MOST
        and vectors.dtype == torch.float32
        and vectors.numel() > 0
        and can_bypass_dispatcher(vectors, recorded=True)
        and all(w.dtype == torch.float32 and w.device == vectors.device for w in weights(lstm))
        and not (lstm._forward_pre_hooks or lstm._forward_hooks)
        and not (lstm._backward_pre_hooks or lstm._backward_hooks)
        and not torch.is_autocast_enabled("cuda")
        and torch.backends.cudnn.enabled
        and nvrtc.unavailable() is None
    )


def weights(lstm: nn.LSTM) -> list[Tensor]:
    """Of the inputs, of the states and two biases, left to right, then right to left."""
    return [weight for side in lstm.all_weights for weight in side]


def bilstm(lstm: nn.LSTM, vectors: Tensor, lengths: Tensor) -> Tensor:
    """Vectors ``(batch, n, input_size)`` to states of both directions ``(batch, n, 2 * size)``, 0 in the
    padding, by a bidirectional layer whose last input is for padding and left out here."""
    own = weights(lstm)
    keep = torch.is_grad_enabled() and any(x.requires_grad for x in (vectors, *own))
    result: Tensor = _BiLSTM.apply(vectors, lengths, keep, *own)  # type: ignore[no-untyped-call]
    return result


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
        inputs = torch.cat((input_left[:, :-1], input_right[:, :-1]))
        bias = torch.cat(biases_left + biases_right).view(2, 2, -1).sum(1).flatten()
        gates = torch.addmm(bias, flat, inputs.T)
        output = flat.new_empty(batch, n, 2 * size)
        saved = flat.new_empty(batch, n, 10 * size) if keep else None
        before = torch.empty_like(output) if keep else None
        tensors = (left, right, gates, lengths, saved, output, before)
        device = vectors.get_device()
        forward, ctx.backward_pass = plan(device, size, batch)
        forward(device, packed(*tensors, batch=batch, n=n, keep=keep))
        if keep:
            ctx.save_for_backward(flat, inputs, left, right, lengths, saved, before)
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        flat, inputs, left, right, lengths, saved, before = ctx.saved_tensors
        batch, n, both = grad.shape
        size = both // 2
        left, right = (unchanged("weights", w, (2 * both, size), grad) for w in (left, right))
        lengths = unchanged("lengths", lengths, (batch,), grad, torch.int64)
        saved = unchanged("the states", saved, (batch, n, 5 * both), grad)
        gates = grad.new_empty(batch * n, 4 * both)  # dL/dz
        tensors = (left, right, grad.contiguous(), lengths, saved, gates, None)
        ctx.backward_pass(grad.get_device(), packed(*tensors, batch=batch, n=n, keep=False))
        grads: list[Tensor] = []
        with torch.autocast("cuda", enabled=False):
            of_vectors = gates @ inputs if ctx.needs_input_grad[0] else None
            # with the column for padding, which nothing trains
            of_inputs = nn.functional.pad(gates.T @ flat, (0, 1)).chunk(2)
            of_biases = gates.sum(0).chunk(2)
            before = before.view(batch * n, 2, size)
            for side, own in enumerate(gates.chunk(2, 1)):
                of_states = own.T @ before[:, side]
                grads += [of_inputs[side], of_states, of_biases[side], of_biases[side].clone()]
        shape = (batch, n, flat.shape[-1])
        return None if of_vectors is None else of_vectors.view(shape), None, None, *grads
