"""Binary trees over spans: the reference against enumeration, every backend against the reference."""

import functools

import pytest
import torch
from scipy import stats
from tolerances import GRADIENT_F32, VALUE_F32, gradient_tolerance, largest_error, value_tolerance

from treelax.ops import native as library
from treelax.ops.backend import NO_TREE
from treelax.ops.cky import diagonal, native, reference

SIZES = (1, 2, 3, 5, 12, 23)
RELAXATIONS = ("softmax", "entropy")
# each instruction set of the C++ kernel that this processor runs counts as a backend
FAST = ["diagonal", *(f"native-{variant}" for variant in library.supported())]


@pytest.fixture(params=FAST)
def backend(request, monkeypatch):
    """The module of a fast backend."""
    name, _, variant = request.param.partition("-")
    monkeypatch.setenv("TREELAX_NATIVE", variant)
    library.forget()
    yield {"diagonal": diagonal, "native": native}[name]
    library.forget()


# ── the reference against enumeration ────────────────────────────────────────────────────────────


def brackets(i, j):
    """Every binary tree over the words i … j, as the set of its spans."""
    if i == j:
        return [{(i, i)}]
    return [
        {(i, j)} | left | right
        for k in range(i, j)
        for left in brackets(i, k)
        for right in brackets(k + 1, j)
    ]


@functools.cache
def all_trees(n, size):
    """Every binary tree over n words as 0/1, ``(count, size, size)``."""
    trees = brackets(0, n - 1)
    result = torch.zeros(len(trees), size, size, dtype=torch.float64)
    for tree, spans in zip(result, trees, strict=True):
        for span in spans:
            tree[span] = 1
    return result


@pytest.mark.parametrize("masked", [False, True])
def test_the_reference_sums_over_all_binary_trees(masked, generator):
    size = 6
    scores = torch.randn(size, size, size, dtype=torch.float64, generator=generator)
    if masked:
        scores[:, 0, 1] = scores[5, 2, 4] = -torch.inf
        scores[1, 0, 1] = 0  # or two words would have no tree
    lengths = torch.arange(1, size + 1)
    marginals, value, _ = reference.soft_tree(scores, lengths, "entropy", False, False)
    best, best_value = reference.best_tree(scores, lengths, False)
    for b, n in enumerate(lengths.tolist()):
        trees = all_trees(n, size)
        assert len(trees) == (1, 1, 2, 5, 14, 42)[n - 1]
        s = torch.where(trees > 0, scores[b], 0).sum((1, 2))
        assert value[b] == pytest.approx(s.logsumexp(0).item(), abs=1e-12)
        expected = torch.einsum("t,tij->ij", s.softmax(0), trees)
        assert largest_error(marginals[b], expected) < 1e-12
        assert torch.equal(best[b], trees[s.argmax()])
        assert best_value[b] == pytest.approx(s.max().item(), abs=1e-12)


def test_the_softmax_relaxation_approaches_the_best_tree(generator):
    scores = 1000 * torch.randn(4, 6, 6, dtype=torch.float64, generator=generator)
    lengths = torch.tensor([6, 5, 1, 0])
    tree = reference.soft_tree(scores, lengths, "softmax", False, False)[0]
    assert largest_error(tree, reference.best_tree(scores, lengths, False)[0]) < 1e-6


# ── every backend against the reference ──────────────────────────────────────────────────────────


class Problem:
    """A batch with ragged lengths and upstream gradients, with the reference's answers."""

    def __init__(self, n: int, relaxation: str) -> None:
        generator = torch.Generator().manual_seed(n)
        batch = 19 if n <= 5 else 5  # 19: more than one group of lanes
        draw = functools.partial(torch.randn, dtype=torch.float64, generator=generator)
        self.scores = 2 * draw(batch, n, n)
        self.lengths = torch.randint(0, n + 1, (batch,), generator=generator)
        self.lengths[:3] = torch.tensor([n, 0, 1])
        if n > 2:
            self.scores[0, 0, 1] = -torch.inf
        self.grad_tree, self.grad_value = draw(batch, n, n), draw(batch)
        self.tree, self.value, saved = reference.soft_tree(
            self.scores, self.lengths, relaxation, False, True
        )
        self.grad = reference.soft_tree_backward(
            self.grad_tree, self.grad_value, saved, self.lengths, relaxation, False
        )


