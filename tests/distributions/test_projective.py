"""ProjectiveTrees as a torch distribution, against enumeration."""

import copy
import pickle

import oracle
import pytest
import torch
from tolerances import EXACT, largest_error
from torch.autograd import gradcheck
from torch.distributions import Distribution, kl_divergence

from treelax import ProjectiveTrees, ops
from treelax.errors import InputError, NoTreeError
from treelax.noise import perturbation
from treelax.trees import heads_to_tree

LENGTHS = torch.tensor([4, 3, 1])
both_roots = pytest.mark.parametrize("single_root", [False, True])


@pytest.fixture
def scores(generator):
    return torch.randn(3, 5, 5, dtype=torch.float64, generator=generator)


def by_enumeration(function, scores, single_root):
    return torch.stack(
        [function(s, single_root, int(n)) for s, n in zip(scores, LENGTHS, strict=True)]
    )


@both_roots
def test_against_enumeration(scores, single_root):
    trees = ProjectiveTrees(scores, LENGTHS, single_root=single_root)
    for ours, theirs in [
        (trees.log_partition, oracle.log_partition),
        (trees.marginals, oracle.marginals),
        (trees.entropy(), oracle.entropy),
        (trees.mode, lambda *a: oracle.best(*a)[0]),
    ]:
        assert largest_error(ours, by_enumeration(theirs, scores, single_root)) < EXACT
    assert torch.equal(trees.mean, trees.marginals)


@both_roots
def test_probabilities_of_all_trees(scores, single_root):
    every = oracle.indicators(4, single_root)
    log_prob = ProjectiveTrees(scores[0], single_root=single_root).log_prob(every)
    assert largest_error(log_prob.exp(), oracle.probabilities(scores[0], single_root)) < EXACT
    assert float(log_prob.logsumexp(0)) == pytest.approx(0, abs=1e-12)


@both_roots
def test_kl_divergence(scores, single_root, generator):
    other = torch.randn(3, 5, 5, dtype=torch.float64, generator=generator)
    p = ProjectiveTrees(scores, LENGTHS, single_root=single_root)
    q = ProjectiveTrees(other, LENGTHS, single_root=single_root)

    def brute(s, t, n):
        a = oracle.probabilities(s, single_root, n)
        return (a * (a / oracle.probabilities(t, single_root, n)).log()).sum()

    expected = torch.stack(
        [brute(s, t, int(n)) for s, t, n in zip(scores, other, LENGTHS, strict=True)]
    )
    assert largest_error(kl_divergence(p, q), expected) < EXACT
    assert largest_error(kl_divergence(p, p), torch.zeros(3)) < EXACT


def test_kl_divergence_is_infinite_where_the_support_is_missing(scores):
    p = ProjectiveTrees(scores, LENGTHS)
    narrow = scores.clone()
    narrow[0, 1, 2] = -torch.inf
    assert kl_divergence(p, ProjectiveTrees(narrow, LENGTHS))[0] == torch.inf
    assert torch.isfinite(kl_divergence(ProjectiveTrees(narrow, LENGTHS), p)).all()
    single = kl_divergence(p, ProjectiveTrees(scores, LENGTHS, single_root=True))
    assert single.isinf().tolist() == [True, True, False]  # one word has one root anyway


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_kl_divergence_is_infinite_however_small_the_weight(dtype):
    scores = torch.zeros(1, 4, 4, dtype=dtype)
    scores[0, 1, 2] = -1e5  # a probability of 0 in any type
    narrow = scores.clone()
    narrow[0, 1, 2] = -torch.inf
    p, q = ProjectiveTrees(scores), ProjectiveTrees(narrow)
    assert kl_divergence(p, q).item() == torch.inf
    assert kl_divergence(q, p).item() == pytest.approx(0, abs=1e-5)
    one_root = torch.full((1, 4, 4), -1e5, dtype=dtype)
    one_root[0, 0, 1] = one_root[0, 1, 2] = one_root[0, 2, 3] = 0
    p, q = (ProjectiveTrees(one_root, single_root=single) for single in (False, True))
    assert kl_divergence(p, q).item() == torch.inf
    assert kl_divergence(q, p).item() == pytest.approx(0, abs=1e-5)
    # an arc that no tree of p has room for does not matter
    chain = torch.full((1, 3, 3), -torch.inf, dtype=dtype)
    chain[0, 0, 1] = chain[0, 1, 2] = chain[0, 2, 1] = 0
    narrow = chain.clone()
    narrow[0, 2, 1] = -torch.inf
    assert kl_divergence(ProjectiveTrees(chain), ProjectiveTrees(narrow)).item() == 0


