"""Every structure passes the same tests: its operations against a list of all its members."""

import itertools
import math

import oracle
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
LENGTHS = torch.tensor([4, 3, 1])
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
    return torch.randn(3, 5, 5, dtype=torch.float64, generator=generator)


@every_structure
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_the_number_of_members(structure, n):
    trees = members(structure, n)
    assert round(math.exp(structure.log_count(n))) == len(trees)
    if isinstance(structure, tx.Projective):
        assert torch.equal(trees, oracle.indicators(n, structure.single_root))


@every_structure
def test_operations_against_enumeration(structure, scores):
    d = structure(scores, LENGTHS)
    other = structure(scores.flip(0), LENGTHS)
    assert torch.equal(d.mean, d.marginals)
    for b, n in enumerate(LENGTHS.tolist()):
        trees = members(structure, n)
        own, others = (s[b, : n + 1, : n + 1] for s in (scores, scores.flip(0)))
        log_weights = (trees * own).sum((-2, -1))
        p = log_weights.softmax(0)
        q = (trees * others).sum((-2, -1)).softmax(0)
        assert largest_error(d.log_partition[b], log_weights.logsumexp(0)) < EXACT
        marginals = (p[:, None, None] * trees).sum(0)
        assert largest_error(d.marginals[b, : n + 1, : n + 1], marginals) < EXACT
        assert torch.equal(d.mode[b, : n + 1, : n + 1], trees[log_weights.argmax()])
        assert largest_error(d.entropy()[b], -(p * p.log()).sum()) < EXACT
        assert largest_error(structure(own).log_prob(trees), p.log()) < EXACT
        assert largest_error(kl_divergence(d, other)[b], (p * (p / q).log()).sum()) < EXACT


@every_structure
def test_gradients(structure, scores, generator):
    other = torch.randn(3, 5, 5, dtype=torch.float64, generator=generator).requires_grad_()

    def values(s, t):
        d = structure(s, LENGTHS)
        kl = kl_divergence(d, structure(t, LENGTHS))
        return d.log_prob(d.mode), d.log_partition, d.marginals, d.entropy(), kl

    assert gradcheck(values, (scores.requires_grad_(), other))


@every_structure
def test_samples_are_exact(structure, scores, generator):
    trees = members(structure, 3)
    own = scores[0, :4, :4]
    drawn = structure(own).sample((20_000,), generator=generator)
    index = (drawn[:, None] == trees).flatten(2).all(-1)
    assert index.any(1).all()
    expected = 20_000 * (trees * own).sum((-2, -1)).softmax(0)
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
    drawn = d.sample((2,))
    assert drawn.shape == (2, 2, 3, 5, 5)
    assert d.support.check(drawn).all()


@every_structure
@pytest.mark.parametrize("relaxation", ["softmax", "entropy"])
def test_a_relaxation_tends_to_the_mode(structure, relaxation, scores):
    soft = structure.relaxed(scores, LENGTHS, relaxation=relaxation, temperature=1e-3)
    assert largest_error(soft, structure(scores, LENGTHS).mode) < 1e-6


@every_structure
@pytest.mark.parametrize("weight", [0.5, -1e5])  # the second has a probability of 0 in any type
def test_kl_divergence_is_infinite_where_a_part_is_missing(structure, weight, scores):
    scores[0, 1, 2] = weight
    narrow = scores.clone()
    narrow[0, 1, 2] = -torch.inf
    scores.requires_grad_()
    p, q = structure(scores, LENGTHS), structure(narrow, LENGTHS)
    kl = kl_divergence(p, q)
    assert kl.isinf().tolist() == [True, False, False]
    (grad,) = torch.autograd.grad(kl[1:].sum(), scores)
    assert torch.isfinite(grad).all()
    assert torch.isfinite(kl_divergence(q, p)).all()
    assert torch.isfinite(q.log_prob(q.mode)).all()


def test_kl_divergence_between_root_rules_and_of_what_no_tree_has_room_for(scores):
    loose, tight = (tx.Projective(single)(scores, LENGTHS) for single in (False, True))
    assert kl_divergence(loose, tight).isinf().tolist() == [True, True, False]
    assert torch.isfinite(kl_divergence(tight, loose)).all()
    chain = torch.full((1, 3, 3), -torch.inf)
    chain[0, 0, 1] = chain[0, 1, 2] = chain[0, 2, 1] = 0
    narrow = chain.clone()
    narrow[0, 2, 1] = -torch.inf
    assert kl_divergence(tx.Projective()(chain), tx.Projective()(narrow)).item() == 0


@every_structure
def test_forbidden_parts(structure, scores):
    """Entropy and log-probability stay finite, with finite gradients; a forbidden member has none."""
    scores[:, 1, 2] = scores[:, 2, 1] = -torch.inf
    d = structure(scores.requires_grad_(), LENGTHS)
    total = d.entropy().sum() + d.log_prob(d.mode).sum()
    (grad,) = torch.autograd.grad(total, scores)
    assert torch.isfinite(total)
    assert torch.isfinite(grad).all()
    chain = torch.diag(torch.ones(4, dtype=torch.float64), 1)
    assert structure(scores.detach()[0]).log_prob(chain) == -torch.inf


