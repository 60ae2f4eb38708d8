"""Long sentences, whose vectors hold splits and not sentences, beside short ones."""

import pytest
import torch
from matrix import draw, inside, seeded
from tolerances import gradient_tolerance, largest_error, value_tolerance

import treelax as tx
from treelax.ops import native
from treelax.ops.native import LONGEST_IN_LANES

pytestmark = pytest.mark.skipif(
    native.unavailable() is not None, reason="the C++ kernel is not there"
)
STRUCTURES = [tx.Projective(single_root=True), tx.Projective(), tx.Binary()]
every_structure = pytest.mark.parametrize("structure", STRUCTURES, ids=str)
LONGEST = LONGEST_IN_LANES + 6
LENGTHS = torch.tensor([LONGEST, 7, LONGEST_IN_LANES, LONGEST_IN_LANES + 1, 0])


def results(structure, scores, upstream, lengths, backend=None, relaxation="softmax"):
    """A relaxed tree, the gradient of the scores, the value and the best tree."""
    leaf = scores.clone().requires_grad_()
    tree = structure.relaxed(leaf, lengths, relaxation=relaxation, backend=backend)
    (grad,) = torch.autograd.grad(tree, leaf, upstream)
    value = structure.log_partition(scores, lengths, backend=backend)
    return tree.detach(), grad, value, structure.argmax(scores, lengths, backend=backend)


# plain torch takes seconds here, so each type meets one relaxation
@every_structure
@pytest.mark.parametrize(
    ("relaxation", "dtype"), [("softmax", torch.float32), ("entropy", torch.float64)]
)
def test_against_plain_torch(structure, relaxation, dtype):
    scores, upstream = draw(structure, 2, 5, n=LONGEST, scale=2).to(dtype)
    forbidden = torch.rand(scores.shape, generator=seeded(5)) < 0.3
    forbidden &= structure.argmax(scores, LENGTHS) == 0  # one tree is left
    scores[:2] = scores[:2].masked_fill(forbidden[:2], -torch.inf)
    got = results(structure, scores, upstream, LENGTHS, relaxation=relaxation)
    wide = scores.double(), upstream.double(), LENGTHS, "diagonal", relaxation
    expected = results(structure, *wide)
    for place, bar in enumerate((value_tolerance(dtype), gradient_tolerance(dtype))):
        assert largest_error(got[place], expected[place]) < bar
    assert largest_error(got[2], expected[2]) < 1e-6
    assert torch.equal(got[3], expected[3].to(dtype))
    if dtype == torch.float64:
        samples = [
            structure.sample(scores, LENGTHS, backend=backend, generator=seeded(4))
            for backend in ("native", "diagonal")
        ]
        assert torch.equal(*samples)


@every_structure
def test_bits_do_not_depend_on_neighbours_padding_and_threads(structure):
    scores, upstream = draw(structure, 2, 5, n=LONGEST, scale=2).float()
    torch.set_num_threads(2)
    together = results(structure, scores, upstream, LENGTHS)
    torch.set_num_threads(1)
    for b, n in enumerate(LENGTHS.tolist()):
        alone = (inside(x[b : b + 1], structure, n) for x in (scores, upstream))
        for got, expected in zip(
            results(structure, *alone, LENGTHS[b, None]), together, strict=True
        ):
            whole = expected[b] if expected.dim() == 1 else inside(expected[b], structure, n)
            assert torch.equal(got[0], whole)


@every_structure
def test_large_scores_and_nan(structure):
    scores = draw(structure, 5, n=LONGEST, scale=2).float()
    # far from each other as the numbers of a chart can be
    value = structure.log_partition(1e8 * scores, LENGTHS)
    best = (structure.argmax(scores, LENGTHS) * scores).sum((1, 2))
    assert largest_error(value, 1e8 * best) < 1e-5
    scores[0, 1, 2] = torch.nan
    tree = structure.relaxed(scores, LENGTHS, validate=False)
    assert tree[0][structure.part_mask(LENGTHS[0], scores.shape[-1])].isnan().all()
    assert tree[1:].isfinite().all()
    with pytest.raises(ValueError, match=r"scores\[0, 1, 2\]"):
        structure.relaxed(scores, LENGTHS)
