"""Spanning trees: against the enumeration of all trees, on every backend. The contract suites have them
too."""

import itertools
import math

import pytest
import torch
from matrix import spanning_trees
from scipy.stats import chisquare
from test_estimators import ESTIMATORS
from torch.autograd import gradcheck

import treelax as tx
from treelax.errors import InputError, NoTreeError

BACKENDS = ("reference", "diagonal", "native")
every_backend = pytest.mark.parametrize("backend", BACKENDS)
SPANNING = tx.Spanning()
LENGTHS = torch.tensor([[5, 4, 3], [2, 1, 0]])


def problem(seed=0, scale=1.0):
    """Scores of graphs of 0 to 5 nodes, NaN where there is no edge, and some forbidden edges."""
    generator = torch.Generator().manual_seed(seed)
    scores = scale * torch.randn(2, 3, 5, 5, generator=generator, dtype=torch.float64)
    scores[0, :, 0, 1] = scores[0, 0, 2, 4] = -math.inf
    return scores.masked_fill(~SPANNING.part_mask(LENGTHS, 5, 5), math.nan)


def weights(scores):
    """For each graph its place, all trees and their scores."""
    for place in itertools.product(range(2), range(3)):
        every = spanning_trees(int(LENGTHS[place]), 5)
        yield place, every, torch.where(every > 0, scores[place], 0).sum((1, 2))


@every_backend
def test_operations(backend):
    scores = problem()
    dist = SPANNING(scores, LENGTHS, backend=backend)
    best = dist.top_k(130)
    results = dist.log_partition, dist.marginals, dist.mode, dist.entropy(), dist.max_marginals
    renyi = dist.renyi_entropy(2.5)
    for place, every, s in weights(scores):
        log_z, p = s.logsumexp(0), s.softmax(0)
        expected = (
            log_z,
            (p[:, None, None] * every).sum(0),
            every[s.argmax()],
            torch.special.entr(p).sum(),
            torch.where(every > 0, (s - log_z)[:, None, None], -math.inf).amax(0),
        )
        for result, wanted in zip(results, expected, strict=True):
            torch.testing.assert_close(result[place], wanted, atol=1e-8, rtol=1e-8)
        torch.testing.assert_close(renyi[place], (p**2.5).sum().log() / -1.5, atol=1e-8, rtol=1e-8)
        log_probs = torch.cat((s - log_z, s.new_full((130,), -math.inf))).topk(130).values
        torch.testing.assert_close(best.log_probs[:, *place], log_probs, atol=1e-8, rtol=1e-8)
        possible = int((s > -math.inf).sum())
        found = best.trees[:possible, *place]
        assert SPANNING.contains(found, LENGTHS[place]).all()
        assert len({tuple(tree.flatten().tolist()) for tree in found}) == possible
        assert not best.trees[possible:, *place].any()


@pytest.mark.parametrize("n", range(7))
def test_trees_are_counted_and_listed(n):
    every = spanning_trees(n, n)
    listed = SPANNING.enumerate(n)
    assert listed.dtype == torch.float64
    assert sorted(map(str, listed.tolist())) == sorted(map(str, every.tolist()))
    assert SPANNING.log_count(n) == pytest.approx(math.log(len(every)))


def test_what_is_no_tree():
    triangle = torch.tensor([[0.0, 1, 1, 0], [0, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0]])
    path = torch.diag(torch.ones(3), 1)
    wrong = torch.stack((triangle, path.mT, path / 2, path + torch.eye(4), torch.zeros(4, 4)))
    assert not SPANNING.contains(wrong, torch.tensor(4)).any()
    assert SPANNING.contains(path, torch.tensor(4))
    assert not SPANNING.contains(path, torch.tensor(3))


@every_backend
def test_gradients(backend):
    scores = problem()
    used = SPANNING.part_mask(LENGTHS, 5, 5) & (scores > -math.inf)

    def values(free):
        dist = SPANNING(torch.where(used, free, scores), LENGTHS, backend=backend)
        soft = SPANNING.relaxed(
            dist.scores, LENGTHS, relaxation="entropy", temperature=0.7, backend=backend
        )
        return dist.log_partition, dist.marginals, dist.entropy(), soft

    free = scores.nan_to_num(0, neginf=0).requires_grad_()
    assert gradcheck(values, free, fast_mode=True)
    leaf = problem().requires_grad_()
    (grad,) = torch.autograd.grad(SPANNING(leaf, LENGTHS).log_partition.sum(), leaf)
    assert not grad[~used].any()