def test_a_copy_computes_its_own_values(scores):
    original = ProjectiveTrees(scores.clone().requires_grad_(), LENGTHS)
    (expected,) = torch.autograd.grad(original.entropy().sum(), original.scores)
    for copied in (copy.deepcopy(original), pickle.loads(pickle.dumps(original))):
        (grad,) = torch.autograd.grad(copied.entropy().sum(), copied.scores)
        assert torch.equal(grad, expected)


def test_half_types_are_perturbed_in_float32(generator):
    """At a score of 100 a bfloat16 moves in steps of 0.5, which is seen in frequencies of arcs."""
    scores = torch.full((3, 3), 100.0, dtype=torch.bfloat16)
    options = {"straight_through": True, "generator": generator}
    half = ProjectiveTrees(scores).rsample((20_000,), **options)
    full = ProjectiveTrees(scores.float()).rsample((20_000,), **options)
    assert half.dtype == torch.bfloat16
    assert largest_error(half.float().mean(0), full.mean(0)) < 0.02


@pytest.mark.parametrize("validate", [True, False])
@pytest.mark.parametrize("dynamic", [True, False])
def test_every_method_compiles_whole(validate, dynamic):
    def everything(scores, lengths):
        p = ProjectiveTrees(scores, lengths, validate_args=validate)
        q = ProjectiveTrees(2 * scores, lengths, validate_args=validate)
        values = p.log_partition, p.entropy(), p.log_prob(p.mode), kl_divergence(p, q)
        return p.mode, p.marginals, *values

    torch._dynamo.reset()
    compiled = torch.compile(everything, fullgraph=True, dynamic=dynamic, backend="aot_eager")
    for batch, n in ((3, 4), (5, 6)):
        scores = torch.randn(batch, n + 1, n + 1, requires_grad=True)
        lengths = torch.arange(batch) % (n + 1)
        for got, expected in zip(
            compiled(scores, lengths), everything(scores, lengths), strict=True
        ):
            assert torch.allclose(got, expected, atol=1e-5)


def test_kl_divergence_of_different_sentences(scores):
    p = ProjectiveTrees(scores, LENGTHS)
    with pytest.raises(InputError, match="lengths"):
        kl_divergence(p, ProjectiveTrees(scores))
    with pytest.raises(InputError, match=r"\(5, 5\).*\(4, 4\)"):
        kl_divergence(p, ProjectiveTrees(scores[:, :4, :4]))


@both_roots
def test_gradients(scores, single_root):
    def of(name):
        def value(s):
            trees = ProjectiveTrees(s, LENGTHS, single_root=single_root)
            if name == "log_prob":
                return trees.log_prob(trees.mode)
            attribute = getattr(trees, name)
            return attribute() if callable(attribute) else attribute

        return value

    scores.requires_grad_()
    for name in ("log_prob", "log_partition", "marginals", "entropy"):
        assert gradcheck(of(name), scores), name


def test_kl_gradient(scores, generator):
    other = torch.randn(3, 5, 5, dtype=torch.float64, generator=generator).requires_grad_()
    assert gradcheck(
        lambda s, t: kl_divergence(ProjectiveTrees(s, LENGTHS), ProjectiveTrees(t, LENGTHS)),
        (scores.requires_grad_(), other),
    )


