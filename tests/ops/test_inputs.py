"""What goes in: shapes, strides, types; and what is refused, with what message.

Values that are refused have their tests in ``test_matrix.py``, for every backend.
"""

import itertools

import numpy as np
import pytest
import torch
from matrix import LENGTHS, OPERATIONS, draw, event, every_operation, every_structure, mask_of
from tolerances import HALF, largest_error
from torch.autograd import gradcheck
from toy_structure import Star

import treelax as tx
from treelax import ops
from treelax.errors import BackendError, InputError, NoTreeError
from treelax.ops import problems

#: The functions of `treelax.ops` and the methods that do the same.
FUNCTIONS = {
    ops.soft_tree: (tx.Projective(), "relaxed"),
    ops.log_partition: (tx.Projective(), "log_partition"),
    ops.best_tree: (tx.Projective(), "argmax"),
    ops.sample_tree: (tx.Projective(), "sample"),
    ops.select_heads: (tx.Heads(), "relaxed"),
}


def run(function, *given, **options):
    """A function with its randomness, if any, fixed."""
    if function is ops.sample_tree:
        options |= {"generator": torch.Generator().manual_seed(0), "sample_shape": (2,)}
    return function(*given, **options)


# ── what is taken ────────────────────────────────────────────────────────────────────────────────


def test_functions_are_the_methods():
    scores = draw(tx.Projective(), 3)
    for function, (structure, name) in FUNCTIONS.items():
        expected = OPERATIONS[name](structure, scores, LENGTHS)
        assert torch.equal(run(function, scores, LENGTHS), expected)
    one_root = tx.Projective(single_root=True)
    for function, (structure, name) in FUNCTIONS.items():
        if structure == tx.Projective():
            expected = OPERATIONS[name](one_root, scores, LENGTHS)
            assert torch.equal(run(function, scores, LENGTHS, single_root=True), expected)
    assert torch.equal(ops.select_heads(scores, hard=True), tx.Heads().argmax(scores))


@every_structure
@every_operation
def test_any_leading_shape_and_strides(structure, operation):
    compute = OPERATIONS[operation]
    for batch in [(), (1,), (2, 1, 3), (0,), (2, 0)]:
        scores = draw(structure, *batch)
        result = compute(structure, scores, torch.full(batch, 4))
        flat = compute(structure, scores.reshape(-1, *event(structure, 4)), None)
        shape = result.shape
        assert torch.equal(result.reshape(flat.shape), flat)
        if operation != "sample":
            assert shape == (batch if operation == "log_partition" else scores.shape)
    wide = draw(structure, 6, 12)
    lengths = torch.randint(1, 5, (6, 12), generator=torch.Generator().manual_seed(2))
    for view, taken in [
        (wide[::2, 3], lengths[::2, 3]),
        (wide[1].mT.contiguous().mT, lengths[1]),
        (wide[:, 0].flip(0), lengths[:, 0].flip(0).int()),
        (wide[2, :1].expand(4, *wide.shape[2:]), lengths[2, :1].expand(4).to(torch.uint8)),
    ]:
        before = view.clone()
        expected = compute(structure, view.contiguous(), taken.long().contiguous())
        assert torch.equal(compute(structure, view, taken), expected)
        assert torch.equal(view, before)  # the caller's tensor is left alone


@every_structure
def test_padding_of_any_width_changes_nothing(structure):
    """Nor does what it holds, the diagonal and the root's column; all but samples, whose random numbers
    depend on the width."""
    scores = draw(structure, 3).float()
    wide = torch.full((3, *event(structure, 7)), torch.nan)
    size = scores.shape[1]
    wide[:, :size, :size] = scores
    wide[~mask_of(structure, LENGTHS, wide)] = torch.nan
    for operation in ("relaxed", "marginals", "log_partition", "argmax"):
        got, expected = (OPERATIONS[operation](structure, x, LENGTHS) for x in (wide, scores))
        if operation != "log_partition":
            assert not got[:, size:].any()
            got = got[:, :size, :size]
        # torch's own loops round in another way
        bar = 1e-6 if isinstance(structure, tx.Heads | Star) else 0
        torch.testing.assert_close(got, expected, rtol=bar, atol=bar)


