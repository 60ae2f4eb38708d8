"""What goes in: shapes, strides, types; and what is refused, with what message."""

import numpy as np
import pytest
import torch
from tolerances import HALF, largest_error

from treelax import ops
from treelax.errors import BackendError, InputError, NoTreeError, TreelaxError
from treelax.ops.checks import arc_mask

DIFFERENTIABLE = [ops.soft_tree, ops.log_partition, ops.select_heads]
EVERY = [*DIFFERENTIABLE, ops.best_tree, ops.sample_tree]
PROJECTIVE = [op for op in EVERY if op is not ops.select_heads]

every_op = pytest.mark.parametrize("op", EVERY, ids=lambda op: op.__name__)
every_projective_op = pytest.mark.parametrize("op", PROJECTIVE, ids=lambda op: op.__name__)
BACKENDS = ["reference", "diagonal", "native"]
every_backend = pytest.mark.parametrize("backend", BACKENDS)
every_op_and_backend = pytest.mark.parametrize(
    ("op", "options"),
    [(ops.select_heads, {}), *((op, {"backend": b}) for op in PROJECTIVE for b in BACKENDS)],
    ids=lambda value: value.get("backend", "") if isinstance(value, dict) else value.__name__,
)


def run(op, scores, lengths=None, **options):
    """An op with its randomness, if any, fixed."""
    if op is ops.sample_tree:
        options["generator"] = torch.Generator().manual_seed(0)
    return op(scores, lengths, **options)


# ── what is taken ────────────────────────────────────────────────────────────────────────────────


@every_op
@pytest.mark.parametrize("batch", [(), (1,), (2, 1, 3), (0,), (2, 0)])
def test_any_leading_shape(op, batch):
    scores = torch.randn(*batch, 5, 5, generator=torch.Generator().manual_seed(1))
    result = run(op, scores, torch.full(batch, 4))
    assert result.shape == (batch if op is ops.log_partition else (*batch, 5, 5))
    if op is ops.sample_tree:
        return
    flat = run(op, scores.reshape(-1, 5, 5))
    assert torch.equal(result.reshape(flat.shape), flat)


@every_projective_op
@every_backend
def test_empty_batch_of_every_backend(op, backend):
    run(op, torch.zeros(0, 4, 4), backend=backend)


@every_op
def test_one_word(op):
    """A sentence of one word has one tree, whatever its score."""
    result = run(op, torch.full((2, 2, 2), 3.0))
    if op is ops.log_partition:
        assert torch.allclose(result, torch.tensor(3.0))
    else:
        assert torch.equal(result, torch.tensor([[0.0, 1.0], [0.0, 0.0]]).expand(2, 2, 2))


@every_op
def test_strided_and_non_contiguous_inputs(op):
    generator = torch.Generator().manual_seed(2)
    wide = torch.randn(6, 12, 7, 7, generator=generator)
    lengths = torch.randint(1, 7, (6, 12), generator=generator)
    for view, taken in [
        (wide[::2, 3], lengths[::2, 3]),
        (wide[1].mT, lengths[1]),
        (wide[:, 0].flip(0), lengths[:, 0].flip(0)),
        (wide[2, :1].expand(4, 7, 7), lengths[2, :1].expand(4)),
    ]:
        before = view.clone()
        assert torch.equal(run(op, view, taken), run(op, view.contiguous(), taken.contiguous()))
        assert torch.equal(view, before)  # the caller's tensor is left alone


@every_op_and_backend
def test_padding_changes_nothing(op, options):
    """Neither values beyond the length nor more padding change a bit, NaN included."""
    if op is ops.sample_tree:
        return  # the number of uniforms that are drawn depends on the padded size
    generator = torch.Generator().manual_seed(3)
    scores = torch.randn(4, 6, 6, generator=generator)
    lengths = torch.tensor([5, 3, 1, 4])
    expected = run(op, scores, lengths, **options)
    dirty = torch.full((4, 9, 9), float("nan"))
    for b, length in enumerate(lengths.tolist()):
        dirty[b, : length + 1, : length + 1] = scores[b, : length + 1, : length + 1]
        dirty[b].fill_diagonal_(float("inf"))
        dirty[b, :, 0] = float("nan")
    got = run(op, dirty, lengths, **options)
    if op is ops.log_partition:
        assert torch.equal(got, expected)
    else:
        assert torch.equal(got[:, :6, :6], expected)
        assert torch.all(got[:, 6:] == 0)
        assert torch.all(got[:, :, 6:] == 0)


