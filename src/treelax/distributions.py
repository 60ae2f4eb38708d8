"""The distribution over structures, as a `torch.distributions.Distribution`."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints
from torch.distributions.kl import register_kl

from treelax.errors import InputError
from treelax.interface import StructureInterface
from treelax.noise import Noise, NoiseName, noise_named
from treelax.ops.backend import RELAXATIONS, Relaxation, inner, within_limit
from treelax.ops.call import HALF_TYPES, value_type
from treelax.ops.checks import (
    broadcasts,
    check_lengths,
    check_temperature,
    one_of,
    readable,
    sample_size,
)
from treelax.ops.problems import Validate


class TopK(NamedTuple):
    """The best structures of a distribution, best first.

    Attributes:
        trees: ``(k, *scores.shape)``, 0/1; zeros where there are fewer.
        log_probs: ``(k, ...)``; ``-inf`` where there are fewer.
    """

    trees: Tensor
    log_probs: Tensor


class _Members(constraints.Constraint):
    """0/1 tensors that are structures of some lengths."""

    is_discrete = True

    def __init__(self, structure: StructureInterface, lengths: Tensor) -> None:
        self.structure = structure
        self.event_dim = structure.event_dim
        self.lengths = lengths
        super().__init__()

    def check(self, value: Tensor) -> Tensor:
        """``(...)``, true where a tensor is such a structure and 0 outside its length."""
        return self.structure.contains(value, self.lengths)


class StructureDistribution(Distribution):
    r"""All structures over a sentence, or whatever has lengths, each with probability by its parts.

    .. math:: p(T) = \frac{\exp \sum_i W_i T_i}{Z}

    Made by calling a `treelax.structures.Structure` with scores. Values are computed when first asked
    for and kept with their graph, so a second backward pass through one needs ``retain_graph`` or a
    new distribution; half types are computed in float32 and rounded once, and under autocast values such
    as log-probabilities stay float32. Finite scores beyond ±1e30 count as ±1e30. A sentence without
    words has the empty structure.

    Args:
        structure: what the distribution is over.
        scores: ``(..., *event_shape)`` scores ``W`` of parts; ``-inf`` forbids one.
        lengths: ``(...)`` words per sentence (the root not counted), or None if there is no padding.
        backend: see `treelax.ops.best_tree`.
        validate_args: check the values of scores and lengths, when something is first computed from
            them, and structures given to `log_prob`; on by default, off under ``python -O``. On a GPU
            what is wrong with scores and lengths is raised later, unless this is ``"now"``
            (`treelax.ops.best_tree`). Inside ``torch.compile`` structures are not checked.

    Raises:
        NoTreeError: when first used, the forbidden parts of a sentence leave no structure.

    Example:
        >>> from treelax import Heads
        >>> heads = Heads()(torch.zeros(2, 4, 4), torch.tensor([3, 2]))
        >>> heads.entropy().exp().round()  # every word has as many heads to choose from
        tensor([27.,  4.])
    """

    # the operations check values: they know which entries are parts
    arg_constraints: ClassVar[dict[str, constraints.Constraint]] = {
        "scores": constraints.independent(constraints.less_than(math.inf), 2)
    }
    has_rsample = True
    has_enumerate_support = False

    def __init__(
        self,
        structure: StructureInterface,
        scores: Tensor,
        lengths: Tensor | None = None,
        *,
        backend: str | None = None,
        validate_args: Validate | None = None,
    ) -> None:
        structure.check_scores(scores)
        dims = structure.event_dim
        batch, event = scores.shape[:-dims], scores.shape[-dims:]
        if lengths is None:
            lengths = structure.full_lengths(scores)
        check_lengths(lengths, structure.lengths_shape(batch), scores.device)
        self.structure = structure
        self.scores = scores
        self.lengths = lengths
        self.backend = backend
        self._kept: dict[str, Tensor] = {}
        super().__init__(batch, event, validate_args=False)
        # Not the default of torch.distributions: torch.compile switches that off for the process.
        self._validate: Validate = __debug__ if validate_args is None else validate_args

    @property
    def support(self) -> constraints.Constraint:
        """The structures of each sentence."""
        return _Members(self.structure, self.lengths)

    def expand(
        self, batch_shape: Any, _instance: StructureDistribution | None = None
    ) -> StructureDistribution:
        """The same distribution with a larger batch shape, sharing memory."""
        batch_shape = torch.Size(batch_shape)
        if not broadcasts(tuple(self.batch_shape), tuple(batch_shape)):
            raise InputError(
                f"expand received batch shape {tuple(batch_shape)}; expected one that "
                f"{tuple(self.batch_shape)} broadcasts to."
            )
        new = type(self).__new__(type(self)) if _instance is None else _instance
        new.scores = self.scores.expand(batch_shape + self.event_shape)
        new.lengths = self.lengths.expand(self.structure.lengths_shape(batch_shape))
        new.structure = self.structure
        new.backend = self.backend
        new._kept = {
            name: value.expand(batch_shape + value.shape[len(self.batch_shape) :])
            for name, value in self._kept.items()
        }
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate = self._validate
        return new

    @property
    def options(self) -> dict[str, Any]:
        """Backend and validation, as the operations take them."""
        return {"validate": self._validate, "backend": self.backend}

    def _keep(self, name: str, compute: Callable[[], dict[str, Tensor]]) -> dict[str, Tensor]:
        """Values by name, computed together at most once, with their gradient.

        Nothing computed in inference mode is kept: it would later enter a loss as a constant.
        """
        if name in self._kept:
            return self._kept
        if not torch.compiler.is_compiling() and torch.is_inference_mode_enabled():
            return compute()
        with torch.enable_grad():
            self._kept = compute() | self._kept
        return self._kept

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.structure}, scores: {self.scores.shape})"

    def __getstate__(self) -> dict[str, Any]:
        # a copy recomputes its values, whose gradients lead to the copy's scores
        return self.__dict__ | {"_kept": {}}

    @property
    def mode(self) -> Tensor:
        """The structure of the highest score, 0/1."""
        best = self.structure.argmax
        return self._keep(
            "mode", lambda: {"mode": best(self.scores, self.lengths, **self.options)}
        )["mode"]

    @property
    def _precise(self) -> Tensor:
        return self.scores.float() if self.scores.dtype in HALF_TYPES else self.scores

    @property
    def _log_partition(self) -> Tensor:
        compute = self.structure.log_partition
        return self._keep(
            "log_partition",
            lambda: {"log_partition": compute(self._precise, self.lengths, **self.options)},
        )["log_partition"]

    @property
    def marginals(self) -> Tensor:
        """Probability of each part; the mean of the distribution."""

        def compute() -> dict[str, Tensor]:
            values = self.structure.marginals(self._precise, self.lengths, **self.options)
            return dict(zip(("marginals", "log_partition"), values, strict=True))

        return self._keep("marginals", compute)["marginals"].to(self.scores.dtype)

    @property
    def mean(self) -> Tensor:
        """The marginals."""
        return self.marginals

    @property
    def variance(self) -> Tensor:
        """Variance of each part's indicator."""
        return self.marginals * (1 - self.marginals)

    @property
    def _from_best(self) -> tuple[Tensor, Tensor, Tensor]:
        """Scores measured from the best structure, their marginals, and by how much their log-partition
        exceeds its score: no difference of large numbers."""

        def compute() -> dict[str, Tensor]:
            scores = self.structure.measured_from(self.mode, self._precise, self.lengths)
            mask = self.structure.part_mask(self.lengths, *self.event_shape)
            scores = scores.masked_fill(~mask, 0)
            marginals, lead = self._led(scores)
            return {"measured": scores, "measured_marginals": marginals, "lead": lead}

        values = self._keep("lead", compute)
        return values["measured"], values["measured_marginals"], values["lead"]

    def _led(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        """Marginals of scores whose best structure is the mode, and how far log Z exceeds its score."""
        best = self.mode
        marginals, total = self.structure.marginals(scores, self.lengths, **self.options)
        if self.structure.rooted:
            lead = total - self._inner(best, scores)  # which is 0
        else:  # added up in the same order as the total, so that both have the same rounding
            alone = scores.masked_fill(best == 0, -math.inf)
            options = self.options | {"validate": False}
            lead = total - self.structure.log_partition(alone, self.lengths, **options)
        certain = (marginals == best).flatten(-self.structure.event_dim).all(-1)
        return marginals, lead.masked_fill(certain, 0)

    @property
    def log_partition(self) -> Tensor:
        """``log Z``, ``(...)``."""
        return self._log_partition.to(value_type(self.scores))

    def score(self, tree: Tensor) -> Tensor:
        """Summed score of the parts of a structure, ``(...)``; ``-inf`` if one is forbidden."""
        return self._inner(tree, self._precise).to(value_type(self.scores))

    def _validates(self, at: Tensor) -> bool:
        """Whether to read a tensor for validation, which waits for a GPU."""
        wanted = self._validate == "now" or (bool(self._validate) and not at.is_cuda)
        return wanted and readable(at)

    def _inner(self, weights: Tensor, scores: Tensor) -> Tensor:
        return inner(weights, scores, self.structure.event_dim)

    def log_prob(self, value: Tensor) -> Tensor:
        """Log-probability of structures ``(*sample_shape, *scores.shape)``.

        What is no such structure over its sentence has ``-inf`` if arguments are not validated; on a
        GPU it has unless they are validated "now", since the others never wait.
        """
        value = self._expanded(value)
        good = self.support.check(value)
        if self._validates(good) and not bool(good.all()):
            where = tuple(int(x) for x in (~good).nonzero()[0])
            raise InputError(
                f"Matrix {where} given to log_prob is not of the structure {self.structure}; expected "
                f"0/1 with {self.structure.rules}, and 0 elsewhere. Pass validate_args=False to have "
                "log-probability -inf instead."
            )
        score = inner(value, self._precise, self.structure.event_dim, discrete=True)
        log_prob = score - self._log_partition
        return log_prob.masked_fill(~good, -math.inf).to(value_type(self.scores))

    def _expanded(self, value: Tensor) -> Tensor:
        expected = tuple(self.batch_shape + self.event_shape)
        received = f"a {type(value).__name__}"
        if isinstance(value, Tensor):
            received = f"{value.dtype} ({value.layout}) of shape {tuple(value.shape)}"
            if not value.is_complex() and value.layout == torch.strided:
                with suppress(RuntimeError):
                    if value.shape[-len(self.event_shape) :] == self.event_shape:
                        return value.expand(torch.broadcast_shapes(value.shape, expected))
        raise InputError(
            f"The tree given to log_prob is {received}; expected a dense real tensor {expected}, "
            "possibly with sample dimensions in front (treelax.trees.heads_to_tree takes heads)."
        )

    def entropy(self) -> Tensor:
        r"""Entropy :math:`\log Z - \sum \mu W` in nats, ``(...)``."""
        return _not_negative(_surprise(self, self)).to(value_type(self.scores))

    def cross_entropy(self, other: StructureDistribution) -> Tensor:
        r"""Expected :math:`-\log q(T)` of another distribution q over the same structures, ``(...)``.

        Infinite where q forbids what this one allows.
        """
        divergence: Tensor = torch.distributions.kl_divergence(self, other)
        return self.entropy() + divergence

    def renyi_entropy(self, order: float) -> Tensor:
        r"""Rényi's entropy :math:`\frac{1}{1-\alpha} \log \sum_T p(T)^\alpha` in nats, ``(...)``.

        Args:
            order: :math:`\alpha \ge 0`; 0 counts the structures that are allowed, 1 is `entropy`,
                ``inf`` looks at the best one alone.

        Example:
            >>> from treelax import Projective
            >>> Projective()(torch.randn(4, 4)).renyi_entropy(0).exp().round()
            tensor(12.)
        """
        if not order >= 0:
            raise InputError(f"order is {order}; expected a number of at least 0.")
        if order == 1:
            return self.entropy()
        scores, _, lead = self._from_best
        if order == math.inf:
            return _not_negative(lead).to(value_type(self.scores))
        # forbidden parts stay so; α · -inf would be NaN at 0
        powered = (order * scores).masked_fill(scores == -math.inf, -math.inf)
        powered = within_limit(powered, self.structure.event_dim)
        value = _not_negative((self._led(powered)[1] - order * lead) / (1 - order))
        return value.to(value_type(self.scores))

    def top_k(self, k: int) -> TopK:
        """The ``k`` most probable structures, all different, best first; without a gradient.

        Example:
            >>> from treelax import NonProjective
            >>> best = NonProjective()(torch.zeros(3, 3)).top_k(4)  # there are three
            >>> best.trees.shape, best.log_probs.exp()
            (torch.Size([4, 3, 3]), tensor([0.3333, 0.3333, 0.3333, 0.0000]))
        """
        trees, scores = self.structure.top_k(self._precise, self.lengths, k, **self.options)
        log_probs = scores - self._log_partition.detach()
        return TopK(trees.to(self.scores.dtype), log_probs.to(value_type(self.scores)))

    @property
    def max_marginals(self) -> Tensor:
        """For each part the log-probability of the best structure that has it; without a gradient."""
        best = self.structure.max_marginals(self._precise, self.lengths, **self.options)
        value = self._log_partition.detach().reshape(
            self.batch_shape + (1,) * len(self.event_shape)
        )
        return (best - value).to(self.scores.dtype)

    def sample(
        self,
        sample_shape: Any = torch.Size(),  # noqa: B008  the signature of torch.distributions
        *,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Exact samples ``(*sample_shape, *scores.shape)``, without a gradient."""
        return self.structure.sample(
            self.scores,
            self.lengths,
            sample_shape=sample_shape,
            generator=generator,
            **self.options,
        )

    def perturbed(
        self,
        noise: Noise | None,
        sample_shape: Any = torch.Size(),  # noqa: B008
        *,
        generator: torch.Generator | None = None,
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Scores plus noise ``(*sample_shape, *scores.shape)``, their lengths, and the noise.

        Scores and noise are undefined outside parts. Half types are computed in float32: rounding the
        noise would favour some structures.
        """
        shape = sample_size(sample_shape) + self.batch_shape
        scores = self._precise.expand(shape + self.event_shape)
        lengths = self.lengths.expand(self.structure.lengths_shape(shape))
        if noise is None:
            return scores, lengths, None
        dims = self.structure.event_dim
        parts = self.structure.part_count(lengths)
        # with one dimension for samples and sentences, as several processes share them
        like = scores.new_empty(shape.numel(), *self.event_shape)
        drawn = noise.draw(like, parts.reshape(-1, *(1,) * dims), generator).reshape(scores.shape)
        if self.structure.rooted and not noise.root_arcs:
            drawn.narrow(-dims, 0, 1).zero_()
        return scores + drawn, lengths, drawn

    def rsample(
        self,
        sample_shape: Any = torch.Size(),  # noqa: B008
        *,
        relaxation: Relaxation = "softmax",
        temperature: float | Tensor = 1.0,
        noise: NoiseName | None = "gumbel",
        noise_scale: float = 1.0,
        straight_through: bool = False,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Perturb and parse: relaxed structures of noisy scores, with a gradient; `treelax.Relaxed`.

        Approximate samples: the noise is added to parts, not to whole structures (section 3.2 of the
        paper). With ``straight_through`` the value is the best structure of the perturbed scores, the
        gradient that of their relaxed one.
        """
        source = noise_named(noise, noise_scale)
        one_of("relaxation", relaxation, RELAXATIONS)
        if not isinstance(temperature, Tensor):
            check_temperature(temperature)
        noisy, lengths, _ = self.perturbed(source, sample_shape, generator=generator)
        settings = {"relaxation": relaxation, "temperature": temperature, **self.options}
        result = self.structure.relaxed(noisy, lengths, **settings)
        if straight_through:
            hard = self.structure.argmax(noisy, lengths, **self.options)
            # the bracket is exactly 0, so the value is the discrete structure bit by bit
            result = hard + (result - result.detach())
        return result.to(self.scores.dtype)


def _not_negative(value: Tensor) -> Tensor:
    """At least 0, where rounding may have left a little less; the gradient is left alone."""
    return value + (value.clamp(min=0) - value).detach()


def _surprise(p: StructureDistribution, q: StructureDistribution) -> Tensor:
    r"""Expected :math:`-\log q(T)` under p: ``log Z - s(T*) + Σ (T* - μ) W`` with q's best structure T*;
    of no meaning where q forbids what p allows."""
    scores, _, lead = q._from_best
    return lead + q._inner(q.mode - p._from_best[1], scores)


@register_kl(StructureDistribution, StructureDistribution)
def _kl(p: StructureDistribution, q: StructureDistribution) -> Tensor:
    r"""``KL(p‖q) = Σ μ_p (W_p - W_q) - log Z_p + log Z_q``; infinite where q forbids what p allows."""
    # of labelled structures, those that have the labels
    kinds = [type(getattr(d.structure, "structure", d.structure)) for d in (p, q)]
    if kinds[0] is not kinds[1] or p.structure.event_dim != q.structure.event_dim:
        raise InputError(
            f"p is over {p.structure}, q over {q.structure}; expected structures of one kind."
        )
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
    if p._validates(lengths[0]) and not torch.equal(*lengths):
        raise InputError("The distributions have different lengths; expected equal lengths.")
    forbidden, missing = (x == -math.inf for x in torch.broadcast_tensors(p.scores, q.scores))
    counts = missing.float().masked_fill(forbidden, -math.inf)
    missing = p.structure.has_extra_support(q.structure, counts, lengths[0], backend=p.backend)
    surprise = _surprise(p, q).masked_fill(missing, 0)
    kl = _not_negative(surprise - _surprise(p, p)).masked_fill(missing, math.inf)
    return kl.to(value_type(p.scores))