def test_backends_agree():
    """Larger scores; all operations with their gradients, whatever the uniform variables."""
    upstream = torch.randn(2, 3, 5, 5, dtype=torch.float64)
    results = []
    for backend in BACKENDS:
        leaf = problem(1, scale=10).requires_grad_()
        soft = SPANNING.marginals(leaf, LENGTHS, backend=backend)[0]
        (grad,) = torch.autograd.grad(soft, leaf, upstream)
        options = {"generator": torch.Generator().manual_seed(3), "backend": backend}
        sample = SPANNING.sample(leaf, LENGTHS, sample_shape=(20,), **options)
        mode = SPANNING.argmax(leaf, LENGTHS, backend=backend)
        results.append((soft.detach(), grad, sample, mode))
    for other in results[1:]:
        for result, wanted in zip(other, results[0], strict=True):
            torch.testing.assert_close(result, wanted, atol=1e-9, rtol=1e-9)


@every_backend
def test_samples_are_exact(backend):
    scores = problem()
    generator = torch.Generator().manual_seed(5)
    count = 400 if backend == "reference" else 4000
    samples = SPANNING(scores, LENGTHS, backend=backend).sample((count,), generator=generator)
    assert SPANNING.contains(samples, LENGTHS).all()
    for place, every, s in weights(scores):
        same = (samples[:, *place][:, None] == every).flatten(2).all(-1)
        possible = s > -math.inf
        assert not same[:, ~possible].any()
        if possible.sum() > 1:
            expected = s.softmax(0)[possible] * count
            assert chisquare(same.sum(0)[possible].double(), expected).pvalue > 1e-4


def test_half_types():
    scores = problem()
    wanted = SPANNING(scores, LENGTHS)
    for dtype, tolerance in ((torch.float32, 1e-5), (torch.bfloat16, 0.02)):
        got = SPANNING(scores.to(dtype), LENGTHS)
        tree, value = SPANNING.marginals(scores.to(dtype), LENGTHS)
        assert {x.dtype for x in (got.marginals, got.mode, got.entropy(), tree, value)} == {dtype}
        for result in (got.marginals, tree):
            torch.testing.assert_close(
                result.double(), wanted.marginals, atol=tolerance, rtol=tolerance
            )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_huge_scores(dtype):
    apart = 1e29 * torch.randn(4, 6, 6, dtype=dtype, generator=torch.Generator().manual_seed(0))
    dist = SPANNING(apart)
    assert torch.equal(dist.marginals, dist.mode)
    assert not dist.entropy().any()
    for level in (-1e30, 1e30):
        entropy = SPANNING(torch.full((6, 6), level, dtype=dtype)).entropy()
        torch.testing.assert_close(entropy, torch.tensor(4 * math.log(6), dtype=dtype))


@pytest.mark.parametrize("huge", [1e30, 3e38])
def test_huge_scores_take_no_digits_from_the_best_tree(huge):
    """The best tree with an edge, however it is forced."""
    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        scores = torch.randn(7, 7, generator=generator)
        part = torch.zeros(7, 7, dtype=torch.bool)
        part[2, 5] = True
        wanted = SPANNING.argmax(SPANNING.force(scores, part), validate=False)
        assert wanted[2, 5]
        assert torch.equal(SPANNING.argmax(torch.where(part, huge, scores)), wanted)
        most = SPANNING(scores).max_marginals[2, 5]
        torch.testing.assert_close(SPANNING(scores).log_prob(wanted), most)


def test_ties():
    """All trees are as good; top_k lists each once."""
    best = SPANNING(torch.zeros(2, 4, 4)).top_k(20)
    assert len(best.trees[:16, 0].flatten(1).unique(dim=0)) == 16
    assert (best.log_probs[:16].exp() - 1 / 16).abs().max() < 1e-6
    assert (best.log_probs[16:] == -math.inf).all()
    assert torch.equal(SPANNING(torch.zeros(4, 4)).mode[0], torch.tensor([0.0, 1, 1, 1]))


def test_sparsemap_by_its_condition():
    """No tree is nearer to the scores in the direction from the point."""
    scores = problem(2, scale=2).requires_grad_()
    solution = SPANNING.sparsemap(scores, LENGTHS)
    for place, every, s in weights(scores.detach()):
        point = solution.tree[place].detach()
        slope = torch.where(every > 0, scores.detach()[place] - point, 0).sum((1, 2))
        at_point = (torch.where(point > 0, scores.detach()[place] - point, 0) * point).sum()
        assert slope[s > -math.inf].max() <= at_point + 1e-8
    assert torch.autograd.grad(solution.tree.square().sum(), scores)[0].isfinite().all()


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_estimators(estimator):
    if estimator in (tx.Relaxed(), tx.StraightThrough(), tx.SPIGOT(), tx.SPIGOT(form="ce")):
        with pytest.raises(InputError, match=r'expected "(entropy|polytope)"'):
            estimator.check_structure(SPANNING)
        return
    scores = problem().float().requires_grad_()
    dist = SPANNING(scores, LENGTHS)
    generator = torch.Generator().manual_seed(0)
    costs = 9 * torch.randn(5, 5, generator=generator)
    loss = estimator.expect(dist, lambda t: (costs * t).sum((-2, -1)), generator=generator)
    assert torch.autograd.grad(loss.sum(), scores, retain_graph=True)[0].isfinite().all()
    if isinstance(estimator, tx.Exact):
        wanted = (costs * dist.marginals).sum((-2, -1))
        torch.testing.assert_close(loss, wanted)
        exact, smooth = (
            torch.autograd.grad(x.sum(), scores, retain_graph=True)[0] for x in (loss, wanted)
        )
        torch.testing.assert_close(exact, smooth, atol=1e-5, rtol=1e-5)


