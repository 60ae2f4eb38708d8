"""Projective trees made of others."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from treelax.errors import InputError
from treelax.ops import best_tree
from treelax.trees import is_projective, is_tree, tree_to_heads

__all__ = ["nearest_projective"]


def nearest_projective(heads: Sequence[int], *, single_root: bool = False) -> tuple[int, ...]:
    """The projective tree that shares most arcs with a tree, itself if no arcs cross.

    Among projective trees that share as many, it is the one whose other words hang closest above
    their old heads. With ``n`` words it is the best tree of ``score[h, m] = 1`` if ``h`` is the head
    of ``m``, ``(n - k) / n²`` if ``h`` is found ``k`` steps further up, else 0: all small terms
    together are worth less than one arc.

    The heads are counted from 1; 0 is the root, of one word or several, or of one in the result too
    with ``single_root``.

    Example:
        >>> nearest_projective([3, 0, 2])
        (2, 0, 2)
    """
    n, given = len(heads), torch.tensor(heads, dtype=torch.int64)
    if n == 0 or not bool(is_tree(given)):
        raise InputError(
            f"heads: received {list(heads)}; expected a tree, whose words all hang off the root"
        )
    if bool(is_projective(given)):
        return tuple(heads)
    scores = torch.zeros(n + 1, n + 1, dtype=torch.float64)
    for word, head in enumerate(heads, 1):
        scores[head, word] = 1
        step = 0
        while head:
            head, step = heads[head - 1], step + 1
            scores[head, word] = (n - step) / n**2
    nearest = tree_to_heads(best_tree(scores, single_root=single_root))
    return tuple(nearest.tolist())
