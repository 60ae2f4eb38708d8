"""SparseMAP against a quadratic program over all trees, and by its optimality where there are many."""

import pickle

import pytest
import torch
from test_structures import LABELS, STRUCTURES, event, members
from tolerances import EXACT, VALUE_F32, largest_error
from torch.autograd import gradcheck

import treelax as tx
from treelax.errors import InputError, NoTreeError, SecondDerivativeError
from treelax.ops import checks
from treelax.ops.call import make_call

every_structure = pytest.mark.parametrize("structure", STRUCTURES, ids=str)
KINDS = [
    *(kind(root) for kind in (tx.Projective, tx.NonProjective) for root in (False, True)),
    tx.Binary(),
]
every_kind = pytest.mark.parametrize("structure", KINDS, ids=str)
BACKENDS = ["reference", "diagonal", "native"]
SEED = 20180710


def draw(shape, scale=1.0, dtype=torch.float64, seed=SEED):
    return scale * torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


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


@every_structure
@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("scale", [0.2, 1.0])
def test_it_solves_the_quadratic_program(structure, n, scale):
    if structure.event_dim == 3 and n == 4:
        n = 2
    trees = members(structure, n)
    scores = draw((3, *event(structure, n)), scale)
    found = structure.sparsemap(scores)
    assert found.gap.max() < 1e-11
    for own, tree in zip(scores, found.tree, strict=True):
        assert largest_error(tree, quadratic_program(trees, own)) < 1e-5  # the program's own


@every_structure
@pytest.mark.parametrize(("n", "scale"), [(7, 0.1), (9, 1.0), (12, 3.0)])
def test_no_structure_improves_on_it(structure, n, scale):
    lengths = torch.tensor([n, n - 3])
    for dtype, bar in ((torch.float64, 1e-11), (torch.float32, 1e-4)):
        scores = draw((2, *event(structure, n)), scale).to(dtype)
        found = structure.sparsemap(scores, lengths)
        assert found.tree.dtype == found.gap.dtype == found.weights.dtype == dtype
        assert found.gap.max() < 1e-10
        assert violation(structure, scores, found.tree, lengths) < bar


@every_structure
def test_the_support(structure):
    lengths = torch.tensor([[6, 4], [1, 0]])
    scores = draw((2, 2, *event(structure, 6)))
    found = structure.sparsemap(scores, lengths)
    trees, weights = found.support
    assert trees.shape == (weights.shape[0], *scores.shape)
    assert weights.shape[1:] == lengths.shape
    assert largest_error(weights.sum(0), torch.ones(2, 2)) < EXACT
    dims = (...,) + (None,) * structure.event_dim
    assert largest_error((weights[dims] * trees).sum(0), found.tree) < EXACT
    real = weights > 0
    assert structure.contains(trees, lengths.expand(weights.shape))[real].all()
    assert not trees[~real].any()
    # all different, and fewer than parts
    for b in ((0, 0), (0, 1)):
        own = trees[:, *b][real[:, *b]].flatten(1)
        assert len(own.unique(dim=0)) == len(own)
        assert torch.linalg.matrix_rank(torch.cat([own, own.new_ones(len(own), 1)], 1)) == len(own)


@every_structure
def test_gradients(structure):
    n = 3 if structure.event_dim == 3 else 4
    lengths = torch.tensor([n, n - 1])
    scores = draw((2, *event(structure, n))).requires_grad_()
    assert gradcheck(lambda s: structure.sparsemap(s, lengths).tree, (scores,))


def one_sided(structure, scores, grad, direction, step):
    """Both one-sided differences of ``⟨z, grad⟩`` in a direction."""
    middle, up, down = (
        (structure.sparsemap(scores + move * direction).tree * grad).sum()
        for move in (0, step, -step)
    )
    return (up - middle) / step, (middle - down) / step


