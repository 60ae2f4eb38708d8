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
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from benchmarks import registry
from benchmarks.problem import Call, Contender, make_problem

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Job:
    """One call whose peak is wanted, on one thread."""

    contender: str
    operation: str
    batch: int
    n: int


def contenders() -> dict[str, Contender]:
    """Everyone who can be measured, by name."""
    return {contender.name: contender for contender in registry.contenders("cpu")}


def status(key: str) -> int:
    """A figure of ``/proc/self/status`` in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024
    raise KeyError(key)


def call_of(contender: Contender, operation: str, batch: int, n: int) -> Call:
    """The call of a job, inputs and all."""
    return contender.prepare(
        operation, make_problem(batch, n, operation, ragged=contender.ragged), False
    )


def warm_up(contender: Contender, operation: str) -> None:
    """Runs an operation on very little."""
    call_of(contender, operation, 2, 3).run()


def peak_of(job: Job) -> int:
    """Runs the job here and returns its peak above base; the process is spoilt afterwards."""
    contender = contenders()[job.contender]
    warm_up(contender, job.operation)
    call = call_of(contender, job.operation, job.batch, job.n)
    try:
        Path("/proc/self/clear_refs").write_text("5")
        base = status("VmRSS")
    except OSError:
        base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        out = call.run()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    else:
        out = call.run()
        peak = status("VmHWM")
    del out
    return max(0, peak - base)


def in_child(job: Job) -> int | None:
    """The peak of a job, measured in a forked child; None if the child died."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.write(writer, str(peak_of(job)).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    _, outcome = os.waitpid(child, 0)
    return int(text) if outcome == 0 else None


def peaks(jobs: Sequence[Job]) -> dict[Job, int | None]:
    """The peaks of jobs of one library, measured in a fresh process and its children."""
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.memory"],
        input=json.dumps([asdict(job) for job in jobs]),
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment,
        check=False,
    )
    if done.returncode != 0:
        tail = done.stderr.strip().splitlines()[-1:] or ["no message"]
        raise RuntimeError(f"measuring memory failed: {tail[0]}")
    return dict(zip(jobs, json.loads(done.stdout), strict=True))


def main() -> None:
    """Serves `peaks`."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)  # a pool of threads would not survive the forks
    jobs = [Job(**fields) for fields in json.load(sys.stdin)]
    for name, operation in {(job.contender, job.operation): None for job in jobs}:
        warm_up(contenders()[name], operation)
    json.dump([in_child(job) for job in jobs], sys.stdout)


if __name__ == "__main__":
    main()
