"""What one writes without a library: the matrix-tree theorem in a few lines of torch.

``log Z`` is the log-determinant of the Laplacian, and the marginals are its gradient.
"""

from __future__ import annotations

import torch
from torch import Tensor

from benchmarks.problem import Call, Problem


def log_partition(scores: Tensor, single_root: bool) -> Tensor:
    """Of scores ``(batch, n+1, n+1)``, by Koo et al. (2007)."""
    arcs = scores[:, :, 1:]
    diagonal = torch.eye(arcs.shape[1], dtype=torch.bool, device=arcs.device)[:, 1:]
    arcs = arcs.masked_fill(diagonal, float("-inf"))
    highest = arcs.detach().amax(1, keepdim=True)
    weights = (arcs - highest).exp()
    root, words = weights[:, 0], weights[:, 1:]
    laplacian = torch.diag_embed(words.sum(1) + (0 if single_root else root)) - words
    if single_root:
        laplacian = torch.cat((root[:, None], laplacian[:, 1:]), 1)
    return torch.linalg.slogdet(laplacian)[1] + highest[:, 0].sum(1)


def prepare(operation: str, problem: Problem, single_root: bool) -> Call:
    """A `Call` for marginals and their backward pass."""
    scores = problem.scores.clone().requires_grad_()

    def forward_backward() -> tuple[Tensor, Tensor]:
        value = log_partition(scores, single_root).sum()
        (marginals,) = torch.autograd.grad(value, scores, create_graph=True)
        (gradient,) = torch.autograd.grad(marginals, scores, problem.upstream)
        return marginals.detach(), gradient

    return Call(forward_backward, lambda out: {"tree": out[0], "gradient": out[1]})
