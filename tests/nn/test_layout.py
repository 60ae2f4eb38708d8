"""Words packed without padding: what goes where, and its gradients."""

import torch
from torch.autograd import gradcheck, gradgradcheck

from treelax.nn.layout import PADDED, Packed, best_layout

LENGTHS = torch.tensor([2, 3, 1])
VECTORS = torch.arange(1.0, 10).reshape(3, 3, 1)


def test_packing():
    layout = best_layout(LENGTHS, 3)
    rows = layout.pack(VECTORS)
    assert rows[:, 0].tolist() == [1, 2, 4, 5, 6, 7]
    assert layout.pad(rows)[..., 0].tolist() == [[1, 2, 0], [4, 5, 6], [7, 0, 0]]
    vertices, rooted = layout.with_root(rows, torch.tensor([9.0])), layout.rooted()
    expected = [[9, 1, 2, 0], [9, 4, 5, 6], [9, 7, 0, 0]]
    assert rooted.pad(vertices)[..., 0].tolist() == expected
    assert torch.equal(rooted.pack(rooted.pad(vertices)), vertices)
    assert torch.equal(rooted.without_root(vertices), rows)


def test_there_is_nothing_to_pack_without_padding():
    assert best_layout(torch.tensor([3, 3]), 3) is PADDED
    assert best_layout(torch.tensor([0, 0]), 3) is PADDED  # nor without words


def test_gradients():
    layout = best_layout(LENGTHS, 3)
    assert isinstance(layout, Packed)
    padded = VECTORS.double().requires_grad_()
    rows = layout.pack(padded.detach()).requires_grad_()
    for check in (gradcheck, gradgradcheck):
        assert check(lambda rows: layout.pad(rows).square(), rows)
        assert check(lambda padded: layout.pack(padded).square(), padded)
