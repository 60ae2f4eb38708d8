"""Non-projective trees: the reference against enumeration, every backend against the reference."""

import functools
import itertools

import networkx
import oracle
import pytest
import torch
from scipy import stats
from tolerances import (
    EXACT,
    GRADIENT_F32,
    VALUE_F32,
    gradient_tolerance,
    largest_error,
    value_tolerance,
)

from treelax.ops.backend import LIMIT, NO_TREE
from treelax.ops.matrix_tree import arithmetic, diagonal, reference
from treelax.trees import is_tree, tree_to_heads

COUNTS = {False: (1, 3, 16, 125, 1296), True: (1, 2, 9, 64, 625)}
#: "logarithms": what the plain backend computes where it may not branch, on a GPU
FAST = ["diagonal", "logarithms"]

both_roots = pytest.mark.parametrize("single_root", [False, True])
every_dtype = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)


@pytest.fixture(params=FAST)
def backend(request, monkeypatch):
    """The module of a fast backend."""
    if request.param == "logarithms":
        monkeypatch.setattr(
            diagonal, "carefully", lambda run, *inputs: run(arithmetic.Log(), *inputs)[:-1]
        )
    return diagonal


# ── the reference against enumeration ────────────────────────────────────────────────────────────


@functools.cache
def all_trees(n, single_root):
    """Every tree over n words as 0/1, ``(count, n + 1, n + 1)``."""
    trees = [
        heads
        for heads in itertools.product(range(n + 1), repeat=n)
        if oracle.is_tree(heads, single_root)
    ]
    result = torch.zeros(len(trees), n + 1, n + 1, dtype=torch.float64)
    for tree, heads in zip(result, trees, strict=True):
        tree[heads, range(1, n + 1)] = 1
    return result


def tree_scores(scores, single_root):
    """Score of every tree, ``(B, count)``; ``-inf`` with a forbidden arc."""
    trees = all_trees(scores.shape[-1] - 1, single_root).flatten(1).mT
    forbidden = scores.flatten(1) == -torch.inf
    total = scores.flatten(1).masked_fill(forbidden, 0) @ trees
    return total.masked_fill(forbidden.double() @ trees > 0, -torch.inf)


def random_scores(n, generator, batch=4, masked=False):
    scores = 2 * torch.randn(batch, n + 1, n + 1, dtype=torch.float64, generator=generator)
    if masked and n > 2:
        scores[:, 2, 3] = scores[0, 0, 1] = -torch.inf
        scores[1, 1:, 2] = -torch.inf  # only the root is left: with one root, its child
    return scores


@both_roots
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("n", range(1, 6))
def test_the_reference_sums_over_all_trees(n, masked, single_root, generator):
    scores = random_scores(n, generator, masked=masked).requires_grad_()
    lengths = torch.full((4,), n)
    trees = all_trees(n, single_root)
    assert len(trees) == COUNTS[single_root][n - 1]
    s = tree_scores(scores, single_root)
    expected = torch.einsum("bt,thm->bhm", s.softmax(1), trees), s.logsumexp(1)
    tree, value, saved = reference.soft_tree(scores.detach(), lengths, "entropy", single_root, True)
    assert largest_error(tree, expected[0].detach()) < EXACT
    assert largest_error(value, expected[1].detach()) < EXACT
    best, value = reference.best_tree(scores.detach(), lengths, single_root)
    assert torch.equal(best, trees[s.argmax(1)])
    assert largest_error(value, s.amax(1).detach()) < EXACT

    upstream = [torch.randn(x.shape, dtype=x.dtype, generator=generator) for x in expected]
    (grad,) = torch.autograd.grad(expected, scores, upstream)
    got = reference.soft_tree_backward(*upstream, saved, lengths, "entropy", single_root)
    assert largest_error(got, grad) < EXACT


# ── every backend against the reference ──────────────────────────────────────────────────────────


class Problem:
    """A batch with ragged lengths and upstream gradients, with the reference's answers."""

    def __init__(self, n, single_root, scale=1):
        generator = torch.Generator().manual_seed(n)
        batch = 19 if n <= 5 else 3
        scores = random_scores(n, generator, batch, masked=True)
        self.scores = (scale * scores).float().double()
        self.lengths = torch.randint(0, n + 1, (batch,), generator=generator)
        self.lengths[:2] = n
        self.grad_tree = torch.randn(self.scores.shape, dtype=torch.float64, generator=generator)
        self.grad_value = torch.randn(batch, dtype=torch.float64, generator=generator)
        options = (self.lengths, "entropy", single_root)
        self.tree, self.value, saved = reference.soft_tree(self.scores, *options, True)
        self.grad = reference.soft_tree_backward(self.grad_tree, self.grad_value, saved, *options)


problem = functools.cache(Problem)


