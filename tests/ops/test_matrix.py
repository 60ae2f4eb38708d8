"""Every algorithm and backend: the reference against enumeration, each backend against the reference.

The reference has its gradients from autograd through plain loops, so it shares no derivation with the
hand-written backward passes; those of the sums are also held against autograd through a list of all
trees. The GPU's kernels have the same tests in Triton's interpreter (``test_triton.py``), in a C++
emulation (``test_cuda_kernels.py``) and on a GPU (``tests/test_cuda.py``).
"""

import itertools

import networkx
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from matrix import (
    CELLS,
    LENGTHS,
    NATIVE,
    OPERATIONS,
    REFERENCE,
    SMOOTH,
    draw,
    event,
    every_cell,
    inside,
    mask_of,
    members,
    problem,
    results,
    seeded,
    soft,
    total,
    uniforms,
    using,
)
from scipy import stats
from tolerances import (
    EXACT,
    GRADIENT_F32,
    SIGNIFICANCE,
    VALUE_F32,
    largest_error,
)
from torch.autograd import gradcheck

import treelax as tx
from treelax.errors import InputError, NoTreeError
from treelax.ops.backend import LIMIT

DTYPES = [torch.float64, torch.float32]
every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)


# ── against the list of all trees ────────────────────────────────────────────────────────────────


def forbid(structure, scores, n):
    """A few parts forbidden, in some sentences so that a single root is forced; all have a tree."""
    scores = scores.clone()
    if n > 3 - structure.rooted:
        scores[1:, 1, 2] = scores[2:, 0, 1] = -torch.inf
    if n > 2 and structure.rooted:
        scores[3, 1:, 2] = -torch.inf  # only the root is left for word 2
    return scores


@every_cell(REFERENCE + CELLS)
@pytest.mark.parametrize("n", range(6))
def test_sums_over_all_members(structure, backend, n):
    """Values, marginals and their gradients; best trees; each also where parts are forbidden."""
    scores = forbid(structure, draw(structure, 4, n=n, scale=2, seed=n), n).requires_grad_()
    trees = members(structure, n)
    weights = torch.stack([total(trees, own) for own in scores])
    expected = weights.logsumexp(1), torch.einsum("bt,tij->bij", weights.softmax(1), trees)
    options = {"backend": backend}
    marginals, value = structure.marginals(scores, **options)
    upstream = [torch.randn(x.shape, dtype=x.dtype, generator=seeded(5)) for x in expected]
    grads = [
        torch.autograd.grad(pair, scores, upstream, retain_graph=True)[0]
        for pair in (expected, (value, marginals))
    ]
    assert largest_error(value.detach(), expected[0].detach()) < EXACT
    assert largest_error(marginals.detach(), expected[1].detach()) < EXACT
    assert largest_error(grads[1], grads[0].nan_to_num(0)) < EXACT
    alone = structure.log_partition(scores, **options)
    assert largest_error(alone.detach(), expected[0].detach()) < EXACT
    slope = torch.autograd.grad(alone, scores, upstream[0])[0]
    assert largest_error(slope, upstream[0][:, None, None] * expected[1].detach()) < EXACT
    assert torch.equal(structure.argmax(scores, **options), trees[weights.argmax(1)])
    count = structure.log_partition(torch.zeros_like(scores), **options).exp()
    assert largest_error(count, torch.full((4,), float(len(trees)))) < EXACT


@every_cell(REFERENCE + CELLS)
def test_the_best_of_many_ties(structure, backend):
    """Whole numbers, so that every sum is exact; huge ones; half of the parts forbidden, perhaps all
    trees among them."""
    for n in (1, 2, 3, 4):
        trees = members(structure, n)
        count = 20 if backend == "reference" else 250
        whole = draw(structure, count, n=n, scale=2).round()
        rare = whole.masked_fill(torch.rand(whole.shape, generator=seeded(2)) < 0.5, -torch.inf)
        for scores, unit in ((whole, 1), (LIMIT * (whole / 4).clamp(-1, 1), LIMIT), (rare, 1)):
            every = torch.stack([total(trees, own) for own in scores])
            possible = every.amax(1) > -torch.inf
            best = structure.argmax(scores[possible], backend=backend)
            assert structure.contains(best, torch.full((len(best),), n)).all()
            error = total(best, scores[possible]) - every.amax(1)[possible]
            assert largest_error(error / unit, torch.zeros(len(error))) < EXACT
            if not possible.all():
                first = scores[~possible][:1]
                for operation in OPERATIONS.values():
                    with pytest.raises(NoTreeError, match=r"Sentence 0 .*no .*tree"):
                        operation(structure, first, None, backend=backend)


