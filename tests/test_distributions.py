"""What torch asks of a distribution, for every structure: samples with a gradient, shapes, copies."""

import copy
import pickle

import pytest
import torch
from matrix import LENGTHS, draw, event, every_structure, mask_of, seeded
from tolerances import EXACT, largest_error
from torch.distributions import Distribution, kl_divergence

import treelax as tx
from treelax import ProjectiveTrees
from treelax.errors import InputError
from treelax.noise import noise_named
from treelax.trees import heads_to_tree


@pytest.fixture
def scores(generator):
    return torch.randn(3, 5, 5, dtype=torch.float64, generator=generator)


def perturbed(structure, noise, scores):
    """Two samples of noisy scores, and their lengths."""
    scores, lengths = scores.detach().expand(2, *scores.shape), LENGTHS.expand(2, 3)
    source = noise_named(noise)
    if source is None:
        return scores, lengths
    parts = structure.part_count(lengths).reshape(2, 3, *(1,) * structure.event_dim)
    drawn = source.draw(scores, parts, seeded())
    return scores + drawn.masked_fill(~mask_of(structure, lengths, scores), 0), lengths


@every_structure
@pytest.mark.parametrize("noise", ["gumbel", "sum-of-gamma", None])
def test_rsample_relaxes_noisy_scores(structure, noise):
    scores = draw(structure, 3)
    for relaxation in structure.relaxations:
        settings = {"relaxation": relaxation, "temperature": 0.5}
        got = structure(scores, LENGTHS).rsample((2,), noise=noise, generator=seeded(), **settings)
        noisy, lengths = perturbed(structure, noise, scores)
        assert torch.equal(got, structure.relaxed(noisy, lengths, **settings))
        layer = tx.nn.LatentTree(torch.nn.Identity(), structure, noise=noise, **settings)
        own = layer.sample(scores.expand(2, *scores.shape), lengths, generator=seeded())
        assert torch.equal(own, got)


@every_structure
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
def test_straight_through(structure, dtype):
    """The value is the best structure of the perturbed scores; the gradient is the soft one's."""
    scores = draw(structure, 3).to(dtype).requires_grad_()
    weight = torch.randn(2, *scores.shape, generator=seeded(2)).to(dtype)
    relaxation = structure.relaxations[0]
    hard, soft = (
        structure(scores, LENGTHS).rsample(
            (2,), relaxation=relaxation, straight_through=straight, generator=seeded()
        )
        for straight in (True, False)
    )
    noisy, lengths = perturbed(
        structure, "gumbel", scores.float() if dtype.itemsize == 2 else scores
    )
    assert hard.dtype == dtype
    assert torch.equal(hard.detach(), structure.argmax(noisy, lengths).to(dtype))
    assert not torch.equal(soft.detach(), hard.detach())
    gradients = [torch.autograd.grad(x, scores, weight)[0] for x in (hard, soft)]
    assert torch.equal(*gradients)
    assert gradients[0].abs().sum() > 0


@every_structure
def test_shapes_and_expansion(structure):
    scores = draw(structure, 3)
    shape = event(structure, 4)
    d = structure(scores, LENGTHS)
    assert isinstance(d, Distribution)
    assert d.has_rsample
    assert (d.batch_shape, d.event_shape) == ((3,), shape)
    assert d.arg_constraints["scores"].check(scores).all()
    early, wide = d.expand((2, 3)), (d.marginals, d.mode, d.log_partition, d.expand((2, 3)))[-1]
    assert torch.equal(early.log_partition, wide.log_partition)
    assert wide.structure == structure
    assert wide.sample((4,)).shape == (4, 2, 3, *shape)
    assert torch.equal(wide.log_partition, d.log_partition.expand(2, 3))
    assert torch.equal(wide.marginals, d.marginals.expand(2, 3, *shape))
    assert torch.equal(wide.mode, d.mode.expand(2, 3, *shape))


def test_the_short_name(scores):
    """Settings of one distribution do not leak into another."""
    one = ProjectiveTrees(scores, LENGTHS, single_root=True, validate_args=False)
    two = ProjectiveTrees(scores, LENGTHS)
    assert (one.single_root, two.single_root) == (True, False)
    assert isinstance(one.expand((2, 3)), ProjectiveTrees)
    assert repr(two).startswith("ProjectiveTrees(Projective(single_root=False), scores: ")
    assert not scores.requires_grad


