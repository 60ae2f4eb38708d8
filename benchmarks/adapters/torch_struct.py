"""torch-struct 0.5: `DependencyCRF`, `NonProjectiveDependencyCRF` and `TreeCRF`.

Convention: that of `treelax.convert.from_torch_struct`; ``multiroot`` is always given, since its default
is True for projective and False for non-projective trees.

What a modern torch needs, found with torch 2.13:

- The potentials must require a gradient even for the forward pass alone and for the argmax,
  otherwise an in-place fill on a leaf raises. Marginals are a gradient here, so the graph is always
  built; asking for it costs nothing more.
- The distributions define no ``arg_constraints``, about which torch warns at every construction.
  An empty dictionary spares the peer that.
- ``multiroot`` is stored on the class ``DepTree``, not the object: each call here constructs its
  distribution anew, which the caching of ``marginals`` asks for anyway.

``lengths`` stays at its default, as for ours; passing a list or a tensor made no difference.
"""

from __future__ import annotations

import importlib
from typing import Any

import torch
from torch import Tensor

from benchmarks.problem import BEST, FORWARD, Call, Problem, structure_of
from treelax.convert import from_torch_struct, to_torch_struct

CLASSES = {
    "projective": "DependencyCRF",
    "nonprojective": "NonProjectiveDependencyCRF",
    "binary": "TreeCRF",
}


def prepare(operation: str, problem: Problem, single_root: bool) -> Call:
    """A `Call` of torch-struct for one operation."""
    structure = structure_of(operation, single_root)
    peer = getattr(importlib.import_module("torch_struct"), CLASSES[structure.name])

    if problem.lengths is not None:
        raise NotImplementedError("ragged lengths are measured for treelax alone")
    peer.arg_constraints = {}
    potentials = to_torch_struct(problem.scores, structure).clone().requires_grad_()
    upstream = to_torch_struct(problem.upstream, structure)
    options = {"multiroot": not single_root} if structure.rooted else {}

    def trees() -> Any:
        return peer(potentials, **options)

    def ours(tree: Tensor) -> Tensor:
        return from_torch_struct(tree.detach(), structure)

    if operation in BEST:
        return Call(
            lambda: trees().argmax,
            lambda tree: {"best score": (ours(tree) * problem.scores).sum((1, 2))},
        )
    if operation == FORWARD:
        return Call(lambda: trees().marginals, lambda tree: {"tree": ours(tree)})

    def forward_backward() -> tuple[Tensor, Tensor]:
        marginals = trees().marginals
        (gradient,) = torch.autograd.grad(marginals, potentials, upstream)
        return marginals, gradient

    return Call(forward_backward, lambda out: {"tree": ours(out[0]), "gradient": ours(out[1])})