def test_forbidden_arcs(scores):
    """Entropy and log-probability stay finite, with finite gradients; a forbidden tree has none."""
    scores[:, 1, 2] = scores[:, 2, 1] = -torch.inf
    scores[2, 1, 2] = scores[2, 2, 1] = 0  # beyond its length
    scores.requires_grad_()
    trees = ProjectiveTrees(scores, LENGTHS)
    total = trees.entropy().sum() + trees.log_prob(trees.mode).sum()
    (grad,) = torch.autograd.grad(total, scores)
    assert torch.isfinite(total)
    assert torch.isfinite(grad).all()
    chain = torch.diag(torch.ones(4, dtype=torch.float64), 1)
    assert ProjectiveTrees(scores.detach()[0]).log_prob(chain) == -torch.inf


def test_samples_are_exact(scores, generator):
    """Frequencies of arcs against marginals, five standard errors apart at most."""
    trees = ProjectiveTrees(scores, LENGTHS)
    drawn = trees.sample((4000,), generator=generator)
    assert drawn.shape == (4000, 3, 5, 5)
    assert trees.support.check(drawn).all()
    error = (trees.variance / 4000).sqrt()
    assert ((drawn.mean(0) - trees.marginals).abs() <= 5 * error + 1e-12).all()


# ── rsample ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("noise", ["gumbel", "sum-of-gamma", None])
@pytest.mark.parametrize("relaxation", ["softmax", "entropy"])
def test_rsample_is_the_soft_tree_of_noisy_scores(scores, relaxation, noise):
    trees = ProjectiveTrees(scores, LENGTHS)
    got = trees.rsample(
        (2,),
        relaxation=relaxation,
        temperature=0.5,
        noise=noise,
        generator=torch.Generator().manual_seed(1),
    )
    expanded = scores.expand(2, 3, 5, 5)
    noisy = expanded + perturbation(
        noise, expanded, LENGTHS.expand(2, 3), generator=torch.Generator().manual_seed(1)
    )
    expected = ops.soft_tree(noisy, LENGTHS.expand(2, 3), relaxation=relaxation, temperature=0.5)
    assert torch.equal(got, expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("relaxation", ["softmax", "entropy"])
def test_straight_through(scores, relaxation, dtype):
    """The value is the exact best tree of the perturbed scores; the gradient is the soft tree's."""
    scores = scores.to(dtype).requires_grad_()
    weight = torch.randn(2, 3, 5, 5, generator=torch.Generator().manual_seed(2)).to(dtype)

    def draw(straight_through):
        return ProjectiveTrees(scores, LENGTHS).rsample(
            (2,),
            relaxation=relaxation,
            straight_through=straight_through,
            generator=torch.Generator().manual_seed(3),
        )

    hard, soft = draw(True), draw(False)
    noisy = scores.detach() + perturbation(
        "gumbel",
        scores.detach().expand(2, 3, 5, 5),
        LENGTHS.expand(2, 3),
        generator=torch.Generator().manual_seed(3),
    )
    assert torch.equal(hard.detach(), ops.best_tree(noisy, LENGTHS.expand(2, 3)))
    assert not torch.equal(soft.detach(), hard.detach())
    gradients = [torch.autograd.grad(x, scores, weight)[0] for x in (hard, soft)]
    assert torch.equal(*gradients)
    assert gradients[0].abs().sum() > 0


def test_rsample_is_reproducible(scores):
    trees = ProjectiveTrees(scores, LENGTHS)
    draws = [trees.rsample(generator=torch.Generator().manual_seed(s)) for s in (1, 1, 2)]
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])


# ── the contract of torch.distributions ──────────────────────────────────────────────────────────


def test_it_is_a_distribution(scores):
    trees = ProjectiveTrees(scores, LENGTHS)
    assert isinstance(trees, Distribution)
    assert trees.batch_shape == (3,)
    assert trees.event_shape == (5, 5)
    assert trees.has_rsample
    assert trees.arg_constraints["scores"].check(scores).all()
    assert trees.support.check(trees.mode).all()
    assert "ProjectiveTrees(" in repr(trees)


