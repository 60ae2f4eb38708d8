"""Measures treelax beside its peers and writes what it found; see README.md in this folder."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

if not __package__:  # run as a script: `benchmarks` is the package, not the search path
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    # torch says so where NumPy is not installed; nothing here needs it
    warnings.filterwarnings("ignore", message="Failed to initialize NumPy")

import argparse
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

import torch

from benchmarks import cuda, machine, measure, memory, registry, report
from benchmarks.agreement import TOLERANCES, Agreement, Disagreement, check
from benchmarks.problem import FORWARD_BACKWARD, OPERATIONS, Contender, make_problem
from benchmarks.progress import Progress
from benchmarks.report import Row

RESULTS = Path(__file__).resolve().parent / "results"
EXAMPLE = """\
examples:
  python benchmarks/run.py                   the whole comparison on the CPU, about fifteen minutes
  python benchmarks/run.py --quick           a smoke run, under a minute
  python benchmarks/run.py --device cuda     the Triton kernels
  python benchmarks/run.py --sizes 20 40 --threads 1 --no-peers
"""


def pair(text: str) -> tuple[int, int]:
    """``"160:64"`` to ``(160, 64)``."""
    n, _, batch = text.partition(":")
    try:
        return int(n), int(batch)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected N:BATCH such as 160:64, got {text!r}") from None


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="benchmarks/run.py",
        description=__doc__,
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--device", choices=("cpu", "cuda"), default="cpu", help="what to measure (cpu)")
    add("--quick", action="store_true", help="a smoke run: few sizes, few repetitions")
    add("--out", type=Path, default=RESULTS, help="folder for the CSV and the tables")
    add("--no-peers", action="store_true", help="measure treelax alone")
    add("--no-memory", action="store_true", help="do not measure peak memory")
    add("--batch", type=int, help="sentences in a batch")
    add("--sizes", type=int, nargs="+", metavar="N", help="words in a sentence")
    add("--threads", type=int, nargs="+", metavar="T", help="thread counts (CPU)")
    add("--long", type=pair, nargs="*", metavar="N:BATCH", help="long sentences, treelax alone")
    add("--seconds", type=float, help="time for one operation, size and thread count")
    add("--rounds", type=int, help="at least so many rounds")
    add("--commit", help="the commit to write down, for a copy without git's history")
    return parser.parse_args(argv)


def plan_of(args: argparse.Namespace) -> registry.Plan:
    """The registered plan with what the command line changes."""
    plan = registry.PLANS[args.device + (" quick" if args.quick else "")]
    given = {
        "batch": args.batch,
        "sizes": args.sizes and tuple(args.sizes),
        "threads": args.threads and tuple(args.threads),
        "long_sizes": None if args.long is None else tuple(args.long),
        "seconds": args.seconds,
        "rounds": args.rounds,
    }
    return replace(plan, **{key: value for key, value in given.items() if value is not None})


def say(text: str) -> None:
    """A line for the person who waits; tables alone go to standard output."""
    print(text, file=sys.stderr, flush=True)


class Run:
    """One run: its plan, its contenders and the rows so far."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.device: str = args.device
        self.plan = plan_of(args)
        self.with_memory = not args.no_memory
        self.described = machine.describe(self.device, args.commit)
        now = datetime.now()
        self.date = now.strftime("%Y-%m-%d")
        name = f"{'quick-' if args.quick else ''}{self.device}-{now:%Y-%m-%d-%H%M}"
        self.path: Path = args.out / f"{name}.csv"
        self.contenders: list[Contender] = []
        for contender in registry.contenders(self.device, not args.no_peers):
            reason = contender.unavailable(self.device)
            if reason is None:
                self.contenders.append(contender)
            else:
                say(f"skipped {contender.name}: {reason}")
        self.versions = {c.library: machine.library_version(c.library) for c in self.contenders}
        self.peaks: dict[memory.Job, int | None] = {}
        self.rows: list[Row] = []

    def timed(self, operation: str, n: int) -> list[Contender]:
        return [c for c in self.contenders if c.timed and c.takes(operation, n)]

    def own(self) -> list[Contender]:
        """The one contender that is timed on long sentences; empty if treelax is not there."""
        return [c for c in self.contenders if c.library == "treelax" and c.timed][:1]

    def add(
        self,
        contender: Contender,
        operation: str,
        batch: int,
        n: int,
        threads: int,
        *,
        cpu: list[float] | None = None,
        wall: list[float],
        device: list[float] | None = None,
        clock: str = "",
        calls: int,
        peak: int | None,
    ) -> None:
        """Appends a row and writes the CSV, so that an interrupted run keeps what it has."""

        def milliseconds(values: list[float] | None, name: str) -> dict[str, Any]:
            found = measure.quartiles(values) if values else (None, None, None)
            first, median, third = (None if v is None else v * 1e3 for v in found)
            return {name: median, f"{name}_q1": first, f"{name}_q3": third}

        row = Row(
            date=self.date,
            device=self.device,
            operation=operation,
            contender=contender.name,
            library=contender.library,
            version=self.versions[contender.library],
            relaxation=contender.family(operation).removesuffix(", ragged"),
            ragged=contender.ragged,
            batch=batch,
            n=n,
            threads=threads,
            **milliseconds(cpu, "cpu_ms"),
            **milliseconds(wall, "wall_ms"),
            **milliseconds(device, "device_ms"),
            device_clock=clock,
            repetitions=len(device or wall),
            calls_per_repetition=calls,
            peak_mb=None if peak is None else peak / 1e6,
            **asdict(self.described),
        )
        self.rows.append(row)
        report.write_csv(self.rows, self.path)

    def measure_memory(self) -> None:
        """Peak memory of every contender, one process per library."""
        plan = self.plan
        jobs: dict[str, list[memory.Job]] = {}
        for operation in OPERATIONS:
            for n in plan.sizes:
                for c in self.timed(operation, n):
                    job = memory.Job(c.name, operation, plan.batch, n)
                    jobs.setdefault(c.library, []).append(job)
        for c in self.own():
            long = [memory.Job(c.name, FORWARD_BACKWARD, b, n) for n, b in plan.long_sizes]
            jobs.setdefault(c.library, []).extend(long)
        for library, of_library in jobs.items():
            say(f"peak memory of {library}")
            self.peaks |= memory.peaks(of_library)

    def measure_cpu(self, agreement: Agreement) -> None:
        """CPU and wall time of everything in the plan."""
        plan = self.plan
        cells = [
            (threads, n, plan.batch, operation, self.timed(operation, n))
            for threads in plan.threads
            for n in plan.sizes
            for operation in OPERATIONS
        ]
        cells += [(1, n, batch, FORWARD_BACKWARD, self.own()) for n, batch in plan.long_sizes]
        cells += [(max(plan.threads), n, 1, FORWARD_BACKWARD, self.own()) for n in plan.alone]
        progress = Progress(say)
        for _, n, batch, operation, contenders in cells:
            near = max((size for size in plan.sizes if size <= n), default=min(plan.sizes))
            once = sum(agreement.seconds[operation, c.name, near] for c in contenders)
            once *= (n / near) ** 3 * batch / plan.batch
            progress.expect(max(plan.seconds, (plan.rounds + 2) * once))
        for threads, n, batch, operation, contenders in cells:
            progress.begin(f"{operation}, n={n}, {threads} thread{'s' * (threads > 1)}")
            torch.set_num_threads(threads)
            runs = {
                c.name: c.prepare(
                    operation, make_problem(batch, n, operation, ragged=c.ragged), False
                ).run
                for c in contenders
            }
            samples = measure.take_turns(runs, seconds=plan.seconds, rounds=plan.rounds)
            for c in contenders:
                self.add(
                    c,
                    operation,
                    batch,
                    n,
                    threads,
                    cpu=samples[c.name].cpu,
                    wall=samples[c.name].wall,
                    calls=samples[c.name].calls,
                    peak=self.peaks.get(memory.Job(c.name, operation, batch, n)),
                )

    def measure_cuda(self, agreement: Agreement) -> None:
        """Device and eager wall time of everything in the plan."""
        plan = self.plan
        cells = [
            (n, operation, c)
            for n in plan.sizes
            for operation in OPERATIONS
            for c in self.timed(operation, n)
        ]
        progress = Progress(say)
        for n, operation, c in cells:
            once = agreement.seconds[operation, c.name, n]
            progress.expect(max(plan.seconds, (2 * plan.rounds + 5) * once))
        for n, operation, c in cells:
            progress.begin(f"{operation}, n={n}, {c.name}")
            problem = make_problem(plan.batch, n, operation, ragged=c.ragged, device=self.device)
            run = c.prepare(operation, problem, False).run
            run()
            torch.cuda.synchronize()
            base = torch.cuda.memory_allocated()
            torch.cuda.reset_peak_memory_stats()
            out = run()
            torch.cuda.synchronize()
            peak = torch.cuda.max_memory_allocated() - base
            del out
            timing = cuda.measure(run, graph=c.capturable, seconds=plan.seconds, rounds=plan.rounds)
            self.add(
                c,
                operation,
                plan.batch,
                n,
                1,
                wall=timing.wall,
                device=timing.device,
                clock="graph" if timing.graph else "events",
                calls=timing.calls,
                peak=peak if self.with_memory else None,
            )

    def text(self, agreement: Agreement) -> str:
        """All tables, as Markdown that reads well in a terminal."""
        plan, figures = self.plan, report.Figures(self.rows)
        limits = ", ".join(
            f"{quantity} {agreement.worst[quantity]:.1e} (allowed {TOLERANCES[quantity][0]:.0e})"
            for quantity in agreement.worst
        )
        libraries = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        parts = [
            f"# {self.device}, {self.date}, batch {plan.batch}",
            f"{self.described}\n\n{libraries}",
            f"Results agree: {agreement.comparisons} comparisons, largest differences: {limits}.",
            *report.time_tables(figures, plan.sizes, self.device),
        ]
        if self.device == "cpu":
            parts.extend(report.memory_tables(figures, plan.sizes))
            sizes = sorted({n for n in plan.sizes if n >= 40} | {n for n, _ in plan.long_sizes})
            for c in self.own():
                parts.append(report.growth_table(figures, c.name, sizes) or "")
                parts.extend(report.alone(self.rows, plan.alone))
        batch = registry.PLANS[self.device].batch
        parts.append(report.bars_table(report.bars(self.rows, self.device, batch), batch))
        return "\n\n".join(part for part in parts if part)


