"""SparseMAP against a quadratic program over all trees, and by its optimality where there are many."""

import pickle

import pytest
import torch
from matrix import (
    column,
    draw,
    event,
    every_algorithm,
    every_structure,
    inside,
    mask_of,
    members,
)
from tolerances import EXACT, VALUE_F32, largest_error
from torch.autograd import gradcheck

import treelax as tx
from treelax.errors import InputError, NoTreeError
from treelax.ops import checks

FIELDS = ("tree", "gap", "indices", "weights")


def derived(structure, scores, upstream, *given, **options):
    """The point, and the gradient of the scores."""
    leaf = scores.clone().requires_grad_()
    point = structure.sparsemap(leaf, *given, **options)
    return point, torch.autograd.grad(point.tree, leaf, upstream)[0]


def quadratic_program(trees, scores):
    """The nearest mixture of listed trees: each weight in turn moved to where it is best, in pairs with
    the one that loses most, until nothing is left to gain."""
    flat, goal = trees.flatten(1), scores.flatten()
    weights = torch.zeros(len(flat), dtype=torch.float64)
    weights[0] = 1
    for _ in range(100_000):
        slope = flat @ (goal - weights @ flat)
        up = int(slope.argmax())
        down = int(slope.masked_fill(weights <= 0, torch.inf).argmin())
        if slope[up] - slope[down] < 1e-12:
            break
        change = flat[up] - flat[down]
        step = min(float((slope[up] - slope[down]) / (change @ change)), float(weights[down]))
        weights[up] += step
        weights[down] -= step
    return (weights @ flat).view(trees.shape[1:])


def violation(structure, scores, tree, lengths=None):
    """By how much the best structure improves on a point."""
    rest = torch.where(scores == -torch.inf, scores, scores.clamp(-1e30, 1e30) - tree)
    best = structure.argmax(rest, lengths)
    finite = rest.masked_fill(rest == -torch.inf, 0)
    return ((best - tree) * finite).flatten(-structure.event_dim).sum(-1).amax()


# ── the point ────────────────────────────────────────────────────────────────────────────────────


@every_structure
@pytest.mark.parametrize("scale", [0.2, 1.0])
def test_it_solves_the_quadratic_program(structure, scale):
    for n in (1, 2, 3) if structure.event_dim > 2 else (1, 2, 3, 4):
        scores = draw(structure, 3, n=n, scale=scale)
        point = structure.sparsemap(scores)
        assert point.gap.max() < 1e-11
        for own, tree in zip(scores, point.tree, strict=True):
            exact = quadratic_program(members(structure, n), own)
            assert largest_error(tree, exact) < 1e-5  # the program's own


@every_structure
def test_no_structure_improves_on_it(structure):
    """Random scores of both types; ties, whose weights become 0 together; forbidden parts."""
    lengths = torch.tensor([9, 6])
    scores = draw(structure, 2, n=9)
    forbidden = scores.clone()
    forbidden[:, 1, 2] = forbidden[:, 2, 1] = -torch.inf
    ties = (3 * scores).round()
    cases = (
        (scores, 1e-10),
        (scores.float(), 1e-4),
        (ties, 1e-6),
        (0 * ties, 1e-6),
        (forbidden, 1e-10),
    )
    for given, bar in cases:
        point, grad = derived(structure, given, torch.ones_like(given), lengths)
        assert point.tree.dtype == point.gap.dtype == point.weights.dtype == given.dtype
        assert point.gap.max() < 1e-10
        assert violation(structure, given, point.tree.detach(), lengths) < bar
        assert grad.isfinite().all()
    assert not point.tree[:, 1, 2].any()
    with pytest.raises(NoTreeError):
        structure.sparsemap(torch.full_like(scores, -torch.inf))


@every_structure
def test_the_support(structure):
    lengths = torch.tensor([[6, 4], [1, 0]])
    scores = draw(structure, 2, 2, n=6).requires_grad_()
    point = structure.sparsemap(scores, lengths)
    trees, weights = point.support
    assert trees.shape == (weights.shape[0], *scores.shape)
    assert weights.shape[1:] == lengths.shape
    assert largest_error(weights.sum(0), torch.ones(2, 2)) < EXACT
    assert largest_error((column(weights, structure) * trees).sum(0), point.tree.detach()) < EXACT
    real = weights > 0
    assert structure.contains(trees, lengths.expand(weights.shape))[real].all()
    assert not trees[~real].any()
    # all different, and fewer than parts
    for b in ((0, 0), (0, 1)):
        own = trees[:, *b][real[:, *b]].flatten(1)
        assert len(own.unique(dim=0)) == len(own)
        assert torch.linalg.matrix_rank(torch.cat([own, own.new_ones(len(own), 1)], 1)) == len(own)
    copied = pickle.loads(pickle.dumps(point))
    for name in FIELDS:
        assert torch.equal(getattr(copied, name), getattr(point, name))
    assert all(map(torch.equal, copied.support, point.support))


