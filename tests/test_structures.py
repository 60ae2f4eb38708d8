"""Every structure passes the same tests: its operations against a list of all its members."""

import itertools
import math
from unittest import mock

import pytest
import torch
from matrix import (
    LENGTHS,
    column,
    draw,
    event,
    every_structure,
    inside,
    log_size,
    mask_of,
    members,
    seeded,
    total,
)
from tolerances import EXACT, largest_error
from torch.autograd import gradcheck
from torch.distributions import kl_divergence

import treelax as tx
from treelax.errors import InputError, NoTreeError
from treelax.structures import structure_named
from treelax.structures.paths import PathStructure

ARGMAX = tx.Projective.argmax


def as_set(trees):
    return {tuple(tree.flatten().tolist()) for tree in trees}


@every_structure
@pytest.mark.parametrize("n", range(5))
def test_all_members(structure, n):
    trees = members(structure, n)
    assert structure.contains(trees, torch.tensor(n)).all()
    sizes = structure.sizes(*event(structure, n))
    assert as_set(structure.enumerate(*sizes)) == as_set(trees)
    assert round(math.exp(structure.log_count(*sizes))) == len(trees)
    many = structure.sizes(*event(structure, 20))
    if n == 4 and structure.log_count(*many) > math.log(1e6):
        with pytest.raises(InputError, match="expected at most 1,000,000"):
            structure.enumerate(*many)


@every_structure
def test_what_is_no_member(structure):
    """Every other 0/1 tensor over two words with as many parts."""
    shape, two = event(structure, 2), torch.tensor(2)
    places = itertools.combinations(range(math.prod(shape)), int(structure.part_count(two)))
    candidates = [
        torch.zeros(math.prod(shape)).index_fill(0, torch.tensor(place), 1).reshape(shape)
        for place in places
    ]
    trees = as_set(members(structure, 2))
    expected = [tuple(tree.flatten().tolist()) in trees for tree in candidates]
    assert structure.contains(torch.stack(candidates), two).tolist() == expected
    assert not structure.contains(torch.stack(candidates) * 0.5, two).any()


@every_structure
def test_parts_that_are_known(structure):
    """What goes beside a part leaves the members that have it, all of them and no other."""
    trees, scores = members(structure, 3), draw(structure, n=3)
    for part in structure.parts_of(trees[-1]):
        having = trees[(trees * part).flatten(1).any(1)] if part.any() else trees
        values = total(having, scores, structure.event_dim)
        best = structure.argmax(structure.force(scores, part), validate=False)
        assert torch.equal(best, having[values.argmax()])
        assert structure.compatible_parts(part)[(having != 0).any(0)].all()
        if structure.part == "edge":
            continue  # which is not forced by forbidding others
        expected = values.logsumexp(0)
        known = structure(scores.masked_fill(~structure.compatible_parts(part), -torch.inf))
        assert largest_error(known.log_partition, expected) < EXACT


@every_structure
def test_operations_against_enumeration(structure):
    scores, dims = draw(structure, 3), structure.event_dim
    d, other = structure(scores, LENGTHS), structure(scores.flip(0), LENGTHS)
    best = d.top_k(20)
    kl, cross, renyi = kl_divergence(d, other), d.cross_entropy(other), d.renyi_entropy(2.5)
    assert torch.equal(d.mean, d.marginals)
    for b, n in enumerate(LENGTHS.tolist()):
        trees = members(structure, n)
        own, others = (inside(s[b], structure, n) for s in (scores, scores.flip(0)))
        log_weights = total(trees, own, dims)
        p, q = log_weights.softmax(0), total(trees, others, dims).softmax(0)
        assert largest_error(d.log_partition[b], log_weights.logsumexp(0)) < EXACT
        marginals = inside(d.marginals[b], structure, n)
        assert largest_error(marginals, (column(p, structure) * trees).sum(0)) < EXACT
        assert torch.equal(inside(d.mode[b], structure, n), trees[log_weights.argmax()])
        assert largest_error(d.entropy()[b], -(p * p.log()).sum()) < EXACT
        assert largest_error(structure(own).log_prob(trees), p.log()) < EXACT
        assert largest_error(kl[b], (p * (p / q).log()).sum()) < EXACT
        assert largest_error(cross[b], -(p * q.log()).sum()) < EXACT
        assert largest_error(renyi[b], (p**2.5).sum().log() / -1.5) < EXACT
        order = log_weights.argsort(descending=True)[:20]
        found = len(order)
        assert largest_error(best.log_probs[:found, b], p[order].log()) < EXACT
        assert torch.equal(inside(best.trees[:found, b], structure, n), trees[order])
        assert (best.log_probs[found:, b] == -torch.inf).all()
        assert not best.trees[found:, b].any()
        with_part = torch.where(trees != 0, column(p.log(), structure), -torch.inf).amax(0)
        assert torch.allclose(
            inside(d.max_marginals[b], structure, n), with_part, rtol=0, atol=EXACT
        )