def warn_if_busy() -> None:
    """Says so if others use the machine: waiting OpenMP threads spin, which slows everyone down."""
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    if load > 0.5 * cores:
        say(
            f"notice: load average {load:.1f} on {cores} cores; figures will be noisy, above all "
            "those of more than one thread (OMP_WAIT_POLICY=PASSIVE helps a little)"
        )


def main(argv: Sequence[str] | None = None) -> int:
    """Runs it; 0 if all went well, 1 if contenders disagree, 2 if nothing can be measured."""
    args = parse(argv)
    if args.device == "cuda" and not torch.cuda.is_available():
        say("no CUDA device here; --device cpu measures the CPU kernels")
        return 2
    args.out.mkdir(parents=True, exist_ok=True)
    warn_if_busy()
    threads_before = torch.get_num_threads()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the peers' deprecations are not ours to print
        try:
            torch.set_num_threads(1)
            run = Run(args)
            if not any(c.timed for c in run.contenders):
                say("nothing to measure: no contender runs here")
                return 2
            agreement = check(run.contenders, run.plan.batch, run.plan.sizes, run.device, say)
            if run.device == "cuda":
                run.measure_cuda(agreement)
            else:
                if run.with_memory:
                    run.measure_memory()
                run.measure_cpu(agreement)
        except Disagreement as disagreement:
            say(f"refusing to time anything: {disagreement}")
            return 1
        finally:
            torch.set_num_threads(threads_before)
    text = run.text(agreement)
    run.path.with_suffix(".md").write_text(text + "\n", encoding="utf-8")
    print(text)
    say(f"\nwritten: {run.path.name} and {run.path.with_suffix('.md').name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