def test_maps_and_compiled_functions():
    scores = problem()

    def values(scores, lengths):
        dist = SPANNING(scores, lengths)
        return dist.log_partition, dist.marginals, dist.entropy(), dist.mode, dist.max_marginals

    expected = values(scores, LENGTHS)
    for got, wanted in zip(torch.vmap(values)(scores, LENGTHS), expected, strict=True):
        torch.testing.assert_close(got, wanted)
    compiled = torch.compile(values, fullgraph=True, backend="eager")
    for got, wanted in zip(compiled(scores, LENGTHS), expected, strict=True):
        torch.testing.assert_close(got, wanted)


def test_transforms():
    scores = problem()
    grad = torch.func.vmap(torch.func.vmap(torch.func.grad(SPANNING.log_partition)))
    torch.testing.assert_close(grad(scores, LENGTHS), SPANNING(scores, LENGTHS).marginals)


@every_backend
@pytest.mark.parametrize("shape", [(0, 4, 4), (2, 0, 0), (2, 1, 1)])
def test_without_edges(shape, backend):
    dist = SPANNING(torch.full(shape, math.nan), backend=backend)
    assert torch.equal(dist.log_partition, torch.zeros(shape[0]))
    for tree in (dist.marginals, dist.mode, dist.sample(), dist.top_k(2).trees[0]):
        assert torch.equal(tree, torch.zeros(shape))
    assert dist.max_marginals.shape == shape


REFUSED = {
    "scores has shape (4, 3); expected (..., n, n)": lambda: SPANNING(torch.zeros(4, 3)),
    "scores has dtype torch.int64": lambda: SPANNING(torch.zeros(3, 3, dtype=torch.int64)),
    "lengths has shape (3,); expected (2,)": lambda: SPANNING(
        torch.zeros(2, 3, 3), torch.tensor([3, 3, 3])
    ),
    "lengths[1] (of the flattened batch) is 4; expected 0 to 3 (scores has room for 3 nodes)": (
        lambda: SPANNING(torch.zeros(2, 3, 3), torch.tensor([3, 4])).log_partition
    ),
    "lengths[0] (of the flattened batch) is -1; expected 0 to 3": lambda: (
        SPANNING(torch.zeros(1, 3, 3), torch.tensor([-1])).mode
    ),
    "lengths[0] (of the flattened batch) is 1; expected 0 to 0": lambda: (
        SPANNING(torch.zeros(1, 0, 0), torch.tensor([1])).mode
    ),
    "scores[0, 1, 2] (of the flattened batch) is nan; expected a finite number, or -inf for a "
    "forbidden edge": lambda: SPANNING(torch.zeros(3, 3).index_put((ONE, TWO), NAN)).marginals,
    "9 nodes have 4,782,969 structures to try": lambda: SPANNING.enumerate(9),
    'expected "entropy"': lambda: SPANNING.relaxed(torch.zeros(3, 3)),
    'such as a module of your own with part = "edge"': lambda: tx.nn.LatentTree(
        tx.nn.SpanScorer(4, 4), SPANNING
    ),
    "backend is 'gpu'": lambda: SPANNING(torch.zeros(3, 3), backend="gpu").mode,
}
ONE, TWO, NAN = torch.tensor(1), torch.tensor(2), torch.tensor(math.nan)


@pytest.mark.parametrize("message", REFUSED)
def test_refused(message):
    with pytest.raises(InputError) as caught:
        REFUSED[message]()
    assert message in str(caught.value)


@every_backend
def test_a_graph_that_is_not_connected(backend):
    scores = torch.zeros(2, 4, 4)
    scores[1, :2, 2:] = -math.inf
    dist = SPANNING(scores, backend=backend)
    for use in (lambda: dist.log_partition, lambda: dist.mode, dist.sample):
        with pytest.raises(NoTreeError, match=r"^Graph 1 .* 4 nodes\) has no spanning tree.*edges"):
            use()
    unchecked = SPANNING(scores, validate_args=False).mode
    assert SPANNING.contains(unchecked[0], torch.tensor(4))
