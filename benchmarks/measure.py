"""Timing on the CPU.

Contenders take turns: in every round each of them gets one turn, so that whatever else the machine
does hits all of them. A turn of a fast contender holds several samples, a sample of a very fast one
several calls. Two clocks run beside each other: CPU time of the whole process with all its threads
(``time.process_time``) and wall time.
"""

from __future__ import annotations

import gc
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch

Row = dict[str, Any]  # of a record
Step = TypeVar("Step")

#: A sample lasts at least this long, so that reading the clocks does not show.
SAMPLE_SECONDS = 2e-3
#: A turn is filled with samples up to this long ...
TURN_SECONDS = 30e-3
#: ... or up to this many of them.
TURN_SAMPLES = 15
#: More rounds than this add nothing.
MOST_ROUNDS = 40


@dataclass
class Samples:
    """Seconds per call, one entry per sample."""

    calls: int  # calls in a sample
    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)


def seconds_of(run: Callable[[], Any], clock: Callable[[], float]) -> float:
    """The time of a call by a clock."""
    start = clock()
    run()
    return clock() - start


def turns(
    runs: Mapping[Any, Callable[[], Any]],
    rounds: int,
    *,
    calls: int = 1,
    device: str = "cpu",
    warm_up: int = 1,
) -> dict[Any, list[float]]:
    """Wall seconds per call of each of ``runs``, which take turns, after some rounds to warm up."""

    def synchronise() -> None:
        if device == "cuda":
            torch.cuda.synchronize()

    def several(run: Callable[[], Any]) -> None:
        for _ in range(calls):
            run()
        synchronise()

    times: dict[Any, list[float]] = {name: [] for name in runs}
    for _ in range(warm_up + rounds):
        for name, run in runs.items():
            synchronise()
            taken = seconds_of(lambda: several(run), time.perf_counter)  # noqa: B023
            times[name].append(taken / calls)
    return {name: taken[warm_up:] for name, taken in times.items()}


def quartiles(values: list[float]) -> tuple[float, float, float]:
    """First quartile, median and third quartile."""
    if len(values) == 1:
        return values[0], values[0], values[0]
    first, median, third = statistics.quantiles(values, n=4, method="inclusive")
    return first, median, third


def sample(run: Callable[[], Any], calls: int) -> tuple[float, float]:
    """CPU and wall seconds per call."""
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(calls):
        run()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return cpu / calls, wall / calls


def take_turns(
    runs: Mapping[str, Callable[[], Any]], *, seconds: float, rounds: int
) -> dict[str, Samples]:
    """Times ``runs`` in interleaved rounds, for about so many seconds and at least so many rounds."""
    samples: dict[str, Samples] = {}
    per_turn: dict[str, int] = {}
    start = time.perf_counter()
    for name, run in runs.items():
        run()  # warm-up
        _, once = sample(run, 1)
        calls = max(1, math.ceil(SAMPLE_SECONDS / once))
        samples[name] = Samples(calls)
        per_turn[name] = min(TURN_SAMPLES, max(1, int(TURN_SECONDS / (once * calls))))
    gc.collect()
    gc.freeze()  # what is there now need not be looked at before every turn
    for done in range(MOST_ROUNDS):
        if done >= rounds and time.perf_counter() - start >= seconds:
            break
        for name, run in runs.items():
            gc.collect()
            gc.disable()
            try:
                if per_turn[name] > 1:
                    run()  # the contender before has emptied the caches
                for _ in range(per_turn[name]):
                    cpu, wall = sample(run, samples[name].calls)
                    samples[name].cpu.append(cpu)
                    samples[name].wall.append(wall)
            finally:
                gc.enable()
    gc.unfreeze()
    return samples


def with_progress(
    steps: Iterable[tuple[str, float, Step]], say: Callable[[str], None]
) -> Iterator[Step]:
    """Go through named steps, with the time left: expected seconds, corrected by those so far."""
    steps = list(steps)
    start = time.perf_counter()
    for done, (name, _, step) in enumerate(steps):
        past, left = (
            sum(seconds for _, seconds, _ in some) for some in (steps[:done], steps[done:])
        )
        if past > 0:
            left *= min(2.0, max(0.5, (time.perf_counter() - start) / past))
        minutes, seconds = divmod(round(left), 60)
        say(f"[{done + 1}/{len(steps)}] {name}; about {minutes}:{seconds:02d} left")
        yield step


def say(text: str) -> None:
    """A line for the person who waits; tables alone go to standard output."""
    print(text, file=sys.stderr, flush=True)
