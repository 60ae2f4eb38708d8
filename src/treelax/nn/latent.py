"""The layer that turns word vectors into a tree."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn

from treelax.distributions import ProjectiveTrees
from treelax.errors import InputError
from treelax.nn.checks import check_lengths, check_vectors
from treelax.noise import NOISES, Noise, perturbed
from treelax.ops import best_tree, select_heads, soft_tree
from treelax.ops.checks import one_of
from treelax.ops.eisner.common import RELAXATIONS, Relaxation

Structure = Literal["projective", "heads"]
STRUCTURES: tuple[str, ...] = ("projective", "heads")


class LatentTree(nn.Module):
    r"""Induces a tree over the words of each sentence, learned from the task alone.

    While training, perturb and parse: :math:`T = \mathrm{relaxed\,argmax}(W + G)` with noise
    :math:`G`; in evaluation mode, the best tree of :math:`W`, discrete and without a gradient.

    Args:
        scorer: module from vectors ``(..., n + 1, d)`` to scores ``(..., n + 1, n + 1)``, for
            instance `ArcScorer`.
        structure: "projective" trees, or "heads": every word chooses its head on its own.
        relaxation: "softmax" (the paper's) or "entropy" (arc marginals); for projective trees.
        temperature: of the relaxation.
        noise: "gumbel", "sum-of-gamma", or "none" for training without noise (the paper's G = 0).
        noise_scale: factor of the noise.
        straight_through: while training give the discrete tree of the perturbed scores, exactly 0
            and 1, with the gradient of their soft tree.
        single_root: allow one modifier of the root only; for projective trees.
        validate: check the values of scores and lengths, and that every sentence has a tree. By
            default on the CPU only, where it costs nothing; on a GPU it waits at every call. A
            sentence with a NaN that is not refused gets NaN in every arc.

    Shape:
        vectors ``(..., n + 1, d)``, the root's first, and lengths ``(...)`` that count words, or None
        if all have ``n``, to a tree ``(..., n + 1, n + 1)`` whose columns, but the root's, sum to 1;
        0 in the padding.

    Raises:
        InputError: a setting that does not exist or is out of range; or, when called, vectors,
            lengths or scores of the wrong shape, type or device.
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
        *,
        structure: Structure = "projective",
        relaxation: Relaxation = "softmax",
        temperature: float = 1.0,
        noise: Noise | None = "gumbel",
        noise_scale: float = 1.0,
        straight_through: bool = False,
        single_root: bool = False,
        validate: bool | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(scorer, nn.Module):
            raise InputError(
                f"scorer is a {type(scorer).__name__}; expected a torch.nn.Module from vectors to "
                "scores, such as treelax.nn.ArcScorer."
            )
        one_of("structure", structure, STRUCTURES)
        one_of("relaxation", relaxation, RELAXATIONS)
        noise = noise or "none"
        one_of("noise", noise, NOISES)
        if not 0 < temperature < math.inf:
            raise InputError(f"temperature is {temperature}; expected a positive finite number.")
        if not 0 <= noise_scale < math.inf:
            raise InputError(
                f"noise_scale is {noise_scale}; expected a finite number of at least 0."
            )
        if structure == "heads" and single_root:
            raise InputError(
                'single_root is True with structure="heads"; expected False: words that choose '
                'alone cannot agree on one root. Use structure="projective".'
            )
        self.scorer = scorer
        self.structure = structure
        self.relaxation: Relaxation = relaxation
        self.temperature = temperature
        self.noise: Noise = noise
        self.noise_scale = noise_scale
        self.straight_through = straight_through
        self.single_root = single_root
        self.validate = validate

    def forward(
        self,
        vectors: Tensor,
        lengths: Tensor | None = None,
        *,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """A perturbed soft tree while training, the best tree in evaluation mode.

        Args:
            vectors: ``(..., n + 1, d)``, the root's first.
            lengths: ``(...)`` words per sentence, or None if all have ``n``.
            generator: source of the noise; torch's own by default. ``torch.compile`` cannot take
                one into its graph: seed torch itself there.
        """
        scores = self._scores(vectors, lengths)
        if not self.training:
            return self.discrete(scores, lengths)
        return self.sample(scores, lengths, generator=generator)

    def distribution(self, vectors: Tensor, lengths: Tensor | None = None) -> ProjectiveTrees:
        """The distribution over trees that the scores define, without noise.

        Args:
            vectors: ``(..., n + 1, d)``, the root's first.
            lengths: ``(...)`` words per sentence, or None if all have ``n``.

        Raises:
            InputError: as `forward`; or the structure is "heads", which has no trees.

        Example:
            >>> from treelax.nn import ArcScorer
            >>> LatentTree(ArcScorer(8, 16)).distribution(torch.randn(2, 5, 8)).entropy().shape
            torch.Size([2])
        """
        if self.structure == "heads":
            raise InputError('structure is "heads"; expected "projective" for a distribution.')
        scores = self._scores(vectors, lengths)
        return ProjectiveTrees(
            scores, lengths, single_root=self.single_root, validate_args=self._validates(scores)
        )

    def sample(
        self,
        scores: Tensor,
        lengths: Tensor | None = None,
        *,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Perturb scores and relax; what `forward` does while training.

        Args:
            scores: ``(..., n + 1, n + 1)``.
            lengths: ``(...)`` words per sentence, or None if all have ``n``.
            generator: source of the noise; torch's own by default.
        """
        noisy = perturbed(scores, lengths, self.noise, scale=self.noise_scale, generator=generator)
        soft = self.soft(noisy, lengths)
        if self.straight_through:
            # the bracket is exactly 0, so the value is the discrete tree bit by bit
            soft = self.discrete(noisy, lengths) + (soft - soft.detach())
        return soft.to(scores.dtype)

    def soft(self, scores: Tensor, lengths: Tensor | None = None) -> Tensor:
        """The relaxed tree of given scores, without noise."""
        if self.structure == "heads":
            return select_heads(
                scores, lengths, temperature=self.temperature, validate=self._validates(scores)
            )
        return soft_tree(
            scores,
            lengths,
            relaxation=self.relaxation,
            temperature=self.temperature,
            single_root=self.single_root,
            validate=self._validates(scores),
        )

    def discrete(self, scores: Tensor, lengths: Tensor | None = None) -> Tensor:
        """The best tree of given scores, 0/1, without noise and without a gradient."""
        validate = self._validates(scores)
        if self.structure == "heads":
            return select_heads(scores, lengths, hard=True, validate=validate)
        return best_tree(scores, lengths, single_root=self.single_root, validate=validate)

    def extra_repr(self) -> str:
        """The settings."""
        names = (
            *("structure", "relaxation", "temperature", "noise", "noise_scale"),
            *("straight_through", "single_root", "validate"),
        )
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in names)

    def _validates(self, scores: Tensor) -> bool:
        return scores.device.type == "cpu" if self.validate is None else self.validate

    def _scores(self, vectors: Tensor, lengths: Tensor | None) -> Tensor:
        check_vectors("vectors", vectors, "...", "n + 1", "d")
        if vectors.shape[-2] == 0:
            raise InputError(
                f"vectors has shape {tuple(vectors.shape)}; expected at least the root: "
                "treelax.nn.Root puts it in front."
            )
        check_lengths(lengths, vectors)
        scores = self.scorer(vectors)
        expected = (*vectors.shape[:-1], vectors.shape[-2])
        if not isinstance(scores, Tensor) or tuple(scores.shape) != expected:
            shape = tuple(scores.shape) if isinstance(scores, Tensor) else type(scores).__name__
            raise InputError(
                f"scorer made {shape} of vectors {tuple(vectors.shape)}; expected {expected}: a "
                "score for every head and modifier."
            )
        return scores
