"""The layer that turns word vectors into a tree."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from treelax.errors import InputError
from treelax.nn.scorer import ArcScorer
from treelax.noise import NOISES, perturbation
from treelax.ops import best_tree, select_heads, soft_tree
from treelax.ops.checks import one_of
from treelax.ops.eisner.common import RELAXATIONS

Structure = Literal["projective", "heads"]
STRUCTURES = ("projective", "heads")


class LatentTree(nn.Module):
    r"""Induces a tree over the words of each sentence, learned from the task alone.

    While training, perturb and parse: :math:`T = \mathrm{relaxed\,argmax}(W + G)` with noise
    :math:`G`; in evaluation mode, the best tree of :math:`W`, discrete.

    Args:
        scorer: module from vectors ``(..., n + 1, d)`` to scores ``(..., n + 1, n + 1)``, for
            instance `ArcScorer`.
        structure: "projective" trees, or "heads": every word chooses its head on its own.
        relaxation: "softmax" (the paper's) or "entropy" (arc marginals); for projective trees.
        temperature: of the relaxation.
        noise: "gumbel", "sum-of-gamma", or "none" for training without noise (the paper's G = 0).
        noise_scale: factor of the noise.
        straight_through: while training give the discrete tree of the perturbed scores, with the
            gradient of the soft one.
        single_root: allow one modifier of the root only.

    Shape:
        vectors ``(..., n + 1, d)``, the root's first, and lengths ``(...)`` that count words, to a
        tree ``(..., n + 1, n + 1)`` whose columns, but the root's, sum to 1; 0 in the padding.

    Raises:
        InputError: an unknown name.

    Example:
        >>> layer = LatentTree(ArcScorer(8, 16))
        >>> vectors, lengths = torch.randn(2, 5, 8), torch.tensor([4, 2])
        >>> layer(vectors, lengths).sum(-2).allclose(torch.tensor([[0., 1, 1, 1, 1], [0, 1, 1, 0, 0]]))
        True
        >>> layer.eval()(vectors, lengths).unique()
        tensor([0., 1.])

    Reference:
        Corro & Titov (2019), section 3.
    """

    def __init__(
        self,
        scorer: nn.Module,
        *,
        structure: Structure = "projective",
        relaxation: Literal["softmax", "entropy"] = "softmax",
        temperature: float = 1.0,
        noise: str = "gumbel",
        noise_scale: float = 1.0,
        straight_through: bool = False,
        single_root: bool = False,
    ) -> None:
        super().__init__()
        one_of("structure", structure, STRUCTURES)
        one_of("relaxation", relaxation, RELAXATIONS)
        one_of("noise", noise, NOISES)
        if structure == "heads" and single_root:
            raise InputError('single_root is True; expected False with structure="heads"')
        self.scorer = scorer
        self.structure = structure
        self.relaxation = relaxation
        self.temperature = temperature
        self.noise = noise
        self.noise_scale = noise_scale
        self.straight_through = straight_through
        self.single_root = single_root

    def forward(
        self, vectors: Tensor, lengths: Tensor, *, generator: torch.Generator | None = None
    ) -> Tensor:
        """A perturbed soft tree while training, the best tree in evaluation mode.

        Args:
            vectors: ``(..., n + 1, d)``.
            lengths: ``(...)`` words per sentence.
            generator: source of the noise.
        """
        scores = self.scorer(vectors)
        if not self.training:
            return self.discrete(scores, lengths)
        return self.sample(scores, lengths, generator=generator)

    def sample(
        self, scores: Tensor, lengths: Tensor, *, generator: torch.Generator | None = None
    ) -> Tensor:
        """Perturb scores and relax; what `forward` does while training."""
        if self.noise != "none":
            noise = perturbation(self.noise, scores, lengths, generator=generator)
            scores = scores + (noise if self.noise_scale == 1 else noise * self.noise_scale)
        soft = self.soft(scores, lengths)
        if not self.straight_through:
            return soft
        return soft + (self.discrete(scores.detach(), lengths) - soft).detach()

    def soft(self, scores: Tensor, lengths: Tensor) -> Tensor:
        """The relaxed tree of given scores, without noise."""
        if self.structure == "heads":
            return select_heads(
                scores, lengths, temperature=self.temperature, validate=self._validate
            )
        return soft_tree(
            scores,
            lengths,
            relaxation=self.relaxation,
            temperature=self.temperature,
            single_root=self.single_root,
            validate=self._validate,
        )

    def discrete(self, scores: Tensor, lengths: Tensor) -> Tensor:
        """The best tree of given scores."""
        if self.structure == "heads":
            return select_heads(scores, lengths, hard=True, validate=self._validate)
        return best_tree(
            scores, lengths, single_root=self.single_root, validate=self._validate
        )

    @property
    def _validate(self) -> bool:
        """Scores that come from a network are not checked: that would wait for the GPU."""
        return False

    def extra_repr(self) -> str:
        """The settings."""
        return (
            f"structure={self.structure}, relaxation={self.relaxation}, "
            f"temperature={self.temperature}, noise={self.noise}, "
            f"straight_through={self.straight_through}, single_root={self.single_root}"
        )
