"""Living with the rest of the process: threads, forks, modes, memory."""

import ctypes
import gc
import os
import signal
import subprocess
import sys
import threading

import pytest
import torch

from treelax import ops
from treelax.errors import InputError, NoTreeError
from treelax.ops import cky, eisner, native, problems
from treelax.ops.eisner import native as program
from treelax.ops.native import SMALLEST_BLOCK, Pool, block_size


def some_scores(batch=40, n=12):
    return torch.randn(batch, n + 1, n + 1, generator=torch.Generator().manual_seed(10))


def everything(scores):
    """Values and a gradient of every op, as one tuple."""
    s = scores.clone().requires_grad_()
    lengths = torch.arange(len(scores)) % (scores.shape[-1] - 1) + 1
    soft = ops.soft_tree(s, lengths)
    generator = torch.Generator().manual_seed(11)
    return (
        soft.detach(),
        torch.autograd.grad(soft.square().sum(), s)[0],
        ops.log_partition(scores, lengths),
        ops.best_tree(scores, lengths),
        ops.sample_tree(scores, lengths, generator=generator),
    )


def same(a, b):
    return all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


def test_threads_and_runs_give_the_same_bits():
    scores = some_scores(batch=150)
    torch.set_num_threads(1)
    one = everything(scores)
    for threads in (1, 2, 4):
        torch.set_num_threads(threads)
        assert same(everything(scores), one)
    with torch.inference_mode():
        assert torch.equal(ops.soft_tree(scores), ops.soft_tree(scores.clone()))
    # the kernel flushes denormals in its own scope and puts the mode back
    assert float((torch.tensor([1e-40]).expand(100_000) * 0.5).min()) > 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_fork_after_use():
    """Threads live for one call, so there is none that a child could miss."""
    torch.set_num_threads(2)
    scores = some_scores(batch=64)
    expected = everything(scores)
    child = os.fork()
    if child == 0:  # no pytest in here: leave by os._exit only
        code = 1
        try:
            forward = (ops.soft_tree(scores), ops.best_tree(scores))
            code = 0 if all(torch.isfinite(x).all() for x in forward) else 2
        finally:
            os._exit(code)
    for _ in range(600):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        threading.Event().wait(0.1)
    else:
        os.kill(child, 9)
        os.waitpid(child, 0)
        pytest.fail("the child hangs")
    assert os.waitstatus_to_exitcode(status) == 0
    assert same(everything(scores), expected)  # and the parent goes on