@every_cell(CELLS)
@every_dtype
def test_samples_are_exact(structure, backend, dtype):
    """Fixed seed: a right sampler fails at one seed in a thousand, a wrong one at all of them."""
    n, count = 3 + (not structure.rooted), 20_000
    trees = members(structure, n)
    scores = draw(structure, n=n).to(dtype)
    generator = seeded(20190601)
    drawn = structure.sample(scores, sample_shape=(count,), generator=generator, backend=backend)
    same = (drawn[:, None] == trees).flatten(2).all(2)
    assert same.any(1).all()  # nothing but members
    assert chi_square(same.sum(0), count * total(trees, scores.double()).softmax(0)) > SIGNIFICANCE


def chi_square(observed, expected):
    """The p-value; what is expected less than five times is put together."""
    rare = expected < 5
    pairs = [
        [*x[~rare].tolist(), *([float(x[rare].sum())] if rare.any() else [])]
        for x in (observed.double(), expected)
    ]
    return stats.chisquare(*pairs).pvalue


def test_a_wrong_sampler_would_be_caught():
    """Perturb-and-parse is not exact sampling, and the test above can tell."""
    structure, count = tx.Projective(), 20_000
    trees, scores = members(structure, 3), draw(structure, n=3)
    noise = tx.Gumbel().draw(scores.expand(count, 4, 4), torch.full((count, 1, 1), 3), seeded())
    observed = (structure.argmax(scores + noise)[:, None] == trees).flatten(2).all(2).sum(0)
    assert chi_square(observed, count * total(trees, scores).softmax(0)) < SIGNIFICANCE


# ── against the reference ────────────────────────────────────────────────────────────────────────


@every_cell(CELLS)
@every_dtype
@pytest.mark.parametrize("n", [1, 2, 5, 12, 33])
def test_backends_agree_with_the_reference(structure, backend, dtype, n):
    problem(structure, n).agrees(backend, dtype)


@every_cell([cell for cell in CELLS if not isinstance(cell[0], tx.NonProjective)])
def test_ties_go_to_the_smallest_split(structure, backend):
    for n, low, high in ((3, -2, 3), (7, -2, 3), (7, 2_000_000, 2_000_004), (9, 0, 1)):
        shape = (60, *event(structure, n))
        scores = torch.randint(low, high, shape, generator=seeded(n)).float()
        expected = structure.argmax(scores, backend="reference")
        assert torch.equal(structure.argmax(scores, backend=backend), expected)


@every_cell(REFERENCE + [cell for cell in CELLS if cell[1] in ("diagonal", NATIVE[0][1])])
def test_finite_differences(structure, backend):
    lengths = torch.tensor([3, 2])
    scores = draw(structure, 2, n=3).requires_grad_()
    for relaxation in structure.relaxations:
        assert gradcheck(
            lambda s, r=relaxation: soft(structure, s / 0.7, lengths, r, backend), scores
        )
    assert gradcheck(lambda s: structure.log_partition(s, lengths, backend=backend), scores)


# ── numbers of every size ────────────────────────────────────────────────────────────────────────