@every_structure
def test_a_warm_start_ends_at_the_same_point(structure):
    scores = draw(structure, 3, n=6)
    start = structure.argmax(draw(structure, 3, n=6, seed=5))
    cold, warm = structure.sparsemap(scores), structure.sparsemap(scores, start=start)
    assert largest_error(warm.tree, cold.tree) < 1e-10
    # one with a part that is forbidden now
    spare = (start[0] > 0) & (structure.marginals(scores[0])[0] < 0.999)
    scores[0, *spare.nonzero()[0]] = -torch.inf
    cold, warm = structure.sparsemap(scores), structure.sparsemap(scores, start=start)
    assert largest_error(warm.tree, cold.tree) < 1e-10


def test_few_iterations_leave_a_gap():
    scores, structure = draw(tx.Projective(), 4, n=10, scale=0.3), tx.Projective()
    exact, gaps = structure.sparsemap(scores), []
    for most in (0, 1, 5, 20, None):
        point = structure.sparsemap(scores, max_iterations=most)
        assert most is None or point.weights.shape[-1] <= most + 1
        # ½ ‖z - z*‖² is at most the gap
        distance = (point.tree - exact.tree).square().sum((1, 2)) / 2
        assert (distance <= point.gap + EXACT).all()
        assert largest_error(point.weights.sum(-1), torch.ones(4)) < EXACT
        gaps.append(float(point.gap.sum()))
    assert torch.equal(structure.sparsemap(scores, max_iterations=0).tree, structure.argmax(scores))
    assert gaps[0] > gaps[2] > gaps[3] > 1e-3
    assert gaps[-1] < 1e-11


# ── the gradient ─────────────────────────────────────────────────────────────────────────────────


@every_structure
def test_gradients(structure):
    n = 3 if structure.event_dim > 2 else 4
    lengths = torch.tensor([n, n - 1])
    scores = draw(structure, 2, n=n).requires_grad_()
    assert gradcheck(lambda s: structure.sparsemap(s, lengths).tree, scores)


@every_structure
@pytest.mark.parametrize(("n", "scale"), [(10, 0.1), (20, 3.0)])
def test_gradients_have_all_directions(structure, n, scale):
    """By finite differences, where those of both sides agree."""
    n = min(n, 12) if structure.event_dim > 2 else n
    scores, upstream, *directions = draw(structure, 5, n=n)
    scores, step = scale * scores, 1e-6 * scale
    _, grad = derived(structure, scores, upstream)
    seen = 0
    for direction in directions:
        middle, up, down = (
            (structure.sparsemap(scores + move * direction).tree * upstream).sum()
            for move in (0, step, -step)
        )
        up, down = (up - middle) / step, (middle - down) / step
        if abs(up - down) < 1e-4 * abs(up):
            assert abs((grad * direction).sum() - up) < 1e-3 * abs(up)
            seen += 1
    assert seen or structure.log_count(n) < 4  # among few the point may be a corner


def test_gradients_of_hundreds_of_trees_keep_their_digits():
    """The derivative is a projection: a second one changes nothing."""
    structure = tx.NonProjective(single_root=True)
    scores = draw(structure, n=40, scale=0.1).requires_grad_()
    tree = structure.sparsemap(scores).tree
    once, twice = draw(structure, n=40, seed=2), None
    for _ in range(2):
        once, twice = torch.autograd.grad(tree, scores, once, retain_graph=True)[0], once
    assert largest_error(once, twice) < 1e-11


# ── backends ─────────────────────────────────────────────────────────────────────────────────────


@every_algorithm
@pytest.mark.parametrize(
    ("dtype", "scale", "longest"),
    [(torch.float64, 1, 6), (torch.float32, 1, 6), (torch.float64, 0.1, 12)],
    ids=str,
)
def test_backends_agree(structure, dtype, scale, longest):
    """Also where supports outgrow their first memory."""
    lengths = torch.tensor([longest, 5, 2, 1, 0])
    scores, upstream = (draw(structure, 5, n=longest, seed=seed).to(dtype) for seed in (1, 3))
    scores *= scale
    scores[0, 1, 3] = -torch.inf
    results = [
        derived(structure, scores, upstream, lengths, backend=backend)
        for backend in ("diagonal", "reference", "native")
    ]
    bar = 1e-9 if dtype == torch.float64 else VALUE_F32
    for point, grad in results:
        for got, expected in ((point.tree, results[0][0].tree), (grad, results[0][1])):
            assert largest_error(got.detach(), expected.detach()) < bar
            assert not got[~mask_of(structure, lengths, scores)].any()


