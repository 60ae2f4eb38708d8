"""A dynamic program in C++ as a backend: the Python side of `native/calls.h`."""

from __future__ import annotations

import torch
from torch import Tensor

from treelax.ops.native import aligned, call, lanes, pool


class NativeProgram:
    """The functions of a backend; entry points begin with ``prefix``, charts have ``planes``."""

    def __init__(self, prefix: str, planes: int) -> None:
        self.prefix = prefix
        self.planes = planes

    def saved_shape(self, batch: int, size: int, dtype: torch.dtype) -> tuple[int, ...]:
        width = lanes(dtype, batch)
        return ((batch + width - 1) // width, self.planes, size * size, width)

    def _soft_tree(
        self,
        scores: Tensor,
        lengths: Tensor,
        entropy: bool,
        single_root: bool,
        tree: Tensor | None,
        saved: Tensor | None,
    ) -> Tensor:
        batch, size, _ = scores.shape
        value = scores.new_empty(batch)
        call(
            *(f"{self.prefix}soft_tree", "ppiiiippp", scores.dtype, lengths, size),
            *(scores.data_ptr(), lengths.data_ptr(), batch, size, entropy, single_root),
            None if tree is None else tree.data_ptr(),
            value.data_ptr(),
            None if saved is None else saved.data_ptr(),
        )
        return value

    def soft_tree(
        self, scores: Tensor, lengths: Tensor, relaxation: str, single_root: bool, save: bool
    ) -> tuple[Tensor, Tensor, Tensor]:
        batch, size, _ = scores.shape
        shape = self.saved_shape(batch, size, scores.dtype)
        tree, saved = torch.empty_like(scores), pool.empty(shape, scores.dtype) if save else None
        value = self._soft_tree(scores, lengths, relaxation == "entropy", single_root, tree, saved)
        return tree, value, scores.new_empty(0) if saved is None else saved

    def soft_tree_backward(
        self,
        grad_tree: Tensor,
        grad_value: Tensor,
        saved: Tensor,
        lengths: Tensor,
        relaxation: str,
        single_root: bool,
    ) -> Tensor:
        batch, size, _ = grad_tree.shape
        saved = aligned(saved)
        grad_scores = torch.empty_like(grad_tree)
        call(
            *(f"{self.prefix}soft_tree_backward", "ppppiiiip", grad_tree.dtype, lengths, size),
            *(grad_tree.data_ptr(), grad_value.data_ptr(), saved.data_ptr(), lengths.data_ptr()),
            *(batch, size, relaxation == "entropy", single_root, grad_scores.data_ptr()),
        )
        return grad_scores

    def log_partition(self, scores: Tensor, lengths: Tensor, single_root: bool) -> Tensor:
        return self._soft_tree(scores, lengths, True, single_root, None, None)

    def best_tree(
        self, scores: Tensor, lengths: Tensor, single_root: bool
    ) -> tuple[Tensor, Tensor]:
        batch, size, _ = scores.shape
        tree, value = torch.empty_like(scores), scores.new_empty(batch)
        call(
            *(f"{self.prefix}best_tree", "ppiiipp", scores.dtype, lengths, size),
            *(scores.data_ptr(), lengths.data_ptr(), batch, size, single_root),
            *(tree.data_ptr(), value.data_ptr()),
        )
        return tree, value

    def sample_tree(
        self, scores: Tensor, lengths: Tensor, uniforms: Tensor, single_root: bool
    ) -> tuple[Tensor, Tensor]:
        batch, size, _ = scores.shape
        samples = uniforms.shape[0]
        trees = scores.new_empty((samples, batch, size, size))
        value = scores.new_empty(batch)
        call(
            *(f"{self.prefix}sample_tree", "pppiiiipp", scores.dtype, lengths, size),
            *(scores.data_ptr(), lengths.data_ptr(), uniforms.data_ptr()),
            *(samples, batch, size, single_root, trees.data_ptr(), value.data_ptr()),
        )
        return trees, value
