"""torch-struct 0.5 and supar 1.1.4: marginals and best trees, called as their documentation says.

Conventions are those of `treelax.convert`. ``multiroot`` is always given: in torch-struct its default is
True for projective and False for non-projective trees, in supar False, whatever its docstring says.
``lengths`` stay at their default, as for ours. Marginals are a derivative in both: each call makes a new
distribution, and scores require a gradient even for a forward pass.

What a modern torch needs, found with torch 2.13: the distributions of torch-struct define no
``arg_constraints``, about which torch warns at every construction; an empty dictionary spares it that.
supar writes to the scores it is given; they are a copy.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from benchmarks.problem import BEST, FORWARD, Call, Problem, structure_of
from treelax import convert

CLASSES = {
    "torch_struct": ("DependencyCRF", "NonProjectiveDependencyCRF", "TreeCRF"),
    "supar.structs": ("DependencyCRF", "MatrixTree", "ConstituencyCRF"),
}
STRUCTURES = ("projective", "nonprojective", "binary")


def prepare_with(module: str) -> Callable[[str, Problem, bool], Call]:
    """A ``prepare`` for `benchmarks.problem.Contender` that calls a module of a peer."""
    library = module.partition(".")[0]
    to_peer, from_peer = (getattr(convert, f"{way}_{library}") for way in ("to", "from"))

    def prepare(operation: str, problem: Problem, single_root: bool) -> Call:
        structure = structure_of(operation, single_root)
        name = CLASSES[module][STRUCTURES.index(structure.name)]
        peer = getattr(importlib.import_module(module), name)
        if problem.lengths is not None:
            raise NotImplementedError("ragged lengths are measured for treelax alone")
        if library == "torch_struct":
            peer.arg_constraints = {}
        options = {"multiroot": not single_root} if structure.rooted else {}
        scores, upstream = (
            to_peer(tensor, structure).clone(memory_format=torch.contiguous_format)
            for tensor in (problem.scores, problem.upstream)
        )
        scores.requires_grad_()

        def ours(tree: Tensor) -> Tensor:
            return from_peer(tree.detach(), structure)

        def best_score(best: Any) -> dict[str, Tensor]:
            if library == "torch_struct":
                return {"best score": (ours(best) * problem.scores).sum((1, 2))}
            if structure.rooted:  # heads (batch, n+1), with 0 at the root's own place
                weights = problem.scores.gather(1, best[:, None, :])[:, 0]
                return {"best score": weights[:, 1:].sum(1)}
            pairs = zip(problem.scores, best, strict=True)  # lists of spans
            return {"best score": torch.stack([sum(s[i, j - 1] for i, j in b) for s, b in pairs])}

        if operation in BEST:
            return Call(lambda: peer(scores, **options).argmax, best_score)
        if operation == FORWARD:
            return Call(
                lambda: peer(scores, **options).marginals, lambda tree: {"tree": ours(tree)}
            )

        def forward_backward() -> tuple[Tensor, Tensor]:
            marginals = peer(scores, **options).marginals
            (gradient,) = torch.autograd.grad(marginals, scores, upstream)
            return marginals, gradient

        return Call(forward_backward, lambda out: {"tree": ours(out[0]), "gradient": ours(out[1])})

    return prepare
