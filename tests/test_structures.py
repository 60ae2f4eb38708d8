"""Every structure passes the same tests: its operations against a list of all its members."""

import functools
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

STRUCTURES = [
    tx.Projective(),
    tx.Projective(single_root=True),
    tx.NonProjective(),
    tx.NonProjective(single_root=True),
    tx.Heads(),
    tx.Binary(),
    tx.Labelled(tx.Projective()),
    tx.Labelled(tx.NonProjective(single_root=True)),
    tx.Labelled(tx.Binary()),
]
LABELS = 2
LENGTHS = torch.tensor([4, 3, 1])
every_structure = pytest.mark.parametrize("structure", STRUCTURES, ids=str)


def event(structure, n):
    """Shape of a structure over n words."""
    size = n + structure.rooted
    return (size, size, LABELS)[: structure.event_dim]


def relaxations(structure):
    inner = getattr(structure, "structure", structure)
    return ["entropy"] if isinstance(inner, tx.NonProjective) else ["softmax", "entropy"]


def bracketings(i, j):
    """The spans of every binary tree over words i to j."""
    if i == j:
        yield [(i, i)]
    for k in range(i, j):
        for left, right in itertools.product(bracketings(i, k), bracketings(k + 1, j)):
            yield [(i, j), *left, *right]


