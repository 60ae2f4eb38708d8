"""The distribution over projective trees as a `torch.distributions.Distribution`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints
from torch.distributions.kl import register_kl

from treelax.errors import InputError
from treelax.noise import Noise, perturbed
from treelax.ops import best_tree, log_partition, sample_tree, soft_tree
from treelax.ops.canonical import canonical, precise, value_type
from treelax.ops.checks import (
    INTEGER_TYPES,
    arc_mask,
    broadcasts,
    check_lengths,
    check_scores,
    one_of,
    sample_size,
)
from treelax.ops.eisner.common import LIMIT, RELAXATIONS, Relaxation
from treelax.ops.projective import soft_tree_and_value
from treelax.trees import crosses_nothing, reaches_root


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
        one_root = ((heads == 0) & word).sum(-1) <= 1 if self.single_root else True
        return good & one_root & reaches_root(heads, word) & crosses_nothing(heads, word)


class ProjectiveTrees(Distribution):
    r"""All projective trees of a sentence, each with probability by its arcs.

    .. math:: p(T) = \frac{\exp \sum_{h,m} W_{h,m} T_{h,m}}{Z}

    A tree is a matrix ``(n+1, n+1)`` with ``T[h, m] = 1`` for an arc from head ``h`` to modifier
    ``m``; index 0 is the root. Values are computed when first asked for and kept; half types are
    computed in float32 and rounded once, and under autocast values such as log-probabilities stay
    float32. Finite scores beyond ±1e30 count as ±1e30. A sentence without words has the empty tree.

    Args:
        scores: ``(..., n+1, n+1)`` arc scores ``W``; ``-inf`` forbids an arc.
        lengths: ``(...)`` words per sentence (the root not counted), or None if all have ``n``.
        single_root: allow one modifier of the root only.
        backend: see `treelax.ops.best_tree`.
        validate_args: check the values of scores and lengths, when something is first computed from
            them, and trees given to `log_prob`; on by default, off under ``python -O``. Inside
            ``torch.compile`` trees are not checked.

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
        self._kept: dict[str, Tensor] = {}
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
        new._kept = {
            name: value.expand(batch_shape + value.shape[len(self.batch_shape) :])
            for name, value in self._kept.items()
        }
        super(ProjectiveTrees, new).__init__(batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _options(self) -> dict[str, Any]:
        return {
            "single_root": self.single_root,
            "validate": self._validate_args,
            "backend": self.backend,
        }

    def _keep(self, name: str, compute: Callable[[], dict[str, Tensor]]) -> Tensor:
        """The value of a name, computed at most once, with its gradient.

        Nothing computed in inference mode is kept: it would later enter a loss as a constant.
        """
        if name in self._kept:
            return self._kept[name]
        if not torch.compiler.is_compiling() and torch.is_inference_mode_enabled():
            return compute()[name]
        with torch.enable_grad():
            self._kept = compute() | self._kept
        return self._kept[name]

    def __getstate__(self) -> dict[str, Any]:
        # a copy computes its own values, whose gradients lead to its own scores
        return self.__dict__ | {"_kept": {}}

    @property
    def mode(self) -> Tensor:
        """The best tree, 0/1, ``(..., n+1, n+1)``."""
        return self._keep(
            "mode", lambda: {"mode": best_tree(self.scores, self.lengths, **self._options())}
        )

    @property
    def _precise(self) -> Tensor:
        return precise(self.scores)

    @property
    def _marginals(self) -> Tensor:
        def compute() -> dict[str, Tensor]:
            form = canonical(self._precise, self.lengths)
            tree, value = soft_tree_and_value(
                form, "entropy", self.single_root, self._validate_args, self.backend
            )
            return {"marginals": form.restore(tree), "log_partition": form.restore(value)}

        return self._keep("marginals", compute)

    @property
    def _log_partition(self) -> Tensor:
        return self._keep(
            "log_partition",
            lambda: {
                "log_partition": log_partition(self._precise, self.lengths, **self._options())
            },
        )

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
        return self._log_partition.to(value_type(self.scores))

    def score(self, tree: Tensor) -> Tensor:
        """Summed score of the arcs of a tree, ``(...)``.

        A forbidden arc counts only if the tree has it; then the score is ``-inf``.
        """
        return _inner(tree, self._precise).to(value_type(self.scores))

    def log_prob(self, value: Tensor) -> Tensor:
        """Log-probability of trees ``(*sample_shape, ..., n+1, n+1)``.

        A matrix that is not a projective tree over its sentence has ``-inf`` if arguments are not
        validated.

        Raises:
            InputError: such a matrix, if arguments are validated.
        """
        value = self._expanded(value)
        good = self.support.check(value)
        if self._validate_args and not torch.compiler.is_compiling() and not bool(good.all()):
            where = tuple(int(x) for x in (~good).nonzero()[0])
            raise InputError(
                f"Matrix {where} given to log_prob is not a projective tree over its sentence; "
                "expected 0/1 with one head per word, no cycles, no crossing arcs (see "
                "treelax.data.projectivity.nearest_projective)"
                + (", one modifier of the root" if self.single_root else "")
                + ", and 0 elsewhere. Pass validate_args=False to have log-probability -inf instead."
            )
        log_prob = _inner(value, self._precise) - self._log_partition
        return log_prob.masked_fill(~good, float("-inf")).to(value_type(self.scores))

    def _expanded(self, value: Tensor) -> Tensor:
        expected = tuple(self.batch_shape + self.event_shape)
        if isinstance(value, Tensor):
            try:
                if value.shape[-2:] == self.event_shape:
                    return value.expand(torch.broadcast_shapes(value.shape, expected))
            except RuntimeError:
                pass
            received = f"has shape {tuple(value.shape)}"
            heads = value.dtype in INTEGER_TYPES and value.shape[-1:] == (expected[-1] - 1,)
        else:
            received, heads = f"is a {type(value).__name__}", False
        raise InputError(
            f"The tree given to log_prob {received}; expected a tensor {expected}, possibly with "
            "sample dimensions in front"
            + (": turn heads into trees with treelax.trees.heads_to_tree." if heads else ".")
        )

    def entropy(self) -> Tensor:
        r"""Entropy :math:`\log Z - \sum \mu W` in nats, ``(...)``."""
        mean_score = _inner(self._marginals, self._precise)
        return _not_negative(self._log_partition - mean_score).to(value_type(self.scores))

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
            sample_shape=sample_shape,
            generator=generator,
            **self._options(),
        )

    def rsample(
        self,
        sample_shape: Any = torch.Size(),  # noqa: B008
        *,
        relaxation: Relaxation = "softmax",
        temperature: float | Tensor = 1.0,
        noise: Noise | None = "gumbel",
        noise_scale: float = 1.0,
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
            noise_scale: factor of the noise.
            straight_through: discrete value, relaxed gradient.
            generator: source of randomness.

        Returns:
            ``(*sample_shape, ..., n+1, n+1)``.
        """
        one_of("relaxation", relaxation, RELAXATIONS)
        shape = sample_size(sample_shape) + self.batch_shape
        lengths = self.lengths.expand(shape)
        scores = perturbed(
            self.scores.expand(shape + self.event_shape),
            lengths,
            noise,
            scale=noise_scale,
            generator=generator,
        )
        soft = soft_tree(
            scores, lengths, relaxation=relaxation, temperature=temperature, **self._options()
        )
        if straight_through:
            # the bracket is exactly 0: the value is the discrete tree
            soft = best_tree(scores, lengths, **self._options()) + (soft - soft.detach())
        return soft.to(self.scores.dtype)


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


def _exceeds(p: ProjectiveTrees, q: ProjectiveTrees, lengths: Tensor) -> Tensor:
    """Where p allows a tree that q does not have, whatever its weight; ``(...)``.

    The best tree under p's rules, when an arc that q forbids counts 2 and, if only q wants a single
    root, every arc from the root 1.
    """
    more_roots = q.single_root and not p.single_root
    count = (q.scores == float("-inf")).float() * 2
    if more_roots:
        count = count + (torch.arange(count.shape[-1], device=count.device) == 0).float()[:, None]
    count, own = torch.broadcast_tensors(count, p.scores)
    tree = best_tree(
        count.masked_fill(own == float("-inf"), float("-inf")),
        lengths,
        single_root=p.single_root,
        validate=False,
        backend=p.backend,
    )
    return (tree * count).sum((-2, -1)) > (1 if more_roots else 0)


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
    if p._validate_args and not torch.compiler.is_compiling() and not torch.equal(*lengths):
        raise InputError(
            "The distributions have sentences of different lengths; expected equal lengths."
        )
    marginals = p._marginals
    own = _inner(marginals, p._precise) - p._log_partition
    cross = _inner(marginals, q._precise) - q._log_partition
    missing = _exceeds(p, q, lengths[0])
    kl = _not_negative(own - cross.masked_fill(missing, 0)).masked_fill(missing, float("inf"))
    return kl.to(value_type(p.scores))