def test_lengths_of_any_integer_type():
    scores = torch.randn(3, 5, 5, generator=torch.Generator().manual_seed(4))
    lengths = torch.tensor([4, 2, 1])
    for dtype in (torch.int32, torch.int16, torch.uint8):
        assert torch.equal(ops.soft_tree(scores, lengths.to(dtype)), ops.soft_tree(scores, lengths))


@every_op
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_types_are_computed_in_float32(op, dtype):
    scores = torch.randn(3, 6, 6, generator=torch.Generator().manual_seed(5)).to(dtype)
    got, expected = run(op, scores), run(op, scores.float())
    if op is ops.sample_tree:
        assert torch.equal(got.float(), expected)
    assert got.dtype == dtype
    assert largest_error(got, expected) <= HALF[dtype]


def test_temperature_is_division():
    scores = torch.randn(3, 6, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(6))
    for op in (ops.soft_tree, ops.select_heads):
        assert torch.equal(op(scores, temperature=2), op(scores / 2))
        each = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
        assert largest_error(op(scores, temperature=each), op(scores / each[:, None, None])) < 1e-14


@pytest.mark.parametrize("scale", [1e30, -1e30, 1e-40, 0.0])
@pytest.mark.parametrize("relaxation", ["softmax", "entropy"])
@every_backend
def test_extreme_scores_give_no_nan(scale, relaxation, backend):
    generator = torch.Generator().manual_seed(7)
    scores = scale * torch.rand(3, 8, 8, generator=generator)
    scores[0, 2, 3] = 1e30
    scores[1, 0, 1] = -1e30
    scores[2, 4, 5] = -torch.inf
    scores.requires_grad_()
    tree = ops.soft_tree(scores, relaxation=relaxation, backend=backend)
    (grad,) = torch.autograd.grad(tree, scores, torch.full_like(tree, 1e5))
    assert torch.isfinite(tree).all()
    assert torch.isfinite(grad).all()
    assert largest_error(tree.detach().sum(-2)[:, 1:], torch.ones(3, 7)) < 1e-5
    assert torch.isfinite(ops.best_tree(scores, backend=backend)).all()
    assert not torch.isnan(ops.log_partition(scores.detach(), backend=backend)).any()


@every_backend
def test_a_huge_score_does_not_buy_a_forbidden_arc(backend):
    scores = torch.zeros(4, 4)
    scores[0, 1] = 1e30
    scores[1, 2] = -torch.inf
    scores[0, 2] = scores[3, 2] = -20.0
    tree = ops.best_tree(scores, backend=backend)
    assert tree[1, 2] == 0
    soft = ops.soft_tree(scores, backend=backend)
    assert soft[1, 2] == 0
    assert soft.sum(-2)[2] == pytest.approx(1)


# ── what is refused ──────────────────────────────────────────────────────────────────────────────


def refused(match, op, *args, error=InputError, **options):
    """The op raises; the message says what was received and what is expected."""
    with pytest.raises(error, match=match) as caught:
        run(op, *args, **options)
    assert isinstance(caught.value, TreelaxError)
    assert "\n" not in str(caught.value)
    assert "expected" in str(caught.value)


SQUARE = torch.zeros(2, 4, 4)


@every_op
@pytest.mark.parametrize(
    ("scores", "lengths", "message"),
    [
        ([[0.0]], None, "list"),
        (torch.zeros(3), None, r"\(3,\)"),
        (torch.zeros(2, 3, 4), None, r"\(2, 3, 4\)"),
        (torch.zeros(5, 0, 0), None, r"\(5, 0, 0\)"),
        (torch.zeros(3, 3, dtype=torch.int64), None, "int64"),
        (torch.zeros(3, 3, dtype=torch.complex64), None, "complex64.*floating-point"),
        (torch.zeros(3, 3).to_sparse(), None, "sparse.*dense"),
        (SQUARE, [3, 2], "list"),
        (SQUARE, torch.tensor([3.0, 2.0]), "float32"),
        (SQUARE, torch.tensor([True, True]), r"bool.*mask\.sum"),
        (SQUARE, torch.tensor([3, 2, 1]), r"\(3,\)"),
        (SQUARE, torch.ones(2, dtype=torch.long, device="meta"), r"meta.*cpu"),
    ],
)
def test_bad_shapes_types_and_devices(op, scores, lengths, message):
    refused(message, op, scores, lengths)


@every_op_and_backend
@pytest.mark.parametrize("length", [-1, 4, 2**40])
def test_length_out_of_range(op, options, length):
    message = rf"lengths\[1\].* {length};.*0 to 3.*the root"
    refused(message, op, torch.zeros(2, 4, 4), torch.tensor([3, length]), **options)


def test_native_refuses_a_bad_length_even_unvalidated():
    """It would touch memory that is not ours."""
    refused("lengths", ops.best_tree, torch.zeros(1, 4, 4), torch.tensor([9]), validate=False)


