"""A structure in one file, of plain PyTorch: it passes the contract suites as the library's own do."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from treelax.errors import NoTreeError
from treelax.ops import checks
from treelax.ops.backend import Algorithm
from treelax.ops.call import draw_uniforms, make_call
from treelax.structures.arcs import Arcs
from treelax.trees import one_head_each

STAR = Algorithm("star", "star", backends=())


@dataclass(frozen=True)
class Star(Arcs):
    """Trees whose root has one modifier, the head of all other words: ``n`` of them over ``n`` words."""

    name: ClassVar[str] = "star"

    def weigh(self, scores, lengths, temperature=1.0, validate=True, backend=None):
        """The scores' form, the stars of all sentences ``(B, n, N, N)`` and their scores ``(B, n)``."""
        form = make_call(STAR, scores, lengths, temperature=temperature, validate=validate)
        size = form.scores.shape[-1]
        parts = checks.arc_mask(form.lengths, size)
        stars = _stars(size).to(form.scores) * parts[:, None]
        bounded = form.scores.clamp(-1e30, 1e30).where(form.scores > -torch.inf, -torch.inf)
        bounded = bounded.where(~form.scores.isnan(), torch.nan)
        total = torch.where(stars > 0, bounded[:, None], 0).flatten(2).sum(-1)
        absent = torch.arange(1, size) > form.lengths[:, None]
        # a sentence without words has the empty tree, here called the star of word 1
        absent = absent & ((form.lengths > 0)[:, None] | (torch.arange(1, size) > 1))
        total = total.masked_fill(absent, -torch.inf)
        if validate and checks.readable(form.scores):
            checks.check_length_values(form.lengths, size)
            checks.check_finite(form.scores, parts)
            if total.numel() and (total.amax(1) == -torch.inf).any():
                raise NoTreeError("No star is left; expected one word that may head all others.")
        return form, stars, total

    def argmax(self, scores, lengths=None, **options):
        form, stars, total = self.weigh(scores.detach(), lengths, **options)
        if not total.shape[1]:
            return form.restore(torch.zeros_like(form.scores))
        best = total.nan_to_num(torch.nan, neginf=-torch.inf).argmax(1)[:, None, None, None]
        tree = stars.take_along_dim(best, 1)[:, 0]
        return form.restore(self.spoilt(tree, form, total))

    def spoilt(self, tree, form, total):
        """NaN in the parts of a sentence that has one."""
        wrong = total.isnan().any(1)[..., None, None]
        parts = checks.arc_mask(form.lengths, tree.shape[-1])
        return tree.where(~(wrong & parts), torch.nan)

    def log_partition(self, scores, lengths=None, **options):
        form, _, total = self.weigh(scores, lengths, **options)
        value = total.logsumexp(1) if total.shape[1] else total.sum(1)
        return form.restore_value(value)

    def relaxed(self, scores, lengths=None, *, relaxation="softmax", temperature=1.0, **options):
        self.check_relaxation(relaxation)
        form, stars, total = self.weigh(scores, lengths, temperature, **options)
        if not total.shape[1]:
            return form.restore(form.scores.masked_fill(torch.tensor(True), 0))
        shares = total.softmax(1)[..., None, None]
        tree = torch.where(stars > 0, shares, 0).sum(1)
        return form.restore(self.spoilt(tree, form, total))

    def marginals(self, scores, lengths=None, **options):
        return self.relaxed(scores, lengths, **options), self.log_partition(
            scores, lengths, **options
        )

    def sample(self, scores, lengths=None, *, sample_shape=(), generator=None, **options):
        form, stars, total = self.weigh(scores.detach(), lengths, **options)
        shape = (*checks.sample_size(sample_shape), *form.batch_shape, *form.scores.shape[1:])
        if not total.shape[1]:
            return scores.new_zeros(shape)
        count = checks.sample_size(sample_shape).numel()
        uniforms = draw_uniforms((count, len(total), 1), total, generator)
        below = total.softmax(1).cumsum(1)
        choice = (below <= uniforms * below[:, -1:]).sum(-1)  # never one without probability
        tree = stars.expand(count, *stars.shape).take_along_dim(choice[..., None, None, None], 2)
        return tree.reshape(shape).to(scores.dtype)

    def contains(self, value: Tensor, lengths: Tensor) -> Tensor:
        heads, word, good = one_head_each(value, lengths)
        if not word.shape[-1]:
            return good
        top = ((heads == 0) & word).long().argmax(-1) + 1
        position = torch.arange(1, value.shape[-1])
        right = torch.where(position == top[..., None], heads == 0, heads == top[..., None])
        return good & (right | ~word).all(-1)

    def log_count(self, n):
        return math.log(max(n, 1))


def _stars(size: int) -> Tensor:
    """All stars over ``size - 1`` words."""
    centre = torch.arange(1, size)
    stars = torch.zeros(size - 1, size, size)
    stars[centre - 1, centre] = 1
    stars[:, :, 0] = 0
    stars[centre - 1, :, centre] = 0
    stars[centre - 1, 0, centre] = 1
    return stars