@every_structure
def test_gradients(structure):
    scores, other = draw(structure, 3, n=3), draw(structure, 3, n=3, seed=2)
    lengths = LENGTHS.clamp(max=3)

    def values(s, t):
        d = structure(s, lengths)
        kl = kl_divergence(d, structure(t, lengths))
        return d.log_prob(d.mode), d.log_partition, d.marginals, d.entropy(), kl

    assert gradcheck(values, (scores.requires_grad_(), other.requires_grad_()), fast_mode=True)


@every_structure
def test_samples_are_exact(structure):
    n = 2 if structure.event_dim == 3 else 3
    trees, scores = members(structure, n), draw(structure, n=n)
    drawn = structure(scores).sample((20_000,), generator=seeded(20190601))
    index = (drawn[:, None] == trees).flatten(2).all(-1)
    assert index.any(1).all()
    expected = 20_000 * total(trees, scores, structure.event_dim).softmax(0)
    chi2 = ((index.sum(0) - expected) ** 2 / expected).sum()
    freedom = len(trees) - 1
    assert chi2 < freedom + 5 * math.sqrt(2 * freedom)  # five standard deviations


@every_structure
def test_a_relaxation_tends_to_the_mode(structure):
    scores = draw(structure, 3)
    mode = structure(scores, LENGTHS).mode
    for relaxation in structure.relaxations:
        for temperature in (1e-3, torch.tensor([1e-3, 2e-3, 1e-3])):
            options = {"relaxation": relaxation, "temperature": temperature}
            assert largest_error(structure.relaxed(scores, LENGTHS, **options), mode) < 1e-6
    if "softmax" not in structure.relaxations:
        with pytest.raises(InputError, match='expected "entropy"'):
            structure.relaxed(scores, LENGTHS)


@every_structure
def test_a_uniform_of_zero_draws_nothing_improbable(structure, monkeypatch):
    monkeypatch.setattr(torch, "rand", lambda size, **options: torch.zeros(size, **options))
    scores = torch.zeros(event(structure, 3 - structure.rooted))
    scores[0, 1] = -70  # a probability of 1e-30
    backends = ("reference", "diagonal", "native")
    for backend in backends if structure.event_dim == 2 else (None,):
        assert not structure(scores, backend=backend).sample()[0, 1].any()


@every_structure
def test_a_generator_fixes_samples(structure):
    """Torch's own serves when none is given."""
    d = structure(draw(structure, 4, n=7))
    assert torch.equal(d.sample((3,), generator=seeded(1)), d.sample((3,), generator=seeded(1)))
    assert not torch.equal(d.sample((3,), generator=seeded(1)), d.sample((3,), generator=seeded(2)))
    torch.manual_seed(5)
    first = d.sample()
    torch.manual_seed(5)
    assert torch.equal(first, d.sample())


def test_the_search_for_the_best_ends_when_all_are_found():
    with mock.patch.object(tx.Projective, "argmax", autospec=True, side_effect=ARGMAX) as argmax:
        best = tx.Projective()(torch.randn(2, 3, 3), torch.tensor([2, 1])).top_k(2000)
    assert best.log_probs.isfinite().sum(0).tolist() == [3, 1]
    assert not best.trees[3:].any()
    assert argmax.call_count <= 4


@every_structure
def test_padding_and_batch_shape_change_nothing(structure):
    scores = draw(structure, 3)
    scores = scores.expand(2, *scores.shape).clone()
    lengths = torch.tensor([[4, 3, 2], [1, 0, 4]])
    d = structure(scores, lengths)
    for place in itertools.product(range(2), range(3)):
        n = int(lengths[place])
        alone = structure(inside(scores[place], structure, n))
        assert largest_error(d.entropy()[place], alone.entropy()) < EXACT
        assert largest_error(inside(d.marginals[place], structure, n), alone.marginals) < EXACT
        assert torch.equal(inside(d.mode[place], structure, n), alone.mode)
        assert d.mode[place].sum() == alone.mode.sum()
    drawn = d.sample((2,))
    assert drawn.shape == (2, *scores.shape)
    assert d.support.check(drawn).all()
    assert (drawn.flatten(3).sum(-1) <= structure.part_count(lengths)).all()
    assert not drawn[~mask_of(structure, lengths.expand(2, 2, 3), drawn)].any()


