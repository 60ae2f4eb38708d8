"""Living with the rest of the process: threads, forks, modes, memory."""

import ctypes
import os
import signal
import subprocess
import sys
import threading

import pytest
import torch

from treelax import ops
from treelax.ops import native
from treelax.ops.eisner import native as program


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


def test_several_python_threads_at_once():
    scores = some_scores(batch=64)
    expected = everything(scores)
    torch.set_num_threads(2)
    wrong = []

    def work():
        for _ in range(10):
            if not same(everything(scores), expected):
                wrong.append(1)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=600)
    assert not any(worker.is_alive() for worker in workers)
    assert not wrong


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


def test_inference_mode():
    scores = some_scores()
    with torch.inference_mode():
        tree = ops.soft_tree(scores)
        best = ops.best_tree(scores)
    assert torch.equal(tree, ops.soft_tree(scores))
    assert torch.equal(best, ops.best_tree(scores))


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


def test_denormals_are_left_alone_outside():
    """The kernel flushes them in its own scope and puts the mode back."""
    tiny = torch.tensor([1e-40])
    ops.soft_tree(some_scores())
    assert float(tiny * 0.5) > 0
    torch.set_num_threads(2)
    ops.soft_tree(some_scores(batch=64))
    assert float((tiny.expand(100_000) * 0.5).min()) > 0


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
    sizes = [torch.Size(program.saved_shape(1, n, dtype)).numel() for n in (41, 81, 3001)]
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
