"""The loss of classes and tags, and how far two answers are apart."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F

__all__ = ["divergence", "label_loss"]

NO_LABEL = -1  # of padding


def label_loss(
    logits: Tensor, targets: Tensor, *, smoothing: float = 0.0, consistency: float = 0.0
) -> Tensor:
    """The mean cross-entropy of all labels."""
    logits, targets = logits.flatten(0, -2), targets.flatten()
    loss = F.cross_entropy(logits, targets, ignore_index=NO_LABEL, label_smoothing=smoothing)
    if consistency:
        first, second = logits.chunk(2)
        loss = loss + consistency * divergence(first, second, targets.chunk(2)[0])
    return loss


def divergence(first: Tensor, second: Tensor, targets: Tensor) -> Tensor:
    r"""How far two answers to the same questions are apart, as a mean over the questions.

    .. math:: \tfrac12 \big(\mathrm{KL}(p \,\|\, q) + \mathrm{KL}(q \,\|\, p)\big)
              = \tfrac12 \sum_c (p_c - q_c)(\log p_c - \log q_c)
    """
    log_p, log_q = first.log_softmax(-1), second.log_softmax(-1)
    apart = ((log_p.exp() - log_q.exp()) * (log_p - log_q)).sum(-1) / 2
    asked = targets != NO_LABEL
    return (apart * asked).sum() / asked.sum()
