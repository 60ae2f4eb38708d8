"""Trees without the NULL token, which stands in front of the words of some models."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

__all__ = ["heads_without_null", "weights_without_null"]


def heads_without_null(heads: Sequence[int]) -> tuple[int, ...]:
    """Take the NULL token, the first word, out of a tree: what hangs off it hangs off its head.

    Args:
        heads: of a sentence with the NULL token in front.

    Returns:
        The heads of the other words, counted without it; a tree stays a tree.

    Example:
        >>> heads_without_null((0, 1, 2)), heads_without_null((3, 1, 0))
        ((0, 1), (2, 0))
    """
    above, *others = heads
    found = []
    for word, head in enumerate(others, 2):
        place = above if head == 1 else head
        # without a tree constraint a word and NULL may be each other's heads
        found.append(0 if place in (0, word) else place - 1)
    return tuple(found)


def weights_without_null(tree: Tensor) -> Tensor:
    """The weights of arcs between words: those through NULL are handed on by its own heads.

    Args:
        tree: soft, ``(n + 1, n + 1)``, with NULL as the first word.

    Returns:
        ``(n, n)``; columns of words sum to 1.

    Example:
        >>> import torch
        >>> tree = torch.tensor([[0.0, 1.0, 0.25], [0.0, 0.0, 0.75], [0.0, 0.0, 0.0]])
        >>> weights_without_null(tree)
        tensor([[0., 1.],
                [0., 0.]])
    """
    kept = [0, *range(2, len(tree))]
    direct = tree[kept][:, kept]
    through = tree[kept, 1][:, None] * tree[1, kept][None, :]
    folded = direct + through
    folded.fill_diagonal_(0)
    folded[0, 1:] += 1 - folded[:, 1:].sum(0)  # what a word would hand to itself is the root's
    folded[:, 0] = 0
    return folded.clamp(0, 1)
