"""Estimators: each against its formula, the unbiased ones against the exact gradient."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest
import torch
from matrix import seeded
from torch import Tensor
from toy_structure import Star

import treelax as tx
from treelax.errors import InputError, NoTreeError
from treelax.estimators import Estimator

WORDS = 4
STRUCTURES = [
    tx.Projective(),
    tx.NonProjective(single_root=True),
    tx.Heads(),
    tx.Binary(),
    Star(),
]
every_structure = pytest.mark.parametrize("structure", STRUCTURES, ids=repr)
DRAWS = 3000
# of the largest of some dozens of normal variables
FAR = 4.5


def make(structure: tx.structures.Structure, *batch: int, n: int = WORDS, seed: int = 1) -> Tensor:
    size = n + structure.rooted
    scores = torch.randn(*batch, size, size, dtype=torch.float64, generator=seeded(seed))
    return scores.requires_grad_()


def nonlinear(like: Tensor) -> object:
    """A loss of a structure that is not linear in it."""
    weights = torch.randn(like.shape[-2:], dtype=like.dtype, generator=seeded(5))
    other = torch.randn(like.shape[-2:], dtype=like.dtype, generator=seeded(6))
    return lambda tree: (tree * weights).sum((-2, -1)).square() + (tree * other).sum((-2, -1)).cos()


def gradient(loss: Tensor, scores: Tensor) -> Tensor:
    return torch.autograd.grad(loss.sum(), scores)[0]


@every_structure
def test_exact_is_the_sum_over_all_structures(structure):
    scores, lengths = make(structure, 3), torch.tensor([WORDS, 2, 1])
    f = nonlinear(scores)
    value = tx.Exact().expect(structure(scores, lengths), f)
    for b, n in enumerate(lengths.tolist()):
        size = n + structure.rooted
        trees = torch.zeros(len(structure.enumerate(n)), *scores.shape[1:], dtype=scores.dtype)
        trees[:, :size, :size] = structure.enumerate(n)
        weights = (trees * scores[b]).sum((-2, -1)).softmax(0)
        assert value[b].item() == pytest.approx((weights * f(trees)).sum().item(), abs=1e-12)
    assert torch.autograd.gradcheck(
        lambda s: tx.Exact().expect(structure(s, lengths), f), scores, eps=1e-6, atol=1e-6
    )


def z_values(gradients: Tensor, expected: Tensor) -> Tensor:
    """How many standard errors the mean of ``(draws, ...)`` is off."""
    error = gradients.std(0) / math.sqrt(len(gradients))
    off = gradients.mean(0) - expected
    fixed = error < 1e-12  # what is no part, or in every structure
    assert off[fixed].abs().max() < 1e-12
    return (off / error)[~fixed]


@every_structure
@pytest.mark.parametrize("estimator", [tx.RLOO(2), tx.REINFORCE(3)])
def test_score_functions_are_unbiased(structure, estimator):
    scores = make(structure)
    f = nonlinear(scores)
    expected = gradient(tx.Exact().expect(structure(scores), f), scores)
    # as one batch: every sentence draws for itself
    many = scores.detach().expand(DRAWS, *scores.shape).clone().requires_grad_()
    if isinstance(estimator, tx.REINFORCE):
        for _ in range(20):  # a baseline to begin with
            estimator.expect(structure(many[:10]), f, generator=seeded(7))
    losses = estimator.expect(structure(many), f, generator=seeded(8))
    assert z_values(gradient(losses, many), expected).abs().max() < FAR
    drawn = losses.detach()
    mean = tx.Exact().expect(structure(scores), f).item()
    assert abs(drawn.mean().item() - mean) < FAR * drawn.std().item() / math.sqrt(DRAWS)


def chosen_by_noise(scores: Tensor, noise: object) -> Tensor:
    """Probability that each head of two has the larger score under noise."""
    if isinstance(noise, tx.Gumbel):
        return (scores / noise.scale).softmax(-2)
    apart = (scores[0] - scores[1]) / (noise.scale * math.sqrt(2))
    first = torch.special.ndtr(apart)
    return torch.stack((first, 1 - first))


@pytest.mark.parametrize("noise", [tx.Gumbel(0.5), tx.Gaussian(2.0)])
@pytest.mark.parametrize("samples", [1, 4])
def test_the_perturbed_optimiser_is_unbiased(noise, samples):
    """Two words have two heads each, whose probabilities under noise are known."""
    structure = tx.Heads()
    scores = make(structure, n=2)
    g = torch.randn(3, 3, dtype=torch.float64, generator=seeded(3))
    heads = [scores[[0, 2], 1], scores[[0, 1], 2]]
    means = [chosen_by_noise(h[:, None], noise)[:, 0] for h in heads]
    total = (means[0] * g[[0, 2], 1]).sum() + (means[1] * g[[0, 1], 2]).sum()
    many = scores.detach().expand(DRAWS, 3, 3).clone().requires_grad_()
    mean = tx.Perturbed(samples, noise).sample(structure(many), generator=seeded(9))
    found = torch.autograd.grad((mean * g).sum(), many)[0]
    assert z_values(found, gradient(total, scores)).abs().max() < FAR
    assert (mean.mean(0)[[0, 2], 1] - means[0]).abs().max() < FAR / math.sqrt(DRAWS)


def noisy(structure, scores, lengths, noise, seed):
    """Scores as an estimator perturbs them."""
    mask = structure.part_mask(lengths, scores.shape[-1])
    parts = structure.part_count(lengths)[..., None, None]
    return scores.detach() + noise.draw(scores, parts, seeded(seed)).masked_fill(~mask, 0)


@every_structure
def test_implicit_maximum_likelihood(structure):
    scores, lengths = make(structure, 5), torch.tensor([4, 3, 2, 1, 4])
    estimator = tx.IMLE(step=3.0)
    g = torch.randn(scores.shape, dtype=scores.dtype, generator=seeded(2))
    tree = estimator.sample(structure(scores, lengths), generator=seeded(4))
    perturbed = noisy(structure, scores, lengths, tx.SumOfGamma(), 4)
    assert torch.equal(tree, structure.argmax(perturbed, lengths))
    other = structure.argmax(perturbed - 3 * g, lengths)
    assert torch.equal(torch.autograd.grad(tree, scores, g)[0], (tree - other) / 3)


@pytest.mark.parametrize(
    "estimator",
    [tx.IMLE(2.0), *(tx.SPIGOT(0.7, form=form) for form in ("spigot", "ce", "eg"))],
    ids=repr,
)
def test_a_step_is_along_the_loss_of_its_own_sample(estimator):
    """An estimate from several samples is the mean of those from one."""
    structure, scores = tx.Projective(), make(tx.Projective(), 2)
    noise, samples = tx.Gaussian(), 3
    estimator = replace(estimator, noise=noise)
    f, many = nonlinear(scores), replace(estimator, samples=samples)
    found = gradient(many.expect(structure(scores), f, generator=seeded(3)), scores)
    parts = torch.full((samples * 2, 1, 1), WORDS)
    drawn = noise.draw(scores.new_empty(samples * 2, 5, 5), parts, seeded(3)).view(samples, 2, 5, 5)
    alone = replace(estimator, noise=None)
    each = [gradient(alone.expect(structure(scores + own), f), scores) for own in drawn]
    assert found.abs().max() > 0.1
    assert (found - torch.stack(each).mean(0)).abs().max() < 1e-8


@every_structure
@pytest.mark.parametrize("form", ["spigot", "ce", "eg"])
@pytest.mark.parametrize("projection", ["simplex", "polytope"])
def test_spigot(structure, form, projection):
    if projection == "simplex" and structure.unconstrained is None:
        if form != "eg":
            with pytest.raises(InputError, match="polytope"):
                tx.SPIGOT(form=form).sample(structure(make(structure)))
        return
    scores, lengths = make(structure, 3), torch.tensor([4, 3, 1])
    g = torch.randn(scores.shape, dtype=scores.dtype, generator=seeded(2))
    estimator = tx.SPIGOT(0.7, projection, form)
    tree = estimator.sample(structure(scores, lengths))
    assert torch.equal(tree, structure.argmax(scores, lengths))
    (found,) = torch.autograd.grad(tree, scores, g)
    mean = structure(scores.detach(), lengths).marginals
    if form == "eg":
        expected = mean - structure(scores.detach() - 0.7 * g, lengths).marginals
    else:
        point = tree.detach() if form == "spigot" else mean
        space = tx.Heads() if projection == "simplex" else structure
        expected = point - space.sparsemap(point - 0.7 * g, lengths).tree
    assert (found - expected).abs().max() < 1e-8
    assert found.masked_fill(structure.part_mask(lengths, scores.shape[-1]), 0).abs().max() == 0


def test_straight_through_with_the_identity():
    structure, lengths = tx.Projective(), torch.tensor([4, 2])
    scores = make(structure, 2)
    g = torch.randn(scores.shape, dtype=scores.dtype, generator=seeded(2))
    tree = tx.StraightThrough(gradient="identity").sample(
        structure(scores, lengths), generator=seeded(4)
    )
    expected = structure.argmax(noisy(structure, scores, lengths, tx.Gumbel(), 4), lengths)
    assert torch.equal(tree, expected)
    found = torch.autograd.grad(tree, scores, g)[0]
    assert torch.equal(found, g.masked_fill(~structure.part_mask(lengths, 5), 0))


@every_structure
def test_marginals_and_sparsemap(structure):
    distribution = structure(make(structure, 2))
    assert torch.equal(tx.Marginals().sample(distribution), distribution.marginals)
    cooler = structure(distribution.scores / 0.5).marginals
    assert (tx.Marginals(0.5).sample(distribution) - cooler).abs().max() < 1e-12
    near = tx.SparseMAP(temperature=2.0).sample(distribution, (3,))
    assert near.shape == (3, *distribution.scores.shape)
    assert torch.equal(near[0], structure.sparsemap(distribution.scores / 2).tree)
    assert torch.equal(near[1], near[0])
    assert torch.equal(tx.SparseMAP(2.0).soft(distribution), near[0])


@every_structure
def test_fenchel_young_losses(structure):
    scores = make(structure, 2)
    gold = structure(make(structure, 2, seed=9)).mode
    distribution = structure(scores)
    perturbed = tx.Perturbed(5, tx.Gaussian(0.5))
    loss = tx.fenchel_young_loss(distribution, gold, perturbed, generator=seeded(3))
    lengths = distribution.lengths.expand(5, 2)
    trees = structure.argmax(
        noisy(structure, scores.expand(5, *scores.shape), lengths, tx.Gaussian(0.5), 3), lengths
    )
    assert (gradient(loss, scores) - (trees.mean(0) - gold)).abs().max() < 1e-12
    likelihood = tx.fenchel_young_loss(distribution, gold, tx.Marginals())
    assert (likelihood + distribution.log_prob(gold)).abs().max() < 1e-12
    sparse = tx.fenchel_young_loss(distribution, gold, tx.SparseMAP())
    assert (sparse > 0).all()
    near = tx.SparseMAP().sample(distribution)
    assert (gradient(sparse, scores) - (near - gold)).abs().max() < 1e-8
    sure = structure(1000 * gold)
    assert tx.fenchel_young_loss(sure, gold, tx.SparseMAP()).abs().max() < 1e-8


ESTIMATORS: list[Estimator] = [
    tx.Relaxed(),
    tx.Relaxed("entropy", noise=tx.Gaussian(), samples=2),
    tx.StraightThrough(),
    tx.StraightThrough(gradient="identity"),
    tx.Marginals(),
    tx.SparseMAP(),
    tx.SPIGOT(),
    tx.SPIGOT(projection="polytope"),
    tx.SPIGOT(form="ce"),
    tx.SPIGOT(form="eg"),
    tx.IMLE(step=2.0),
    tx.Perturbed(8),
    tx.REINFORCE(4),
    tx.RLOO(4),
    tx.Exact(),
]
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)


@pytest.mark.parametrize(
    ("estimator", "dtype"),
    [(e, (torch.float32, torch.bfloat16)[i % 2]) for i, e in enumerate(ESTIMATORS)],
    ids=repr,
)
def test_every_estimator_learns_a_tree(estimator, dtype):
    """Gradient descent on the number of wrong heads finds the gold trees."""
    structure, lengths = tx.Projective(), torch.tensor([4, 3])
    gold = tx.trees.heads_to_tree(torch.tensor([[2, 0, 2, 3], [0, 1, 2, -1]]), lengths)
    # not from 0, where SparseMAP has no derivative
    scores = (0.1 * torch.randn(2, 5, 5, generator=seeded())).requires_grad_()
    optimizer = torch.optim.Adam([scores], 0.1)
    generator = seeded(1)
    for _ in range(150):
        distribution = structure(scores.to(dtype), lengths)
        loss = estimator.expect(
            distribution, lambda t: -(t * gold).sum((-2, -1)), generator=generator
        )
        assert loss.shape == (2,)
        optimizer.zero_grad()
        loss.sum().backward()
        optimizer.step()
    assert torch.equal(structure(scores, lengths).mode, gold)


@every_estimator
def test_in_a_layer(estimator):
    torch.manual_seed(0)
    latent = tx.nn.LatentTree(tx.nn.ArcScorer(6, 8), tx.Projective(), estimator)
    vectors, lengths = torch.randn(2, 5, 6), torch.tensor([4, 2])
    latent.expect(vectors, lengths, lambda t: (t[..., 0, 1] - 1).square()).sum().backward()
    assert all(p.grad is not None for p in latent.parameters())
    soft = latent.soft(latent.scorer(vectors), lengths)
    assert (soft.sum(-2)[0, 1:] - 1).abs().max() < 1e-4
    if isinstance(estimator, tx.RLOO | tx.REINFORCE | tx.Exact):
        with pytest.raises(InputError, match="expect"):
            latent(vectors, lengths)
    else:
        assert latent(vectors, lengths).shape == (2, 5, 5)


def test_the_baseline_is_part_of_a_layer_s_state():
    """A loss that is no number is not remembered, nor one in evaluation mode."""
    latent = tx.nn.LatentTree(tx.nn.ArcScorer(6, 8), estimator=tx.REINFORCE(decay=0.5))
    vectors = torch.randn(2, 5, 6)
    for value in (4.0, math.nan, 1.0):
        latent.expect(vectors, None, lambda t, v=value: t.sum((-2, -1)) * 0 + v)
    latent.eval().expect(vectors, None, lambda t: t.sum((-2, -1)))
    other = tx.nn.LatentTree(tx.nn.ArcScorer(6, 8), estimator=tx.REINFORCE(decay=0.5))
    other.load_state_dict(latent.state_dict())
    total, weight = other.estimator.total, other.estimator.weight
    assert (total / weight).item() == pytest.approx((0.25 * 4 + 1) / 1.25)


@pytest.mark.parametrize(
    ("make_it", "message"),
    [
        (lambda: tx.RLOO(1), "samples is 1; expected a whole number of at least 2"),
        (lambda: tx.RLOO(2.5), "samples is 2.5"),
        (lambda: tx.StraightThrough("entropy"), "relaxed is 'entropy'; expected treelax.Relaxed"),
        (lambda: tx.StraightThrough(gradient="none"), "gradient is 'none'"),
        (lambda: tx.REINFORCE(decay=1.0), "decay is 1.0"),
        (lambda: tx.IMLE(step=0), "step is 0; expected a positive number"),
        (lambda: tx.SPIGOT(step=None), "step is None; expected a positive number"),
        (lambda: tx.SPIGOT(projection="cube"), "projection is 'cube'"),
        (lambda: tx.SPIGOT(form="gd"), "form is 'gd'"),
        (lambda: tx.Perturbed(noise=tx.SumOfGamma()), "needs the density"),
        (lambda: tx.Perturbed(noise=tx.Gaussian(0)), "positive scale"),
        (lambda: tx.Relaxed(noise="gumbel"), "noise is 'gumbel'; expected treelax.Gumbel"),
        (lambda: tx.Relaxed(temperature=0), "temperature is 0"),
        (lambda: tx.SparseMAP(max_iterations=0), "max_iterations is 0"),
        (lambda: tx.SumOfGamma(iterations=0), "iterations is 0"),
        (lambda: tx.Gumbel(-1), "noise_scale is -1"),
    ],
)
def test_settings_out_of_range(make_it, message):
    with pytest.raises(InputError, match=re.escape(message)):
        make_it()


def test_what_a_structure_does_not_have():
    long = tx.Projective()(torch.zeros(41, 41))
    with pytest.raises(InputError, match="40 words have about 1e64 structures"):
        tx.Exact().expect(long, lambda t: t.sum((-2, -1)))
    with pytest.raises(InputError, match="softmax"):
        tx.Relaxed().sample(tx.NonProjective()(torch.zeros(3, 3)))


@every_estimator
def test_forbidden_parts_get_no_gradient_and_a_generator_fixes_the_bits(estimator):
    scores = make(tx.Projective(), 3)
    mask = torch.zeros(5, 5, dtype=torch.float64)
    mask[0, 2] = mask[3, 1] = -math.inf
    trees = tx.Projective()(scores + mask)
    losses, again = (
        estimator.expect(trees, nonlinear(scores), generator=seeded(2)) for _ in range(2)
    )
    assert isinstance(estimator, tx.REINFORCE) or torch.equal(losses, again)
    found = gradient(losses, scores)
    assert found.isfinite().all()
    assert found[:, mask < 0].abs().max() == 0


def test_exact_checks_the_scores_and_looks_at_words_alone():
    scores = torch.zeros(31, 31)
    three = tx.Exact().expect(tx.Projective()(scores, torch.tensor(3)), lambda t: t[..., 0, 1])
    assert three.item() == pytest.approx(7 / 12)
    scores[0] = -math.inf
    with pytest.raises(NoTreeError):
        tx.Exact().expect(tx.Projective()(scores[:4, :4]), lambda t: t[..., 0, 1])


def test_fenchel_young_losses_in_half_precision():
    for structure in (tx.Projective(), tx.Labelled(tx.Binary())):
        shape = (4, 6, 6, 3)[: 1 + structure.event_dim]
        scores = (3 * torch.randn(shape, generator=seeded())).bfloat16()
        for estimator in (tx.Marginals(), tx.SparseMAP()):
            losses, exact = (
                tx.fenchel_young_loss(structure(s), structure(s).mode, estimator).float()
                for s in (scores, scores.float())
            )
            assert torch.allclose(losses, exact, rtol=0.01, atol=1e-5)
            assert (losses >= -1e-5).all()


def test_estimators_are_equal_by_their_settings():
    heat = torch.tensor([0.5, 1.0])
    assert tx.Relaxed(temperature=heat) == tx.Relaxed(temperature=heat.clone())
    assert tx.Relaxed(temperature=heat) != tx.Relaxed(temperature=2 * heat)
    assert tx.Relaxed(temperature=heat) != tx.Relaxed()
    assert tx.StraightThrough(tx.Relaxed()) == tx.StraightThrough() != tx.Relaxed()
    assert len({tx.Relaxed(temperature=heat), tx.Relaxed(temperature=heat.clone())}) == 1


@pytest.mark.parametrize("estimator", [tx.Relaxed(), tx.Perturbed(), tx.RLOO(), tx.Exact()])
def test_losses_are_numbers_or_counts_one_for_each_structure(estimator):
    trees = tx.Projective()(torch.zeros(2, 4, 4, requires_grad=True))
    for kind in (torch.int64, torch.bool):
        losses = estimator.expect(trees, lambda t, kind=kind: (t[..., 0, 1] > 0).to(kind))
        assert losses.dtype == torch.float32
    for f in (lambda t: t.sum(), lambda t: t.sum((-3, -2, -1)), lambda t: 3.0):
        with pytest.raises(InputError, match="one for each structure"):
            estimator.expect(trees, f)


@pytest.mark.parametrize("kind", [tx.IMLE, tx.SPIGOT])
def test_a_first_gradient_of_0_warns_once(kind, monkeypatch):
    """A loss that is a mean over many sentences has a gradient too short for the step."""
    monkeypatch.setattr("treelax.estimators.base._CHECKED", set())
    scores = make(tx.Projective(), 64)

    def found(step: float) -> Tensor:
        estimator = kind(step, noise=None)
        tree = estimator.sample(tx.Projective()(scores, torch.full((64,), WORDS)))
        return gradient((tree[:, 0] * torch.arange(5)).sum(-1).mean(), scores)

    with pytest.warns(RuntimeWarning, match=r"exactly 0 for all 64 sentences.*step=6.4e-19 does"):
        assert not found(1e-20).any()
    assert not found(1e-20).any()  # has been said
    assert found(640.0).any()