problem = functools.cache(Problem)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("relaxation", RELAXATIONS)
@pytest.mark.parametrize("n", SIZES)
def test_soft_tree_and_gradient(n, relaxation, dtype, backend):
    p = problem(n, relaxation)
    options = (p.lengths, relaxation, False)
    tree, value, saved = backend.soft_tree(p.scores.to(dtype), *options, True)
    assert saved.shape == backend.saved_shape(*p.scores.shape[:2], dtype)
    grad = backend.soft_tree_backward(
        p.grad_tree.to(dtype), p.grad_value.to(dtype), saved, *options
    )
    assert largest_error(tree, p.tree) < value_tolerance(dtype)
    assert largest_error(value, p.value) < value_tolerance(dtype)
    assert largest_error(grad, p.grad) < gradient_tolerance(dtype)
    assert torch.all(tree[p.tree == 0] == 0)
    assert torch.all(grad[(p.tree == 0) & (p.grad == 0)] == 0)
    unsaved = backend.soft_tree(p.scores.to(dtype), *options, False)
    assert torch.equal(unsaved[0], tree)
    if relaxation == "entropy":
        log_partition = backend.log_partition(p.scores.to(dtype), p.lengths, False)
        assert torch.equal(log_partition, value)


@pytest.mark.parametrize("n", SIZES)
def test_best_tree(n, backend):
    p = problem(n, "entropy")
    tree, value = backend.best_tree(p.scores, p.lengths, False)
    expected, expected_value = reference.best_tree(p.scores, p.lengths, False)
    assert torch.equal(tree, expected)
    assert torch.equal(value, expected_value)


def test_ties_go_to_the_smallest_split(backend, generator):
    """Whole numbers, so that every sum is exact and many trees score the same; all of them at last."""
    for low, high in ((-2, 3), (2_000_000, 2_000_004), (0, 1)):
        scores = torch.randint(low, high, (40, 7, 7), generator=generator).float()
        lengths = torch.full((40,), 7)
        expected = reference.best_tree(scores, lengths, False)[0]
        assert torch.equal(backend.best_tree(scores, lengths, False)[0], expected)


@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_samples_for_the_same_uniforms(n, backend, generator):
    p = problem(n, "entropy")
    uniforms = torch.rand(4, len(p.lengths), n - 1, dtype=torch.float64, generator=generator)
    uniforms[0] = 1 - 1e-16  # rounding may leave it above every cumulative sum
    uniforms[1] = 0
    expected, _ = reference.sample_tree(p.scores, p.lengths, uniforms, False)
    trees, value = backend.sample_tree(p.scores, p.lengths, uniforms, False)
    assert torch.equal(trees, expected)
    assert largest_error(value, p.value) < value_tolerance(torch.float64)


def test_frequencies_of_samples(backend, generator):
    n, count = 5, 20_000
    scores = torch.randn(1, n, n, dtype=torch.float64, generator=generator)
    uniforms = torch.rand(count, 1, n - 1, dtype=torch.float64, generator=generator)
    samples = backend.sample_tree(scores, torch.tensor([n]), uniforms, False)[0]
    every = all_trees(n, n)
    observed = (samples == every).all(-1).all(-1).sum(0).double()
    assert observed.sum() == count  # nothing but binary trees
    expected = count * (every * scores).sum((1, 2)).softmax(0)
    common = expected >= 5
    observed, expected = (
        [*x[common].tolist(), float(x[~common].sum())] for x in (observed, expected)
    )
    keep = len(observed) - (expected[-1] == 0)
    assert stats.chisquare(observed[:keep], expected[:keep]).pvalue > 1e-3


# ── neighbours, numbers that are not numbers, digits ─────────────────────────────────────────────


