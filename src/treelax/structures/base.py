"""The base of every latent structure, and of those that an algorithm of ops computes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Unpack

import torch
from torch import Tensor

from treelax.distributions import StructureDistribution
from treelax.interface import Options, StructureInterface
from treelax.ops.backend import RELAXATIONS, Algorithm, Relaxation
from treelax.ops.call import Call, make_call
from treelax.ops.problems import Validate
from treelax.ops.sparsemap.function import sparsemap
from treelax.ops.sparsemap.result import SparseMap
from treelax.structures import search, sparse


class Structure(StructureInterface):
    """What a latent variable is: which entries of a score tensor are its parts, and exact algorithms.

    A structure is a small frozen object, equal to any other with the same settings. Its value is a
    tensor of the shape of the scores, 1 at the parts that it is made of. Calling it with scores gives
    their distribution.

    All methods take scores and lengths ``(...)``, ``validate`` to check values, and ``backend`` where
    there is a choice, as `treelax.ops.best_tree` does. Scores are ``(..., n+1, n+1)`` where parts are
    arcs and ``(..., n, n)`` where they are spans or edges; labels have a dimension behind these.
    Chains, segments and alignments have shapes of their own.

    Example:
        >>> from treelax.structures import Projective
        >>> Projective(single_root=True)(torch.zeros(5, 5)).log_partition.exp().round()
        tensor(30.)
    """

    def __call__(
        self,
        scores: Tensor,
        lengths: Tensor | None = None,
        *,
        backend: str | None = None,
        validate_args: Validate | None = None,
    ) -> StructureDistribution:
        """The distribution with probabilities proportional to the exponential of the summed scores."""
        return StructureDistribution(
            self, scores, lengths, backend=backend, validate_args=validate_args
        )

    def top_k(
        self, scores: Tensor, lengths: Tensor | None = None, k: int = 1, **options: Unpack[Options]
    ) -> tuple[Tensor, Tensor]:
        """The ``k`` best structures ``(k, ...)``, all different, and their scores ``(k, ...)``.

        Best first; where there are fewer, zeros with a score of ``-inf``. No gradient.
        """
        return search.top_k(self, scores, lengths, k, **options)

    def max_marginals(
        self, scores: Tensor, lengths: Tensor | None = None, **options: Unpack[Options]
    ) -> Tensor:
        """For each part the score of the best structure that has it; ``-inf`` where none has."""
        return search.max_marginals(self, scores, lengths, **options)

    def sparsemap(
        self,
        scores: Tensor,
        lengths: Tensor | None = None,
        *,
        start: Tensor | None = None,
        max_iterations: int | None = None,
        **options: Unpack[Options],
    ) -> SparseMap:
        r"""The point nearest to the scores among all mixtures of structures, which mixes a few.

        .. math:: \operatorname*{argmin}_{z \in \operatorname{conv}(\text{structures})}
            \tfrac12 \|z - \theta\|^2

        Exact, by an active set of structures; ``src/treelax/ops/sparsemap/README.md`` has the maths.

        Args:
            scores: as elsewhere; a forbidden part is in none of the structures.
            lengths: as elsewhere.
            start: structures 0/1 to start from, of the shape of the scores; good ones save time and
                change nothing else.
            max_iterations: structures that may be added to the first one; None for as many as it takes.
            options: as elsewhere.

        Returns:
            ``tree``, the point, with a gradient of first order; ``gap``, by how much a structure could
            still improve on it; ``support``, the structures and their weights.

        Example:
            >>> from treelax.structures import Projective
            >>> found = Projective().sparsemap(torch.tensor([[0, 1, 1.5], [0, 0, 1], [0, 0.5, 0]]))
            >>> found.tree
            tensor([[0.0000, 0.7500, 0.7500],
                    [0.0000, 0.0000, 0.2500],
                    [0.0000, 0.2500, 0.0000]])
            >>> found.support.weights
            tensor([0.5000, 0.2500, 0.2500])

        Reference:
            Niculae, Martins, Blondel & Cardie (2018), SparseMAP: Differentiable Sparse Structured
            Inference, ICML.
        """
        if start is not None:
            sparse.check_member(self, start, scores, lengths, options.get("validate", True))
        return sparse.by_argmax(self, scores, lengths, start, max_iterations, **options)


class AlgorithmStructure(Structure):
    """What an algorithm of `treelax.ops` computes."""

    algorithm: ClassVar[Algorithm]
    single_root: bool = False

    @property
    def _call(self) -> Callable[..., Call]:
        return partial(make_call, self.algorithm, single_root=self.single_root)

    def argmax(
        self, scores: Tensor, lengths: Tensor | None = None, **options: Unpack[Options]
    ) -> Tensor:
        return self._call(scores, lengths, **options).best()

    def log_partition(
        self, scores: Tensor, lengths: Tensor | None = None, **options: Unpack[Options]
    ) -> Tensor:
        return self._call(scores, lengths, **options).log_partition()

    def marginals(
        self, scores: Tensor, lengths: Tensor | None = None, **options: Unpack[Options]
    ) -> tuple[Tensor, Tensor]:
        call = self._call(scores, lengths, **options)
        tree, value = call.soft()
        return tree, call.restore_value(value)

    def sample(
        self,
        scores: Tensor,
        lengths: Tensor | None = None,
        *,
        sample_shape: Any = (),
        generator: torch.Generator | None = None,
        **options: Unpack[Options],
    ) -> Tensor:
        return self._call(scores, lengths, **options).sample(sample_shape, generator)

    def relaxed(
        self,
        scores: Tensor,
        lengths: Tensor | None = None,
        *,
        relaxation: Relaxation = "softmax",
        temperature: float | Tensor = 1.0,
        **options: Unpack[Options],
    ) -> Tensor:
        if relaxation in RELAXATIONS:  # others are mistyped
            self.check_relaxation(relaxation)
        settings = {"relaxation": relaxation, "temperature": temperature, **options}
        return self._call(scores, lengths, **settings).soft()[0]

    def sparsemap(
        self,
        scores: Tensor,
        lengths: Tensor | None = None,
        *,
        start: Tensor | None = None,
        max_iterations: int | None = None,
        **options: Unpack[Options],
    ) -> SparseMap:
        call = self._call(scores, lengths, **options)
        if start is not None:
            sparse.check_member(self, start, scores, lengths, options.get("validate", True))
        return sparsemap(call, start, max_iterations)
