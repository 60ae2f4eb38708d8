"""Head selection: every word chooses a head by itself. The ablation without the tree constraint."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from treelax.errors import NoTreeError
from treelax.ops import checks, dispatch, problems
from treelax.ops.backend import FORBIDDEN, Algorithm, bounded, spoil
from treelax.ops.call import make_call
from treelax.ops.library import fake, gradient, no_second_derivative, operation, unchanged

ALGORITHM = Algorithm("heads", "tree", backends=())


@operation("select_heads(Tensor scores, Tensor lengths, bool hard, bool validate) -> Tensor")
def _select_heads(scores: Tensor, lengths: Tensor, hard: bool, validate: bool) -> Tensor:
    size = scores.shape[-1]
    no_words = scores.shape[0] == 0 or size == 1
    deferred = scores.is_cuda and dispatch.why_not("triton", "cuda") is None
    deferred = deferred and validate and not no_words
    validate = validate and checks.readable(scores)
    if deferred:
        problems.raise_on_error(scores.device)
    elif validate:
        checks.check_length_values(lengths, size)
        checks.check_finite(scores, checks.arc_mask(lengths, size))
    if no_words:
        return scores.new_zeros(scores.shape)
    arcs = checks.arc_mask(lengths, size)
    s = bounded(scores, arcs).masked_fill(~arcs, FORBIDDEN)
    best = s.argmax(-2, keepdim=True)
    if deferred:
        least = s.gather(-2, best)[:, 0].where(arcs.any(-2), 0).amin(-1)  # of words' best heads
        problems.launch_validation(ALGORITHM, scores, lengths, least)
    elif validate:
        _check_choice(s, best, lengths)
    chosen = torch.zeros_like(s).scatter_(-2, best, 1) if hard else s.softmax(-2)
    chosen.mul_(arcs)
    spoil(scores, arcs, chosen)
    return chosen


def _check_choice(s: Tensor, best: Tensor, lengths: Tensor) -> None:
    """Raise if a word has no allowed head."""
    position = torch.arange(s.shape[-1], device=s.device)
    words = (position >= 1) & (position <= lengths[:, None])
    stuck = words & (s.gather(-2, best)[:, 0] <= FORBIDDEN / 2)
    if bool(stuck.any()):
        b, m = (int(x) for x in stuck.nonzero()[0])
        raise NoTreeError(
            f"Word {m} of sentence {b} (of the flattened batch) has no head: all its arcs are "
            "forbidden (-inf); expected at least one allowed arc. Allow more arcs, for example the "
            "one from the root."
        )


@fake("select_heads")
def _(scores: Tensor, lengths: Tensor, hard: bool, validate: bool) -> Tensor:
    return scores.new_empty(scores.shape)


@operation("select_heads_backward(Tensor grad, Tensor chosen) -> Tensor")
def _select_heads_backward(grad: Tensor, chosen: Tensor) -> Tensor:
    """``ds = b (g - Σ b g)``, column by column."""
    chosen = unchanged("the heads", chosen, tuple(grad.shape), grad)
    return chosen * (grad - (chosen * grad).sum(-2, keepdim=True))


@fake("select_heads_backward")
def _(grad: Tensor, chosen: Tensor) -> Tensor:
    return chosen.new_empty(chosen.shape)


def _context(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.options = inputs[2]
    ctx.save_for_backward(output)


def _grad(ctx: Any, grad: Tensor) -> Any:
    if ctx.options:  # hard
        return None, None, None, None
    (chosen,) = ctx.saved_tensors
    return _call_backward(grad, chosen), None, None, None


_call = gradient("select_heads", _grad, _context)
_call_backward = no_second_derivative("select_heads_backward")


def select_heads(
    scores: Tensor,
    lengths: Tensor | None = None,
    *,
    temperature: float | Tensor = 1.0,
    hard: bool = False,
    validate: problems.Validate = True,
) -> Tensor:
    r"""Let every word choose its head on its own: a softmax (or argmax) over each column.

    .. math:: T_{h,m} = \frac{\exp(W_{h,m}/\tau)}{\sum_{h' \ne m} \exp(W_{h',m}/\tau)}

    The same interface as `soft_tree` and `best_tree` without their constraint: the result need not
    be a tree, nor projective. It is the ablation of the paper (section 6.3).

    Args:
        scores: ``(..., n+1, n+1)``; ``scores[..., h, m]`` is the weight of head ``h`` for word ``m``.
        lengths: ``(...)`` words per sentence, or None if all have ``n``.
        temperature: positive; towards 0 the choice becomes one-hot.
        hard: return the one-hot argmax, without a gradient.
        validate: check the values of scores and lengths; see `best_tree`.

    Returns:
        ``(..., n+1, n+1)``: every word's column sums to 1, all else is 0.

    Raises:
        NoTreeError: a word has no allowed head.

    Example:
        >>> import torch
        >>> select_heads(torch.zeros(3, 3))
        tensor([[0.0000, 0.5000, 0.5000],
                [0.0000, 0.0000, 0.5000],
                [0.0000, 0.5000, 0.0000]])

    Reference:
        Corro & Titov (2019), section 6.3, "latent head selection model".
    """
    call = make_call(ALGORITHM, scores, lengths, temperature=temperature, validate=validate)
    chosen = _call(
        call.scores.detach() if hard else call.scores, call.lengths, hard, call.settings.validate
    )
    call.wait()
    return call.restore(chosen)