@pytest.mark.parametrize("relaxation", RELAXATIONS)
def test_neighbours_and_padding_change_no_bit(relaxation, backend, generator):
    """Wide scores among them, so that each sentence decides by itself whether it is centred."""
    scores = torch.randn(20, 11, 11, generator=generator)
    scores[1::2] *= 300
    scores[3] = torch.nan
    lengths = torch.randint(0, 12, (20,), generator=generator)
    lengths[0] = 11
    grad_tree, grad_value = torch.randn_like(scores), torch.ones(20)

    def results(batch, size):
        x, n = scores[batch, :size, :size].contiguous(), lengths[batch].clamp(max=size)
        tree, value, saved = backend.soft_tree(x, n, relaxation, False, True)
        upstream = grad_tree[batch, :size, :size].contiguous()
        grad = backend.soft_tree_backward(upstream, grad_value[batch], saved, n, relaxation, False)
        best, best_value = backend.best_tree(x, n, False)
        return tree, value, grad, best, best_value

    together = results(slice(None), 11)
    for b in (0, 1, 2, 4, 5, 19):
        size = max(1, int(lengths[b]))
        for whole, alone in zip(together, results(slice(b, b + 1), size), strict=True):
            inner = whole[b] if whole.dim() == 1 else whole[b, :size, :size]
            if backend is diagonal:  # PyTorch's own loops round the ends of a tensor in another way
                assert torch.allclose(inner, alone[0], rtol=1e-5, atol=1e-5)
            else:
                assert torch.equal(inner, alone[0])
            assert whole[b].count_nonzero() == inner.count_nonzero()


def test_native_writes_nan_for_nan():
    scores, lengths = torch.zeros(3, 4, 4), torch.tensor([3, 3, 2])
    scores[0, 0, 1] = scores[1, 2, 1] = scores[2, 0, 2] = torch.nan  # only the first is a span
    spans = torch.ones(3, 3).triu() > 0
    for relaxation in RELAXATIONS:
        tree, value, saved = native.soft_tree(scores, lengths, relaxation, False, True)
        grad = native.soft_tree_backward(tree * 0 + 1, value, saved, lengths, relaxation, False)
        uniforms = torch.zeros(1, 3, 3)
        samples, _ = native.sample_tree(scores, lengths, uniforms, False)
        best, _ = native.best_tree(scores, lengths, False)
        for result in (tree, grad, samples[0], best):
            assert torch.equal(result[0, :3, :3].isnan(), spans)
            assert not result[1:].isnan().any()
        assert value.isnan().tolist() == [True, False, False]


def test_a_sentence_without_a_tree(backend):
    scores = torch.zeros(2, 3, 3)
    scores[0, 0, 1] = scores[0, 1, 2] = scores[1, 2, 2] = -torch.inf
    lengths = torch.tensor([3, 2])
    for value in (
        backend.log_partition(scores, lengths, False),
        backend.soft_tree(scores, lengths, "softmax", False, False)[1],
        backend.best_tree(scores, lengths, False)[1],
    ):
        assert value[0] <= NO_TREE
        assert value[1] == 0  # one tree


@pytest.mark.parametrize("relaxation", RELAXATIONS)
@pytest.mark.parametrize(("scale", "offset"), [(1, 0), (10, 0), (100, 0), (1, -1000), (10, 1000)])
def test_float32(scale, offset, relaxation, backend):
    """Chart values of thousands, where float32 would have lost its digits without centring."""
    generator = torch.Generator().manual_seed(1)
    scores = scale * torch.randn(4, 40, 40, generator=generator) + offset
    lengths = torch.tensor([40, 40, 39, 20])
    grad_tree = torch.randn(scores.shape, generator=generator)
    results = []
    for module, x in ((diagonal, scores.double()), (backend, scores)):
        tree, value, saved = module.soft_tree(x, lengths, relaxation, False, True)
        upstream = (grad_tree.to(x.dtype), torch.zeros_like(value))
        grad = module.soft_tree_backward(*upstream, saved, lengths, relaxation, False)
        results.append((tree, value, grad))
    (tree, value, grad), (tree32, value32, grad32) = results
    assert largest_error(tree32, tree) < VALUE_F32
    assert largest_error(value32, value) < 1e-6
    assert float((grad32 - grad).abs().max() / grad.abs().max()) < GRADIENT_F32
