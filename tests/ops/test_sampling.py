"""Exact samples: frequencies against enumerated probabilities by a chi-square test."""

import oracle
import pytest
import torch
from scipy import stats

from treelax import ops
from treelax.trees import tree_to_heads

#: With fixed seeds a test either always passes or always fails; a right sampler fails at one seed in
#: a thousand, a wrong one at all of them.
SIGNIFICANCE = 1e-3
SAMPLES = 20_000


@pytest.mark.parametrize("backend", ["diagonal", "native"])
@pytest.mark.parametrize("single_root", [False, True])
@pytest.mark.parametrize(
    ("n", "dtype"), [(2, torch.float64), (4, torch.float64), (4, torch.float32)]
)
def test_frequencies(n, dtype, single_root, backend, generator):
    scores = torch.randn(n + 1, n + 1, dtype=dtype, generator=generator)
    trees = ops.sample_tree(
        scores,
        sample_shape=(SAMPLES,),
        generator=generator,
        single_root=single_root,
        backend=backend,
    )
    heads = tree_to_heads(trees)
    every = oracle.all_trees(n, single_root)
    same = (heads[:, None] == every).all(-1)
    assert same.any(-1).all()  # nothing but projective trees
    observed = same.sum(0).numpy()
    expected = (SAMPLES * oracle.probabilities(scores, single_root)).numpy()
    rare = expected < 5  # the chi-square approximation wants five expected in every bin
    if rare.any():
        observed = [*observed[~rare], observed[rare].sum()]
        expected = [*expected[~rare], expected[rare].sum()]
    assert stats.chisquare(observed, expected).pvalue > SIGNIFICANCE


def test_a_wrong_sampler_would_be_caught(generator):
    """Perturb-and-parse is not exact sampling, and the test above can tell."""
    scores = torch.randn(4, 4, dtype=torch.float64, generator=generator)
    noise = -torch.empty(SAMPLES, 4, 4, dtype=torch.float64).exponential_(generator=generator).log()
    heads = tree_to_heads(ops.best_tree(scores + noise))
    observed = (heads[:, None] == oracle.all_trees(3)).all(-1).sum(0).numpy()
    expected = (SAMPLES * oracle.probabilities(scores)).numpy()
    assert stats.chisquare(observed, expected).pvalue < SIGNIFICANCE


def test_ragged_batches_and_forbidden_arcs(generator):
    scores = torch.zeros(3, 6, 6)
    scores[:, 1, 2] = -torch.inf
    lengths = torch.tensor([5, 3, 2])
    trees = ops.sample_tree(scores, lengths, sample_shape=(500,), generator=generator)
    assert (trees[:, :, 1, 2] == 0).all()
    assert torch.equal(trees.sum((-2, -1)), lengths.expand(500, 3).float())


@pytest.mark.parametrize("backend", ["reference", "diagonal", "native"])
def test_the_same_generator_gives_the_same_trees(backend):
    scores = torch.randn(4, 8, 8, generator=torch.Generator().manual_seed(0))

    def draw(seed):
        return ops.sample_tree(
            scores,
            sample_shape=(3,),
            generator=torch.Generator().manual_seed(seed),
            backend=backend,
        )

    assert torch.equal(draw(1), draw(1))
    assert not torch.equal(draw(1), draw(2))
    torch.manual_seed(5)  # serves when no generator is given
    first = ops.sample_tree(scores, backend=backend)
    torch.manual_seed(5)
    assert torch.equal(first, ops.sample_tree(scores, backend=backend))


@pytest.mark.parametrize("backend", ["reference", "diagonal", "native"])
def test_a_uniform_of_zero_draws_nothing_improbable(backend, monkeypatch):
    monkeypatch.setattr(torch, "rand", lambda size, **options: torch.zeros(size, **options))
    scores = torch.zeros(3, 3)
    scores[0, 1] = -70  # the first split of C→(0, 2), with a probability of 1e-30
    assert ops.sample_tree(scores, backend=backend)[0, 1] == 0
