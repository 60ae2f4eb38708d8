"""Long sentences, whose vectors hold splits and not sentences, beside short ones."""

import pytest
import torch
from tolerances import gradient_tolerance, largest_error, value_tolerance

import treelax as tx
from treelax.ops import native
from treelax.ops.native import LONGEST_IN_LANES

pytestmark = pytest.mark.skipif(
    native.unavailable() is not None, reason="the C++ kernel is not there"
)
STRUCTURES = [tx.Projective(), tx.Projective(single_root=True), tx.Binary()]
every_structure = pytest.mark.parametrize("structure", STRUCTURES, ids=str)
LENGTHS = torch.tensor([LONGEST_IN_LANES + 6, 7, LONGEST_IN_LANES, LONGEST_IN_LANES + 1, 0])


def problem(structure, dtype, lengths=LENGTHS):
    size = int(lengths.max()) + structure.rooted
    generator = torch.Generator().manual_seed(21)
    shape = (2, len(lengths), size, size)
    scores, upstream = 2 * torch.randn(shape, generator=generator, dtype=dtype)
    return scores, upstream * structure.part_mask(lengths, size)


def soft(structure, scores, upstream, lengths, backend=None, relaxation="softmax"):
    """A relaxed tree and the gradient of the scores."""
    leaf = scores.clone().requires_grad_()
    tree = structure.relaxed(leaf, lengths, relaxation=relaxation, backend=backend)
    return tree.detach(), *torch.autograd.grad(tree, leaf, upstream)


@every_structure
# plain torch takes seconds here, so each type meets one relaxation
@pytest.mark.parametrize(
    ("relaxation", "dtype"), [("softmax", torch.float32), ("entropy", torch.float64)]
)
def test_against_plain_torch(structure, relaxation, dtype):
    scores, upstream = problem(structure, dtype)
    tree, grad = soft(structure, scores, upstream, LENGTHS, relaxation=relaxation)
    wide = soft(structure, scores.double(), upstream.double(), LENGTHS, "diagonal", relaxation)
    assert largest_error(tree.double(), wide[0]) < value_tolerance(dtype)
    assert largest_error(grad.double(), wide[1]) < gradient_tolerance(dtype)
    value = structure.log_partition(scores, LENGTHS)
    exact = structure.log_partition(scores.double(), LENGTHS, backend="diagonal")
    assert torch.allclose(value.double(), exact, rtol=1e-5, atol=1e-4)


@every_structure
def test_bits_do_not_depend_on_neighbours_padding_and_threads(structure):
    scores, upstream = problem(structure, torch.float32)
    torch.set_num_threads(2)
    together = (*soft(structure, scores, upstream, LENGTHS), structure.argmax(scores, LENGTHS))
    torch.set_num_threads(1)
    for b, n in enumerate(LENGTHS.tolist()):
        size = n + structure.rooted
        own = scores[b : b + 1, :size, :size], upstream[b : b + 1, :size, :size], LENGTHS[b, None]
        alone = (*soft(structure, *own), structure.argmax(own[0], own[2]))
        for got, expected in zip(alone, together, strict=True):
            assert torch.equal(got[0], expected[b, :size, :size])
            assert not expected[b, size:].any()
            assert not expected[b, :, size:].any()


@every_structure
def test_discrete_trees(structure):
    scores, _ = problem(structure, torch.float64)
    best = structure.argmax(scores, LENGTHS)
    assert torch.equal(best, structure.argmax(scores, LENGTHS, backend="diagonal"))
    trees = [
        structure.sample(
            scores, LENGTHS, backend=backend, generator=torch.Generator().manual_seed(4)
        )
        for backend in ("native", "diagonal")
    ]
    assert torch.equal(*trees)


@every_structure
def test_forbidden_parts_large_scores_and_nan(structure):
    scores, upstream = problem(structure, torch.float32)
    ban = torch.rand(scores.shape, generator=torch.Generator().manual_seed(5)) < 0.3
    ban &= structure.argmax(scores, LENGTHS) == 0  # one tree is left
    banned = (50 * scores).masked_fill(ban, float("-inf"))
    got = soft(structure, banned, upstream, LENGTHS, relaxation="entropy")
    exact = soft(structure, banned.double(), upstream.double(), LENGTHS, "diagonal", "entropy")
    assert largest_error(got[0].double(), exact[0]) < 1e-3
    assert got[1].isfinite().all()
    # far from each other as the numbers of a chart can be
    value = structure.log_partition(1e8 * scores, LENGTHS)
    best = (structure.argmax(scores, LENGTHS) * scores).sum((1, 2))
    assert largest_error(value, 1e8 * best) < 1e-5
    scores[0, 1, 2] = float("nan")
    tree = structure.relaxed(scores, LENGTHS, validate=False)
    assert tree[0][structure.part_mask(LENGTHS[0], scores.shape[-1])].isnan().all()
    assert tree[1:].isfinite().all()
    with pytest.raises(ValueError, match=r"scores\[0, 1, 2\]"):
        structure.relaxed(scores, LENGTHS)
