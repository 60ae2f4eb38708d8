"""Peak memory on the CPU, above what the process held before the call.

One fresh process per library runs each of its operations once on two sentences of three words, so
that everything is imported, and forks a child for every operation and size. The child does the same
again (code pages), makes its inputs, resets the kernel's high-water mark (writes 5 to
``/proc/self/clear_refs``), notes its resident memory (``VmRSS``), runs the operation once and reads
the mark (``VmHWM``). The difference holds everything the call allocates: chart, results, gradient,
and for the peers the autograd graph. Where the mark cannot be reset, ``ru_maxrss`` takes its place.

Run as ``python -m benchmarks.memory`` it reads jobs as JSON from standard input and writes the
peaks, in bytes, as JSON to standard output.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import torch

from benchmarks import registry
from benchmarks.machine import ROOT, first
from benchmarks.problem import Call, make_problem


class Job(NamedTuple):
    """One call whose peak is wanted, on one thread."""

    contender: str
    operation: str
    batch: int
    n: int


def call_of(job: Job) -> Call:
    """The call of a job, inputs and all."""
    [contender] = [c for c in registry.contenders("cpu") if c.name == job.contender]
    problem = make_problem(job.batch, job.n, job.operation, ragged=contender.ragged)
    return contender.prepare(job.operation, problem, False)


def warm_up(job: Job) -> None:
    """Runs the operation of a job on very little."""
    call_of(job._replace(batch=2, n=3)).run()


def status(key: str) -> Callable[[], int]:
    """Reads a figure of ``/proc/self/status`` in bytes."""
    return lambda: int((first("/proc/self/status", key) or "0").split()[0]) * 1024


def most() -> int:
    """The largest resident memory so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def peak_above(run: Callable[[], object]) -> int:
    """The peak of a call above base; the process is spoilt afterwards."""
    base, peak = status("VmRSS"), status("VmHWM")
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        base = peak = most
    start = base()
    out = run()
    end = peak()
    del out
    return max(0, end - start)


def peak_of(job: Job) -> int:
    """Runs the job here and returns its peak."""
    warm_up(job)
    return peak_above(call_of(job).run)


def in_child(job: Job) -> int | None:
    """The peak of a job, measured in a forked child; None if the child failed."""
    with (
        suppress(BrokenProcessPool, MemoryError, RuntimeError),
        ProcessPoolExecutor(1, get_context("fork")) as pool,
    ):
        return pool.submit(peak_of, job).result()
    return None


def peaks(jobs: Sequence[Job]) -> dict[Job, int | None]:
    """The peaks of jobs of one library, measured in a fresh process and its children."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.memory"],
        input=json.dumps(jobs),
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"measuring memory failed: {done.stderr.strip().rpartition(chr(10))[2]}")
    return dict(zip(jobs, json.loads(done.stdout), strict=True))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)  # a pool of threads would not survive the forks
    given = [Job(*fields) for fields in json.load(sys.stdin)]
    for kind in {(job.contender, job.operation): job for job in given}.values():
        warm_up(kind)
    json.dump([in_child(job) for job in given], sys.stdout)