@pytest.mark.parametrize("touch_first", [False, True])
def test_expand(scores, touch_first):
    trees = ProjectiveTrees(scores, LENGTHS, single_root=True)
    if touch_first:
        trees.marginals, trees.mode, trees.log_partition  # noqa: B018  fills the cache
    wide = trees.expand((2, 3))
    assert isinstance(wide, ProjectiveTrees)
    assert wide.batch_shape == (2, 3)
    assert wide.sample((4,)).shape == (4, 2, 3, 5, 5)
    assert torch.equal(wide.log_partition, trees.log_partition.expand(2, 3))
    assert torch.equal(wide.marginals, trees.marginals.expand(2, 3, 5, 5))
    assert torch.equal(wide.mode, trees.mode.expand(2, 3, 5, 5))
    assert wide.single_root


def test_a_setting_belongs_to_one_object(scores):
    """Settings of one distribution do not leak into another."""
    one = ProjectiveTrees(scores, LENGTHS, single_root=True, validate_args=False)
    two = ProjectiveTrees(scores, LENGTHS)
    assert (one.single_root, two.single_root) == (True, False)
    assert two._validate_args
    assert not scores.requires_grad


def test_support(scores):
    support = ProjectiveTrees(scores, LENGTHS).support
    chain = torch.diag(torch.ones(4), 1)
    wrong = torch.stack(
        [
            chain * 0.5,  # not 0/1
            torch.zeros(5, 5),  # no heads
            chain + torch.eye(5),  # two heads
            torch.zeros(5, 5).index_put(
                (torch.tensor([2, 1, 0, 0]), torch.tensor([1, 2, 3, 4])), torch.tensor(1.0)
            ),
            torch.zeros(5, 5).index_put(
                (torch.tensor([3, 0, 0, 2]), torch.tensor([1, 2, 3, 4])), torch.tensor(1.0)
            ),
        ]
    )
    assert not support.check(wrong[:, None].expand(5, 3, 5, 5))[:, 0].any()
    assert support.check(chain.expand(3, 5, 5)).tolist() == [True, False, False]  # too long a chain
    flat = torch.zeros(5, 5)
    flat[0, 1:] = 1
    assert support.check(flat.expand(3, 5, 5))[0]
    assert not ProjectiveTrees(scores[0], single_root=True).support.check(flat)


def test_what_is_refused(scores):
    with pytest.raises(InputError, match="not of the structure Projective"):
        ProjectiveTrees(scores, LENGTHS).log_prob(torch.zeros(3, 5, 5))
    with pytest.raises(InputError, match=r"\(3, 4, 4\)"):
        ProjectiveTrees(scores, LENGTHS).log_prob(torch.zeros(3, 4, 4))
    with pytest.raises(InputError, match=r"\(2, 5, 5\)"):
        ProjectiveTrees(scores, LENGTHS).log_prob(torch.zeros(2, 5, 5))
    with pytest.raises(InputError, match="heads_to_tree"):
        ProjectiveTrees(scores, LENGTHS).log_prob(torch.zeros(3, 4, dtype=torch.int64))
    crossing = heads_to_tree(torch.tensor([3, 4, 0, 3]))
    with pytest.raises(InputError, match="nearest_projective"):
        ProjectiveTrees(scores[0]).log_prob(crossing)
    for shape in (3, (-1,)):
        with pytest.raises(InputError, match="sample_shape"):
            ProjectiveTrees(scores, LENGTHS).sample(shape)
    with pytest.raises(InputError, match="noise_scale is -1"):
        ProjectiveTrees(scores, LENGTHS).rsample(noise_scale=-1)
    with pytest.raises(InputError, match="lengths"):
        ProjectiveTrees(scores, LENGTHS[:2])
    with pytest.raises(InputError, match=r"'gumbl'.*'gumbel'"):
        ProjectiveTrees(scores, LENGTHS).rsample(noise="gumbl")
    with pytest.raises(InputError, match="relaxation"):
        ProjectiveTrees(scores, LENGTHS).rsample(relaxation="sigmoid")
    nan = scores.clone()
    nan[0, 1, 2] = torch.nan
    with pytest.raises(InputError, match="nan"):
        _ = ProjectiveTrees(nan, LENGTHS).marginals
    nan[0, 0] = -torch.inf
    with pytest.raises(NoTreeError):
        _ = ProjectiveTrees(nan.nan_to_num(0, neginf=-torch.inf), LENGTHS).log_partition