@every_cell(CELLS)
@pytest.mark.parametrize(("scale", "offset"), [(10, 0), (100, 0), (1, -1000)])
def test_float32_keeps_its_digits(structure, backend, scale, offset):
    """Charts hold values of thousands, which float32 centres; Laplacians would be singular."""
    # plain PyTorch does not centre float64, but takes logarithms of it, too
    n, judge = 40, "diagonal"
    if isinstance(structure, tx.NonProjective):
        n, judge, scale = 14, "reference", 300 if scale == 100 else scale
    scores = (draw(structure, 4, n=n, scale=scale) + offset).float()
    lengths, upstream = torch.tensor([n, n, n - 1, n // 2]), draw(structure, 4, n=n, seed=2).float()
    for relaxation in structure.relaxations:
        tree, value, grad = results(structure, scores, lengths, backend, relaxation, upstream)
        wide = scores.double(), lengths, judge, relaxation, upstream.double()
        expected = results(structure, *wide)
        assert largest_error(tree, expected[0]) < VALUE_F32
        assert largest_error(value, expected[1]) < 1e-6
        largest = float(expected[2].abs().max())
        assert float((grad - expected[2]).abs().max()) / largest < GRADIENT_F32
        if structure.rooted:
            assert largest_error(tree.sum(1)[lengths == n, 1:], torch.ones(2, n)) < VALUE_F32


@every_cell(REFERENCE + CELLS)
@pytest.mark.parametrize("scale", [1e31, -1e30, 1e-42])
def test_extreme_scores_give_numbers(structure, backend, scale):
    """A forbidden part stays so, whatever another one promises."""
    n = 6 if backend == "reference" else 12
    scores = scale * torch.rand((4, *event(structure, n)), generator=seeded(7))
    scores[0, 2, 3] = 1e30
    scores[1, 0, 1] = -1e30
    scores[2, 4, 5] = -torch.inf
    scores[2, 0, 3] = 1e30
    scores[3] = scale
    for relaxation in structure.relaxations:
        leaf = scores.clone().requires_grad_()
        tree = structure.relaxed(leaf, relaxation=relaxation, backend=backend)
        (grad,) = torch.autograd.grad(tree, leaf, torch.full_like(tree, 1e5))
        assert torch.isfinite(grad).all()
        parts = structure.part_count(torch.tensor(n))
        assert largest_error(tree.detach().sum((1, 2)), parts.expand(4)) < 1e-4
        assert tree[2, 4, 5] == 0
    for operation in ("argmax", "sample"):
        trees = OPERATIONS[operation](structure, scores, None, backend=backend)
        assert structure.contains(trees, torch.full(trees.shape[:-2], n)).all()
        assert not trees[..., 2, 4, 5].any()
    values = structure.log_partition(scores, backend=backend)
    assert values.isfinite().all()
    even = structure.log_count(n) + float(parts) * max(-LIMIT, min(LIMIT, scale))
    assert values[3].item() == pytest.approx(even, rel=1e-5)


# ── sentences do not see each other ──────────────────────────────────────────────────────────────


@every_cell(CELLS)
def test_neighbours_padding_and_threads_change_no_bit(structure, backend):
    """Wide scores and NaN among them, so that each sentence decides by itself how it is computed."""
    n = 11
    lengths = torch.randint(0, n + 1, (20,), generator=seeded(4))
    lengths[[0, 3]] = n
    scores = draw(structure, 20, n=n).float()
    scores[1::3] *= 10
    scores[2::3] *= 300
    scores[3, 1, 2] = torch.nan
    scores = scores.masked_fill(~mask_of(structure, lengths, scores), torch.nan)
    upstream = draw(structure, 20, n=n, seed=2).float()
    table = torch.rand(2, 20, 2 * n, generator=seeded(3))
    options = {"validate": False, "backend": backend}

    def computed(rows, words):
        x, own = inside(scores[rows], structure, words), lengths[rows]
        x = x.contiguous().requires_grad_()
        found = []
        for relaxation in structure.relaxations:
            tree = structure.relaxed(x, own, relaxation=relaxation, **options)
            grad = torch.autograd.grad(tree, x, inside(upstream[rows], structure, words))[0]
            found += [tree.detach(), grad]
        found += [structure.argmax(x, own, **options)]
        with uniforms(table[:, rows]):
            found += [*structure.sample(x, own, sample_shape=(2,), **options)]
        return [*found, structure.log_partition(x.detach(), own, **options)]

    # PyTorch's own loops round the ends of a tensor in another way
    loose = backend == "diagonal" and not isinstance(structure, tx.NonProjective)
    torch.set_num_threads(3)
    together = computed(slice(None), n)
    torch.set_num_threads(1)
    for same in zip(together, computed(slice(None), n), strict=True):
        torch.testing.assert_close(*same, rtol=0, atol=0, equal_nan=True)
    for b in (0, 1, 3, 19):
        words = int(lengths[b])
        for whole, alone in zip(together, computed(slice(b, b + 1), words), strict=True):
            own = whole[b] if whole.dim() == 1 else inside(whole[b], structure, words)
            bar = 1e-5 if loose else 0
            torch.testing.assert_close(own, alone[0], rtol=bar, atol=bar, equal_nan=True)
            assert whole[b].count_nonzero() == own.count_nonzero()
    for result in together:
        spoilt = result[3:4].isnan()
        mask = mask_of(structure, lengths[3:4], scores[3:4]) if result.dim() == 3 else True
        assert (spoilt == mask).all()
        assert not result[torch.arange(20) != 3].isnan().any()


@every_cell(REFERENCE)
def test_a_sentence_with_nan_is_nan_and_no_other(structure, backend):
    """Of the other backends the test above says so."""
    scores = torch.zeros(3, *event(structure, 4))
    scores[1, 1, 2] = torch.nan
    scores.requires_grad_()
    mask = mask_of(structure, LENGTHS, scores) & (torch.arange(3) == 1)[:, None, None]
    for name, operation in OPERATIONS.items():
        result = operation(structure, scores, LENGTHS, backend=backend, validate=False)
        spoilt = mask if result.dim() > 1 else mask.flatten(1).any(1)
        assert torch.equal(result.isnan(), spoilt.expand(result.shape))
        if name in SMOOTH:
            assert torch.equal(torch.autograd.grad(result.sum(), scores)[0].isnan(), mask)


# ── what is refused ──────────────────────────────────────────────────────────────────────────────


@every_cell(REFERENCE + [cell for cell in CELLS if cell[1] in ("diagonal", NATIVE[0][1])])
def test_bad_values_are_refused(structure, backend):
    n, zeros = 3, torch.zeros(2, *event(structure, 3))
    nan, infinite = zeros.clone(), zeros.clone()
    nan[1, 1, 2], infinite[1, 1, 2] = torch.nan, torch.inf
    forbidden, two = zeros.clone(), torch.tensor([3, 1])
    forbidden[1] = -torch.inf
    refused = [
        *(
            (zeros, torch.tensor([3, bad]), rf"lengths\[1\].* {bad};.*0 to 3")
            for bad in (-1, 4, 2**40)
        ),
        (nan, None, r"scores\[1, 1, 2\].* nan;"),
        (infinite, None, r"scores\[1, 1, 2\].* inf;"),
        (forbidden, None, rf"Sentence 1 .*{n} words.*no .*tree"),
    ]
    for operation in OPERATIONS.values():
        for scores, lengths, message in refused:
            with pytest.raises(InputError, match=message) as caught:
                operation(structure, scores, lengths, backend=backend)
            assert "expected" in str(caught.value)
            assert "\n" not in str(caught.value)
        for scores in (nan, infinite):  # beyond the length it is not read
            operation(structure, scores, two, backend=backend)
        # it would touch memory that is not ours
        with pytest.raises(InputError, match="lengths"):
            operation(structure, zeros, refused[1][1], backend=backend, validate=False)


# ── properties ───────────────────────────────────────────────────────────────────────────────────

#: A float64 sum over a chart of at most 12 words at scores up to ±50.
CLOSE = 1e-10


@st.composite
def sentences(draw_from):
    """A cell of the matrix, scores of mixed scale and ragged lengths."""
    structure, cell = draw_from(st.sampled_from(CELLS))
    n = draw_from(st.integers(1, 12))
    scale = draw_from(st.sampled_from([0.0, 0.1, 1.0, 10.0]))
    scores = draw(structure, 3, n=n, scale=scale, seed=draw_from(st.integers(0, 2**31 - 1)))
    lengths = torch.tensor(draw_from(st.lists(st.integers(1, n), min_size=3, max_size=3)))
    return structure, cell, scores, lengths


@settings(max_examples=80)
@given(sentences())
def test_properties(sentence):
    structure, cell, scores, lengths = sentence
    mask = mask_of(structure, lengths, scores)
    with using(cell) as backend:
        options = {"backend": backend}
        marginals, value = structure.marginals(scores, lengths, **options)
        best = structure.argmax(scores, lengths, **options)
        samples = structure.sample(
            scores, lengths, sample_shape=(8,), generator=seeded(1), **options
        )
        for trees in (best[None], samples):  # of trees, none better than the best
            assert structure.contains(trees, lengths.expand(len(trees), 3)).all()
            assert (total(trees, scores) <= total(best, scores) + CLOSE).all()
        assert (value >= total(best, scores) - CLOSE).all()
        for relaxation in structure.relaxations:
            for temperature in (0.3, 5.0):
                settings = {"relaxation": relaxation, "temperature": temperature}
                tree = structure.relaxed(scores, lengths, **settings, **options)
                assert not tree[~mask].any()
                assert (tree >= 0).all()
                assert (tree <= 1 + CLOSE).all()
                assert largest_error(tree.sum((1, 2)), structure.part_count(lengths)) < CLOSE
                if structure.rooted:
                    word = torch.arange(1, scores.shape[-1]) <= lengths[:, None]
                    assert largest_error(tree.sum(1)[:, 1:], word) < CLOSE
                if getattr(structure, "single_root", False):
                    assert largest_error(tree[:, 0].sum(-1), torch.ones(3)) < CLOSE
            if scores.any():  # else all tie
                settings = {"relaxation": relaxation, "temperature": 1e-7}
                cold = structure.relaxed(scores, lengths, **settings, **options)
                assert largest_error(cold, best) < 1e-3
        leaf = scores.requires_grad_()
        grad = torch.autograd.grad(structure.log_partition(leaf, lengths, **options).sum(), leaf)[0]
        assert largest_error(grad, marginals) < CLOSE
        # every tree has one arc in a column, and the span of the first word
        moved = scores.detach() + 3 * (torch.arange(scores.shape[-1]) == structure.rooted) * (
            torch.ones_like(scores) if structure.rooted else torch.eye(scores.shape[-1])
        )
        shifted, more = structure.marginals(moved, lengths, **options)
        assert largest_error(shifted, marginals) < CLOSE
        assert largest_error(more - value, torch.full((3,), 3.0)) < CLOSE


@pytest.mark.parametrize("single_root", [False, True])
def test_best_trees_of_networkx(single_root):
    n, structure = 12, tx.NonProjective(single_root)
    scores = torch.randint(-20, 21, (8, n + 1, n + 1), generator=seeded()).double()
    expected = []
    for weights in scores.long().tolist():
        graph = networkx.DiGraph()
        for h, m in itertools.permutations(range(n + 1), 2):
            if m:  # a thousand is more than any tree makes up for
                graph.add_edge(h, m, weight=weights[h][m] - 1000 * (single_root and h == 0))
        best = networkx.maximum_spanning_arborescence(graph)
        expected.append(sum(weights[h][m] for h, m in best.edges))
    for backend in ("reference", "diagonal", "native"):
        best = structure.argmax(scores, backend=backend)
        assert structure.contains(best, torch.full((8,), n)).all()
        assert total(best, scores).tolist() == expected


@pytest.mark.parametrize("structure", [tx.NonProjective(), tx.NonProjective(True)], ids=str)
def test_plain_pytorch_reads_no_value_off_the_cpu(structure):
    """A GPU would wait for it; the meta device, which has no values, raises."""
    scores = torch.empty(3, *event(structure, 3), device="meta", requires_grad=True)
    lengths = torch.empty(3, dtype=torch.int64, device="meta")
    for name, operation in OPERATIONS.items():
        result = operation(structure, scores, lengths, backend="diagonal", validate=False)
        assert result.shape[-2:] == (scores.shape[-2:] if result.dim() > 1 else scores.shape[:1])
        if name in SMOOTH:
            assert torch.autograd.grad(result.sum(), scores)[0].shape == scores.shape
