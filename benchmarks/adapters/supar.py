"""supar 1.1.4: `supar.structs.DependencyCRF`, the projective one (`MatrixTree` is not).

Convention: scores ``(batch, n+1, n+1)`` with ``[m, h]``, the transpose of ours, index 0 the root.
``multiroot`` is False by default, whatever its docstring says, so it is always given here.
The argmax comes back as heads ``(batch, n+1)``, with 0 at the root's own place.

supar calls ``requires_grad_()`` on the scores it is given; they are the adapter's own copy.
``lens`` stays at its default, as for ours.
"""

from __future__ import annotations

import importlib

import torch
from torch import Tensor

from benchmarks.problem import BEST_TREE, FORWARD, Call, Problem


def prepare(operation: str, problem: Problem, single_root: bool) -> Call:
    """A `Call` of supar for one operation."""
    DependencyCRF = importlib.import_module("supar.structs").DependencyCRF

    if problem.lengths is not None:
        raise NotImplementedError("ragged lengths are measured for treelax alone")
    scores = problem.scores.transpose(1, 2).contiguous().requires_grad_()
    upstream = problem.upstream.transpose(1, 2).contiguous()
    multiroot = not single_root

    def read_heads(heads: Tensor) -> dict[str, Tensor]:
        weights = problem.scores.gather(1, heads[:, None, :])[:, 0]  # (batch, n+1)
        return {"best score": weights[:, 1:].sum(1)}

    if operation == BEST_TREE:
        return Call(lambda: DependencyCRF(scores, multiroot=multiroot).argmax, read_heads)
    if operation == FORWARD:
        return Call(
            lambda: DependencyCRF(scores, multiroot=multiroot).marginals,
            lambda tree: {"tree": tree.detach().transpose(1, 2)},
        )

    def forward_backward() -> tuple[Tensor, Tensor]:
        marginals = DependencyCRF(scores, multiroot=multiroot).marginals
        (gradient,) = torch.autograd.grad(marginals, scores, upstream)
        return marginals, gradient

    return Call(
        forward_backward,
        lambda out: {
            "tree": out[0].detach().transpose(1, 2),
            "gradient": out[1].transpose(1, 2),
        },
    )
