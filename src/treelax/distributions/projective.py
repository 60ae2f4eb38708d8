"""The distribution over projective trees as a `torch.distributions.Distribution`."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints
from torch.distributions.kl import register_kl
from torch.distributions.utils import lazy_property

from treelax.errors import InputError
from treelax.noise import perturbation
from treelax.ops import best_tree, log_partition, sample_tree, soft_tree
from treelax.ops.canonical import canonical
from treelax.ops.checks import arc_mask, check_lengths, check_scores, one_of
from treelax.ops.eisner.common import RELAXATIONS, Relaxation
from treelax.ops.projective import soft_tree_and_value
from treelax.trees import is_projective, is_tree


class _ArcScores(constraints.Constraint):
    """Square matrices of finite scores or ``-inf``; the padding may hold anything."""

    is_discrete = False
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        """True for a score that is not NaN or ``+inf``; the distribution itself checks arcs only."""
        return (value < float("inf")).flatten(-2).all(-1)


class ProjectiveTree(constraints.Constraint):
    """0/1 matrices ``(..., n+1, n+1)`` that are projective trees over the words of a sentence."""

    is_discrete = True
    event_dim = 2

    def __init__(self, lengths: Tensor, single_root: bool) -> None:
        self.lengths = lengths
        self.single_root = single_root
        super().__init__()

    def check(self, value: Tensor) -> Tensor:
        """``(...)``, true where a matrix is a projective tree and 0 outside its sentence."""
        size = value.shape[-1]
        lengths = self.lengths.expand(value.shape[:-2])
        arcs = arc_mask(lengths.reshape(-1), size).reshape(value.shape)
        binary = (((value == 0) | (value == 1)) & (arcs | (value == 0))).flatten(-2).all(-1)
        position = torch.arange(1, size, device=value.device)
        word = position <= lengths[..., None]
        one_head = (value.sum(-2)[..., 1:] == word).all(-1)
        heads = value.argmax(-2)[..., 1:]
        good = binary & one_head
        # the checks below want heads in range, so give bad matrices a chain
        heads = torch.where(good[..., None], heads, position - 1)
        return (
            good
            & is_tree(heads, lengths, single_root=self.single_root)
            & is_projective(heads, lengths)
        )


class ProjectiveTrees(Distribution):
    r"""All projective trees of a sentence, each with probability by its arcs.

    .. math:: p(T) = \frac{\exp \sum_{h,m} W_{h,m} T_{h,m}}{Z}

    A tree is a matrix ``(n+1, n+1)`` with ``T[h, m] = 1`` for an arc from head ``h`` to modifier
    ``m``; index 0 is the root. Values are computed when first asked for and kept.

    Args:
        scores: ``(..., n+1, n+1)`` arc scores ``W``; ``-inf`` forbids an arc.
        lengths: ``(...)`` words per sentence (the root not counted), or None if all have ``n``.
        single_root: allow one modifier of the root only.
        backend: see `treelax.ops.best_tree`.
        validate_args: check the values of the arguments and of trees given to `log_prob`; on by
            default, off under ``python -O``.

    Raises:
        InputError: a shape, type, device or value is wrong.
        NoTreeError: the forbidden arcs of a sentence leave no tree.

    Example:
        >>> import torch
        >>> trees = ProjectiveTrees(torch.zeros(2, 5, 5), torch.tensor([4, 3]))
        >>> trees.log_partition.exp().round()  # 55 trees over four words, 12 over three
        tensor([55., 12.])
        >>> trees.entropy().exp().round()
        tensor([55., 12.])
        >>> trees.log_prob(trees.mode).exp().allclose(1 / torch.tensor([55.0, 12.0]))
        True
        >>> trees.rsample((7,), generator=torch.Generator().manual_seed(0)).shape
        torch.Size([7, 2, 5, 5])

    Reference:
        Corro & Titov (2019), sections 2.1 and 3.
    """

    arg_constraints: ClassVar[dict[str, constraints.Constraint]] = {"scores": _ArcScores()}
    has_rsample = True
    has_enumerate_support = False

    def __init__(
        self,
        scores: Tensor,
        lengths: Tensor | None = None,
        *,
        single_root: bool = False,
        backend: str | None = None,
        validate_args: bool | None = None,
    ) -> None:
        check_scores(scores)
        if lengths is None:
            lengths = torch.full(
                scores.shape[:-2], scores.shape[-1] - 1, dtype=torch.int64, device=scores.device
            )
        check_lengths(lengths, scores)
        self.scores = scores
        self.lengths = lengths
        self.single_root = single_root
        self.backend = backend
        # The values are checked by the operations, which know which entries are arcs; the check of
        # the base class would object to padding.
        super().__init__(scores.shape[:-2], scores.shape[-2:], validate_args=False)
        # Not the default of torch.distributions: torch.compile switches that off for the process.
        self._validate_args = __debug__ if validate_args is None else validate_args

    @property
    def support(self) -> constraints.Constraint:
        """Projective trees over the words of each sentence."""
        return ProjectiveTree(self.lengths, self.single_root)

    def expand(self, batch_shape: Any, _instance: ProjectiveTrees | None = None) -> ProjectiveTrees:
        """The same distribution with a larger batch shape, sharing memory."""
        batch_shape = torch.Size(batch_shape)
        new: ProjectiveTrees = self._get_checked_instance(ProjectiveTrees, _instance)  # type: ignore[no-untyped-call]
        new.scores = self.scores.expand(batch_shape + self.event_shape)
        new.lengths = self.lengths.expand(batch_shape)
        new.single_root = self.single_root
        new.backend = self.backend
        for name in ("marginals", "mode"):
            if name in self.__dict__:
                new.__dict__[name] = self.__dict__[name].expand(batch_shape + self.event_shape)
        if "log_partition" in self.__dict__:
            new.__dict__["log_partition"] = self.__dict__["log_partition"].expand(batch_shape)
        super(ProjectiveTrees, new).__init__(batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _options(self) -> dict[str, Any]:
        return {
            "single_root": self.single_root,
            "validate": self._validate_args,
            "backend": self.backend,
        }

    @lazy_property
    def mode(self) -> Tensor:
        """The best tree, 0/1, ``(..., n+1, n+1)``."""
        return best_tree(self.scores, self.lengths, **self._options())

    @lazy_property
    def marginals(self) -> Tensor:
        """Probability of each arc, ``(..., n+1, n+1)``; the mean of the distribution."""
        form = canonical(self.scores, self.lengths)
        tree, value = soft_tree_and_value(
            form, "entropy", self.single_root, self._validate_args, self.backend
        )
        # the same run gives the log-partition
        self.__dict__.setdefault("log_partition", form.restore(value))
        return form.restore(tree)

    @property
    def mean(self) -> Tensor:
        """The arc marginals."""
        return self.marginals

    @property
    def variance(self) -> Tensor:
        """Variance of each arc's indicator."""
        return self.marginals * (1 - self.marginals)

    @lazy_property
    def log_partition(self) -> Tensor:
        """``log Z``, ``(...)``."""
        return log_partition(self.scores, self.lengths, **self._options())

    def score(self, tree: Tensor) -> Tensor:
        """Summed score of the arcs of a tree, ``(...)``.

        A forbidden arc counts only if the tree has it; then the score is ``-inf``.
        """
        return _inner(tree, self.scores)

    def log_prob(self, value: Tensor) -> Tensor:
        """Log-probability of trees ``(*sample_shape, ..., n+1, n+1)``.

        Raises:
            InputError: a matrix is not a projective tree over its sentence (if arguments are
                validated).
        """
        if self._validate_args:
            self._check_trees(value)
        return self.score(value) - self.log_partition

    def _check_trees(self, value: Tensor) -> None:
        expected = tuple(self.batch_shape + self.event_shape)
        if not isinstance(value, Tensor) or value.shape[-2:] != self.event_shape:
            shape = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
            raise InputError(
                f"The tree has shape {shape}; expected {expected}, possibly with sample dimensions "
                "in front."
            )
        try:
            value = value.expand(torch.broadcast_shapes(value.shape, expected))
        except RuntimeError:
            raise InputError(
                f"The tree has shape {tuple(value.shape)}, which does not broadcast with {expected}."
            ) from None
        good = self.support.check(value)
        if not bool(good.all()):
            where = tuple(int(x) for x in (~good).nonzero()[0])
            raise InputError(
                f"Matrix {where} given to log_prob is not a projective tree over its sentence; "
                "expected 0/1 with one head per word, no cycles, no crossing arcs"
                + (", one modifier of the root" if self.single_root else "")
                + ", and 0 elsewhere. Pass validate_args=False to skip this check."
            )

    def entropy(self) -> Tensor:
        r"""Entropy :math:`\log Z - \sum \mu W` in nats, ``(...)``."""
        marginals = self.marginals
        return self.log_partition - _inner(marginals, self.scores)

    def sample(
        self,
        sample_shape: Any = torch.Size(),  # noqa: B008  the signature of torch.distributions
        *,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Exact samples ``(*sample_shape, ..., n+1, n+1)``, without a gradient."""
        return sample_tree(
            self.scores,
            self.lengths,
            sample_shape=tuple(sample_shape),
            generator=generator,
            **self._options(),
        )

    def rsample(
        self,
        sample_shape: Any = torch.Size(),  # noqa: B008
        *,
        relaxation: Relaxation = "softmax",
        temperature: float | Tensor = 1.0,
        noise: str | None = "gumbel",
        straight_through: bool = False,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Perturb and parse: relaxed trees of noisy scores, with a gradient.

        Approximate samples: the noise is added to arcs, not to whole trees (section 3.2 of the
        paper). With ``straight_through`` the value is the exact best tree of the perturbed scores
        and the gradient that of their soft tree.

        Args:
            sample_shape: shape of independent samples, put in front of the batch.
            relaxation: ``"softmax"`` (the paper's) or ``"entropy"``.
            temperature: of the relaxation; the noise is added before.
            noise: ``"gumbel"``, ``"sum-of-gamma"``, or None for the soft tree of the scores.
            straight_through: discrete value, relaxed gradient.
            generator: source of randomness.

        Returns:
            ``(*sample_shape, ..., n+1, n+1)``.
        """
        one_of("relaxation", relaxation, RELAXATIONS)
        shape = torch.Size(sample_shape) + self.batch_shape
        scores = self.scores.expand(shape + self.event_shape)
        lengths = self.lengths.expand(shape)
        if noise is not None:
            scores = scores + perturbation(noise, scores, lengths, generator=generator)
        soft = soft_tree(
            scores, lengths, relaxation=relaxation, temperature=temperature, **self._options()
        )
        if not straight_through:
            return soft
        hard = best_tree(scores, lengths, **self._options())
        return hard + (soft - soft.detach())  # the bracket is exactly 0: the value is the hard tree


def _inner(weights: Tensor, scores: Tensor) -> Tensor:
    """``Σ weights · scores`` over arcs with weight; 0 · (-inf) counts as 0."""
    return torch.where(weights == 0, 0, weights * scores.masked_fill(weights == 0, 0)).sum((-2, -1))


@register_kl(ProjectiveTrees, ProjectiveTrees)
def _kl_projective_projective(p: ProjectiveTrees, q: ProjectiveTrees) -> Tensor:
    r"""``KL(p‖q) = Σ μ_p (W_p - W_q) - log Z_p + log Z_q``; infinite where q forbids what p allows."""
    if p.event_shape != q.event_shape:
        raise InputError(
            f"The distributions have trees of shapes {tuple(p.event_shape)} and "
            f"{tuple(q.event_shape)}; expected the same shape."
        )
    if p._validate_args and not torch.equal(*torch.broadcast_tensors(p.lengths, q.lengths)):
        raise InputError(
            "The distributions have sentences of different lengths; expected equal lengths."
        )
    marginals = p.marginals
    cross = _inner(marginals, q.scores) - q.log_partition
    kl = (_inner(marginals, p.scores) - p.log_partition) - cross
    if q.single_root and not p.single_root:
        # p gives weight to trees with several roots, which q does not have, as soon as it expects
        # more than one arc from the root; the slack is for rounding
        several = marginals[..., 0, :].sum(-1) > 1 + 1e-5
        kl = torch.where(several, torch.full_like(kl, float("inf")), kl)
    return kl