@every_structure
@pytest.mark.parametrize(("n", "scale"), [(10, 0.1), (20, 0.3), (20, 3.0), (40, 1.0)])
def test_gradients_have_all_directions(structure, n, scale):
    """By finite differences, where those of both sides agree."""
    if structure.event_dim == 3 and n > 10:
        n = 12
    scores, grad, *directions = draw((5, *event(structure, n)))
    scores = (scale * scores).requires_grad_()
    (own,) = torch.autograd.grad((structure.sparsemap(scores).tree * grad).sum(), scores)
    seen = 0
    for direction in directions:
        up, down = one_sided(structure, scores.detach(), grad, direction, 1e-6 * scale)
        if abs(up - down) < 1e-4 * abs(up):
            assert abs((own * direction).sum() - up) < 1e-3 * abs(up)
            seen += 1
    assert seen


def test_gradients_of_hundreds_of_trees_keep_their_digits():
    """The derivative is a projection: a second one changes nothing."""
    scores = draw((41, 41), 0.1).requires_grad_()
    tree = tx.NonProjective(single_root=True).sparsemap(scores).tree
    once, twice = draw(scores.shape, seed=1), None
    for _ in range(2):
        once, twice = torch.autograd.grad(tree, scores, once, retain_graph=True)[0], once
    assert largest_error(once, twice) < 1e-11


@pytest.mark.parametrize("n", [15, 20])
def test_trees_without_a_cycle_to_break_have_the_gradient_of_heads(n):
    seen = 0
    for seed in range(8):
        scores = draw((n + 1, n + 1), 0.3, seed=seed).requires_grad_()
        grad = draw(scores.shape, seed=100 + seed)
        trees, heads = tx.NonProjective().sparsemap(scores), tx.Heads().sparsemap(scores)
        if largest_error(trees.tree.detach(), heads.tree.detach()) < 1e-10:
            own, expected = (torch.autograd.grad(x.tree, scores, grad)[0] for x in (trees, heads))
            assert largest_error(own, expected) < 1e-9
            seen += 1
    assert seen


@pytest.mark.parametrize("structure", [tx.Projective(), tx.Labelled(tx.Binary())], ids=str)
def test_there_is_no_second_derivative(structure):
    scores = draw(event(structure, 4)).requires_grad_()
    tree = structure.sparsemap(scores).tree
    (grad,) = torch.autograd.grad(tree.square().sum(), scores, create_graph=True)
    with pytest.raises(SecondDerivativeError):
        grad.sum().backward()


@every_kind
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_backends_agree(structure, backend, dtype):
    n = 6
    lengths = torch.tensor([6, 5, 2, 1, 0])
    scores = draw((5, n + structure.rooted, n + structure.rooted)).to(dtype)
    scores[0, 1, 3] = -torch.inf
    results = []
    for name in ("diagonal", backend):
        own = scores.clone().requires_grad_()
        found = structure.sparsemap(own, lengths, backend=name)
        (grad,) = torch.autograd.grad((found.tree * draw(own.shape, seed=3).to(dtype)).sum(), own)
        results.append((found.tree.detach(), grad))
    bar = 1e-10 if dtype == torch.float64 else VALUE_F32
    for expected, got in zip(*results, strict=True):
        assert largest_error(got, expected) < bar
        assert not got.masked_fill(structure.part_mask(lengths, scores.shape[-1]), 0).any()


@every_structure
def test_a_warm_start_ends_at_the_same_point(structure):
    scores = draw((3, *event(structure, 6)))
    start = structure.argmax(draw(scores.shape, seed=5))
    cold, warm = structure.sparsemap(scores), structure.sparsemap(scores, start=start)
    assert largest_error(warm.tree, cold.tree) < 1e-10
    # one with a part that is forbidden now
    wide = (start[0] if start.dim() == 3 else start[0].sum(-1)).triu(1)  # no word
    wide[0] = 0  # nor the whole
    if wide.any():
        scores[0, *wide.nonzero()[0]] = -torch.inf
    cold, warm = structure.sparsemap(scores), structure.sparsemap(scores, start=start)
    assert largest_error(warm.tree, cold.tree) < 1e-10


