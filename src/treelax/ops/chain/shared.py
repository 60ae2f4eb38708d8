"""The log-partition of chains that share their transitions, without scores ``(n, C, C)``.

With `a` the weights of the tags at a position, and `x` and `E` the exponentials of emissions and
transitions, ``c a' = (a E) ∘ x``, where c makes them sum to 1; log Z is the sum of log c. What follows a
tag has the weight ``b = E (x ∘ b' / c')``, and the marginals are ``a ∘ b``. Exponentials are float64 and
relative to the largest score. Where scores range so far that some would underflow, there is no result.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

#: Steps between two divisions by c; it is 1 in the others.
STEPS = 4
#: Natural logarithms: the scores of a step range no further.
RANGE = 100.0
#: Beside a smaller weight others may have been lost.
LEAST = 1e-200


def furthest(below: Tensor) -> Tensor:
    """The lowest of scores below 0, but for what is forbidden."""
    return below.masked_fill(below.isinf(), 0).amin()


class LogPartition(torch.autograd.Function):
    """Of emissions ``(B, n, C)``, transitions ``(C, C)``, scores ``(C,)`` of the first and the last tag;
    NaN where it would not be exact."""

    @staticmethod
    def forward(ctx: Any, lengths: Tensor, *scores: Tensor) -> Tensor:
        emissions, *others = scores
        n = emissions.shape[1]
        level, tops = emissions.amax(-1, keepdim=True), [each.amax() for each in others]
        below = emissions - level
        x = below.double().transpose(0, 1).exp()  # (n, B, C)
        apart = [each - top for each, top in zip(others, tops, strict=True)]
        e, first, last = (each.double().exp() for each in apart)
        live = (torch.arange(n, device=lengths.device)[:, None] < lengths)[..., None]
        ragged = not bool(live.all())
        a, weights, c = first, [], x.new_ones(*x.shape[:2], 1)
        for t, here in enumerate(x.unbind()):
            onward = (a @ e if t else a) * here
            if t % STEPS == 0:
                torch.sum(onward, -1, keepdim=True, out=c[t])
                onward = onward / c[t]
            a = torch.where(live[t], onward, a) if ragged and t else onward
            weights.append(a)
        at = torch.stack(weights)
        end = (a * last).sum(-1, keepdim=True)
        logs = ((c.log() + level.transpose(0, 1)) * live).sum(0) + end.log()
        value = logs[:, 0] + (lengths - 1) * tops[0] + tops[1] + tops[2]
        ctx.ragged, ctx.dtypes = ragged, [each.dtype for each in scores]
        # what follows a tag that cannot be reached has no bound
        ctx.save_for_backward(x / c * (at > 0), e, last / end, at, live)
        # of one step: an emission, and a transition or the first or last tag
        low = furthest(below) + furthest(torch.cat([each.flatten() for each in apart]))
        lost = (low < -RANGE) | ((at < LEAST) & (at > 0)).any() | (lengths < 1).any()
        return value.masked_fill(lost, torch.nan)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        x, e, b, at, live = ctx.saved_tensors
        after, onward, back = [b], [b], e.T.contiguous()
        for t, here in reversed([*enumerate(x.unbind())][1:]):
            y = here * b
            b = torch.where(live[t], y @ back, b) if ctx.ragged else y @ back
            onward.append(y)
            after.append(b)
        weighted = grad[:, None] * live
        marginals = at * torch.stack(after[::-1]) * weighted
        later = torch.stack(onward[::-1])[:-1] * weighted[1:]
        pairs = at[:-1].flatten(0, 1).T @ later.flatten(0, 1)
        last = (at[-1] * after[0] * grad[:, None]).sum(0)
        grads = marginals.transpose(0, 1), e * pairs, marginals[0].sum(0), last
        return None, *(each.to(dtype) for each, dtype in zip(grads, ctx.dtypes, strict=True))


def log_partition(lengths: Tensor, *scores: Tensor) -> Tensor | None:
    """See `LogPartition`; None where it would not be exact."""
    value: Tensor = LogPartition.apply(lengths, *scores)  # type: ignore[no-untyped-call]
    return value if bool(value.isfinite().all()) else None