@functools.cache
def members(structure, n):
    """All structures over n words, by definition, with nothing of the library."""
    if isinstance(structure, tx.Labelled):
        found = []
        for tree in members(structure.structure, n):
            places = tree.nonzero().tolist()
            for labels in itertools.product(range(LABELS), repeat=len(places)):
                found.append(torch.zeros(event(structure, n), dtype=torch.float64))
                for (i, j), label in zip(places, labels, strict=True):
                    found[-1][i, j, label] = 1
        return torch.stack(found)
    if isinstance(structure, tx.Binary):
        found = torch.zeros(math.comb(2 * n - 2, n - 1) // n, n, n, dtype=torch.float64)
        for tree, spans in zip(found, bracketings(0, n - 1), strict=True):
            for i, j in spans:
                tree[i, j] = 1
        return found
    single_root = getattr(structure, "single_root", False)
    heads = [
        candidate
        for candidate in itertools.product(range(n + 1), repeat=n)
        if all(head != word for word, head in enumerate(candidate, 1))
        and (isinstance(structure, tx.Heads) or oracle.is_tree(candidate, single_root))
        and (not isinstance(structure, tx.Projective) or oracle.is_projective(candidate))
    ]
    return heads_to_tree(torch.tensor(heads), dtype=torch.float64)


def inside(scores, structure, n):
    """The scores of a sentence of n words."""
    size = n + structure.rooted
    return scores[:size, :size]


def total(trees, scores):
    return torch.where(trees != 0, scores, 0).flatten(1).sum(1)


def draw(structure, generator, batch=3, n=4):
    """Scores of sentences."""
    return torch.randn(batch, *event(structure, n), dtype=torch.float64, generator=generator)


@pytest.fixture
def make(generator):
    return lambda structure, **options: draw(structure, generator, **options)


@every_structure
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_all_members(structure, n):
    trees = members(structure, n)
    assert structure.contains(trees, torch.tensor(n)).all()
    if isinstance(structure, tx.Labelled):
        with pytest.raises(InputError, match="labels is not known"):
            structure.enumerate(n)
        return
    assert round(math.exp(structure.log_count(n))) == len(trees)
    listed = structure.enumerate(n)
    assert len(listed) == len(trees)
    assert {tuple(t.flatten().tolist()) for t in listed} == {
        tuple(t.flatten().tolist()) for t in trees
    }
    with pytest.raises(InputError, match="expected at most 1,000,000"):
        structure.enumerate(20)


@every_structure
def test_what_is_no_member(structure):
    """Every other 0/1 tensor over two words with as many parts."""
    n = 2
    trees = {tuple(t.flatten().tolist()) for t in members(structure, n)}
    shape = event(structure, n)
    count = int(structure.part_count(torch.tensor(n)))
    candidates = []
    for places in itertools.combinations(range(math.prod(shape)), count):
        one = torch.zeros(math.prod(shape), dtype=torch.float64)
        one[list(places)] = 1
        candidates.append(one.reshape(shape))
    candidates = torch.stack(candidates)
    expected = [tuple(t.flatten().tolist()) in trees for t in candidates]
    assert structure.contains(candidates, torch.tensor(n)).tolist() == expected
    assert not structure.contains(candidates * 0.5, torch.tensor(n)).any()


@every_structure
def test_operations_against_enumeration(structure, make):
    scores = make(structure)
    d = structure(scores, LENGTHS)
    other = structure(scores.flip(0), LENGTHS)
    best = d.top_k(20)
    kl, cross, renyi = kl_divergence(d, other), d.cross_entropy(other), d.renyi_entropy(2.5)
    assert torch.equal(d.mean, d.marginals)
    for b, n in enumerate(LENGTHS.tolist()):
        trees = members(structure, n)
        own, others = (inside(s[b], structure, n) for s in (scores, scores.flip(0)))
        log_weights = total(trees, own)
        p, q = log_weights.softmax(0), total(trees, others).softmax(0)
        assert largest_error(d.log_partition[b], log_weights.logsumexp(0)) < EXACT
        shares = p.reshape(-1, *(1,) * structure.event_dim)
        marginals = inside(d.marginals[b], structure, n)
        assert largest_error(marginals, (shares * trees).sum(0)) < EXACT
        assert torch.equal(inside(d.mode[b], structure, n), trees[log_weights.argmax()])
        assert largest_error(d.entropy()[b], -(p * p.log()).sum()) < EXACT
        assert largest_error(structure(own).log_prob(trees), p.log()) < EXACT
        assert largest_error(kl[b], (p * (p / q).log()).sum()) < EXACT
        assert largest_error(cross[b], -(p * q.log()).sum()) < EXACT
        assert largest_error(renyi[b], (p**2.5).sum().log() / -1.5) < EXACT
        order = log_weights.argsort(descending=True)[:20]
        found = len(order)
        assert largest_error(best.log_probs[:found, b], p[order].log()) < EXACT
        for rank, which in enumerate(order):
            assert torch.equal(inside(best.trees[rank, b], structure, n), trees[which])
        assert (best.log_probs[found:, b] == -torch.inf).all()
        assert not best.trees[found:, b].any()
        with_part = torch.where(trees != 0, p.log().reshape(shares.shape), -torch.inf).amax(0)
        assert torch.allclose(
            inside(d.max_marginals[b], structure, n), with_part, rtol=0, atol=EXACT
        )


@every_structure
def test_gradients(structure, make):
    scores, other = make(structure, n=3), make(structure, n=3)
    lengths = LENGTHS.clamp(max=3)

    def values(s, t):
        d = structure(s, lengths)
        kl = kl_divergence(d, structure(t, lengths))
        return d.log_prob(d.mode), d.log_partition, d.marginals, d.entropy(), kl

    assert gradcheck(values, (scores.requires_grad_(), other.requires_grad_()))


@every_structure
def test_samples_are_exact(structure, make, generator):
    n = 2 if structure.event_dim == 3 else 3
    trees = members(structure, n)
    own = make(structure, n=n)[0]
    drawn = structure(own).sample((20_000,), generator=generator)
    index = (drawn[:, None] == trees).flatten(2).all(-1)
    assert index.any(1).all()
    expected = 20_000 * total(trees, own).softmax(0)
    chi2 = ((index.sum(0) - expected) ** 2 / expected).sum()
    freedom = len(trees) - 1
    assert chi2 < freedom + 5 * math.sqrt(2 * freedom)  # five standard deviations


@every_structure
def test_padding_and_batch_shape_change_nothing(structure, make):
    batch = make(structure)
    batch = batch.expand(2, *batch.shape).clone()
    lengths = torch.tensor([[4, 3, 2], [1, 0, 4]])
    d = structure(batch, lengths)
    for place in itertools.product(range(2), range(3)):
        n = int(lengths[place])
        alone = structure(inside(batch[place], structure, n))
        assert largest_error(d.entropy()[place], alone.entropy()) < EXACT
        assert torch.equal(inside(d.marginals[place], structure, n), alone.marginals)
        assert d.mode[place].sum() == inside(d.mode[place], structure, n).sum()
    drawn = d.sample((2,))
    assert drawn.shape == (2, *batch.shape)
    assert d.support.check(drawn).all()


@every_structure
def test_padding_may_hold_anything(structure, make):
    """NaN there reaches no value and no gradient, of any method and any estimator."""
    mask = structure.part_mask(LENGTHS, make(structure).shape[-structure.event_dim])
    clean = make(structure).masked_fill(~mask, 0).requires_grad_()
    dirty = clean.detach().masked_fill(~mask, torch.nan).requires_grad_()
    gold, other = (structure(make(structure), LENGTHS) for _ in range(2))

    def seeded():
        return torch.Generator().manual_seed(0)

    def discrete(d):
        return [
            d.mode,
            d.sample((2,), generator=seeded()),
            d.max_marginals,
            *d.top_k(3),
            structure.sparsemap(d.scores, LENGTHS).support.weights,
        ]

    def smooth(d):
        yield from (d.log_partition, d.entropy(), d.log_prob(gold.mode), d.variance)
        yield from (d.renyi_entropy(order) for order in (0, 2.5, math.inf))
        yield from (kl_divergence(d, other), kl_divergence(other, d), d.cross_entropy(other))
        yield structure.sparsemap(d.scores, LENGTHS).tree
        for temperature in (0.5, torch.tensor(0.5)):
            for relaxation in relaxations(structure):
                yield d.rsample(
                    (2,), relaxation=relaxation, temperature=temperature, generator=seeded()
                )
        yield tx.Marginals(0.5).sample(d)
        estimators = [
            tx.SPIGOT(projection="polytope", form=form) for form in ("spigot", "ce", "eg")
        ]
        estimators += [tx.IMLE(), tx.Perturbed(2), tx.RLOO(2), tx.SparseMAP()]
        estimators += [
            tx.StraightThrough(tx.Relaxed("entropy"), g) for g in ("relaxed", "identity")
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
def test_a_relaxation_tends_to_the_mode(structure, make):
    scores = make(structure)
    for relaxation in relaxations(structure):
        for temperature in (1e-3, torch.tensor([1e-3, 2e-3, 1e-3])):
            soft = structure.relaxed(
                scores, LENGTHS, relaxation=relaxation, temperature=temperature
            )
            assert largest_error(soft, structure(scores, LENGTHS).mode) < 1e-6
    if "softmax" not in relaxations(structure):
        with pytest.raises(InputError, match='expected "entropy"'):
            structure.relaxed(scores, LENGTHS)


@every_structure
@pytest.mark.parametrize("weight", [0.5, -1e5])  # the second has a probability of 0 in any type
def test_kl_divergence_is_infinite_where_a_part_is_missing(structure, weight, make):
    scores = make(structure)
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
def test_kl_divergence_between_root_rules_and_of_what_no_tree_has_room_for(kind, make):
    scores = make(kind())
    loose, tight = (kind(single)(scores, LENGTHS) for single in (False, True))
    assert kl_divergence(loose, tight).isinf().tolist() == [True, True, False]
    assert torch.isfinite(kl_divergence(tight, loose)).all()
    chain = torch.full((1, 3, 3), -torch.inf)
    chain[0, 0, 1] = chain[0, 1, 2] = chain[0, 2, 1] = 0
    narrow = chain.clone()
    narrow[0, 2, 1] = -torch.inf
    assert kl_divergence(kind()(chain), kind()(narrow)).item() == 0


@every_structure
def test_forbidden_parts(structure, make):
    """Entropy and log-probability stay finite, with finite gradients; a forbidden member has none."""
    scores = make(structure)
    scores[:, 1, 2] = scores[:, 2, 1] = -torch.inf
    d = structure(scores.requires_grad_(), LENGTHS)
    value = d.entropy().sum() + d.log_prob(d.mode).sum()
    (grad,) = torch.autograd.grad(value, scores)
    assert torch.isfinite(value)
    assert torch.isfinite(grad).all()
    trees = members(structure, 4)
    forbidden = trees[:, 1, 2].flatten(1).any(-1) if trees.dim() == 4 else trees[:, 1, 2] == 1
    assert (structure(scores.detach()[0]).log_prob(trees[forbidden]) == -torch.inf).all()
    assert d.top_k(3).log_probs.shape == (3, 3)
    assert (d.renyi_entropy(0)[2].exp() - len(members(structure, 1))).abs() < EXACT


@every_structure
def test_parts_that_are_known(structure, make):
    """What goes beside a part leaves the members that have it, all of them and no other."""
    trees = members(structure, 3)
    scores = inside(make(structure)[0], structure, 3)
    for part in structure.parts_of(trees[-1]):
        allowed = structure.beside(part)
        having = trees[(trees * part).flatten(1).any(1)] if part.any() else trees
        expected = total(having, scores).logsumexp(0)
        known = structure(scores.masked_fill(~allowed, -torch.inf))
        assert largest_error(known.log_partition, expected) < EXACT


@every_structure
def test_noise_needs_the_mask_and_number_of_parts_alone(structure):
    lengths = torch.tensor([3, 0])
    mask = structure.part_mask(lengths, 5)
    shape = (2, 5, 5, LABELS)[: 1 + structure.event_dim]
    trees = structure(torch.zeros(shape), lengths).mode
    assert not trees.masked_fill(mask, 0).any()
    assert torch.equal(trees.flatten(1).sum(1).long(), structure.part_count(lengths))


@every_structure
def test_the_expected_loss(structure, make):
    scores = make(structure, batch=2).requires_grad_()
    estimator = tx.Relaxed(relaxations(structure)[0], samples=3)
    loss = estimator.expect(structure(scores), lambda t: t.square().flatten(2).sum(-1))
    assert loss.shape == (2,)
    loss.sum().backward()
    assert scores.grad.abs().sum() > 0
    with pytest.raises(InputError, match=r"f returned \(\).*expected losses \(3, 2\)"):
        estimator.expect(structure(scores), lambda t: t.sum())


@every_structure
def test_values_that_are_refused(structure, make):
    scores = make(structure)
    nan = scores.clone()
    nan[0, 1, 2] = torch.nan
    with pytest.raises(InputError, match="nan"):
        _ = structure(nan).marginals
    for use in (lambda d: d.mode, lambda d: d.log_partition, lambda d: d.sample()):
        with pytest.raises(NoTreeError):
            use(structure(torch.full_like(scores, -torch.inf)))
    for length in (-5, 5):
        d = structure(torch.zeros((1, 1, 1, 1)[: 1 + structure.event_dim]), torch.tensor([length]))
        with pytest.raises(InputError, match="lengths"):
            _ = d.log_partition
    with pytest.raises(InputError, match=r"expected \(\.\.\., n"):
        structure(torch.zeros(3, 2))
    for k in (0, -1, 1.5, True):
        with pytest.raises(InputError, match="k is"):
            structure(scores).top_k(k)
    with pytest.raises(InputError, match="order is -1"):
        structure(scores).renyi_entropy(-1)


@every_structure
def test_half_types_are_rounded_once(structure, generator):
    """Entropy and divergence are differences of large numbers: computed in float32 or better."""
    shape = (2, 2, 41, 41, LABELS)[: 2 + structure.event_dim]
    scores, other = torch.randn(shape, generator=generator).bfloat16()
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
    shape = (3, 8, 8, LABELS)[: 1 + structure.event_dim]
    d = structure(scale * torch.randn(shape, generator=generator).clamp(-1, 1))
    assert (d.entropy() >= 0).all()
    assert torch.isfinite(d.entropy()).all()
    assert torch.isfinite(d.log_prob(d.mode)).all()
    assert torch.isfinite(d.marginals).all()


@pytest.mark.parametrize("single_root", [False, True])
@pytest.mark.parametrize("backend", ["native", "diagonal"])
def test_wide_scores_of_non_projective_trees_keep_their_digits(backend, single_root, generator):
    """Where a Laplacian in float32 is singular: columns sum to 1, and so does the root's row."""
    noise = torch.randn(4, 31, 31, generator=generator)
    for scores in (30 * noise, 300 * noise, 0 * noise - 12, 1e30 * noise.sign(), 0 * noise + 1e-42):
        scores.requires_grad_()
        d = tx.NonProjective(single_root)(scores, backend=backend)
        (grad,) = torch.autograd.grad(d.marginals.square().sum(), scores)
        assert torch.isfinite(grad).all()
        marginals = d.marginals.detach()
        assert largest_error(marginals.sum(-2)[:, 1:], torch.ones(4, 30)) < 1e-6
        assert not single_root or largest_error(marginals[:, 0].sum(-1), torch.ones(4)) < 1e-6


@every_structure
def test_a_uniform_of_zero_draws_nothing_improbable(structure, monkeypatch):
    monkeypatch.setattr(torch, "rand", lambda size, **options: torch.zeros(size, **options))
    scores = torch.zeros((3, 3, LABELS)[: structure.event_dim])
    scores[0, 1] = -70
    assert not structure(scores).sample()[0, 1].any()


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


def test_the_search_for_the_best_ends_when_all_are_found(monkeypatch):
    calls, argmax = [], tx.Projective.argmax
    monkeypatch.setattr(
        tx.Projective,
        "argmax",
        lambda *args, **options: calls.append(1) or argmax(*args, **options),
    )
    found = tx.Projective()(torch.randn(2, 3, 3), torch.tensor([2, 1])).top_k(2000)
    assert found.trees.shape == (2000, 2, 3, 3)
    assert found.log_probs.isfinite().sum(0).tolist() == [3, 1]
    assert not found.trees[3:].any()
    assert len(calls) <= 4


@every_structure
@pytest.mark.parametrize("batch", [(), (3,)])
def test_sentences_without_room_for_a_word(structure, batch):
    scores = torch.zeros(*batch, *event(structure, 0))
    d = structure(scores)
    for same in (
        d.mode,
        d.marginals,
        d.max_marginals,
        d.sample(),
        structure.sparsemap(scores).tree,
    ):
        assert same.shape == scores.shape
    for zero in (d.log_partition, d.entropy(), d.log_prob(d.mode), d.top_k(1).log_probs[0]):
        assert torch.equal(zero, torch.zeros(batch))


def huge_scores(structure, kind, scale, dtype):
    """Scores of sentences of five words where one tree has all the weight, or all have the same."""
    shape = (20, *event(structure, 5))
    if kind == "equal":
        return torch.full(shape, scale, dtype=dtype)
    # below 1e30, where scores are clamped and ties arise
    return 0.1 * scale * torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(3))


@every_structure
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("scale", [1e8, 1e30, -1e30])
def test_the_entropy_of_huge_scores(structure, dtype, scale):
    """One tree has all the weight, or all have the same: the numbers are known."""
    parts = int(structure.part_count(torch.tensor(5)))
    count = structure.log_count(5) + parts * math.log(LABELS) * (structure.event_dim - 2)
    for kind, truth in (("apart", 0.0), ("equal", count)):
        scores = huge_scores(structure, kind, scale, dtype).requires_grad_()
        d = structure(scores)
        values = d.entropy(), d.renyi_entropy(0.5), d.renyi_entropy(2), d.renyi_entropy(math.inf)
        for value in values:
            assert largest_error(value.detach(), torch.full((20,), truth)) < 1e-6
        (grad,) = torch.autograd.grad(d.entropy().sum(), scores)
        assert largest_error(grad, torch.zeros_like(grad)) < 1e-6
        shifted = structure(scores.detach().roll(1, 0))
        alike = 0.9375 * scores.detach() if kind == "apart" else -scores.detach()
        for q in (structure(scores.detach()), structure(alike)):
            assert largest_error(kl_divergence(d, q).detach(), torch.zeros(20)) < 1e-6
            assert largest_error(d.cross_entropy(q).detach(), torch.full((20,), truth)) < 1e-6
        if kind == "apart":
            apart = (shifted.mode != d.mode).flatten(1).any(1)
            assert (kl_divergence(d, shifted)[apart] > 1e-6 * abs(scale)).all()


@every_structure
def test_forced_and_excluded_parts_keep_the_entropy_of_the_rest(structure):
    """By scores of ±1e30 or by -inf."""
    n = 4
    scores = draw(structure, torch.Generator().manual_seed(1), batch=1, n=n)[0]
    gold = structure(scores).mode
    part = next(p for p in structure.parts_of(gold) if p.any() and not p[0].any())
    beside = structure.beside(part)
    expected = structure(scores.masked_fill(~beside, -torch.inf)).entropy()
    excluded = structure(scores.masked_fill(~beside, -1e30)).entropy()
    assert largest_error(excluded, expected) < 1e-6
    if structure.rooted:
        forced = structure(torch.where(part, 1e30, scores)).entropy()
        assert largest_error(forced, expected) < 1e-6
        both = torch.where(part, 1e30, scores.masked_fill(~beside, -1e30))
        assert largest_error(structure(both).entropy(), expected) < 1e-6
