"""Scores, trees and marginals of torch-struct, supar and SynJax in treelax's layout, and back.

Each function moves entries and computes nothing, so it takes scores, 0/1 trees, marginals and gradients
alike, keeps their type, and lets gradients through. Entries that the other layout does not have become
0; none of them is a part of a tree.

============ ========================================== =======================================
library      arcs                                       spans
============ ========================================== =======================================
treelax      ``[head, modifier]``, root in row 0        ``[first, last]`` word, both included
torch-struct ``[head, modifier]``, root on the diagonal as treelax
supar        ``[modifier, head]``, root in column 0     ``[start, end]``, the end not included
SynJax       as treelax                                 as treelax
============ ========================================== =======================================

Labels are a last dimension, which spans always have in torch-struct and SynJax. Lengths count words, and
in SynJax's dependency trees also the root.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from treelax.errors import InputError
from treelax.structures import Structure

__all__ = [
    "from_supar",
    "from_synjax",
    "from_torch_struct",
    "to_supar",
    "to_synjax",
    "to_torch_struct",
]


def __dir__() -> list[str]:
    return __all__


def from_torch_struct(potentials: Tensor, structure: Structure) -> Tensor:
    """From ``DependencyCRF``, ``NonProjectiveDependencyCRF`` or ``TreeCRF`` to treelax.

    Scores of arcs are ``(..., n, n)``, of spans and of arcs with labels ``(..., n, n, labels)``; the
    result is what the structure, such as `treelax.Projective`, takes.

    Example:
        >>> from treelax import NonProjective
        >>> from_torch_struct(torch.tensor([[1, 2], [3, 4]]), NonProjective())
        tensor([[0, 1, 4],
                [0, 0, 2],
                [0, 3, 0]])
    """
    if not structure.rooted:
        return from_synjax(potentials, structure)
    arcs = _with_labels(potentials, structure)
    words = torch.eye(arcs.shape[-2], dtype=torch.bool, device=arcs.device)[..., None]
    root = arcs.diagonal(dim1=-3, dim2=-2).mT[..., None, :, :]
    rows = torch.cat((root, arcs.masked_fill(words, 0)), -3)
    return _like(F.pad(rows, (0, 0, 1, 0)), structure)


def to_torch_struct(scores: Tensor, structure: Structure) -> Tensor:
    """The inverse of `from_torch_struct`.

    Example:
        >>> from treelax import Projective
        >>> tree = torch.tensor([[0, 0, 1], [0, 0, 0], [0, 1, 0]])  # 2 is the root's, 1 has head 2
        >>> to_torch_struct(tree, Projective())
        tensor([[0, 0],
                [1, 1]])
    """
    if not structure.rooted:
        return to_synjax(scores, structure)
    arcs = _with_labels(scores, structure)
    words = torch.eye(arcs.shape[-2] - 1, dtype=torch.bool, device=arcs.device)[..., None]
    root, rest = arcs[..., :1, 1:, :], arcs[..., 1:, 1:, :]
    return _like(torch.where(words, root, rest), structure)


def from_supar(scores: Tensor, structure: Structure) -> Tensor:
    """From ``DependencyCRF``, ``MatrixTree`` or ``ConstituencyCRF`` to treelax.

    Example:
        >>> from treelax import Binary
        >>> from_supar(torch.tensor([[0, 1, 2], [0, 0, 3], [0, 0, 0]]), Binary())
        tensor([[1, 2],
                [0, 3]])
    """
    parts = _with_labels(scores, structure)
    moved = parts.transpose(-3, -2) if structure.rooted else parts[..., :-1, 1:, :]
    return _like(moved, structure)


def to_supar(scores: Tensor, structure: Structure) -> Tensor:
    """The inverse of `from_supar`.

    supar has trees as heads ``(..., n+1)``, the root's among them; `treelax.trees.tree_to_heads`
    gives the words' heads.

    Example:
        >>> from treelax import NonProjective
        >>> to_supar(torch.tensor([[0, 1, 2], [0, 0, 3], [0, 4, 0]]), NonProjective())
        tensor([[0, 0, 0],
                [1, 0, 4],
                [2, 3, 0]])
    """
    parts = _with_labels(scores, structure)
    moved = parts.transpose(-3, -2) if structure.rooted else F.pad(parts, (0, 0, 1, 0, 0, 1))
    return _like(moved, structure)


def from_synjax(log_potentials: Tensor, structure: Structure) -> Tensor:
    """From ``SpanningTreeCRF`` or ``TreeCRF``, as a tensor, to treelax.

    `torch.from_dlpack` makes a tensor of a JAX array. Arcs are treelax's; spans without labels lose the
    dimension of their one label. SynJax's ``lengths`` of arcs count the root: subtract 1.

    Example:
        >>> from treelax import Binary
        >>> from_synjax(torch.zeros(4, 7, 7, 1), Binary()).shape
        torch.Size([4, 7, 7])
    """
    if structure.rooted or structure.event_dim == 3:
        return _like(_with_labels(log_potentials, structure), structure)
    if log_potentials.dim() < 3 or log_potentials.shape[-1] != 1:
        raise InputError(
            f"potentials has shape {tuple(log_potentials.shape)}; expected (..., n, n, 1) for spans "
            "without labels; treelax.Labelled(treelax.Binary()) has labels."
        )
    return log_potentials[..., 0]


def to_synjax(scores: Tensor, structure: Structure) -> Tensor:
    """The inverse of `from_synjax`.

    Example:
        >>> from treelax import Binary
        >>> to_synjax(torch.zeros(4, 7, 7), Binary()).shape
        torch.Size([4, 7, 7, 1])
    """
    parts = _with_labels(scores, structure)
    return parts if not structure.rooted else _like(parts, structure)


def _with_labels(value: Tensor, structure: Structure) -> Tensor:
    """A value with a dimension of labels, one if the structure has none."""
    labelled = structure.event_dim == 3
    square = value.shape[:-1] if labelled else value.shape
    if len(square) < 2 or square[-1] != square[-2] or square[-1] == 0:
        raise InputError(
            f"scores has shape {tuple(value.shape)}; expected two equal dimensions"
            f"{' and one of labels' if labelled else ''} at the end, for {structure}."
        )
    return value if labelled else value[..., None]


def _like(parts: Tensor, structure: Structure) -> Tensor:
    """Parts without the dimension of labels if the structure has none."""
    return parts if structure.event_dim == 3 else parts[..., 0]
