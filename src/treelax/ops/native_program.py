"""A dynamic program in C++ as a backend: the Python side of `native/calls.h`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from treelax.ops.backend import Algorithm, Batch
from treelax.ops.library import unchanged
from treelax.ops.native import (
    LONG,
    aligned,
    build_for,
    call,
    kernel_of,
    lanes,
    pool,
    raise_for_status,
)

# arguments of the entry points: pointers and integers
SOFT_TREE, BACKWARD = "ppiiiipppip", "ppppiiiipip"


class NativeProgram:
    """The functions of a backend; entry points begin with ``prefix``, charts have ``planes``.

    Scores of more than ``largest`` rows have room for long sentences, which go alone. Where weights may
    underflow and have to be ``logarithms``, a call can take ten times as long, and a sample as long as a
    call for each of its words.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        prefix: str,
        planes: int,
        largest: int = sys.maxsize,
        logarithms: bool = False,
    ) -> None:
        self.algorithm = algorithm
        self.prefix = prefix
        self.planes = planes
        self.largest = largest
        self.logarithms = logarithms
        self.soft_tree_name = f"{prefix}soft_tree"
        self.backward_name = f"{prefix}soft_tree_backward"
        self.best_tree_name = f"{prefix}best_tree"
        self.sample_tree_name = f"{prefix}sample_tree"

    def saved_shape(self, shape: torch.Size, dtype: torch.dtype) -> tuple[int, ...]:
        """Flat: planes of vectors for each group of sentences, then planes for each long sentence."""
        batch, size, _ = shape
        total = self.planes * self.in_lanes(batch, size, dtype)
        return (total + self.planes * batch * size * size if size > self.largest else total,)

    def in_lanes(self, batch: int, size: int, dtype: torch.dtype) -> int:
        """Entries of a plane of all groups."""
        width, rows = lanes(dtype, batch), min(size, self.largest)
        return (batch + width - 1) // width * width * rows * rows

    def run(
        self,
        operation: str,
        arguments: str,
        dtype: torch.dtype,
        lengths: Tensor,
        size: int,
        *values: Any,
        saved: int = -1,
        samples: int = 1,
    ) -> None:
        """Call an entry point, for long sentences once more; ``saved`` is the place of that pointer."""
        times = max(10, samples * size) if self.logarithms else samples
        given = operation, arguments, dtype, lengths, size
        call(*given, *values, algorithm=self.algorithm, times=times)
        if size <= self.largest:
            return
        if saved >= 0 and values[saved] is not None:
            skipped = self.planes * self.in_lanes(lengths.shape[0], size, dtype) * dtype.itemsize
            values = (*values[:saved], values[saved] + skipped, *values[saved + 1 :])
        call(*given, *values, algorithm=self.algorithm, times=times, lone=True)

    def soft_tree(self, given: Batch, save: bool) -> tuple[Tensor, Tensor, Tensor]:
        scores, lengths, relaxation, single_root = given
        batch, size, _ = scores.shape
        kind = scores.dtype
        tree, value = torch.empty_like(scores), scores.new_empty(batch)
        saved = pool.empty(self.saved_shape(scores.shape, kind)[0] if save else 0, kind)
        self.run(
            *(self.soft_tree_name, SOFT_TREE, kind, lengths, size, scores.data_ptr()),
            *(lengths.data_ptr(), batch, size, relaxation == "entropy", single_root),
            *(tree.data_ptr(), value.data_ptr(), saved.data_ptr() if save else None),
            saved=8,
        )
        return tree, value, saved

    def soft_tree_backward(
        self, grad_tree: Tensor, grad_value: Tensor | None, saved: Tensor, given: Batch
    ) -> Tensor:
        _, lengths, relaxation, single_root = given
        batch, size, _ = grad_tree.shape
        saved = aligned(saved)
        grad_scores = torch.empty_like(grad_tree)
        self.run(
            *(self.backward_name, BACKWARD, grad_tree.dtype, lengths, size),
            grad_tree.data_ptr(),
            None if grad_value is None else grad_value.data_ptr(),
            *(saved.data_ptr(), lengths.data_ptr(), batch, size, relaxation == "entropy"),
            *(single_root, grad_scores.data_ptr()),
            saved=2,
        )
        return grad_scores

    def planned(
        self, dtype: torch.dtype, shape: torch.Size, settings: Any, save: bool
    ) -> tuple[Callable[..., Any] | None, Callable[..., Any] | None]:
        """`soft_tree` and its gradient with the arguments of `treelax.ops.function`, for scores of one
        shape; none where there is room for long sentences, or much to do."""
        batch, size, _ = shape
        if size > self.largest or batch * size**3 * (10 if self.logarithms else 1) >= LONG:
            return None, None
        build = build_for(dtype, batch)
        forward = kernel_of(self.soft_tree_name, dtype, build, SOFT_TREE)
        backward = kernel_of(self.backward_name, dtype, build, BACKWARD)
        (entries,) = kept = self.saved_shape(shape, dtype)
        options = batch, size, settings.relaxation == "entropy", settings.single_root
        algorithm, threads = self.algorithm, torch.get_num_threads

        def soft_tree(scores: Tensor, lengths: Tensor, *others: Any) -> tuple[Any, ...]:
            tree, value = torch.empty_like(scores), scores.new_empty(batch)
            saved = pool.empty(entries, dtype) if save else None
            status = forward(
                *(scores.data_ptr(), lengths.data_ptr(), *options, tree.data_ptr()),
                *(value.data_ptr(), saved.data_ptr() if saved is not None else None),
                *(threads(), None),
            )
            if status:
                raise_for_status(status, lengths, size, algorithm)
                if settings.validate:
                    algorithm.raise_cause(scores, lengths, value)
            return tree, value, saved

        def soft_tree_backward(
            grad_tree: Tensor,
            grad_value: Tensor | None,
            scores: Tensor,
            saved: Tensor,
            lengths: Tensor,
            *others: Any,
        ) -> Tensor:
            grad_tree = grad_tree.contiguous()
            lengths = unchanged("lengths", lengths, (batch,), grad_tree, torch.int64)
            saved = aligned(unchanged("the chart", saved, kept, grad_tree))
            grad_value = None if grad_value is None else grad_value.contiguous()
            grad = torch.empty_like(grad_tree)
            status = backward(
                *(grad_tree.data_ptr(), None if grad_value is None else grad_value.data_ptr()),
                *(saved.data_ptr(), lengths.data_ptr(), *options, grad.data_ptr(), threads(), None),
            )
            if status:
                raise_for_status(status, lengths, size, algorithm)
            return grad

        return soft_tree, soft_tree_backward

    def log_partition(self, given: Batch) -> Tensor:
        scores, lengths, _, single_root = given
        batch, size, _ = scores.shape
        value = scores.new_empty(batch)
        self.run(
            *(self.soft_tree_name, SOFT_TREE, scores.dtype, lengths, size, scores.data_ptr()),
            *(lengths.data_ptr(), batch, size, True, single_root, None, value.data_ptr(), None),
        )
        return value

    def best_tree(self, given: Batch) -> tuple[Tensor, Tensor]:
        scores, lengths, _, single_root = given
        batch, size, _ = scores.shape
        tree, value = torch.empty_like(scores), scores.new_empty(batch)
        self.run(
            *(self.best_tree_name, "ppiiippip", scores.dtype, lengths, size),
            *(scores.data_ptr(), lengths.data_ptr(), batch, size, single_root),
            *(tree.data_ptr(), value.data_ptr()),
        )
        return tree, value

    def sample_tree(self, given: Batch, uniforms: Tensor) -> tuple[Tensor, Tensor]:
        scores, lengths, _, single_root = given
        batch, size, _ = scores.shape
        samples = uniforms.shape[0]
        trees = scores.new_empty((samples, batch, size, size))
        value = scores.new_empty(batch)
        self.run(
            *(self.sample_tree_name, "pppiiiippip", scores.dtype, lengths, size),
            *(scores.data_ptr(), lengths.data_ptr(), uniforms.data_ptr()),
            *(samples, batch, size, single_root, trees.data_ptr(), value.data_ptr()),
            samples=samples,
        )
        return trees, value
