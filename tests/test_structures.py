"""Every structure passes the same tests: its operations against a list of all its members."""

import itertools
import math

import pytest
import torch
from tolerances import EXACT, largest_error
from torch.autograd import gradcheck
from torch.distributions import kl_divergence

import treelax as tx
from treelax.errors import InputError, NoTreeError
from treelax.structures import structure_named
from treelax.trees import heads_to_tree

STRUCTURES = [tx.Projective(), tx.Projective(single_root=True), tx.Heads()]
every_structure = pytest.mark.parametrize("structure", STRUCTURES, ids=str)


def members(structure, n):
    """All structures over n words as trees, by trying every vector of heads."""
    heads = [
        candidate
        for candidate in itertools.product(range(n + 1), repeat=n)
        if all(head != word for word, head in enumerate(candidate, 1))
    ]
    trees = heads_to_tree(torch.tensor(heads), dtype=torch.float64)
    return trees[structure.contains(trees, torch.tensor(n))]


@pytest.fixture
def scores(generator):
    return torch.randn(5, 5, dtype=torch.float64, generator=generator)


@every_structure
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_the_number_of_members(structure, n):
    assert round(math.exp(structure.log_count(n))) == len(members(structure, n))


@every_structure
def test_operations_against_enumeration(structure, scores):
    trees = members(structure, 4)
    log_weights = (trees * scores).sum((-2, -1))
    p = log_weights.softmax(0)
    d = structure(scores)
    assert largest_error(d.log_partition, log_weights.logsumexp(0)) < EXACT
    assert largest_error(d.marginals, (p[:, None, None] * trees).sum(0)) < EXACT
    assert torch.equal(d.mode, trees[log_weights.argmax()])
    assert largest_error(d.entropy(), -(p * p.log()).sum()) < EXACT
    assert largest_error(d.log_prob(trees), p.log()) < EXACT
    other = structure(scores.flip(0))
    expected = (p * (p.log() - (trees * scores.flip(0)).sum((-2, -1)).log_softmax(0))).sum()
    assert largest_error(kl_divergence(d, other), expected) < EXACT


@every_structure
def test_gradients(structure, scores):
    def values(s):
        d = structure(s.reshape(1, 5, 5), torch.tensor([3]))
        return d.entropy(), d.log_partition, d.marginals

    assert gradcheck(values, scores.requires_grad_())


@every_structure
def test_samples_are_exact(structure, scores, generator):
    trees = members(structure, 3)
    d = structure(scores[:4, :4])
    drawn = d.sample((20_000,), generator=generator)
    index = (drawn[:, None] == trees).flatten(2).all(-1)
    assert index.any(1).all()
    p = (trees * scores[:4, :4]).sum((-2, -1)).softmax(0)
    expected = 20_000 * p
    chi2 = ((index.sum(0) - expected) ** 2 / expected).sum()
    freedom = len(trees) - 1
    assert chi2 < freedom + 5 * math.sqrt(2 * freedom)  # five standard deviations


@every_structure
def test_padding_and_batch_shape_change_nothing(structure, scores):
    batch = scores.expand(2, 3, 5, 5).clone()
    lengths = torch.tensor([[4, 3, 2], [1, 0, 4]])
    d = structure(batch, lengths)
    for place in itertools.product(range(2), range(3)):
        n = int(lengths[place])
        alone = structure(batch[place][: n + 1, : n + 1])
        assert largest_error(d.entropy()[place], alone.entropy()) < EXACT
        assert largest_error(d.marginals[place][: n + 1, : n + 1], alone.marginals) < EXACT
        assert not d.mode[place][n + 1 :].any()
    assert d.sample((2,)).shape == (2, 2, 3, 5, 5)


@every_structure
@pytest.mark.parametrize("relaxation", ["softmax", "entropy"])
def test_a_relaxation_tends_to_the_mode(structure, relaxation, scores):
    soft = structure.relaxed(scores, relaxation=relaxation, temperature=1e-3)
    assert largest_error(soft, structure(scores).mode) < 1e-6


@every_structure
def test_kl_divergence_is_infinite_where_a_part_is_missing(structure, scores):
    narrow = scores.clone()
    narrow[1, 2] = -torch.inf
    p, q = structure(scores), structure(narrow)
    assert kl_divergence(p, q) == torch.inf
    assert torch.isfinite(kl_divergence(q, p))
    assert q.log_prob(q.mode).isfinite()


