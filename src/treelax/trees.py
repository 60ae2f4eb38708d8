"""Trees as data: head vectors, tree tensors, brackets, and what is known of a tree as a mask.

A sentence of ``n`` words has a *head vector* ``(n,)``, whose entry ``m - 1`` is the head of word
``m`` (0 is the root), and a *tree tensor* ``(n + 1, n + 1)``, where ``tree[h, m] = 1`` if ``h`` is
the head of ``m``. These take any leading batch shape. ``lengths`` counts the words of each
sentence without the root; what lies beyond a sentence's length is ignored, whatever it holds.

A binary tree is a tensor of *spans* ``(n, n)``, where ``tree[i, j] = 1`` if words ``i`` to ``j``, both
included and counted from 0, are under one node.
"""

from __future__ import annotations

import torch
from torch import Tensor

from treelax.brackets import (
    brackets,
    check_spans,
    from_nltk,
    read_brackets,
    spans_beside,
    spans_to_tensor,
    to_nltk,
)
from treelax.errors import InputError
from treelax.ops.checks import arc_mask, check_length_values, check_lengths, is_integer

__all__ = [
    "brackets",
    "constrain",
    "from_nltk",
    "heads_to_tree",
    "is_projective",
    "is_tree",
    "read_brackets",
    "spans_to_tensor",
    "to_nltk",
    "tree_to_heads",
]


def __dir__() -> list[str]:
    return __all__


def heads_to_tree(
    heads: Tensor,
    lengths: Tensor | None = None,
    *,
    dtype: torch.dtype = torch.float32,
    validate: bool = True,
) -> Tensor:
    """Turn head vectors ``(..., n)`` into tree tensors ``(..., n + 1, n + 1)`` of zeros and ones.

    Heads need not form a tree, see `is_tree`; each must only be another position of its sentence. Column
    0 and everything beyond a sentence's length is zero. To ``validate`` values waits for the GPU.

    Example:
        >>> heads_to_tree(torch.tensor([2, 0, -1]), torch.tensor(2), dtype=torch.int64)
        tensor([[0, 0, 1, 0],
                [0, 0, 0, 0],
                [0, 1, 0, 0],
                [0, 0, 0, 0]])
    """
    heads, inside, lengths = _checked_heads(heads, lengths, validate)
    n = heads.shape[-1]
    if validate and (bad := inside & ~_attached(heads, lengths)).any():
        where = _first(bad)
        limit = f"expected 0 to {int(lengths[where[:-1]])}, but not {where[-1] + 1}"
        raise InputError(f"{_place(where)}: head {int(heads[where])}; {limit}")
    tree = torch.zeros((*heads.shape[:-1], n + 1, n + 1), dtype=dtype, device=heads.device)
    index = heads.masked_fill(~inside, 0)[..., None, :]
    tree[..., 1:].scatter_(-2, index, inside[..., None, :].to(dtype))
    return tree


def tree_to_heads(tree: Tensor, lengths: Tensor | None = None, *, padding: int = -1) -> Tensor:
    """Turn tree tensors ``(..., n + 1, n + 1)`` into head vectors ``(..., n)``.

    The inverse of `heads_to_tree`, int64, with ``padding`` beyond a sentence's length.

    Example:
        >>> tree_to_heads(torch.tensor([[0., 0., 1.], [0., 0., 0.], [0., 1., 0.]]))
        tensor([2, 0])
    """
    if not isinstance(tree, Tensor) or tree.is_complex():
        raise InputError(f"tree: received {_kind(tree)}; expected a real tensor")
    if tree.dim() < 2 or tree.shape[-1] != tree.shape[-2] or tree.shape[-1] == 0:
        raise InputError(f"tree: received shape {tuple(tree.shape)}; expected (..., n + 1, n + 1)")
    n = tree.shape[-1] - 1
    lengths = _checked_lengths(lengths, tree.shape[:-2], n, tree.device)
    position = torch.arange(n + 1, device=tree.device)
    rows = position <= lengths[..., None]  # (..., n + 1): positions of the sentence
    inside = rows[..., 1:]  # (..., n): its words
    arcs = tree[..., 1:].masked_fill(~rows[..., :, None], 0)  # (..., n + 1, n)
    # exactly one 1, n zeros, and that 1 not on the diagonal
    ones = (arcs == 1) & (position[:, None] != position[1:])
    bad = inside & (((arcs != 0).sum(-2) != 1) | (ones.sum(-2) != 1))
    if bad.any():
        where = _first(bad)
        column = arcs[where[:-1]][:, where[-1]].detach()
        if column.isnan().any():
            raise InputError(
                f"{_place(where)}: heads have weight nan; expected 0 or 1: the scores held NaN, for "
                "example because training diverged"
            )
        weights = {int(h): float(column[h]) for h in column.nonzero()[:, 0]}
        raise InputError(
            f"{_place(where)}: heads and weights {weights}; expected exactly one head of weight 1, "
            "not the word itself (for a soft tree, use treelax.ops.best_tree on the scores, or "
            ".eval() on the layer)"
        )
    return ones.to(torch.uint8).argmax(-2).masked_fill(~inside, padding)