@every_dtype
@both_roots
@pytest.mark.parametrize("n", [1, 2, 3, 5, 13])
def test_marginals_and_gradient(n, single_root, dtype, backend):
    p = problem(n, single_root)
    scores = p.scores.to(dtype)
    tree, value, saved = backend.soft_tree(scores, p.lengths, "entropy", single_root, True)
    assert tree.dtype == value.dtype == saved.dtype == dtype
    assert saved.shape == backend.saved_shape(*scores.shape[:2], dtype)
    assert largest_error(tree, p.tree) < value_tolerance(dtype)
    assert largest_error(value, p.value) < value_tolerance(dtype)
    grad = backend.soft_tree_backward(
        p.grad_tree.to(dtype), p.grad_value.to(dtype), saved, p.lengths, "entropy", single_root
    )
    assert largest_error(grad, p.grad) < gradient_tolerance(dtype)
    for result in (tree, grad):
        assert torch.all(result[p.tree == 0] == 0)
    alone = backend.log_partition(scores, p.lengths, single_root)
    assert largest_error(alone, p.value) < value_tolerance(dtype)


@both_roots
@pytest.mark.parametrize("n", [1, 2, 6])
def test_samples_for_the_same_uniforms(n, single_root, backend, generator):
    p = problem(n, single_root)
    scores, lengths = p.scores[:3], p.lengths[:3]
    uniforms = torch.rand(3, 3, n + 1, dtype=torch.float64, generator=generator)
    uniforms[0] = 1 - 1e-16  # rounding may leave it above every cumulative sum
    uniforms[1] = 0
    expected, _ = reference.sample_tree(scores, lengths, uniforms, single_root)
    trees, value = backend.sample_tree(scores, lengths, uniforms, single_root)
    assert torch.equal(trees, expected)
    assert largest_error(value, p.value[:3]) < EXACT


@both_roots
def test_frequencies_of_samples(single_root, backend, generator):
    """Fixed seed: a right sampler fails at one seed in a thousand, a wrong one at all of them."""
    n, count = 3, 20_000
    scores = torch.randn(1, n + 1, n + 1, generator=generator)
    uniforms = torch.rand(count, 1, n + 1, generator=generator)
    trees, _ = backend.sample_tree(scores, torch.tensor([n]), uniforms, single_root)
    same = (trees == all_trees(n, single_root)).flatten(2).all(2)
    assert same.any(1).all()  # nothing but trees
    expected = count * tree_scores(scores.double(), single_root).softmax(1)[0].numpy()
    assert expected.min() > 5
    assert stats.chisquare(same.sum(0).numpy(), expected).pvalue > 1e-3


@both_roots
def test_neighbours_and_padding_change_no_bit(single_root, backend, generator):
    n = 11
    lengths = torch.tensor([11, 7, 4, 1])
    scores = 3 * torch.randn(4, n + 1, n + 1, generator=generator)
    scores[0] *= 300  # needs logarithms
    uniforms = torch.rand(2, 4, n + 1, generator=generator)
    grad_tree, grad_value = torch.randn(scores.shape, generator=generator), torch.ones(4)

    def results(rows, size):
        part, words = scores[rows, :size, :size].contiguous(), lengths[rows]
        tree, value, saved = backend.soft_tree(part, words, "entropy", single_root, True)
        upstream = grad_tree[rows, :size, :size].contiguous(), grad_value[rows]
        grad = backend.soft_tree_backward(*upstream, saved, words, "entropy", single_root)
        samples, _ = backend.sample_tree(
            part, words, uniforms[:, rows, :size].contiguous(), single_root
        )
        best = backend.best_tree(part, words, single_root)
        return tree, value, grad, samples[0], samples[1], *best

    together = results(slice(None), n + 1)
    for b, length in enumerate(lengths.tolist()):
        alone = results(slice(b, b + 1), length + 1)
        for one, many in zip(alone, together, strict=True):
            if one.dim() == 3:
                many = many[:, : length + 1, : length + 1]
            assert torch.equal(one[0], many[b])


def test_no_value_is_read_off_the_cpu():
    """A GPU would wait for it; the meta device, which has no values, raises."""
    scores = torch.empty(3, 4, 4, device="meta")
    lengths = torch.empty(3, dtype=torch.int64, device="meta")
    options = (lengths, "entropy", True)
    tree, value, saved = diagonal.soft_tree(scores, *options, True)
    grad = diagonal.soft_tree_backward(tree, value, saved, *options)
    best, _ = diagonal.best_tree(scores, lengths, True)
    trees, _ = diagonal.sample_tree(scores, lengths, scores.new_empty(2, 3, 4), True)
    assert tree.shape == grad.shape == best.shape == trees[0].shape == scores.shape
    assert value.shape == diagonal.log_partition(scores, lengths, True).shape == (3,)


# ── wide scores ──────────────────────────────────────────────────────────────────────────────────


@both_roots
@pytest.mark.parametrize("scale", [30, 300])
def test_wide_scores(scale, single_root, backend):
    p = problem(14, single_root, scale)
    scores, options = p.scores.float(), (p.lengths, "entropy", single_root)
    tree, value, saved = backend.soft_tree(scores, *options, True)
    assert largest_error(tree, p.tree) < VALUE_F32
    assert largest_error(value, p.value) < 1e-6
    assert largest_error(tree.sum(1), p.tree.sum(1)) < 1e-6
    grad = backend.soft_tree_backward(p.grad_tree.float(), p.grad_value.float(), saved, *options)
    assert largest_error(grad, p.grad) < GRADIENT_F32


