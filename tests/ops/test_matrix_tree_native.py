"""The C++ kernel of non-projective trees: the tests of every backend, in every instruction set, and
what only it does."""

import pytest
import torch
from test_matrix_tree import (  # noqa: F401
    both_roots,
    test_best_trees_against_all_trees,
    test_best_trees_against_networkx,
    test_equal_scores_give_equal_marginals,
    test_frequencies_of_samples,
    test_huge_scores_give_numbers,
    test_marginals_and_gradient,
    test_neighbours_and_padding_change_no_bit,
    test_samples_for_the_same_uniforms,
    test_sentences_without_a_tree,
    test_wide_scores,
)
from tolerances import EXACT, GRADIENT_F32, VALUE_F32, largest_error

from treelax.ops import native as library
from treelax.ops.checks import arc_mask
from treelax.ops.matrix_tree import native, reference


@pytest.fixture(params=library.supported())
def backend(request, monkeypatch):
    """The kernel with one of its instruction sets."""
    monkeypatch.setenv("TREELAX_NATIVE", request.param)
    library.forget()
    yield native
    library.forget()


def results(scores, lengths, uniforms, grad_tree, single_root):
    """Everything that the kernel computes."""
    options = (lengths, "entropy", single_root)
    tree, value, saved = native.soft_tree(scores, *options, True)
    grad = native.soft_tree_backward(grad_tree, torch.ones_like(value), saved, *options)
    best = native.best_tree(scores, lengths, single_root)
    samples = native.sample_tree(scores, lengths, uniforms, single_root)
    return tree, value, grad, *best, *samples


def batch(generator, count=45, n=20):
    """Sentences of all lengths and widths: closed-form gradients, slopes, and logarithms."""
    lengths = torch.randint(0, n + 1, (count,), generator=generator)
    lengths[:2] = n
    scores = torch.randn(count, n + 1, n + 1, generator=generator)
    scores *= torch.tensor([1.0, 10.0, 300.0]).repeat(count // 3)[:, None, None]
    uniforms = torch.rand(2, count, n + 1, generator=generator)
    return scores, lengths, uniforms, torch.randn(scores.shape, generator=generator)


@both_roots
def test_threads_and_the_width_of_vectors_change_no_bit(single_root, generator):
    scores, lengths, uniforms, grad_tree = batch(generator)
    whole = results(scores, lengths, uniforms, grad_tree, single_root)
    torch.set_num_threads(3)
    for one, other in zip(
        whole, results(scores, lengths, uniforms, grad_tree, single_root), strict=True
    ):
        assert torch.equal(one, other)
    few = slice(0, 2)  # short vectors
    parts = results(
        scores[few], lengths[few], uniforms[:, few].contiguous(), grad_tree[few], single_root
    )
    for one, other in zip(parts, whole, strict=True):
        assert torch.equal(one, other[:, few] if other.dim() == 4 else other[few])


@both_roots
def test_a_sentence_with_nan_is_nan_and_no_other(single_root, generator):
    scores, lengths, uniforms, grad_tree = batch(generator)
    clean = results(scores, lengths, uniforms, grad_tree, single_root)
    scores[1, 3, 2] = torch.nan
    scores[0, 3, 3] = scores[2, 3, 0] = torch.nan  # no arcs
    arcs = arc_mask(lengths, scores.shape[-1])
    arcs[torch.arange(len(arcs)) != 1] = False
    for got, before in zip(
        results(scores, lengths, uniforms, grad_tree, single_root), clean, strict=True
    ):
        spoiled = torch.arange(len(arcs)) == 1 if got.dim() == 1 else arcs.expand_as(got)
        assert torch.equal(got.isnan(), spoiled)
        assert torch.equal(got[~spoiled], before[~spoiled])


@both_roots
def test_float32_keeps_its_digits(single_root, generator):
    """By every method at once: closed form, slopes, logarithms."""
    scores, lengths, uniforms, grad_tree = batch(generator)
    got = results(scores, lengths, uniforms, grad_tree, single_root)
    double = (x.double() for x in (uniforms, grad_tree))
    tree, value, grad, *_ = results(scores.double(), lengths, *double, single_root)
    assert largest_error(got[0], tree) < VALUE_F32
    assert torch.allclose(got[1].double(), value, rtol=1e-6, atol=VALUE_F32)
    assert largest_error(got[2], grad) < GRADIENT_F32


@both_roots
def test_best_trees_of_long_sentences(single_root, generator):
    """Nested cycles, and sentences whose best heads are a tree already."""
    n = 33
    scores = torch.randn(6, n + 1, n + 1, dtype=torch.float64, generator=generator)
    scores[4:, range(n), range(1, n + 1)] += 20
    lengths = torch.tensor([33, 33, 25, 8, 33, 20])
    got = native.best_tree(scores, lengths, single_root)
    expected = reference.best_tree(scores, lengths, single_root)
    assert torch.equal(got[0], expected[0])
    assert largest_error(got[1], expected[1]) < EXACT