def is_tree(heads: Tensor, lengths: Tensor | None = None, *, single_root: bool = False) -> Tensor:
    """Whether every word has a head in its sentence and reaches the root by following heads.

    The heads are followed by pointer jumping: after ``t`` rounds every word points at its ancestor
    ``2**t`` steps up, so ``log2(n)`` rounds find every cycle. With ``single_root``, also whether
    exactly one word hangs off the root. A head out of range makes it false and is no error.

    Example:
        >>> is_tree(torch.tensor([[2, 0, 2], [2, 1, 0], [0, 1, 9]]))
        tensor([ True, False, False])
        >>> is_tree(torch.tensor([0, 0]), single_root=True)
        tensor(False)
    """
    heads, inside, lengths = _checked_heads(heads, lengths)
    attached = _attached(heads, lengths)
    answer = (attached | ~inside).all(-1) & reaches_root(heads, inside & attached)
    if single_root:
        answer &= ((heads == 0) & inside).sum(-1) == (lengths > 0)
    return answer


def one_head_each(tree: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Heads ``(..., n)`` of 0/1 trees ``(..., n + 1, n + 1)``, which of them are words, and whether a
    tree gives every word one head within its sentence and holds nothing else, ``(...)``.

    A chain stands in for the heads of a tree that does not.
    """
    if tree.dtype == torch.bool:
        tree = tree.to(torch.uint8)
    lengths = lengths.expand(tree.shape[:-2])
    arcs = arc_mask(lengths, tree.shape[-1])
    binary = (((tree == 0) | (tree == 1)) & (arcs | (tree == 0))).flatten(-2).all(-1)
    position = torch.arange(1, tree.shape[-1], device=tree.device)
    word = position <= lengths[..., None]
    good = binary & (tree.sum(-2)[..., 1:] == word).all(-1)
    heads = torch.where(good[..., None], tree.argmax(-2)[..., 1:], position - 1)
    return heads, word, good


def reaches_root(heads: Tensor, inside: Tensor) -> Tensor:
    """Whether following heads ``(..., n)``, all within range where ``inside``, ends at the root."""
    ancestor = torch.nn.functional.pad(heads.masked_fill(~inside, 0), (1, 0))
    for _ in range(int(heads.shape[-1]).bit_length()):
        ancestor = ancestor.gather(-1, ancestor)
    return (ancestor == 0).all(-1)


def is_projective(heads: Tensor, lengths: Tensor | None = None) -> Tensor:
    """Whether no two arcs of trees ``(..., n)`` cross, those from the root at position 0 included.

    For a tree this is the same as: every word between a head and its modifier descends from that
    head. For heads that are no tree (see `is_tree`) the answer is about crossing arcs only.

    Example:
        >>> is_projective(torch.tensor([[2, 0, 2], [3, 0, 2]]))
        tensor([ True, False])
    """
    heads, inside, _ = _checked_heads(heads, lengths)
    return crosses_nothing(heads, inside)


def crosses_nothing(heads: Tensor, inside: Tensor) -> Tensor:
    """Whether no two arcs of heads ``(..., n)`` cross, of words ``inside`` their sentence."""
    words = torch.arange(1, heads.shape[-1] + 1, device=heads.device)
    low, high = torch.minimum(heads, words), torch.maximum(heads, words)
    # arcs a and b cross if low_a < low_b < high_a < high_b
    crossing = (low[..., :, None] < low[..., None, :]) & (low[..., None, :] < high[..., :, None])
    crossing &= high[..., :, None] < high[..., None, :]
    crossing &= inside[..., :, None] & inside[..., None, :]
    return ~crossing.flatten(-2).any(-1)


def constrain(
    *, heads: Tensor | None = None, spans: Tensor | None = None, dtype: torch.dtype = torch.float32
) -> Tensor:
    """What is known of trees as a mask to add to scores: 0 where a part is allowed, else ``-inf``.

    A word with a known head has no other; a known span excludes all that cross it. Trees of the scores
    plus the mask have every part that is known, and otherwise the same odds as before. For labels, add
    ``mask[..., None]``.

    Args:
        heads: ``(..., n)``; the known heads, 0 the root, -1 where unknown.
        spans: ``(..., n, n)``, 0/1; the known spans, see `spans_to_tensor`.
        dtype: of the result, ``(..., n + 1, n + 1)`` for heads, ``(..., n, n)`` for spans.

    Example:
        >>> from treelax import Binary, Projective
        >>> mask = constrain(heads=torch.tensor([2, -1, -1]))
        >>> Projective()(torch.zeros(4, 4) + mask).log_partition.exp().round()  # of 12 trees
        tensor(3.)
        >>> known = spans_to_tensor([(0, 1)], 4)
        >>> Binary()(torch.zeros(4, 4) + constrain(spans=known)).log_partition.exp().round()
        tensor(2.)
    """
    if not dtype.is_floating_point:
        raise InputError(f"dtype is {dtype}; expected a floating-point type, which has -inf")
    if heads is not None and spans is None:
        allowed = _beside_heads(heads)
    elif spans is not None and heads is None:
        allowed = spans_beside(check_spans(spans, "spans"))
        allowed = allowed | torch.ones_like(allowed).tril(-1)
    else:
        both = "both" if spans is not None else "neither"
        raise InputError(f"heads and spans: {both} given; expected one of the two")
    mask = torch.zeros(allowed.shape, dtype=dtype, device=allowed.device)
    return mask.masked_fill_(~allowed, float("-inf"))


def _beside_heads(heads: Tensor) -> Tensor:
    """True at the arcs ``(..., n + 1, n + 1)`` that known heads allow."""
    heads, _, lengths = _checked_heads(heads, None)
    unknown = heads == -1
    if (bad := ~(unknown | _attached(heads, lengths))).any():
        where = _first(bad)
        raise InputError(
            f"heads{list(where)} is {int(heads[where])}; expected -1 (unknown) to "
            f"{heads.shape[-1]}, but not {where[-1] + 1}, the word itself"
        )
    position = torch.arange(heads.shape[-1] + 1, device=heads.device)
    allowed = (position[:, None] == heads[..., None, :]) | unknown[..., None, :]
    return torch.nn.functional.pad(allowed, (1, 0), value=True)


def _attached(heads: Tensor, lengths: Tensor) -> Tensor:
    """Words whose head is another position of the sentence, ``(..., n)``."""
    words = torch.arange(1, heads.shape[-1] + 1, device=heads.device)
    return (heads >= 0) & (heads <= lengths[..., None]) & (heads != words)


def _checked_heads(
    heads: Tensor, lengths: Tensor | None, values: bool = True
) -> tuple[Tensor, Tensor, Tensor]:
    """Heads as int64, which of them are words of their sentence ``(..., n)``, and the lengths."""
    if not is_integer(heads):
        raise InputError(f"heads: received {_kind(heads)}; expected an integer tensor (..., n)")
    if heads.dim() == 0:
        raise InputError("heads: received shape (); expected (..., n)")
    n = heads.shape[-1]
    lengths = _checked_lengths(lengths, heads.shape[:-1], n, heads.device, values)
    inside = torch.arange(n, device=heads.device) < lengths[..., None]
    return heads.to(torch.int64), inside, lengths


def _checked_lengths(
    lengths: Tensor | None, batch: torch.Size, n: int, device: torch.device, values: bool = True
) -> Tensor:
    """Lengths as int64 of the batch's shape, full where none are given."""
    if lengths is None:
        return torch.full(batch, n, dtype=torch.int64, device=device)
    check_lengths(lengths, batch, device)
    lengths = lengths.to(torch.int64)
    if values:
        check_length_values(lengths.flatten(), n + 1)
    return lengths


def _kind(value: object) -> str:
    return str(value.dtype) if isinstance(value, Tensor) else type(value).__name__


def _first(bad: Tensor) -> tuple[int, ...]:
    return tuple(int(i) for i in bad.nonzero()[0])


def _place(index: tuple[int, ...]) -> str:
    """``sentence 3, word 2`` for index ``(3, 1)``: words count from 1, the root being 0."""
    *batch, word = index
    number = f"sentence {batch[0] if len(batch) == 1 else tuple(batch)}"
    return f"{number if batch else 'the sentence'}, word {word + 1}"