@every_structure
def test_forbidden_parts(structure):
    scores = draw((3, *event(structure, 6)))
    scores[:, 1, 3] = scores[:, 2, 4] = -torch.inf
    scores.requires_grad_()
    found = structure.sparsemap(scores)
    assert not found.tree[:, 1, 3].any()
    assert violation(structure, scores.detach(), found.tree.detach()) < 1e-11
    (grad,) = torch.autograd.grad(found.tree.square().sum(), scores)
    assert torch.isfinite(grad).all()
    assert not grad[:, 1, 3].any()
    with pytest.raises(NoTreeError):
        structure.sparsemap(torch.full((3, *event(structure, 6)), -torch.inf))


@every_structure
@pytest.mark.parametrize("scale", [1e4, 1e30, 3e38])
def test_huge_scores(structure, scale):
    shape = (3, *event(structure, 6))
    for scores in (scale * draw(shape).clamp(-1, 1), scale * draw(shape).sign()):
        for dtype in (torch.float32, torch.float64):
            own = scores.to(dtype).requires_grad_()
            found = structure.sparsemap(own)
            (grad,) = torch.autograd.grad(found.tree.square().sum(), own)
            assert torch.isfinite(found.tree).all()
            assert torch.isfinite(grad).all()
            assert largest_error(found.weights.sum(-1), torch.ones(3)) < 1e-6


def test_one_huge_word_does_not_hide_the_others():
    scores = draw((8, 8))
    huge, forced = scores.clone(), scores.clone()
    huge[:, 3], forced[:, 3] = -1e30, -torch.inf
    huge[[1, 5], 3] = 1e30
    forced[[1, 5], 3] = 0
    for structure in (tx.Projective(), tx.NonProjective()):
        got, expected = structure.sparsemap(huge), structure.sparsemap(forced)
        assert largest_error(got.tree, expected.tree) < 1e-10


@every_structure
def test_ties_end(structure):
    for scores in (draw((2, *event(structure, 5))).round(), torch.zeros(2, *event(structure, 5))):
        found = structure.sparsemap(scores)
        assert found.gap.max() < 1e-10
        assert violation(structure, scores, found.tree) < 1e-6
    even = tx.Heads().sparsemap(torch.zeros(4, 4)).tree
    assert largest_error(even[:, 1:].amax(0), torch.full((3,), 1 / 3)) < 1e-6


@every_kind
@pytest.mark.parametrize("backend", ["diagonal", "native"])
def test_weights_that_become_0_together(structure, backend):
    """Whole numbers have many: then trees leave without a step."""
    size = 8 + structure.rooted
    for scale in (1, 3):
        scores = draw((300, size, size), scale).round()
        found = structure.sparsemap(scores, backend=backend)
        assert found.gap.max() < 1e-11


@every_structure
def test_padding_and_batch_shape_change_nothing(structure):
    scores = draw((2, 3, *event(structure, 6)))
    lengths = torch.tensor([[6, 5, 3], [2, 1, 0]])
    garbage = scores.clone()
    mask = structure.part_mask(lengths, scores.shape[3 - 1]).expand(scores.shape)
    garbage[~mask] = torch.nan
    found = structure.sparsemap(garbage, lengths)
    assert found.tree.shape == scores.shape
    assert found.gap.shape == lengths.shape
    for i, j in ((0, 0), (0, 2), (1, 1)):
        n = int(lengths[i, j])
        size = n + structure.rooted
        alone = structure.sparsemap(scores[i, j, :size, :size])
        assert largest_error(found.tree[i, j, :size, :size], alone.tree) < 1e-10
    assert not found.tree.masked_fill(mask, 0).any()
    for none in (scores[:0], scores[:0].requires_grad_()):
        assert structure.sparsemap(none, lengths[:0]).tree.shape == none.shape