@every_structure
def test_noise_needs_the_mask_and_number_of_parts_alone(structure):
    lengths = torch.tensor([3, 0])
    mask = structure.part_mask(lengths, 5)
    trees = structure(torch.zeros(2, 5, 5), lengths).mode
    assert not trees[~mask].any()
    assert torch.equal(trees.sum((-2, -1)).long(), structure.part_count(lengths))


@every_structure
def test_an_estimator_is_one_code_for_layer_and_distribution(structure):
    scores, lengths = torch.randn(2, 5, 5), torch.tensor([4, 2])
    for estimator in (tx.Relaxed("entropy", 0.5, tx.SumOfGamma()), tx.StraightThrough()):
        seeds = [torch.Generator().manual_seed(3) for _ in range(2)]
        layer = tx.nn.LatentTree(tx.nn.ArcScorer(4, 4), structure, estimator)
        own = layer.sample(scores, lengths, generator=seeds[0])
        assert torch.equal(own, estimator.sample(structure(scores, lengths), generator=seeds[1]))


@every_structure
def test_the_expected_loss(structure):
    scores = torch.randn(2, 5, 5, requires_grad=True)
    estimator = tx.Relaxed(samples=3)
    loss = estimator.expect(structure(scores), lambda t: t.square().sum((-2, -1)))
    assert loss.shape == (2,)
    loss.sum().backward()
    assert scores.grad.abs().sum() > 0
    with pytest.raises(InputError, match=r"f returned \(\).*expected losses \(3, 2\)"):
        estimator.expect(structure(scores), lambda t: t.sum())


@every_structure
def test_what_is_refused(structure, scores):
    with pytest.raises(InputError, match="not of the structure"):
        structure(scores).log_prob(torch.zeros(5, 5))
    scores[:, 2] = -torch.inf
    for use in (lambda d: d.mode, lambda d: d.log_partition, lambda d: d.sample()):
        with pytest.raises(NoTreeError):
            use(structure(scores))


@every_structure
def test_samples_of_half_types_are_rounded_last(structure, generator):
    scores = torch.randn(4, 4, generator=generator).bfloat16()
    drawn = structure(scores).sample((50_000,), generator=generator)
    assert drawn.dtype == torch.bfloat16
    assert largest_error(drawn.float().mean(0), structure(scores.float()).marginals) < 0.01
    with torch.autocast("cpu"):
        assert structure.log_partition(scores).dtype == structure.marginals(scores)[1].dtype
        assert structure.log_partition(scores).dtype == torch.float32


@every_structure
def test_a_uniform_of_zero_draws_nothing_improbable(structure, monkeypatch):
    monkeypatch.setattr(torch.Tensor, "uniform_", lambda self, **_: self.zero_())
    scores = torch.zeros(3, 3)
    scores[0, 1] = -70
    assert structure(scores).sample()[0, 1] == 0


@every_structure
def test_lengths_are_checked_where_there_is_room_for_the_root_alone(structure):
    for length in (-5, 5):
        with pytest.raises(InputError, match="lengths"):
            _ = structure(torch.zeros(1, 1, 1), torch.tensor([length])).log_partition


def test_settings_that_contradict_each_other_or_are_out_of_range():
    scorer = tx.nn.ArcScorer(4, 4)
    for make, message in (
        (
            lambda: tx.nn.LatentTree(scorer, tx.Projective(), single_root=True),
            "single_root is True",
        ),
        (lambda: tx.nn.LatentTree(scorer, estimator=tx.Relaxed(), noise="none"), "estimator is"),
        (lambda: tx.nn.LatentTree(scorer, "projective", "softmax"), "estimator is 'softmax'"),
        (lambda: tx.nn.LatentTree(scorer, temperature=1e-36), "temperature is 1e-36"),
        (lambda: tx.Relaxed(samples=0), "samples is 0"),
        (lambda: tx.Relaxed(noise="gumbel"), "noise is 'gumbel'"),
        (lambda: tx.Relaxed(temperature=0), "temperature is 0"),
        (lambda: tx.SumOfGamma(iterations=0), "iterations is 0"),
        (lambda: tx.Gumbel(-1), "noise_scale is -1"),
    ):
        with pytest.raises(InputError, match=message):
            make()


def test_names():
    assert structure_named("projective", single_root=True) == tx.Projective(single_root=True)
    assert structure_named("heads") == tx.Heads()
    with pytest.raises(InputError, match="Did you mean 'heads'"):
        structure_named("head")
    with pytest.raises(InputError, match="single_root is True"):
        structure_named("heads", single_root=True)
    with pytest.raises(InputError, match="of one kind"):
        kl_divergence(tx.Heads()(torch.zeros(3, 3)), tx.Projective()(torch.zeros(3, 3)))