@every_structure
def test_padding_may_hold_anything(structure):
    """NaN there reaches no value and no gradient, of any method and any estimator."""
    clean = draw(structure, 3)
    mask = mask_of(structure, LENGTHS, clean)
    dirty = clean.masked_fill(~mask, torch.nan).requires_grad_()
    clean = clean.masked_fill(~mask, 0).requires_grad_()
    gold, other = (structure(draw(structure, 3, seed=seed), LENGTHS) for seed in (2, 3))

    def discrete(d):
        support = structure.sparsemap(d.scores, LENGTHS).support
        sample = d.sample((2,), generator=seeded())
        return [d.mode, sample, d.max_marginals, *d.top_k(3), support.weights]

    def smooth(d):
        yield from (d.log_partition, d.entropy(), d.log_prob(gold.mode), d.variance)
        yield from (d.renyi_entropy(order) for order in (0, 2.5, math.inf))
        yield from (kl_divergence(d, other), kl_divergence(other, d), d.cross_entropy(other))
        yield structure.sparsemap(d.scores, LENGTHS).tree
        for temperature in (0.5, torch.tensor(0.5)):
            for relaxation in structure.relaxations:
                yield d.rsample(
                    (2,), relaxation=relaxation, temperature=temperature, generator=seeded()
                )
        yield tx.Marginals(0.5).sample(d)
        estimators = [
            *(tx.SPIGOT(projection="polytope", form=form) for form in ("spigot", "ce", "eg")),
            *(tx.IMLE(), tx.Perturbed(2), tx.RLOO(2), tx.SparseMAP()),
            *(tx.StraightThrough(tx.Relaxed("entropy"), g) for g in ("relaxed", "identity")),
        ]
        for estimator in estimators:
            yield estimator.expect(
                d, lambda t: t.square().flatten(-structure.event_dim).sum(-1), generator=seeded()
            )
        for estimator in (tx.Marginals(0.5), tx.Perturbed(2), tx.SparseMAP()):
            yield tx.fenchel_young_loss(d, gold.mode, estimator, generator=seeded())

    both = [structure(scores, LENGTHS) for scores in (dirty, clean)]
    for got, expected in zip(*map(discrete, both), strict=True):
        assert torch.equal(got, expected)
    for got, expected in zip(*map(smooth, both), strict=True):
        assert torch.equal(got, expected)
        slopes = [
            torch.autograd.grad(value.square().sum(), d.scores, retain_graph=True)[0]
            for value, d in zip((got, expected), both, strict=True)
        ]
        assert torch.equal(*slopes)


@every_structure
@pytest.mark.parametrize("batch", [(), (3,)])
def test_sentences_without_room_for_a_word(structure, batch):
    scores = torch.zeros(*batch, *event(structure, 0))
    d = structure(scores)
    point = structure.sparsemap(scores).tree
    for same in (d.mode, d.marginals, d.max_marginals, d.sample(), point):
        assert same.shape == scores.shape
    for zero in (d.log_partition, d.entropy(), d.log_prob(d.mode), d.top_k(1).log_probs[0]):
        assert torch.equal(zero, torch.zeros(batch))


@every_structure
def test_forbidden_parts(structure):
    """Entropy and log-probability stay finite, with finite gradients; a forbidden member has none."""
    scores = draw(structure, 3)
    scores[:, 1, 2] = scores[:, 2, 1] = -torch.inf
    d = structure(scores.requires_grad_(), LENGTHS)
    value = d.entropy().sum() + d.log_prob(d.mode).sum()
    (grad,) = torch.autograd.grad(value, scores)
    assert torch.isfinite(value)
    assert torch.isfinite(grad).all()
    trees = members(structure, 4)
    forbidden = trees[:, 1, 2].reshape(len(trees), -1).any(-1)
    assert (structure(scores.detach()[0]).log_prob(trees[forbidden]) == -torch.inf).all()
    assert d.top_k(3).log_probs.shape == (3, 3)
    assert (d.renyi_entropy(0)[2].exp() - len(members(structure, 1))).abs() < EXACT


@every_structure
@pytest.mark.parametrize("weight", [0.5, -1e5])  # the second has a probability of 0 in any type
def test_kl_divergence_is_infinite_where_a_part_is_missing(structure, weight):
    scores = draw(structure, 3)
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


@pytest.mark.parametrize("kind", [tx.Projective, tx.NonProjective])
def test_kl_divergence_between_root_rules_and_of_what_no_tree_has_room_for(kind):
    scores = draw(kind(), 3)
    loose, tight = (kind(single)(scores, LENGTHS) for single in (False, True))
    assert kl_divergence(loose, tight).isinf().tolist() == [True, True, False]
    assert torch.isfinite(kl_divergence(tight, loose)).all()
    chain = torch.full((1, 3, 3), -torch.inf)
    chain[0, 0, 1] = chain[0, 1, 2] = chain[0, 2, 1] = 0
    narrow = chain.clone()
    narrow[0, 2, 1] = -torch.inf
    assert kl_divergence(kind()(chain), kind()(narrow)).item() == 0