@every_structure
@every_operation
def test_half_types_are_computed_in_float32(structure, operation):
    for dtype in (torch.float16, torch.bfloat16):
        scores = draw(structure, 3).to(dtype)
        got, expected = (
            OPERATIONS[operation](structure, x, LENGTHS) for x in (scores, scores.float())
        )
        assert got.dtype == dtype
        assert largest_error(got, expected) <= HALF[dtype]


@every_structure
def test_temperatures(structure):
    """A division, with a gradient; what is forbidden or in the padding does not reach it."""
    scores, relaxation = draw(structure, 3), {"relaxation": structure.relaxations[0]}
    heats = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
    wide = heats.reshape(3, *(1,) * structure.event_dim)
    for heat in (2.0, np.float32(2), torch.tensor(2.0)):
        got = structure.relaxed(scores, temperature=heat, **relaxation)
        assert largest_error(got, structure.relaxed(scores / 2, **relaxation)) < 1e-14
    got = structure.relaxed(scores, temperature=heats, **relaxation)
    assert largest_error(got, structure.relaxed(scores / wide, **relaxation)) < 1e-14
    few, lengths = draw(structure, 3, n=2).requires_grad_(), torch.tensor([2, 2, 1])
    assert gradcheck(
        lambda s, t: structure.relaxed(s, lengths, temperature=t, **relaxation),
        (few, heats.requires_grad_()),
    )
    scores[:, 1, 2] = -torch.inf
    scores[~mask_of(structure, LENGTHS, scores)] = torch.nan
    one = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    tree = structure.relaxed(scores, LENGTHS, temperature=one, **relaxation)
    assert torch.autograd.grad(tree.square().sum(), one)[0].isfinite()


# ── what is refused ──────────────────────────────────────────────────────────────────────────────

SQUARE = torch.zeros(2, 4, 4)
REFUSED = [
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
    (SQUARE, torch.tensor([3, 4]), r"lengths\[1\].* 4;.*0 to 3.*the root"),
    (SQUARE.index_fill(2, torch.tensor(2), torch.nan), None, r"scores\[0, 0, 2\].* nan;"),
    (SQUARE.index_fill(1, torch.tensor(1), torch.inf), None, r"scores\[0, 1, 2\].* inf;"),
]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_bad_scores_and_lengths(function):
    for scores, lengths, message in REFUSED:
        with pytest.raises(InputError, match=message) as caught:
            run(function, scores, lengths)
        assert "\n" not in str(caught.value)
        assert "expected" in str(caught.value)


def call(function=ops.soft_tree, scores=SQUARE, **options):
    return lambda: function(scores, **options)


WRONG_HEAT = [
    ("temperature is", *(0, -1.0, 1e-36, float("inf"), float("nan"))),
    ("temperature is a str", "1"),
    ("temperature holds", *(torch.tensor(wrong) for wrong in (0.0, -1.0, torch.nan, torch.inf))),
    ("temperature has shape", torch.ones(3), torch.ones(2, 1), torch.ones(1000, 1)),
    ("int64", torch.tensor(1)),
    ("meta", torch.ones((), device="meta")),
]
OPTIONS = [
    (call(relaxation="softmx"), "'softmx'.*'softmax'"),
    (call(backend="nativ"), "'nativ'.*'native'"),
    *((call(ops.sample_tree, sample_shape=bad), "sample_shape") for bad in (3, (-1,), (2.5,))),
    *(
        (call(function, temperature=wrong), message)
        for message, *values in WRONG_HEAT
        for function, wrong in itertools.product((ops.soft_tree, ops.select_heads), values)
    ),
    (call(validate="later"), "validate is 'later'; expected True, False or 'now'"),
    (call(scores=torch.full((2, 2), torch.nan), validate="now"), r"scores\[0, 0, 1\]"),
]


@pytest.mark.parametrize(("use", "message"), OPTIONS)
def test_bad_options(use, message):
    with pytest.raises(InputError, match=message) as caught:
        use()
    assert "expected" in str(caught.value)


def test_what_is_not_here_or_not_there():
    with pytest.raises(BackendError, match=r"triton.*cpu"):
        ops.soft_tree(SQUARE, backend="triton")
    headless = SQUARE.index_fill(2, torch.tensor(2), -torch.inf)
    with pytest.raises(NoTreeError, match="Word 2 of sentence 0"):
        ops.select_heads(headless)
    for validate in ("now", 1, 0, None):
        assert ops.best_tree(torch.zeros(2, 2), validate=validate)[0, 1] == 1
    problems.synchronize()