def test_validation_can_be_left_out(scores):
    """Then whatever is no tree of the distribution has probability 0."""
    trees = ProjectiveTrees(scores, LENGTHS, single_root=True, validate_args=False)
    assert trees.log_prob(torch.zeros(3, 5, 5)).tolist() == [-torch.inf] * 3
    two_roots = heads_to_tree(torch.tensor([[0, 1, 0, 3], [0, 0, 1, -1], [0, -1, -1, -1]]), LENGTHS)
    assert trees.log_prob(two_roots).isinf().tolist() == [True, True, False]


# ── what is easy to get wrong ────────────────────────────────────────────────────────────────────


def test_half_types_are_rounded_once(generator):
    """Entropy and divergence are differences of large numbers: computed in float32 or better."""
    n = 40
    scores = torch.randn(4, n + 1, n + 1, generator=generator).bfloat16()
    other = torch.randn(4, n + 1, n + 1, generator=generator).bfloat16()
    half = ProjectiveTrees(scores), ProjectiveTrees(other)
    full = ProjectiveTrees(scores.double()), ProjectiveTrees(other.double())
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


@pytest.mark.parametrize("scale", [1e4, 1e30, 3e38])
def test_huge_scores(scale, generator):
    """The scores of the formula are those of the dynamic program, clamped alike."""
    scores = scale * torch.randn(3, 8, 8, generator=generator).clamp(-1, 1)
    trees = ProjectiveTrees(scores)
    assert (trees.entropy() >= 0).all()
    assert torch.isfinite(trees.entropy()).all()
    assert torch.isfinite(trees.log_prob(trees.mode)).all()


def test_a_value_seen_in_inference_mode_is_no_constant_later(scores):
    scores.requires_grad_()
    seen = ProjectiveTrees(scores, LENGTHS)
    with torch.inference_mode():
        _ = seen.log_partition, seen.marginals, seen.entropy()
    fresh = ProjectiveTrees(scores, LENGTHS)
    gradients = [
        torch.autograd.grad((d.log_prob(d.mode) + d.entropy()).sum(), scores)[0]
        for d in (seen, fresh)
    ]
    assert torch.equal(*gradients)


def test_a_value_seen_without_gradient_has_one_later(scores):
    scores.requires_grad_()
    trees = ProjectiveTrees(scores, LENGTHS)
    with torch.no_grad():
        _ = trees.log_partition
    assert trees.log_partition.requires_grad


def test_an_infinite_divergence_leaves_other_sentences_alone(scores):
    scores.requires_grad_()
    narrow = scores.detach().clone()
    narrow[0, 1, 2] = -torch.inf
    kl = kl_divergence(ProjectiveTrees(scores, LENGTHS), ProjectiveTrees(narrow, LENGTHS))
    assert kl[0] == torch.inf
    (grad,) = torch.autograd.grad(kl[1:].sum(), scores)
    assert torch.isfinite(grad).all()


def test_boolean_trees(scores):
    trees = ProjectiveTrees(scores, LENGTHS)
    assert torch.equal(trees.log_prob(trees.mode.bool()), trees.log_prob(trees.mode))


def test_wrong_shapes_are_said_plainly(scores):
    trees = ProjectiveTrees(scores, LENGTHS)
    with pytest.raises(InputError, match="sample_shape is 5"):
        trees.sample(5)
    with pytest.raises(InputError, match="sample_shape is 5"):
        trees.rsample(5)
    with pytest.raises(InputError, match=r"\(2,\).*\(3,\)"):
        trees.expand((2,))
    with pytest.raises(InputError, match="broadcast"):
        kl_divergence(trees, ProjectiveTrees(scores[:2], LENGTHS[:2]))