@both_roots
@pytest.mark.parametrize("score", [-12.0, LIMIT, -LIMIT, 1e-42])
def test_equal_scores_give_equal_marginals(score, single_root, backend):
    n = 30
    scores = torch.full((1, n + 1, n + 1), score)
    tree, value, _ = backend.soft_tree(scores, torch.tensor([n]), "entropy", single_root, False)
    assert value.isfinite().all()
    root = 1 / n if single_root else 2 / (n + 1)  # of a word's probability
    rest = (1 - root) / (n - 1)
    expected = torch.full((n + 1, n + 1), rest).fill_diagonal_(0)
    expected[0], expected[:, 0] = root, 0
    assert largest_error(tree[0], expected) < 1e-6


@both_roots
def test_huge_scores_give_numbers(single_root, backend, generator):
    scores = 1e31 * torch.randn(3, 13, 13, generator=generator)
    scores[1] *= torch.rand(13, 13, generator=generator) < 0.5
    lengths = torch.tensor([12, 12, 5])
    options = (lengths, "entropy", single_root)
    tree, value, saved = backend.soft_tree(scores, *options, True)
    grad = backend.soft_tree_backward(torch.randn_like(scores), torch.ones(3), saved, *options)
    trees, _ = backend.sample_tree(scores, lengths, torch.rand(1, 3, 13), single_root)
    assert all(x.isfinite().all() for x in (tree, value, grad))
    words = torch.arange(1, 13) <= lengths[:, None]
    assert largest_error(tree.sum(1)[:, 1:], words) < 1e-4
    assert torch.equal(trees[0].sum(1)[:, 1:], words.float())


# ── best trees ───────────────────────────────────────────────────────────────────────────────────


def check_best(module, scores, single_root, expected):
    """Trees of the best scores, or a value that says that there is none."""
    lengths = torch.full((len(scores),), scores.shape[-1] - 1)
    tree, value = module.best_tree(scores, lengths, single_root)
    assert is_tree(tree_to_heads(tree), single_root=single_root).all()
    exists = expected > -torch.inf
    assert torch.equal(value > NO_TREE, exists)
    for got in (value, torch.where(tree > 0, scores, 0).sum((1, 2))):
        assert torch.isclose(got, expected, rtol=1e-14, atol=1e-12)[exists].all()


@both_roots
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_best_trees_against_all_trees(n, single_root, backend, generator):
    """Real scores; whole numbers, with ties; huge ones; half of the arcs forbidden."""
    whole = torch.randint(-3, 4, (250, n + 1, n + 1), generator=generator).double()
    real = torch.randn(whole.shape, dtype=torch.float64, generator=generator)
    sparse = whole.masked_fill(torch.rand(whole.shape, generator=generator) < 0.5, -torch.inf)
    for scores in (whole, real, LIMIT * real.clamp(-1, 1), sparse):
        expected = tree_scores(scores, single_root).amax(1)
        check_best(backend, scores, single_root, expected)
        check_best(reference, scores[:20], single_root, expected[:20])


@both_roots
def test_best_trees_against_networkx(single_root, backend, generator):
    n = 12
    scores = torch.randint(-20, 21, (8, n + 1, n + 1), generator=generator).double()
    expected = []
    for weights in scores.long().tolist():
        graph = networkx.DiGraph()
        for h, m in itertools.permutations(range(n + 1), 2):
            if m:  # a thousand is more than any tree makes up for
                graph.add_edge(h, m, weight=weights[h][m] - 1000 * (single_root and h == 0))
        best = networkx.maximum_spanning_arborescence(graph)
        expected.append(sum(weights[h][m] for h, m in best.edges))
    for module in (reference, backend):
        check_best(module, scores, single_root, torch.tensor(expected).double())


@both_roots
def test_sentences_without_a_tree(single_root, backend):
    """Two words in a cycle; two that only the root may head, which is one too many for a single root."""
    scores = torch.full((2, 3, 3), -torch.inf)
    scores[0, 1, 2] = scores[0, 2, 1] = scores[1, 0, 1] = scores[1, 0, 2] = 1
    lengths = torch.full((2,), 2)
    tree, value, saved = backend.soft_tree(scores, lengths, "entropy", single_root, True)
    upstream = torch.ones_like(scores), torch.ones(2)
    grad = backend.soft_tree_backward(*upstream, saved, lengths, "entropy", single_root)
    trees, sample_value = backend.sample_tree(scores, lengths, torch.rand(2, 2, 3), single_root)
    assert all(x.isfinite().all() for x in (tree, grad, trees))
    best_value = backend.best_tree(scores, lengths, single_root)[1]
    for x in (value, sample_value, best_value, backend.log_partition(scores, lengths, single_root)):
        assert torch.equal(x <= NO_TREE, torch.tensor([True, single_root]))
