"""Properties that hold for every score matrix, found or refuted by hypothesis."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tolerances import largest_error

from treelax import ops
from treelax.trees import is_projective, is_tree, tree_to_heads

RELAXATIONS = st.sampled_from(["softmax", "entropy"])
BACKENDS = st.sampled_from(["diagonal", "native"])
#: A float64 sum over a chart of at most 12 words at scores up to ±50.
CLOSE = 1e-10


@st.composite
def sentences(draw, batch=3, most=12):
    """Scores of mixed scale with ragged lengths."""
    n = draw(st.integers(1, most))
    seed = draw(st.integers(0, 2**31 - 1))
    scale = draw(st.sampled_from([0.0, 0.1, 1.0, 10.0]))
    generator = torch.Generator().manual_seed(seed)
    scores = scale * torch.randn(batch, n + 1, n + 1, dtype=torch.float64, generator=generator)
    lengths = torch.randint(1, n + 1, (batch,), generator=generator)
    return scores, lengths


def words(lengths, n):
    return torch.arange(1, n + 1) <= lengths[:, None]


@given(sentences(), RELAXATIONS, BACKENDS, st.booleans(), st.sampled_from([0.3, 1.0, 5.0]))
def test_columns_sum_to_one(sentence, relaxation, backend, single_root, temperature):
    scores, lengths = sentence
    tree = ops.soft_tree(
        scores,
        lengths,
        relaxation=relaxation,
        temperature=temperature,
        single_root=single_root,
        backend=backend,
    )
    assert (tree >= 0).all()
    assert (tree <= 1 + CLOSE).all()
    assert largest_error(tree.sum(-2)[:, 1:], words(lengths, scores.shape[-1] - 1)) < CLOSE
    assert (tree[:, :, 0] == 0).all()
    if single_root:
        assert largest_error(tree[:, 0].sum(-1), torch.ones(3)) < CLOSE


@given(sentences(), BACKENDS, st.booleans())
def test_best_and_sampled_trees_are_projective_trees(sentence, backend, single_root):
    scores, lengths = sentence
    options = {"single_root": single_root, "backend": backend}
    for tree in (
        ops.best_tree(scores, lengths, **options),
        ops.sample_tree(scores, lengths, generator=torch.Generator().manual_seed(0), **options),
    ):
        heads = tree_to_heads(tree, lengths)
        assert is_tree(heads, lengths, single_root=single_root).all()
        assert is_projective(heads, lengths).all()


@given(sentences(), BACKENDS, st.booleans())
def test_no_sample_beats_the_best_tree(sentence, backend, single_root):
    scores, lengths = sentence
    options = {"single_root": single_root, "backend": backend}
    best = (ops.best_tree(scores, lengths, **options) * scores).sum((-2, -1))
    samples = ops.sample_tree(
        scores, lengths, sample_shape=(8,), generator=torch.Generator().manual_seed(1), **options
    )
    assert ((samples * scores).sum((-2, -1)) <= best + CLOSE).all()
    assert (ops.log_partition(scores, lengths, **options) >= best - CLOSE).all()


@given(sentences(), RELAXATIONS, BACKENDS)
def test_a_shift_of_a_column_changes_nothing(sentence, relaxation, backend):
    scores, lengths = sentence
    shift = torch.randn(3, 1, scores.shape[-1], generator=torch.Generator().manual_seed(2))
    shift = 5 * shift.double()
    options = {"relaxation": relaxation, "backend": backend}
    moved = ops.soft_tree(scores + shift, lengths, **options)
    assert largest_error(moved, ops.soft_tree(scores, lengths, **options)) < CLOSE
    assert torch.equal(
        ops.best_tree(scores, lengths, backend=backend).sum((-2, -1)), lengths.double()
    )


@given(sentences(), BACKENDS)
def test_log_partition_moves_with_a_column(sentence, backend):
    scores, lengths = sentence
    moved = scores.clone()
    moved[:, :, 1] += 3
    difference = ops.log_partition(moved, lengths, backend=backend) - ops.log_partition(
        scores, lengths, backend=backend
    )
    assert largest_error(difference, torch.full((3,), 3.0)) < CLOSE


@given(sentences(), RELAXATIONS, BACKENDS)
def test_cold_trees_are_discrete(sentence, relaxation, backend):
    """As the temperature tends to 0 the soft tree tends to the best one, where that is unique."""
    scores, lengths = sentence
    if not scores.any():
        return  # all trees tie
    soft = ops.soft_tree(scores, lengths, relaxation=relaxation, temperature=1e-7, backend=backend)
    assert largest_error(soft, ops.best_tree(scores, lengths, backend=backend)) < 1e-3


@given(sentences(), RELAXATIONS)
def test_a_sentence_ignores_its_neighbours(sentence, relaxation):
    """Bit for bit, in float32 and in the C++ kernel: lanes do not meet."""
    scores, lengths = sentence
    scores = scores.float()
    together = ops.soft_tree(scores, lengths, relaxation=relaxation, backend="native")
    for b in range(3):
        size = int(lengths[b]) + 1
        alone = ops.soft_tree(scores[b, :size, :size], relaxation=relaxation, backend="native")
        assert torch.equal(together[b, :size, :size], alone)


@given(sentences())
def test_marginals_are_the_gradient_of_the_log_partition(sentence):
    scores, lengths = sentence
    scores = scores.requires_grad_()
    (grad,) = torch.autograd.grad(ops.log_partition(scores, lengths).sum(), scores)
    assert (
        largest_error(grad, ops.soft_tree(scores.detach(), lengths, relaxation="entropy")) < CLOSE
    )


@given(sentences())
def test_select_heads_is_a_softmax_of_each_column(sentence):
    scores, lengths = sentence
    soft = ops.select_heads(scores, lengths)
    hard = ops.select_heads(scores, lengths, hard=True)
    word = words(lengths, scores.shape[-1] - 1)
    assert largest_error(soft.sum(-2)[:, 1:], word) < CLOSE
    assert torch.equal(hard.sum(-2)[:, 1:], word.double())
    # the chosen head has the largest weight of its column
    assert largest_error((hard * soft).sum(-2), soft.amax(-2)) < CLOSE


@pytest.mark.parametrize("n", [2, 7])
def test_exchanging_left_and_right(n):
    """Mirrored scores give the mirrored tree, the root arcs kept."""
    generator = torch.Generator().manual_seed(n)
    scores = torch.randn(2, n + 1, n + 1, dtype=torch.float64, generator=generator)
    order = torch.cat((torch.zeros(1, dtype=torch.long), torch.arange(n, 0, -1)))
    mirrored = scores[:, order][:, :, order]
    expected = ops.soft_tree(scores, relaxation="entropy")[:, order][:, :, order]
    assert largest_error(ops.soft_tree(mirrored, relaxation="entropy"), expected) < CLOSE
