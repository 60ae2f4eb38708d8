"""Peak memory on the CPU, above what the process held before the call.

One fresh process per library imports it and runs nothing; for every operation and size it forks a
child. The child runs the operation once on two sentences of three words (code pages and lazily
made buffers), makes its inputs, resets the kernel's high-water mark (writes 5 to
``/proc/self/clear_refs``), notes its resident memory (``VmRSS``), runs the operation once and reads
the mark (``VmHWM``). The difference holds everything the call allocates: chart, results, gradient,
and for the peers the autograd graph. Where the mark cannot be reset, ``ru_maxrss`` takes its place.

Run as ``python -m benchmarks.memory`` it reads jobs as JSON from standard input and writes the
peaks, in bytes, as JSON to standard output.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

#: What the process of a library imports before it forks.
MODULES = {"treelax": "treelax.ops", "torch-struct": "torch_struct", "supar": "supar.structs"}
ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Job:
    """One call whose peak is wanted, on one thread."""

    contender: str
    operation: str
    batch: int
    n: int


def status(key: str) -> int:
    """A figure of ``/proc/self/status`` in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024
    raise KeyError(key)


def peak_of(job: Job) -> int:
    """Runs the job here and returns its peak above base; the process is spoilt afterwards."""
    import torch

    from benchmarks import registry
    from benchmarks.problem import Call, make_problem

    torch.set_num_threads(1)
    (contender,) = [c for c in registry.contenders("cpu") if c.name == job.contender]

    def call(batch: int, n: int) -> Call:
        problem = make_problem(batch, n, ragged=contender.ragged)
        return contender.prepare(job.operation, problem, False)

    call(2, 3).run()
    ready = call(job.batch, job.n)
    try:
        Path("/proc/self/clear_refs").write_text("5")
        base = status("VmRSS")
    except OSError:
        base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        out = ready.run()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    else:
        out = ready.run()
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
    import torch

    from benchmarks import registry  # imported before the forks, so that children need not

    jobs = [Job(**fields) for fields in json.load(sys.stdin)]
    torch.set_num_threads(1)
    libraries = {c.name: c.library for c in registry.contenders("cpu")}
    for library in {libraries[job.contender] for job in jobs}:
        importlib.import_module(MODULES[library])
    json.dump([in_child(job) for job in jobs], sys.stdout)


if __name__ == "__main__":
    main()
