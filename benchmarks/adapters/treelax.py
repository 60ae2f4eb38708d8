"""treelax itself, one contender per backend and relaxation."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks.problem import BEST, FORWARD, Call, Problem, structure_of


def prepare_with(
    backend: str, relaxation: str, dtype: torch.dtype = torch.float32
) -> Callable[[str, Problem, bool], Call]:
    """A ``prepare`` for `benchmarks.problem.Contender` that calls one backend of treelax.

    Inputs are validated, as they are for a user by default, except on CUDA: looking at values makes
    the host wait for the device and cannot be part of a CUDA graph.
    """

    def prepare(operation: str, problem: Problem, single_root: bool) -> Call:
        structure = structure_of(operation, single_root)
        scores = problem.scores.to(dtype)
        upstream = problem.upstream.to(dtype)
        validate = scores.device.type == "cpu"

        if operation in BEST:
            return Call(
                lambda: structure.argmax(
                    scores, problem.lengths, validate=validate, backend=backend
                ),
                lambda tree: {"best score": (tree * scores).sum((1, 2))},
            )

        def soft(weights: Tensor) -> Tensor:
            return structure.relaxed(
                weights,
                problem.lengths,
                relaxation=relaxation,
                validate=validate,
                backend=backend,
            )

        if operation == FORWARD:
            return Call(lambda: soft(scores), lambda tree: {"tree": tree})

        leaf = scores.clone().requires_grad_()

        def forward_backward() -> tuple[Tensor, Tensor]:
            tree = soft(leaf)
            (gradient,) = torch.autograd.grad(tree, leaf, upstream)
            return tree, gradient

        return Call(
            forward_backward, lambda out: {"tree": out[0].detach(), "gradient": out[1].detach()}
        )

    return prepare
