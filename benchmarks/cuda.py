"""Timing on a CUDA device.

Ours is timed twice. *Device time*: the call is captured in a CUDA graph and replayed, each replay
between two events; a spinning kernel in front of every group of replays keeps the queue full, so
that the events see the device and not the host. *Eager wall time*: many calls, one synchronisation
at the end, divided by their number: what Python costs is in it.

A peer cannot be captured sensibly (it copies lengths to the host and back), so its device time is
that between two events around an eager call.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

#: Replays whose median is the device time, and how many of them are queued at once.
REPLAYS, GROUP = 240, 40
#: Cycles the device spins while a group is being queued: some ten milliseconds.
SPIN_CYCLES = 20_000_000
#: Eager calls between two synchronisations last about this long.
EAGER_SECONDS = 0.02


@dataclass(frozen=True)
class CudaTiming:
    """Seconds per call."""

    device: list[float]
    wall: list[float]
    calls: int  # calls in one eager sample
    graph: bool  # whether `device` comes from graph replays


def between_events(run: Callable[[], Any], samples: int, queued: int = 1) -> list[float]:
    """Seconds between two events around each call, several of which are queued at once."""
    seconds: list[float] = []
    while len(seconds) < samples:
        events = [[torch.cuda.Event(enable_timing=True) for _ in "ab"] for _ in range(queued)]
        if queued > 1:
            torch.cuda._sleep(SPIN_CYCLES)
        for start, end in events:
            start.record()
            run()
            end.record()
        torch.cuda.synchronize()
        seconds += [start.elapsed_time(end) * 1e-3 for start, end in events]
    return seconds


def replayed(run: Callable[[], Any], replays: int = REPLAYS) -> list[float]:
    """Device seconds of each replay of the captured call."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = run()
    for _ in range(10):
        graph.replay()
    torch.cuda.synchronize()
    seconds = between_events(graph.replay, replays, GROUP)
    del result  # which the graph has written to
    return seconds


def eager(run: Callable[[], Any], seconds: float, rounds: int) -> tuple[list[float], int]:
    """Wall seconds per call, and the number of calls between two synchronisations."""

    def batch(calls: int) -> float:
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            run()
        torch.cuda.synchronize()
        return (time.perf_counter() - start) / calls

    calls = max(1, int(EAGER_SECONDS / batch(2)))
    begin = time.perf_counter()
    samples: list[float] = []
    while len(samples) < rounds or (time.perf_counter() - begin < seconds and len(samples) < 40):
        samples.append(batch(calls))
    return samples, calls


def measure(run: Callable[[], Any], *, graph: bool, seconds: float, rounds: int) -> CudaTiming:
    """Both timings of one call."""
    for _ in range(3):
        run()
    wall, calls = eager(run, seconds / 2, rounds)
    samples = max(rounds, min(50, int(seconds / 2 / wall[-1])))
    device = replayed(run) if graph else between_events(run, samples)
    return CudaTiming(device, wall, calls, graph)