@every_structure
def test_a_nan_stays_in_its_sentence(structure):
    scores = draw((2, *event(structure, 5)))
    good = structure.sparsemap(scores)
    scores[1, 1, 2] = torch.nan
    with pytest.raises(InputError, match="nan"):
        structure.sparsemap(scores)
    scores.requires_grad_()
    found = structure.sparsemap(scores, validate=False)
    mask = structure.part_mask(torch.tensor(5), scores.shape[1]).expand(scores.shape[1:])
    assert torch.equal(found.tree[1].isnan(), mask)
    assert found.gap.isnan().tolist() == [False, True]
    assert largest_error(found.tree[0].detach(), good.tree[0]) < 1e-10
    (grad,) = torch.autograd.grad(found.tree.sum(), scores)
    assert torch.isfinite(grad[0]).all()
    assert grad[1][mask].isnan().all()


@pytest.mark.parametrize("structure", [STRUCTURES[0], STRUCTURES[4], STRUCTURES[-1]], ids=str)
def test_where_no_value_may_be_read_steps_and_memory_are_fixed(structure, monkeypatch):
    """As while a CUDA graph is captured."""
    n = 3
    scores = draw((3, *event(structure, n))).requires_grad_()
    lengths = torch.tensor([n, 2, 0])
    results = []
    for blind in (False, True):
        if blind:
            monkeypatch.setattr(checks, "readable", lambda tensor: False)
        found = structure.sparsemap(scores, lengths, backend="diagonal")
        (grad,) = torch.autograd.grad(found.tree.square().sum(), scores)
        results.append((found.tree, grad, found.weights.sum(-1)))
    for expected, got in zip(*results, strict=True):
        assert largest_error(got.detach(), expected.detach()) < 1e-10
    few = structure.sparsemap(scores.detach(), lengths, max_iterations=1, backend="diagonal")
    assert isinstance(structure, tx.Heads) or few.weights.shape[-1] == 2


def test_few_iterations_leave_a_gap():
    scores = draw((4, 11, 11), 0.3)
    exact = tx.Projective().sparsemap(scores)
    gaps = []
    for most in (0, 1, 5, 20, None):
        found = tx.Projective().sparsemap(scores, max_iterations=most)
        assert most is None or found.weights.shape[-1] <= most + 1
        # ½ ‖z - z*‖² is at most the gap
        distance = (found.tree - exact.tree).square().sum((1, 2)) / 2
        assert (distance <= found.gap + EXACT).all()
        assert largest_error(found.weights.sum(-1), torch.ones(4)) < EXACT
        gaps.append(float(found.gap.sum()))
    assert torch.equal(
        tx.Projective().sparsemap(scores, max_iterations=0).tree, tx.Projective().argmax(scores)
    )
    assert gaps[0] > gaps[2] > gaps[3] > 1e-3
    assert gaps[-1] < 1e-11


def test_half_types():
    scores = draw((2, 8, 8)).bfloat16()
    found = tx.Projective().sparsemap(scores)
    assert found.tree.dtype == torch.bfloat16
    assert largest_error(found.tree, tx.Projective().sparsemap(scores.double()).tree) < 2**-8


def test_wrong_input():
    scores = torch.zeros(2, 4, 4)
    trees = tx.Projective()
    for structure, value in ((trees, -1), (tx.Heads(), 1.5), (tx.Labelled(trees), True)):
        own = scores if structure.event_dim == 2 else scores[..., None]
        with pytest.raises(InputError, match="max_iterations is"):
            structure.sparsemap(own, max_iterations=value)
    with pytest.raises(InputError, match="start has shape"):
        trees.sparsemap(scores, start=scores[0])
    with pytest.raises(InputError, match=r"start\[0\].*expected one head"):
        trees.sparsemap(scores, start=scores)
    with pytest.raises(InputError, match="lengths"):
        trees.sparsemap(scores, torch.tensor([4, 1]))


