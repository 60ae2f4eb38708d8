"""The layer that turns word vectors into a latent structure."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from treelax.distributions import StructureDistribution
from treelax.errors import InputError
from treelax.estimators import Estimator, Relaxed, StraightThrough
from treelax.nn.checks import check_lengths, check_vectors
from treelax.noise import NoiseName, noise_named
from treelax.ops.backend import Relaxation
from treelax.ops.problems import Validate
from treelax.structures import Structure, StructureName, structure_named


class LatentTree(nn.Module):
    r"""Induces a structure over the words of each sentence, learned from the task alone.

    While training, what the estimator makes of the scores: by default perturb and parse,
    :math:`T = \mathrm{relaxed\,argmax}(W + G)` with noise :math:`G`; in evaluation mode, the best
    structure of :math:`W`, discrete and without a gradient.

    Trees of arcs need the root's vector at index 0: put `treelax.nn.Root` in front of this layer. If it
    is forgotten, the first word silently becomes the root and has no head wherever lengths are below
    the number of vectors.

    Args:
        scorer: module from vectors to scores, for instance `ArcScorer`, `SpanScorer` for
            `treelax.Binary` or `ChainScorer` for `treelax.Chain`. If it has an attribute ``part``,
            "arc", "span" or "transition", that is what it scores; it is called with lengths too if it
            has a true attribute ``takes_lengths``.
        structure: `treelax.Projective`, `treelax.NonProjective`, `treelax.Heads`, `treelax.Binary`, one
            of them in `treelax.Labelled`, or their names; or `treelax.Chain`.
        estimator: any of `treelax.estimators`, such as `treelax.IMLE`; those without a structure to
            give, such as `treelax.RLOO`, train by `expect`. Or leave it out and give the settings of
            `treelax.Relaxed`:
        relaxation: "softmax" (the paper's) or "entropy" (arc marginals); None for softmax, or entropy
            with non-projective trees, which have no other.
        temperature: of the relaxation.
        noise: "gumbel", "gaussian", "sum-of-gamma", or "none" for training without noise (the paper's
            G = 0).
        noise_scale: factor of the noise.
        straight_through: while training give the discrete tree of the perturbed scores, exactly 0
            and 1, with the gradient of their soft tree.
        single_root: allow one modifier of the root only, with a structure given by name.
        validate: check the values of scores and lengths, and that every sentence has a structure. A
            GPU finds out later, unless this is "now"; see `treelax.ops.best_tree`. A sentence with a
            NaN that is not refused gets NaN in every arc.

    Shape:
        vectors ``(..., n + 1, d)``, the root's first, and lengths ``(...)`` that count words, or None
        if all have ``n``, to a tree ``(..., n + 1, n + 1)`` whose columns, but the root's, sum to 1;
        0 in the padding, where vectors may hold anything. For spans and chains vectors are
        ``(..., n, d)``, trees ``(..., n, n)`` and chains ``(..., n, C, C)``; labels come behind.

    Raises:
        NoTreeError: the forbidden arcs of a sentence leave no tree (if validated).

    Example:
        >>> from treelax.nn import ArcScorer
        >>> layer = LatentTree(ArcScorer(8, 16))
        >>> vectors, lengths = torch.randn(2, 5, 8), torch.tensor([4, 2])
        >>> layer(vectors, lengths).sum(-2).round(decimals=4)
        tensor([[0., 1., 1., 1., 1.],
                [0., 1., 1., 0., 0.]], grad_fn=<RoundBackward1>)
        >>> layer.eval()(vectors, lengths).unique()
        tensor([0., 1.])

    Reference:
        Corro & Titov (2019), sections 3 and 4; straight-through in section 5.2.
    """

    def __init__(
        self,
        scorer: nn.Module,
        structure: Structure | StructureName = "projective",
        estimator: Estimator | None = None,
        *,
        relaxation: Relaxation | None = None,
        temperature: float = 1.0,
        noise: NoiseName | None = "gumbel",
        noise_scale: float = 1.0,
        straight_through: bool = False,
        single_root: bool = False,
        validate: Validate = True,
    ) -> None:
        super().__init__()
        if not isinstance(scorer, nn.Module):
            raise InputError(
                f"scorer is a {type(scorer).__name__}; expected a torch.nn.Module from vectors to "
                "scores, such as treelax.nn.ArcScorer."
            )
        if not isinstance(structure, Structure):
            structure = structure_named(structure, single_root=single_root)
        elif single_root:
            raise InputError(f"single_root is True beside {structure}; expected it in that.")
        part = getattr(scorer, "part", None)
        if isinstance(part, str) and part != structure.part:
            layers = {"arc": "ArcScorer", "span": "SpanScorer", "transition": "ChainScorer"}
            example = f'a module of your own with part = "{structure.part}"'
            if structure.part in layers:
                example = f"treelax.nn.{layers[structure.part]}"
            raise InputError(
                f"scorer scores {part}s ({type(scorer).__name__}) for {structure}; expected a scorer of "
                f"{structure.part}s, such as {example}."
            )
        usual = structure.relaxations[0]
        relaxed = Relaxed(relaxation or usual, temperature, noise_named(noise, noise_scale))
        described = StraightThrough(relaxed) if straight_through else relaxed
        if estimator is None:
            estimator = described
        elif not isinstance(estimator, Estimator):
            raise InputError(
                f"estimator is {estimator!r}; expected an object such as treelax.IMLE()."
            )
        elif described != Relaxed(usual):
            raise InputError(
                f"estimator is {estimator!r} beside the settings of {described}; expected either an "
                "estimator such as treelax.Relaxed() or its settings."
            )
        estimator.check_structure(structure)
        self.scorer = scorer
        self.structure = structure
        self.estimator = estimator
        self.validate = validate

    def forward(
        self,
        vectors: Tensor,
        lengths: Tensor | None = None,
        *,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """What the estimator samples while training, the best structure in evaluation mode.

        Noise comes from the generator, torch's by default. ``torch.compile`` cannot take one
        into its graph: seed torch itself there.
        """
        distribution = self.distribution(vectors, lengths)
        if not self.training:
            return distribution.mode
        return self.estimator.sample(distribution, generator=generator)

    def distribution(self, vectors: Tensor, lengths: Tensor | None = None) -> StructureDistribution:
        """The distribution over structures that the scores define, without noise.

        Example:
            >>> from treelax.nn import ArcScorer
            >>> LatentTree(ArcScorer(8, 16)).distribution(torch.randn(2, 5, 8)).entropy().shape
            torch.Size([2])
        """
        scores = self._scores(vectors, lengths)
        return StructureDistribution(self.structure, scores, lengths, validate_args=self.validate)

    def expect(
        self,
        vectors: Tensor,
        lengths: Tensor | None,
        f: Callable[[Tensor], Tensor],
        *,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """The expected loss ``(...)`` by the estimator.

        ``f`` takes structures ``(samples, *scores.shape)`` and returns losses ``(samples, ...)``.
        """
        return self.estimator.expect(self.distribution(vectors, lengths), f, generator=generator)

    def sample(
        self,
        scores: Tensor,
        lengths: Tensor | None = None,
        *,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """What the estimator samples for given scores, as `forward` does while training."""
        trees = self.distribution_from_scores(scores, lengths)
        return self.estimator.sample(trees, generator=generator)

    def soft(self, scores: Tensor, lengths: Tensor | None = None) -> Tensor:
        """The soft structure of given scores, as the estimator makes it without noise."""
        return self.estimator.soft(self.distribution_from_scores(scores, lengths)).to(scores.dtype)

    def discrete(self, scores: Tensor, lengths: Tensor | None = None) -> Tensor:
        """The best structure of given scores, 0/1, without noise and without a gradient."""
        return self.distribution_from_scores(scores, lengths).mode

    def extra_repr(self) -> str:
        names = ("structure", "estimator", "validate")
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in names)

    def distribution_from_scores(
        self, scores: Tensor, lengths: Tensor | None = None
    ) -> StructureDistribution:
        """The distribution over structures of given scores."""
        return self.structure(scores, lengths, validate_args=self.validate)

    def _scores(self, vectors: Tensor, lengths: Tensor | None) -> Tensor:
        rooted = self.structure.rooted
        check_vectors("vectors", vectors, "...", "n + 1" if rooted else "n", "d")
        if rooted and vectors.shape[-2] == 0:
            given = tuple(vectors.shape)
            raise InputError(
                f"vectors has shape {given}; expected the root's: use treelax.nn.Root."
            )
        check_lengths(lengths, vectors)
        if lengths is not None:  # NaN in the padding would reach the scorer's gradient: 0 · NaN
            place = torch.arange(vectors.shape[-2], device=vectors.device)
            padding = place >= lengths[..., None] + int(rooted)
            vectors = vectors.masked_fill(padding[..., None], 0)
        takes_lengths = getattr(self.scorer, "takes_lengths", False)
        scores: Tensor = self.scorer(vectors, lengths) if takes_lengths else self.scorer(vectors)
        self.structure.check_scores(scores)
        dims, words = self.structure.event_dim, vectors.shape[-2] - rooted
        batch, event = scores.shape[:-dims], scores.shape[-dims:]
        if batch != vectors.shape[:-2] or self.structure.sizes(*event)[0] != words:
            raise InputError(
                f"scorer made {tuple(scores.shape)} of vectors {tuple(vectors.shape)}; expected scores "
                f"of {words} words for each of {tuple(vectors.shape[:-2])}."
            )
        return scores