@every_algorithm
def test_threads_and_neighbours_change_no_bit(structure):
    scores, upstream = (draw(structure, 40, n=12, scale=0.5, seed=seed) for seed in (1, 2))
    lengths = torch.arange(40) % 13
    whole, grad = derived(structure, scores, upstream, lengths)
    torch.set_num_threads(4)
    for rows in (slice(0, 40), slice(0, 25), slice(12, 13)):
        point, own = derived(structure, scores[rows], upstream[rows], lengths[rows])
        assert torch.equal(point.tree, whole.tree[rows])
        if rows == slice(0, 40):
            assert torch.equal(own, grad)
            assert all(torch.equal(getattr(point, name), getattr(whole, name)) for name in FIELDS)


@every_structure
def test_where_no_value_may_be_read_steps_and_memory_are_fixed(structure, monkeypatch):
    """As while a CUDA graph is captured."""
    scores, upstream = draw(structure, 3, n=3), draw(structure, 3, n=3, seed=2)
    lengths = torch.tensor([3, 2, 0])
    results = []
    for blind in (False, True):
        if blind:
            monkeypatch.setattr(checks, "readable", lambda tensor: False)
        point, grad = derived(structure, scores, upstream, lengths, backend="diagonal")
        results.append((point.tree.detach(), grad, point.weights.sum(-1)))
    for expected, got in zip(*results, strict=True):
        assert largest_error(got, expected) < 1e-10
    few = structure.sparsemap(scores, lengths, max_iterations=1, backend="diagonal")
    assert isinstance(structure, tx.Heads) or few.weights.shape[-1] == 2


# ── scores of every kind ─────────────────────────────────────────────────────────────────────────


@every_structure
@pytest.mark.parametrize("scale", [1e4, 3e38])
def test_huge_scores(structure, scale):
    unit, upstream = draw(structure, 3, n=6), draw(structure, 3, n=6, seed=2)
    for scores in (scale * unit.clamp(-1, 1), scale * unit.sign()):
        for dtype in (torch.float32, torch.float64):
            point, grad = derived(structure, scores.to(dtype), upstream.to(dtype))
            assert torch.isfinite(point.tree).all()
            assert torch.isfinite(grad).all()
            assert largest_error(point.weights.sum(-1), torch.ones(3)) < 1e-6


@every_structure
def test_padding_and_batch_shape_change_nothing(structure):
    scores = draw(structure, 2, 3, n=6)
    lengths = torch.tensor([[6, 5, 3], [2, 1, 0]])
    mask = mask_of(structure, lengths, scores)
    point = structure.sparsemap(scores.masked_fill(~mask, torch.nan), lengths)
    assert point.tree.shape == scores.shape
    assert point.gap.shape == lengths.shape
    for place in ((0, 0), (0, 2), (1, 1)):
        n = int(lengths[place])
        alone = structure.sparsemap(inside(scores[place], structure, n))
        assert largest_error(inside(point.tree[place], structure, n), alone.tree) < 1e-10
    assert not point.tree[~mask].any()
    for none in (scores[:0], scores[:0].requires_grad_()):
        assert structure.sparsemap(none, lengths[:0]).tree.shape == none.shape
    half = structure.sparsemap(scores.bfloat16(), lengths)
    assert half.tree.dtype == torch.bfloat16
    exact = structure.sparsemap(scores.bfloat16().double(), lengths)
    assert largest_error(half.tree, exact.tree) < 2**-8


@every_structure
def test_a_nan_stays_in_its_sentence(structure):
    scores = draw(structure, 2, n=5)
    good = structure.sparsemap(scores)
    scores[1, 1, 2] = torch.nan
    with pytest.raises(InputError, match="nan"):
        structure.sparsemap(scores)
    point, grad = derived(structure, scores, torch.ones_like(scores), validate=False)
    mask = mask_of(structure, torch.tensor(5), scores[1])
    assert torch.equal(point.tree[1].isnan(), mask)
    assert point.gap.isnan().tolist() == [False, True]
    assert largest_error(point.tree[0].detach(), good.tree[0]) < 1e-10
    assert torch.isfinite(grad[0]).all()
    assert grad[1][mask].isnan().all()


@pytest.mark.parametrize(
    ("structure", "options", "message"),
    [
        (tx.Projective(), {"max_iterations": -1}, "max_iterations is"),
        (tx.Heads(), {"max_iterations": 1.5}, "max_iterations is"),
        (tx.Labelled(tx.Projective()), {"max_iterations": True}, "max_iterations is"),
        (tx.Projective(), {"start": torch.zeros(4, 4)}, "start has shape"),
        (tx.Projective(), {"start": torch.zeros(2, 4, 4)}, r"start\[0\].*expected one head"),
        (tx.Projective(), {"lengths": torch.tensor([4, 1])}, "lengths"),
    ],
)
def test_wrong_input(structure, options, message):
    with pytest.raises(InputError, match=message):
        structure.sparsemap(torch.zeros(2, *event(structure, 3)), **options)