def test_labels_of_no_use():
    """Labels of equal score share what their part has."""
    scores = draw((1, 5, 5))
    labelled = tx.Labelled(tx.Projective()).sparsemap(scores[..., None].expand(1, 5, 5, LABELS))
    assert labelled.gap.max() < 1e-10
    assert largest_error(labelled.tree[..., 0], labelled.tree[..., 1]) < 1e-10


@every_kind
def test_the_kernel_gives_the_same_bits_on_any_number_of_threads_and_in_any_company(
    structure,
):
    size = 12 + structure.rooted
    scores, lengths = draw((40, size, size), 0.5).requires_grad_(), torch.arange(40) % 13
    results = []
    for threads in (1, 4):
        torch.set_num_threads(threads)
        results.append(structure.sparsemap(scores, lengths))
    few = structure.sparsemap(scores[:25], lengths[:25])
    one = structure.sparsemap(scores[12:13], lengths[12:13])
    for field in ("tree", "gap", "indices", "weights"):
        assert torch.equal(getattr(results[0], field), getattr(results[1], field))
    grads = [torch.autograd.grad(found.tree, scores, scores.detach())[0] for found in results]
    assert torch.equal(*grads)
    assert torch.equal(few.tree, results[0].tree[:25])
    assert torch.equal(one.tree, results[0].tree[12:13])


@every_kind
def test_the_kernel_on_longer_sentences(structure):
    """Supports that outgrow their first memory, and the gradient of each backend's own support."""
    size = 15 + structure.rooted
    scores = draw((3, size, size), 0.1)
    results = []
    for backend in ("diagonal", "native"):
        own = scores.clone().requires_grad_()
        found = structure.sparsemap(own, backend=backend)
        assert found.gap.max() < 1e-10
        (grad,) = torch.autograd.grad((found.tree * draw(own.shape, seed=3)).sum(), own)
        results.append((found.tree.detach(), grad))
    for expected, got in zip(*results, strict=True):
        assert largest_error(got, expected) < 1e-8


@every_kind
def test_the_operations_are_what_torch_expects(structure):
    lengths = torch.tensor([4, 2])
    size = 4 + structure.rooted
    scores = draw((2, size, size)).requires_grad_()
    settings = make_call(structure.algorithm, scores, single_root=structure.single_root).settings
    start = torch.ops.treelax.best_tree(scores.detach(), lengths, *settings)
    inputs = (scores.detach(), lengths, start, *settings, None, True)
    torch.library.opcheck(torch.ops.treelax.sparsemap, inputs)
    tree, gap, indices, _, inverse = torch.ops.treelax.sparsemap(*inputs)
    torch.library.opcheck(torch.ops.treelax.sparsemap_point, (scores, tree, gap, indices, inverse))


@pytest.mark.parametrize("dynamic", [False, True])
def test_it_compiles(dynamic):
    torch._dynamo.reset()

    def both(scores, lengths):
        trees = tx.Projective().sparsemap(scores, lengths)
        return trees.tree, trees.gap, tx.Binary().sparsemap(scores, lengths).tree

    compiled = torch.compile(both, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    for size in (6, 8) if dynamic else (6,):
        scores, lengths = draw((3, size, size)).requires_grad_(), torch.tensor([size - 1, 4, 2])
        weight = draw((3, size, size), seed=2)
        results = []
        for function in (both, compiled):
            tree, gap, spans = function(scores, lengths)
            (grad,) = torch.autograd.grad(((tree + spans) * weight).sum(), scores)
            results.append((tree, gap, spans, grad))
        for expected, got in zip(*results, strict=True):
            assert largest_error(got.detach(), expected.detach()) < EXACT


@every_structure
def test_a_result_can_be_pickled(structure):
    result = structure.sparsemap(draw((2, *event(structure, 4))).requires_grad_())
    copied = pickle.loads(pickle.dumps(result))
    for name in ("tree", "gap", "indices", "weights"):
        assert torch.equal(getattr(copied, name), getattr(result, name))
    for got, expected in zip(copied.support, result.support, strict=True):
        assert torch.equal(got, expected)
