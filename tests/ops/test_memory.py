"""The pool of blocks that the kernel keeps for the backward pass."""

import gc
import threading

import torch

from treelax import ops
from treelax.ops.native import SMALLEST_BLOCK, Pool, block_size

LARGE = SMALLEST_BLOCK // 4 + 1


def test_a_block_comes_back_when_its_tensor_dies():
    pool = Pool(limit=1 << 22)
    first = pool.empty(LARGE, torch.float32)
    address = first.data_ptr()
    assert address % 64 == 0
    view = first[:10]
    del first
    gc.collect()
    assert pool.idle == 0  # a view still needs it
    del view
    gc.collect()
    assert pool.idle == block_size(LARGE * 4)
    assert pool.empty(LARGE, torch.float32).data_ptr() == address


def test_no_more_than_the_limit_lies_idle_and_no_two_tensors_share():
    pool = Pool(limit=3 * block_size(LARGE * 4))
    tensors = [pool.empty(LARGE, torch.float32).fill_(k) for k in range(10)]
    assert [float(tensor.mean()) for tensor in tensors] == list(range(10))
    tensors.append(pool.empty(6, torch.float32))  # small ones are ordinary
    del tensors
    gc.collect()
    assert pool.idle == pool.limit


def test_graphs_that_live_at_once_keep_their_own_memory():
    """Several forward passes, then their backward passes in another order and in other threads."""
    generator = torch.Generator().manual_seed(0)
    scores = [torch.randn(64, 21, 21, generator=generator, requires_grad=True) for _ in range(4)]
    expected = [torch.autograd.grad(ops.soft_tree(s).square().sum(), s)[0] for s in scores]
    losses = [ops.soft_tree(s).square().sum() for s in scores]
    got = {}

    def backward(k):
        (got[k],) = torch.autograd.grad(losses[k], scores[k])

    threads = [threading.Thread(target=backward, args=(k,)) for k in (2, 0, 3, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(torch.equal(got[k], expected[k]) for k in range(4))