@every_op_and_backend
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_nan_and_infinity(op, options, value):
    scores = torch.zeros(2, 4, 4)
    scores[1, 2, 3] = value
    refused(rf"scores\[1, 2, 3\].* {value};", op, scores, **options)
    run(op, scores, torch.tensor([3, 2]), **options)  # beyond the length it is nobody's business


@every_backend
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_nan_unvalidated_spoils_its_own_sentence(backend, dtype):
    scores = torch.zeros(3, 5, 5, dtype=dtype)
    scores[1, 2, 3] = float("nan")
    lengths = torch.tensor([4, 3, 2])
    spoilt = arc_mask(lengths, 5) & (torch.arange(3) == 1)[:, None, None]
    scores.requires_grad_()
    options = {"backend": backend, "validate": False}
    for op in PROJECTIVE:
        result = run(op, scores, lengths, **options)
        assert torch.equal(result.isnan(), spoilt if result.dim() == 3 else spoilt[:, 2, 3])
        if op in DIFFERENTIABLE:
            (grad,) = torch.autograd.grad(result.sum(), scores)
            assert torch.equal(grad.isnan(), spoilt)


@pytest.mark.parametrize("hard", [False, True])
def test_nan_unvalidated_spoils_the_heads_of_its_own_sentence(hard):
    scores = torch.zeros(2, 4, 4)
    scores[1, 2, 3] = float("nan")
    heads = ops.select_heads(scores, hard=hard, validate=False)
    assert torch.equal(heads.isnan(), arc_mask(torch.tensor([0, 3]), 4))


@every_projective_op
@every_backend
@pytest.mark.parametrize("size", [1, 4])
def test_a_sentence_without_words_has_the_empty_tree(op, backend, size):
    scores = torch.ones(2, size, size, requires_grad=True)
    lengths = torch.tensor([size - 1, 0])
    result = run(op, scores, lengths, backend=backend)
    assert not result[1].any()
    if op in DIFFERENTIABLE:
        (grad,) = torch.autograd.grad(result.sum(), scores)
        assert not grad[1].any()
    assert not ops.select_heads(scores, lengths)[1].any()


@every_projective_op
@every_backend
def test_no_tree(op, backend):
    scores = torch.zeros(3, 4, 4)
    scores[1, 0] = -torch.inf  # nothing hangs off the root
    refused("Sentence 1 .*3 words.*no tree", op, scores, error=NoTreeError, backend=backend)
    crossing = torch.full((5, 5), -torch.inf)
    for head, modifier in [(0, 2), (2, 4), (4, 1), (1, 3)]:  # a tree, but its arcs cross
        crossing[head, modifier] = 0
    refused("no tree", op, crossing, error=NoTreeError, backend=backend)
    two_roots = torch.full((3, 3), -torch.inf)
    two_roots[0, 1:] = 0
    run(op, two_roots, backend=backend)
    refused("no tree", op, two_roots, error=NoTreeError, backend=backend, single_root=True)


def test_word_without_a_head():
    scores = torch.zeros(2, 4, 4)
    scores[1, :, 2] = -torch.inf
    refused("Word 2 of sentence 1", ops.select_heads, scores, error=NoTreeError)


def test_bad_options():
    scores = torch.zeros(3, 3)
    refused("'softmx'.*'softmax'", ops.soft_tree, scores, relaxation="softmx")
    refused("'nativ'.*'native'", ops.soft_tree, scores, backend="nativ")
    for shape in (3, (-1,), (2.5,)):
        refused("sample_shape", ops.sample_tree, scores, sample_shape=shape)
    ops.soft_tree(scores, temperature=np.float32(0.5))
    for temperature in (0, -1.0, 1e-36, 1e-40, float("inf"), float("nan")):
        refused("temperature", ops.soft_tree, scores, temperature=temperature)
        refused("temperature", ops.select_heads, scores, temperature=temperature)
    refused("temperature is a str", ops.soft_tree, scores, temperature="1")
    batch = torch.zeros(2, 3, 3)
    for wrong in (0.0, -1.0, float("nan"), float("inf")):
        refused(f"temperature holds {wrong}", ops.soft_tree, batch, temperature=torch.tensor(wrong))
    for shape in ((3,), (2, 1), (1000, 1)):
        refused("temperature has shape", ops.soft_tree, batch, temperature=torch.ones(shape))
    refused("int64", ops.soft_tree, batch, temperature=torch.tensor(1))
    refused("meta", ops.soft_tree, batch, temperature=torch.ones((), device="meta"))
    with pytest.raises(BackendError, match=r"triton.*cpu"):
        ops.soft_tree(scores, backend="triton")