@every_structure
def test_half_types_are_rounded_once(structure):
    """Entropy and divergence are differences of large numbers: computed in float32 or better."""
    scores, other = draw(structure, 2, 2, n=40).bfloat16()
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
    drawn = structure(small).sample((50_000,), generator=seeded())
    assert drawn.dtype == torch.bfloat16
    assert largest_error(drawn.float().mean(0), structure(small.float()).marginals) < 0.01


@every_structure
@pytest.mark.parametrize(
    ("scale", "dtype"), [(1e8, torch.float32), (1e30, torch.float64), (-1e30, torch.float32)]
)
def test_the_entropy_of_huge_scores(structure, dtype, scale):
    """One tree has all the weight, or all have the same: the numbers are known."""
    d = structure(3e38 * draw(structure, 3, n=7).float().clamp(-1, 1))  # beyond what is not clamped
    assert (d.entropy() >= 0).all()
    assert all(value.isfinite().all() for value in (d.log_prob(d.mode), d.marginals))
    count, shape = log_size(structure, 5, scale), (20, *event(structure, 5))
    # below 1e30, where scores are clamped and ties arise
    apart = 0.1 * scale * torch.randn(shape, dtype=dtype, generator=seeded(3))
    for scores, truth in ((apart, 0.0), (torch.full(shape, scale, dtype=dtype), count)):
        d = structure(scores.requires_grad_())
        values = d.entropy(), d.renyi_entropy(0.5), d.renyi_entropy(2), d.renyi_entropy(math.inf)
        for value in values:
            assert largest_error(value.detach(), torch.full((20,), truth)) < 1e-6
        (grad,) = torch.autograd.grad(d.entropy().sum(), scores)
        assert largest_error(grad, torch.zeros_like(grad)) < 1e-6
        even = truth and not isinstance(structure, PathStructure)  # whatever the sign
        alike = -scores.detach() if even else 0.9375 * scores.detach()
        for q in (structure(scores.detach()), structure(alike)):
            assert largest_error(kl_divergence(d, q).detach(), torch.zeros(20)) < 1e-6
            assert largest_error(d.cross_entropy(q).detach(), torch.full((20,), truth)) < 1e-6
        if not truth:
            shifted = structure(scores.detach().roll(1, 0))
            differ = (shifted.mode != d.mode).flatten(1).any(1)
            assert (kl_divergence(d, shifted)[differ] > 1e-6 * abs(scale)).all()


@every_structure
def test_forced_and_excluded_parts_keep_the_entropy_of_the_rest(structure):
    """By scores of ±1e30 or by -inf."""
    scores = draw(structure)
    gold = structure(scores).mode
    part = next(p for p in structure.parts_of(gold) if p.any() and not p[0].any())
    beside = structure.compatible_parts(part)
    expected = structure(scores.masked_fill(~beside, -torch.inf)).entropy()
    excluded = scores.masked_fill(~beside, -1e30)
    forced = [torch.where(part, 1e30, x) for x in (scores, excluded)] if structure.rooted else []
    for changed in (excluded, *forced):
        assert largest_error(structure(changed).entropy(), expected) < 1e-6


@every_structure
def test_values_that_are_refused(structure):
    scores = draw(structure, 3)
    nan = scores.clone()
    nan[0, 1, 2] = torch.nan
    long = torch.zeros(1, *event(structure, 1 - structure.rooted))
    refused = [
        (lambda: structure(nan).marginals, "nan"),
        *(
            (lambda n=n: structure(long, torch.tensor([n])).log_partition, "lengths")
            for n in (-5, 5)
        ),
        (lambda: structure(torch.zeros(3, 2)), r"expected (\(\.\.\., n|at least)"),
        *((lambda k=k: structure(scores).top_k(k), "k is") for k in (0, -1, 1.5, True)),
        (lambda: structure(scores).renyi_entropy(-1), "order is -1"),
    ]
    for call, message in refused:
        with pytest.raises(InputError, match=message):
            call()
    for use in (lambda d: d.mode, lambda d: d.log_partition, lambda d: d.sample()):
        with pytest.raises(NoTreeError):
            use(structure(torch.full_like(scores, -torch.inf)))


def test_names():
    assert structure_named("projective", single_root=True) == tx.Projective(single_root=True)
    assert structure_named("heads") == tx.Heads()
    for call, message in (
        (lambda: structure_named("head"), "Did you mean 'heads'"),
        (lambda: structure_named("heads", single_root=True), "single_root is True"),
        (
            lambda: kl_divergence(*(s(torch.zeros(3, 3)) for s in (tx.Heads(), tx.Projective()))),
            "of one kind",
        ),
    ):
        with pytest.raises(InputError, match=message):
            call()
