"""torch-struct 0.5: `torch_struct.DependencyCRF`.

Convention: potentials ``(batch, n, n)``, ``[h, m]`` like ours but without the root, whose scores
stand on the diagonal; ``multiroot=True`` by default. Marginals come back in the same form.

What a modern torch needs, found with torch 2.13:

- The potentials must require a gradient even for the forward pass alone and for the argmax,
  otherwise an in-place fill on a leaf raises. Marginals are a gradient here, so the graph is always
  built; asking for it costs nothing more.
- ``DependencyCRF`` defines no ``arg_constraints``, about which torch warns at every construction.
  An empty dictionary spares the peer that.
- ``multiroot`` is stored on the class ``DepTree``, not the object: each call here constructs its
  distribution anew, which the caching of ``marginals`` asks for anyway.

``lengths`` stays at its default, as for ours; passing a list or a tensor made no difference.
"""

from __future__ import annotations

import importlib

import torch
from torch import Tensor

from benchmarks.problem import BEST_TREE, FORWARD, Call, Problem


def to_peer(arcs: Tensor) -> Tensor:
    """``(batch, n+1, n+1)`` with root in row 0 to ``(batch, n, n)`` with root on the diagonal."""
    out = arcs[:, 1:, 1:].clone()
    out.diagonal(dim1=1, dim2=2).copy_(arcs[:, 0, 1:])
    return out


def from_peer(arcs: Tensor) -> Tensor:
    """The inverse of `to_peer`."""
    batch, n, _ = arcs.shape
    out = arcs.new_zeros(batch, n + 1, n + 1)
    out[:, 1:, 1:] = arcs
    out.diagonal(dim1=1, dim2=2).zero_()
    out[:, 0, 1:] = arcs.diagonal(dim1=1, dim2=2)
    return out


def prepare(operation: str, problem: Problem, single_root: bool) -> Call:
    """A `Call` of torch-struct for one operation."""
    DependencyCRF = importlib.import_module("torch_struct").DependencyCRF

    if problem.lengths is not None:
        raise NotImplementedError("ragged lengths are measured for treelax alone")
    DependencyCRF.arg_constraints = {}
    potentials = to_peer(problem.scores).requires_grad_()
    upstream = to_peer(problem.upstream)
    multiroot = not single_root

    if operation == BEST_TREE:
        return Call(
            lambda: DependencyCRF(potentials, multiroot=multiroot).argmax,
            lambda tree: {"best score": (from_peer(tree.detach()) * problem.scores).sum((1, 2))},
        )
    if operation == FORWARD:
        return Call(
            lambda: DependencyCRF(potentials, multiroot=multiroot).marginals,
            lambda tree: {"tree": from_peer(tree.detach())},
        )

    def forward_backward() -> tuple[Tensor, Tensor]:
        marginals = DependencyCRF(potentials, multiroot=multiroot).marginals
        (gradient,) = torch.autograd.grad(marginals, potentials, upstream)
        return marginals, gradient

    return Call(
        forward_backward,
        lambda out: {"tree": from_peer(out[0].detach()), "gradient": from_peer(out[1])},
    )