def test_autocast():
    """Scores come out of autocast in bfloat16; the chart is computed in float32."""
    vectors = torch.randn(4, 9, 16, generator=torch.Generator().manual_seed(12), requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        scores = vectors @ vectors.mT
        tree = ops.soft_tree(scores)
        value = ops.log_partition(scores)
    assert scores.dtype == tree.dtype == torch.bfloat16
    assert value.dtype == torch.float32  # as torch's losses
    (tree.square().sum() + value.sum()).backward()
    assert torch.isfinite(vectors.grad).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("variant", native.supported())
def test_a_few_sentences_take_little_memory_and_have_the_same_bits(dtype, variant, monkeypatch):
    monkeypatch.setenv("TREELAX_NATIVE", variant)
    native.forget()
    scores = some_scores(batch=20).to(dtype)
    together = everything(scores)
    lengths = torch.arange(20) % 12 + 1
    for b in (0, 7):
        alone = scores[b : b + 1].clone().requires_grad_()
        soft = ops.soft_tree(alone, lengths[b : b + 1])
        assert torch.equal(soft[0], together[0][b])
        (grad,) = torch.autograd.grad(soft.square().sum(), alone)
        assert torch.equal(grad[0], together[1][b])
    sizes = [
        torch.Size(program.saved_shape(torch.Size((1, n, n)), dtype)).numel()
        for n in (41, 81, 3001)
    ]
    native.forget()  # the variant: the next call takes the usual one
    assert sizes[1] / sizes[0] == pytest.approx((81 / 41) ** 2)  # not n³
    assert sizes[2] * dtype.itemsize <= 1.5e9


LONG_CALLS = {  # each of an hour and more
    "soft_tree": "treelax.ops.soft_tree(torch.randn(64, 2001, 2001))",
    "sparsemap": "treelax.Projective().sparsemap(torch.randn(201, 201) * 1e-4)",
    "sample": "treelax.NonProjective().sample(1e3 * torch.randn(501, 501), sample_shape=(100,))",
}


@pytest.mark.parametrize("long_call", LONG_CALLS)
def test_an_interrupt_ends_a_long_call(long_call):
    program = (
        "import signal, torch, treelax\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a background job ignores it
        "treelax.ops.soft_tree(torch.randn(3, 3))\n"
        "try:\n"
        "    print('ready', flush=True)\n"
        f"    {LONG_CALLS[long_call]}\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', flush=True)\n"
        "for _ in range(5):\n"  # nothing may write to memory that others have by now
        "    torch.randn(1_000_000).sort()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        try:
            assert run.stdout.readline() == "ready\n"
            threading.Event().wait(2)  # by now it is in the kernel
            run.send_signal(signal.SIGINT)
            output, errors = run.communicate(timeout=600)
        finally:
            run.kill()
    assert (output, run.returncode) == ("interrupted\n", 0), errors


def test_another_thread_ends_a_call():
    """Those in its block, and no others."""
    stop = ctypes.c_int(0)
    scores = torch.randn(41, 41, dtype=torch.float64)
    with native.stoppable(stop):
        expected = ops.best_tree(scores)
        stop.value = 1
        with pytest.raises(native.Stopped):
            ops.best_tree(scores)
    assert torch.equal(ops.best_tree(scores), expected)


def test_uninitialised_memory_is_never_read():
    """Fill every torch.empty with NaN: nothing changes."""
    scores = some_scores(batch=20)
    expected = everything(scores)
    torch.use_deterministic_algorithms(True)
    try:
        assert torch.utils.deterministic.fill_uninitialized_memory
        assert same(everything(scores), expected)
    finally:
        torch.use_deterministic_algorithms(False)


# ── memory ───────────────────────────────────────────────────────────────────────────────────────

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
    # no two tensors share memory, and no more than the limit lies idle
    small = Pool(limit=3 * block_size(LARGE * 4))
    tensors = [small.empty(LARGE, torch.float32).fill_(k) for k in range(10)]
    assert [float(tensor.mean()) for tensor in tensors] == list(range(10))
    del tensors
    gc.collect()
    assert small.idle == small.limit


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


# ── what a GPU finds wrong, raised later; the kernel has its test in test_triton.py ─────────────


def test_numbers_and_what_they_stand_for():
    def number(kind, size, sentence, first, second):
        return kind | size << 3 | sentence << 18 | first << 36 | second << 50

    projective, binary = eisner.ALGORITHM, cky.ALGORITHM
    error = problems.error(projective, number(problems.NO_TREE, 641, 2**18 - 1, 2**14 - 1, 640))
    assert isinstance(error, NoTreeError)
    assert "Sentence 262143 (of the flattened batch; 640 words) has no tree: 16383" in str(error)
    error = problems.error(binary, number(problems.LENGTH, 8, 5, 2**14 - 2, 2**14 - 1))
    assert "lengths[5] (of the flattened batch) is -2; expected 0 to 8 (scores" in str(error)
    error = problems.error(binary, number(problems.IS_INFINITE, 9, 1, 3, 8))
    assert str(error).startswith("scores[1, 3, 8] (of the flattened batch) is inf;")
    assert str(error).endswith("for a forbidden span.")


def test_raised_once():
    device = torch.device("cpu")
    memory = problems.error_slot(cky.ALGORITHM, device)
    assert problems.error_slot(cky.ALGORITHM, device) is memory
    problems.raise_on_error(device)
    ctypes.c_uint64.from_address(memory.data_ptr()).value = problems.IS_NAN | 3 << 3
    with pytest.raises(InputError, match=r"scores\[0, 0, 0\].* is nan"):
        problems.raise_on_error(device)
    problems.raise_on_error(device)
