"""supar 1.1.4: `DependencyCRF`, `MatrixTree` and `ConstituencyCRF` of `supar.structs`.

Convention: that of `treelax.convert.from_supar`. ``multiroot`` is False by default, whatever its
docstring says, so it is always given here. The argmax comes back as heads ``(batch, n+1)``, with 0 at
the root's own place, or as lists of spans.

supar calls ``requires_grad_()`` on the scores it is given and `MatrixTree.argmax` writes to them; they
are the adapter's own copy. ``lens`` stays at its default, as for ours.
"""

from __future__ import annotations

import importlib
from typing import Any

import torch
from torch import Tensor

from benchmarks.problem import BEST, FORWARD, Call, Problem, structure_of
from treelax.convert import from_supar, to_supar

CLASSES = {
    "projective": "DependencyCRF",
    "nonprojective": "MatrixTree",
    "binary": "ConstituencyCRF",
}


def prepare(operation: str, problem: Problem, single_root: bool) -> Call:
    """A `Call` of supar for one operation."""
    structure = structure_of(operation, single_root)
    peer = getattr(importlib.import_module("supar.structs"), CLASSES[structure.name])

    if problem.lengths is not None:
        raise NotImplementedError("ragged lengths are measured for treelax alone")
    scores = to_supar(problem.scores, structure).clone(memory_format=torch.contiguous_format)
    scores.requires_grad_()
    upstream = to_supar(problem.upstream, structure).contiguous()
    options = {"multiroot": not single_root} if structure.rooted else {}

    def trees() -> Any:
        return peer(scores, **options)

    def ours(tree: Tensor) -> Tensor:
        return from_supar(tree.detach(), structure)

    def best_score(best: Any) -> dict[str, Tensor]:
        if structure.rooted:
            weights = problem.scores.gather(1, best[:, None, :])[:, 0]  # (batch, n+1)
            return {"best score": weights[:, 1:].sum(1)}
        pairs = zip(problem.scores, best, strict=True)
        return {"best score": torch.stack([sum(s[i, j - 1] for i, j in b) for s, b in pairs])}

    if operation in BEST:
        return Call(lambda: trees().argmax, best_score)
    if operation == FORWARD:
        return Call(lambda: trees().marginals, lambda tree: {"tree": ours(tree)})

    def forward_backward() -> tuple[Tensor, Tensor]:
        marginals = trees().marginals
        (gradient,) = torch.autograd.grad(marginals, scores, upstream)
        return marginals, gradient

    return Call(forward_backward, lambda out: {"tree": ours(out[0]), "gradient": ours(out[1])})