def test_support(scores):
    d = ProjectiveTrees(scores, LENGTHS)
    chain, flat, nothing = torch.diag(torch.ones(4), 1), torch.zeros(5, 5), torch.zeros(5, 5)
    flat[0, 1:] = 1
    circle, crossing = (heads_to_tree(torch.tensor(h)) for h in ([2, 1, 0, 0], [3, 0, 0, 2]))
    wrong = torch.stack([chain * 0.5, nothing, chain + torch.eye(5), circle, crossing])
    assert not d.support.check(wrong[:, None].expand(5, 3, 5, 5))[:, 0].any()
    assert d.support.check(chain.expand(3, 5, 5)).tolist() == [True, False, False]  # too long
    assert d.support.check(flat.expand(3, 5, 5))[0]
    assert not ProjectiveTrees(scores[0], single_root=True).support.check(flat)
    assert torch.equal(d.log_prob(d.mode.bool()), d.log_prob(d.mode))


def test_without_validation_what_is_no_member_has_probability_0(scores):
    trees = ProjectiveTrees(scores, LENGTHS, single_root=True, validate_args=False)
    assert trees.log_prob(torch.zeros(3, 5, 5)).tolist() == [-torch.inf] * 3
    two_roots = heads_to_tree(torch.tensor([[0, 1, 0, 3], [0, 0, 1, -1], [0, -1, -1, -1]]), LENGTHS)
    assert trees.log_prob(two_roots).isinf().tolist() == [True, True, False]


def test_a_copy_computes_its_own_values(scores):
    original = ProjectiveTrees(scores.clone().requires_grad_(), LENGTHS)
    (expected,) = torch.autograd.grad(original.entropy().sum(), original.scores)
    for copied in (copy.deepcopy(original), pickle.loads(pickle.dumps(original))):
        (grad,) = torch.autograd.grad(copied.entropy().sum(), copied.scores)
        assert torch.equal(grad, expected)


@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad])
def test_a_value_seen_without_gradient_has_one_later(mode, scores):
    scores.requires_grad_()
    seen, fresh = ProjectiveTrees(scores, LENGTHS), ProjectiveTrees(scores, LENGTHS)
    with mode():
        _ = seen.log_partition, seen.marginals, seen.entropy()
    gradients = [
        torch.autograd.grad((d.log_prob(d.mode) + d.entropy()).sum(), scores)[0]
        for d in (seen, fresh)
    ]
    assert largest_error(*gradients) < EXACT


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda d: d.log_prob(torch.zeros(3, 5, 5)), "not of the structure Projective"),
        (lambda d: d.log_prob(torch.zeros(3, 4, 4)), r"\(3, 4, 4\)"),
        (lambda d: d.log_prob(torch.zeros(3, 4, dtype=torch.int64)), "heads_to_tree"),
        (lambda d: d.log_prob(heads_to_tree(torch.tensor([3, 4, 0, 3]))), "nearest_projective"),
        (lambda d: d.sample(5), "sample_shape is 5"),
        (lambda d: d.rsample(noise_scale=-1), "noise_scale is -1"),
        (lambda d: d.rsample(noise="gumbl"), r"'gumbl'.*'gumbel'"),
        (lambda d: d.expand((2,)), r"\(2,\).*\(3,\)"),
        (lambda d: ProjectiveTrees(d.scores, LENGTHS[:2]), "lengths"),
        (lambda d: kl_divergence(d, ProjectiveTrees(d.scores[:2], LENGTHS[:2])), "broadcast"),
        (lambda d: kl_divergence(d, ProjectiveTrees(d.scores)), "lengths"),
        (lambda d: kl_divergence(d, ProjectiveTrees(d.scores[:, :4, :4])), r"\(5, 5\).*\(4, 4\)"),
    ],
)
def test_what_is_refused(use, message, scores):
    with pytest.raises(InputError, match=message):
        use(ProjectiveTrees(scores, LENGTHS))
