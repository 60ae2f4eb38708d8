"""The distribution over projective trees as a `torch.distributions.Distribution`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints
from torch.distributions.kl import register_kl

from treelax.errors import InputError
from treelax.noise import perturbation
from treelax.ops import best_tree, log_partition, sample_tree, soft_tree
from treelax.ops.canonical import HALF_TYPES, canonical
from treelax.ops.checks import arc_mask, broadcasts, check_lengths, check_scores, one_of
from treelax.ops.eisner.common import LIMIT, RELAXATIONS, Relaxation
from treelax.ops.projective import soft_tree_and_value
from treelax.trees import is_projective, is_tree


class cached:
    """A value computed when first asked for and kept, with its gradient.

    Unlike torch's ``lazy_property`` it keeps nothing that was computed in inference mode: such a value
    would later enter a loss as a constant.
    """

    def __init__(self, compute: Callable[[Any], Tensor]) -> None:
        self.compute = compute
        self.name = compute.__name__
        self.__doc__ = compute.__doc__

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        if torch.is_inference_mode_enabled():
            return self.compute(instance)
        with torch.enable_grad():
            value = self.compute(instance)
        instance.__dict__[self.name] = value
        return value


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
        if value.dtype == torch.bool:
            value = value.to(torch.uint8)
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
    ``m``; index 0 is the root. Values are computed when first asked for and kept; half types are
    computed in float32 and rounded once. Finite scores beyond ±1e30 count as ±1e30.

    Args:
        scores: ``(..., n+1, n+1)`` arc scores ``W``; ``-inf`` forbids an arc.
        lengths: ``(...)`` words per sentence (the root not counted), or None if all have ``n``.
        single_root: allow one modifier of the root only.
        backend: see `treelax.ops.best_tree`.
        validate_args: check the values of scores and lengths, when something is first computed from
            them, and trees given to `log_prob`; on by default, off under ``python -O``.

    Raises:
        InputError: a shape, type or device is wrong; or, when first used, a value.
        NoTreeError: when first used, the forbidden arcs of a sentence leave no tree.

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
        if not broadcasts(tuple(self.batch_shape), tuple(batch_shape)):
            raise InputError(
                f"expand received batch shape {tuple(batch_shape)}; expected one that "
                f"{tuple(self.batch_shape)} broadcasts to."
            )
        new: ProjectiveTrees = self._get_checked_instance(ProjectiveTrees, _instance)  # type: ignore[no-untyped-call]
        new.scores = self.scores.expand(batch_shape + self.event_shape)
        new.lengths = self.lengths.expand(batch_shape)
        new.single_root = self.single_root
        new.backend = self.backend
        for name, shape in (
            ("mode", batch_shape + self.event_shape),
            ("_marginals", batch_shape + self.event_shape),
            ("_log_partition", batch_shape),
        ):
            if name in self.__dict__:
                new.__dict__[name] = self.__dict__[name].expand(shape)
        super(ProjectiveTrees, new).__init__(batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _options(self) -> dict[str, Any]:
        return {
            "single_root": self.single_root,
            "validate": self._validate_args,
            "backend": self.backend,
        }

    @cached
    def mode(self) -> Tensor:
        """The best tree, 0/1, ``(..., n+1, n+1)``."""
        return best_tree(self.scores, self.lengths, **self._options())

    @property
    def _precise(self) -> Tensor:
        """The scores in the type the dynamic program works in: float32 for half types."""
        return self.scores.float() if self.scores.dtype in HALF_TYPES else self.scores

    @cached
    def _marginals(self) -> Tensor:
        form = canonical(self._precise, self.lengths)
        tree, value = soft_tree_and_value(
            form, "entropy", self.single_root, self._validate_args, self.backend
        )
        if not torch.is_inference_mode_enabled():
            # the same run gives the log-partition
            self.__dict__.setdefault("_log_partition", form.restore(value))
        return form.restore(tree)

    @cached
    def _log_partition(self) -> Tensor:
        return log_partition(self._precise, self.lengths, **self._options())

    @property
    def marginals(self) -> Tensor:
        """Probability of each arc, ``(..., n+1, n+1)``; the mean of the distribution."""
        return self._marginals.to(self.scores.dtype)

    @property
    def mean(self) -> Tensor:
        """The arc marginals."""
        return self.marginals

    @property
    def variance(self) -> Tensor:
        """Variance of each arc's indicator."""
        return self.marginals * (1 - self.marginals)

    @property
    def log_partition(self) -> Tensor:
        """``log Z``, ``(...)``."""
        return self._log_partition.to(self.scores.dtype)

    def score(self, tree: Tensor) -> Tensor:
        """Summed score of the arcs of a tree, ``(...)``.

        A forbidden arc counts only if the tree has it; then the score is ``-inf``.
        """
        return _inner(tree, self._precise).to(self.scores.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        """Log-probability of trees ``(*sample_shape, ..., n+1, n+1)``.

        Raises:
            InputError: a matrix is not a projective tree over its sentence (if arguments are
                validated).
        """
        if self._validate_args:
            self._check_trees(value)
        return (_inner(value, self._precise) - self._log_partition).to(self.scores.dtype)

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
        mean_score = _inner(self._marginals, self._precise)
        return _not_negative(self._log_partition - mean_score).to(self.scores.dtype)

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
            sample_shape=_as_shape(sample_shape),
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
        shape = _as_shape(sample_shape) + self.batch_shape
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


def _as_shape(sample_shape: Any) -> torch.Size:
    try:
        return torch.Size(sample_shape)
    except TypeError:
        raise InputError(
            f"sample_shape is {sample_shape!r}; expected a tuple of numbers such as (5,)."
        ) from None


def _inner(weights: Tensor, scores: Tensor) -> Tensor:
    """``Σ weights · scores`` in float64 over arcs with weight: ``-inf`` where one of them is forbidden,
    with a gradient that does not know about it.

    Scores count as the dynamic program takes them, within ±`LIMIT`.
    """
    wide = scores.dtype if scores.device.type == "mps" else torch.float64  # MPS has no float64
    weighted = weights != 0
    forbidden = scores == float("-inf")
    counted = weighted & ~forbidden
    finite = torch.where(counted, scores, 0).clamp(-LIMIT, LIMIT).to(wide)
    total = (torch.where(counted, weights, 0).to(wide) * finite).sum((-2, -1))
    return total.masked_fill((weighted & forbidden).any(-1).any(-1), float("-inf"))


def _not_negative(value: Tensor) -> Tensor:
    """At least 0, where rounding may have left a little less; the gradient is left alone."""
    return value + (value.clamp(min=0) - value).detach()


@register_kl(ProjectiveTrees, ProjectiveTrees)
def _kl_projective_projective(p: ProjectiveTrees, q: ProjectiveTrees) -> Tensor:
    r"""``KL(p‖q) = Σ μ_p (W_p - W_q) - log Z_p + log Z_q``; infinite where q forbids what p allows."""
    if p.event_shape != q.event_shape:
        raise InputError(
            f"The distributions have trees of shapes {tuple(p.event_shape)} and "
            f"{tuple(q.event_shape)}; expected the same shape."
        )
    try:
        lengths = torch.broadcast_tensors(p.lengths, q.lengths)
    except RuntimeError:
        raise InputError(
            f"The distributions have batch shapes {tuple(p.batch_shape)} and "
            f"{tuple(q.batch_shape)}; expected shapes that broadcast."
        ) from None
    if p._validate_args and not torch.equal(*lengths):
        raise InputError(
            "The distributions have sentences of different lengths; expected equal lengths."
        )
    marginals = p._marginals
    own = _inner(marginals, p._precise) - p._log_partition
    cross = _inner(marginals, q._precise) - q._log_partition
    missing = cross == float("-inf")
    kl = _not_negative(own - cross.masked_fill(missing, 0)).masked_fill(missing, float("inf"))
    if q.single_root and not p.single_root:
        # p gives weight to trees with several roots, which q does not have, as soon as it expects
        # more than one arc from the root; the slack is for rounding
        kl = kl.masked_fill(marginals[..., 0, :].sum(-1) > 1 + 1e-5, float("inf"))
    return kl.to(p.scores.dtype)