@every_structure
def test_noise_needs_the_mask_and_number_of_parts_alone(structure):
    lengths = torch.tensor([3, 0])
    mask = structure.part_mask(lengths, 5)
    trees = structure(torch.zeros(2, 5, 5), lengths).mode
    assert not trees[~mask].any()
    assert torch.equal(trees.sum((-2, -1)).long(), structure.part_count(lengths))


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
def test_values_that_are_refused(structure, scores):
    nan = scores.clone()
    nan[0, 1, 2] = torch.nan
    with pytest.raises(InputError, match="nan"):
        _ = structure(nan).marginals
    scores[:, :, 2] = -torch.inf
    for use in (lambda d: d.mode, lambda d: d.log_partition, lambda d: d.sample()):
        with pytest.raises(NoTreeError):
            use(structure(scores))
    for length in (-5, 5):
        with pytest.raises(InputError, match="lengths"):
            _ = structure(torch.zeros(1, 1, 1), torch.tensor([length])).log_partition


@every_structure
def test_half_types_are_rounded_once(structure, generator):
    """Entropy and divergence are differences of large numbers: computed in float32 or better."""
    scores, other = torch.randn(2, 4, 41, 41, generator=generator).bfloat16()
    half = structure(scores), structure(other)
    full = structure(scores.double()), structure(other.double())
    for get in (
        lambda p, q: p.entropy(),
        lambda p, q: p.log_partition,
        lambda p, q: p.log_prob(p.mode),
        lambda p, q: kl_divergence(p, q),
    ):
        with torch.autocast("cpu"):
            assert get(*half).dtype == torch.float32  # as torch's losses
        got, expected = get(*half), get(*full)
        assert got.dtype == torch.bfloat16
        assert torch.allclose(got.double(), expected, rtol=2**-8, atol=1e-3)
    small = scores[0, :4, :4]
    drawn = structure(small).sample((50_000,), generator=generator)
    assert drawn.dtype == torch.bfloat16
    assert largest_error(drawn.float().mean(0), structure(small.float()).marginals) < 0.01


@every_structure
@pytest.mark.parametrize("scale", [1e4, 1e30, 3e38])
def test_huge_scores(structure, scale, generator):
    """The scores of the formula are those of the dynamic program, clamped alike."""
    d = structure(scale * torch.randn(3, 8, 8, generator=generator).clamp(-1, 1))
    assert (d.entropy() >= 0).all()
    assert torch.isfinite(d.entropy()).all()
    assert torch.isfinite(d.log_prob(d.mode)).all()


@every_structure
def test_a_uniform_of_zero_draws_nothing_improbable(structure, monkeypatch):
    monkeypatch.setattr(torch.Tensor, "uniform_", lambda self, **_: self.zero_())
    scores = torch.zeros(3, 3)
    scores[0, 1] = -70
    assert structure(scores).sample()[0, 1] == 0


def test_settings_that_contradict_each_other_or_are_out_of_range():
    scorer = tx.nn.ArcScorer(4, 4)
    latent = tx.nn.LatentTree
    for make, message in (
        (lambda: latent(scorer, tx.Projective(), single_root=True), "single_root is True"),
        (lambda: latent(scorer, estimator=tx.Relaxed(), noise="none"), "estimator is"),
        (lambda: latent(scorer, "projective", "softmax"), "estimator is 'softmax'"),
        (lambda: tx.Relaxed(samples=0), "samples is 0"),
        (lambda: tx.Relaxed(noise="gumbel"), "noise is 'gumbel'"),
        (lambda: tx.Relaxed(temperature=0), "temperature is 0"),
        (lambda: tx.SumOfGamma(iterations=0), "iterations is 0"),
        (lambda: tx.Gumbel(-1), "noise_scale is -1"),
    ):
        with pytest.raises(InputError, match=message):
            make()


def test_estimators_are_equal_by_their_settings():
    heat = torch.tensor([0.5, 1.0])
    assert tx.Relaxed(temperature=heat) == tx.Relaxed(temperature=heat.clone())
    assert tx.Relaxed(temperature=heat) != tx.Relaxed(temperature=2 * heat)
    assert tx.Relaxed(temperature=heat) != tx.Relaxed()
    assert tx.StraightThrough(tx.Relaxed()) == tx.StraightThrough() != tx.Relaxed()
    assert len({tx.Relaxed(temperature=heat), tx.Relaxed(temperature=heat.clone())}) == 1


def test_names():
    assert structure_named("projective", single_root=True) == tx.Projective(single_root=True)
    assert structure_named("heads") == tx.Heads()
    with pytest.raises(InputError, match="Did you mean 'heads'"):
        structure_named("head")
    with pytest.raises(InputError, match="single_root is True"):
        structure_named("heads", single_root=True)
    with pytest.raises(InputError, match="of one kind"):
        kl_divergence(tx.Heads()(torch.zeros(3, 3)), tx.Projective()(torch.zeros(3, 3)))
