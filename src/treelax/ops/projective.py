"""Projective trees: the best one, relaxed ones, their partition function, and exact samples."""

from __future__ import annotations

import torch
from torch import Tensor

from treelax.ops.backend import Relaxation
from treelax.ops.call import make_call
from treelax.ops.eisner import ALGORITHM
from treelax.ops.problems import Validate


def best_tree(
    scores: Tensor,
    lengths: Tensor | None = None,
    *,
    single_root: bool = False,
    validate: Validate = True,
    backend: str | None = None,
) -> Tensor:
    r"""The projective tree of the highest score, by Eisner's algorithm.

    .. math:: \operatorname*{argmax}_{T} \sum_{h,m} W_{h,m} T_{h,m}

    Args:
        scores: ``(..., n+1, n+1)``; ``scores[..., h, m]`` is the weight of the arc from head ``h`` to
            modifier ``m``, index 0 the root, ``-inf`` a forbidden arc; finite scores beyond ±1e30
            count as ±1e30. The diagonal, column 0 and everything beyond the length are not read.
            A sentence with a NaN, if it is not refused, gets NaN in every arc.
        lengths: ``(...)`` words per sentence (the root not counted), or None if all have ``n``.
        single_root: allow one modifier of the root only.
        validate: check the values of scores and lengths, and that every sentence has a tree. A GPU
            finds out later: the next call raises it, a backward pass, or `treelax.ops.synchronize`;
            with ``"now"`` the call waits and raises it itself.
        backend: ``"reference"``, ``"diagonal"``, ``"native"``, ``"triton"`` or ``"cuda"``; None takes
            the fastest.

    Returns:
        ``(..., n+1, n+1)`` of 0 and 1 in the dtype of the scores, without a gradient. Among trees of
        equal score the one with the smallest splits, the same in every backend.

    Raises:
        NoTreeError: the forbidden arcs of a sentence leave no tree.

    Example:
        >>> import torch
        >>> scores = torch.tensor([[0.0, 1.0, 2.0], [0.0, 0.0, 3.0], [0.0, 1.5, 0.0]])
        >>> best_tree(scores)  # root → 1 → 2
        tensor([[0., 1., 0.],
                [0., 0., 1.],
                [0., 0., 0.]])

    Reference:
        Eisner (1996), Three new probabilistic models for dependency parsing, COLING.
    """
    call = make_call(
        ALGORITHM, scores, lengths, single_root=single_root, validate=validate, backend=backend
    )
    return call.best()


def soft_tree(
    scores: Tensor,
    lengths: Tensor | None = None,
    *,
    relaxation: Relaxation = "softmax",
    temperature: float | Tensor = 1.0,
    single_root: bool = False,
    validate: Validate = True,
    backend: str | None = None,
) -> Tensor:
    r"""A tree with fractional arcs: Eisner's algorithm with every argmax replaced by a softmax.

    In each cell of the chart, with ``s`` the scores of its splits,

    .. math:: b = \operatorname{softmax}(s/\tau), \qquad
        v = b \cdot s \ (\text{softmax}) \quad \text{or} \quad
        v = \tau \log \sum_k \exp(s_k/\tau) \ (\text{entropy})

    is passed up, and the contribution of a cell is handed down through ``b``. ``"softmax"`` is the
    relaxation of Corro & Titov (2019). ``"entropy"`` gives the arc marginals of the distribution
    :math:`p(T) \propto \exp(\sum W T/\tau)`, the gradient of `log_partition`. Both tend to the best
    tree as the temperature tends to 0. How to choose: ``docs/relaxations.md``.

    Arguments that are not listed are those of `best_tree`.

    Args:
        relaxation: ``"softmax"`` or ``"entropy"``.
        temperature: a positive number, or a tensor that broadcasts to the batch shape (it gets a
            gradient).

    Returns:
        ``(..., n+1, n+1)`` in [0, 1]: every word's column sums to 1, all else is exactly 0. Has a
        gradient of first order with respect to the scores.

    Raises:
        NoTreeError: the forbidden arcs of a sentence leave no tree.

    Example:
        >>> import torch
        >>> soft_tree(torch.zeros(3, 3), relaxation="entropy")  # three trees over two words
        tensor([[0.0000, 0.6667, 0.6667],
                [0.0000, 0.0000, 0.3333],
                [0.0000, 0.3333, 0.0000]])

    Reference:
        Corro & Titov (2019), Learning Latent Trees with Stochastic Perturbations and Differentiable
        Dynamic Programming, ACL, section 4.
    """
    call = make_call(
        *(ALGORITHM, scores, lengths),
        relaxation=relaxation,
        temperature=temperature,
        single_root=single_root,
        validate=validate,
        backend=backend,
    )
    return call.soft()[0]


def log_partition(
    scores: Tensor,
    lengths: Tensor | None = None,
    *,
    single_root: bool = False,
    validate: Validate = True,
    backend: str | None = None,
) -> Tensor:
    r"""Log of the summed weight of all projective trees.

    .. math:: \log Z = \log \sum_T \exp \Bigl(\sum_{h,m} W_{h,m} T_{h,m}\Bigr)

    The arguments are those of `best_tree`.

    Returns:
        ``(...)``; its gradient is the arc marginals, computed in the same run. Half types give
        float32 under autocast, as torch's losses do.

    Raises:
        NoTreeError: the forbidden arcs of a sentence leave no tree.

    Example:
        >>> import torch
        >>> log_partition(torch.zeros(5, 5)).exp().round()  # trees over four words
        tensor(55.)
    """
    call = make_call(
        ALGORITHM, scores, lengths, single_root=single_root, validate=validate, backend=backend
    )
    return call.log_partition()


def sample_tree(
    scores: Tensor,
    lengths: Tensor | None = None,
    *,
    sample_shape: tuple[int, ...] = (),
    generator: torch.Generator | None = None,
    single_root: bool = False,
    validate: Validate = True,
    backend: str | None = None,
) -> Tensor:
    r"""Exact samples of trees, :math:`p(T) \propto \exp(\sum W T)`.

    The chart of `log_partition` is filled once; each sample then walks down from the top and chooses
    a split in every cell with its probability: ``2n`` choices and O(n²) time a sample.

    Arguments that are not listed are those of `best_tree`.

    Args:
        sample_shape: shape of independent samples, put in front of the batch.
        generator: source of randomness; the same state gives the same trees.

    Returns:
        ``(*sample_shape, ..., n+1, n+1)`` of 0 and 1, without a gradient.

    Raises:
        NoTreeError: the forbidden arcs of a sentence leave no tree.

    Example:
        >>> import torch
        >>> trees = sample_tree(torch.zeros(3, 3), sample_shape=(1000,),
        ...                     generator=torch.Generator().manual_seed(0))
        >>> trees.shape, trees.sum(-2)[:, 1:].unique().tolist()
        (torch.Size([1000, 3, 3]), [1.0])
    """
    call = make_call(
        ALGORITHM, scores, lengths, single_root=single_root, validate=validate, backend=backend
    )
    return call.sample(sample_shape, generator)
