"""Measures treelax beside its peers, or makes another measurement; README.md in this folder says how."""

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
from dataclasses import asdict, fields, replace
from datetime import datetime
from typing import Any

import torch

from benchmarks import cuda, machine, measure, memory, records, registry, report
from benchmarks.agreement import TOLERANCES, Agreement, Disagreement, check
from benchmarks.measure import say, with_progress
from benchmarks.others import OTHERS, RESULTS, other
from benchmarks.problem import BACKWARD, BEST, FORWARD_BACKWARD, OPERATIONS, Contender, make_problem

EXAMPLE = """\
examples:
  python benchmarks/run.py                   the whole comparison on the CPU, about fifteen minutes
  python benchmarks/run.py --quick           a smoke run, under a minute
  python benchmarks/run.py --device cuda     the Triton kernels
  python benchmarks/run.py --sizes 20 40 --threads 1 --no-peers
  python benchmarks/run.py accuracy --help   another measurement, see below

other measurements: {others}
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
        epilog=EXAMPLE.format(others=", ".join(OTHERS)),
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
    add("--long", type=pair, nargs="*", metavar="N:BATCH", dest="long_sizes", help="treelax alone")
    add("--seconds", type=float, help="time for one operation, size and thread count")
    add("--rounds", type=int, help="at least so many rounds")
    add("--commit", help="the commit to write down, for a copy without git's history")
    return parser.parse_args(argv)


def plan_of(args: argparse.Namespace) -> registry.Plan:
    """The registered plan with what the command line changes."""
    plan = registry.PLANS[args.device + (" quick" if args.quick else "")]
    given = {f.name: getattr(args, f.name, None) for f in fields(plan)}
    given = {k: tuple(v) if isinstance(v, list) else v for k, v in given.items() if v is not None}
    return replace(plan, **given)


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
        self.first = next(c for c in self.contenders if c.library == "treelax" and c.timed)
        self.versions = {c.library: machine.library_version(c.library) for c in self.contenders}
        self.peaks: dict[memory.Job, int | None] = {}
        self.rows: list[measure.Row] = []

    def timed(self, operation: str, n: int) -> list[Contender]:
        return [c for c in self.contenders if c.timed and c.takes(operation, n)]

    def cells(self) -> list[tuple[int, int, int, str, list[Contender]]]:
        """What is timed together: threads, n, batch, operation and contenders."""
        plan, first = self.plan, [self.first]
        cells = [
            (threads, n, plan.batch, operation, self.timed(operation, n))
            for threads in plan.threads
            for n in plan.sizes
            for operation in OPERATIONS
        ]
        cells += [(1, n, batch, FORWARD_BACKWARD, first) for n, batch in plan.long_sizes]
        return cells + [(max(plan.threads), n, 1, FORWARD_BACKWARD, first) for n in plan.alone]

    def add(
        self, contender: Contender, operation: str, batch: int, n: int, threads: int, **figures: Any
    ) -> None:
        """Appends a row and writes the CSV, so that an interrupted run keeps what it has."""
        row: measure.Row = {
            "date": self.date,
            "device": self.device,
            "operation": operation,
            "contender": contender.name,
            "library": contender.library,
            "version": self.versions[contender.library],
            "relaxation": contender.family(operation).removesuffix(", ragged"),
            "ragged": contender.ragged,
            "batch": batch,
            "n": n,
            "threads": threads,
            **asdict(self.described),
        }
        for name, value in figures.items():
            if isinstance(value, list):  # of seconds
                row["repetitions"] = len(value)
                for part, figure in zip(("_q1", "", "_q3"), measure.quartiles(value), strict=True):
                    row[f"{name}_ms{part}"] = figure * 1e3
            else:
                row[name] = value / 1e6 if name == "peak_mb" and value is not None else value
        self.rows.append(row)
        report.write_csv(self.path, report.COLUMNS, self.rows)

    def measure_memory(self) -> None:
        """Peak memory of every contender, one process per library."""
        jobs: dict[str, dict[memory.Job, None]] = {}
        for _, n, batch, operation, contenders in self.cells():
            for c in contenders if batch > 1 else ():
                jobs.setdefault(c.library, {})[memory.Job(c.name, operation, batch, n)] = None
        for library, of_library in jobs.items():
            say(f"peak memory of {library}")
            self.peaks |= memory.peaks(list(of_library))

    def measure_cpu(self, agreement: Agreement) -> None:
        """CPU and wall time of everything in the plan."""
        plan = self.plan

        def expected(n: int, batch: int, operation: str, contenders: list[Contender]) -> float:
            near = max((size for size in plan.sizes if size <= n), default=min(plan.sizes))
            once = sum(agreement.seconds[operation, c.name, near] for c in contenders)
            return max(
                plan.seconds, (plan.rounds + 2) * once * (n / near) ** 3 * batch / plan.batch
            )

        steps = []
        for cell in self.cells():
            threads, n, _, operation, _ = cell
            name = f"{operation}, n={n}, {threads} thread{'s' * (threads > 1)}"
            steps.append((name, expected(*cell[1:]), cell))
        for threads, n, batch, operation, contenders in with_progress(steps, say):
            torch.set_num_threads(threads)
            runs = {
                c.name: c.prepare(
                    operation, make_problem(batch, n, operation, ragged=c.ragged), False
                ).run
                for c in contenders
            }
            samples = measure.take_turns(runs, seconds=plan.seconds, rounds=plan.rounds)
            for c in contenders:
                figures = samples[c.name]
                peak = self.peaks.get(memory.Job(c.name, operation, batch, n))
                self.add(
                    *(c, operation, batch, n, threads),
                    **{"cpu": figures.cpu, "wall": figures.wall, "peak_mb": peak},
                    calls_per_repetition=figures.calls,
                )

    def measure_cuda(self, agreement: Agreement) -> None:
        """Device and eager wall time of everything in the plan."""
        plan = self.plan
        steps = []
        for n in plan.sizes:
            for operation in OPERATIONS:
                for c in self.timed(operation, n):
                    once = agreement.seconds[operation, c.name, n]
                    expected = max(plan.seconds, (2 * plan.rounds + 5) * once)
                    steps.append((f"{operation}, n={n}, {c.name}", expected, (n, operation, c)))
        for n, operation, c in with_progress(steps, say):
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
                *(c, operation, plan.batch, n, 1),
                **{"wall": timing.wall, "device": timing.device},
                device_clock="graph" if timing.graph else "events",
                calls_per_repetition=timing.calls,
                peak_mb=peak if self.with_memory else None,
            )

    def text(self, agreement: Agreement) -> str:
        """All tables, as Markdown that reads well in a terminal."""
        plan = self.plan
        long_sizes = {n for n in plan.sizes if n >= 40} | {n for n, _ in plan.long_sizes}
        return records.markdown(
            records.templates()
            .get_template("report.md")
            .render(
                device=self.device,
                date=self.date,
                machine=self.described,
                libraries=", ".join(f"{name} {version}" for name, version in self.versions.items()),
                agreement=agreement,
                tolerances=TOLERANCES,
                plan=plan,
                batch=plan.batch,
                sizes=plan.sizes,
                rows=records.read(self.path),
                memory_operations=(*BACKWARD, *BEST),
                contender=self.first.name,
                long_sizes=sorted(long_sizes),
                bars=report.BARS[self.device],
                bar_batch=registry.PLANS[self.device].batch,
            )
        )


def warn_if_busy() -> None:
    """Says so if others use the machine: waiting OpenMP threads spin, which slows everyone down."""
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    if load > 0.5 * cores:
        say(f"notice: load average {load:.1f} on {cores} cores; figures will be noisy")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs it; 0 if all went well, 1 if contenders disagree, 2 if nothing can be measured."""
    argv = sys.argv[1:] if argv is None else argv
    if argv and argv[0] in OTHERS:
        return other(argv[0], argv[1:])
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
