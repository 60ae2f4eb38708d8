"""What `treelax demo` does under load: errors, latency and memory.

    python benchmarks/run.py demo-load                          a minute
    python benchmarks/run.py demo-load --clients 100 --seconds 20

Starts the demo in a process of its own and asks it for trees from many clients at once, each of which
asks anew as soon as it has an answer. Requests have changing seeds and take turns between the model that
comes with treelax and random scores. Clients run on the same machine and take their share of it.

*busy* counts answers 503, after which a client waits as long as it is told; *errors* all others but 200.
Memory is resident memory of the server.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx2

from benchmarks import machine
from benchmarks.measure import Row


@dataclass
class Tally:
    """What all clients have seen."""

    milliseconds: list[float] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)
    memory: list[float] = field(default_factory=list)


@contextmanager
def server() -> Iterator[tuple[int, str]]:
    """The demo, its process id and its address."""
    command = [sys.executable, "-m", "treelax", "demo", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                raise SystemExit("the demo did not start")
            yield process.pid, line.split()[0]
        finally:
            process.terminate()


def memory(process: int) -> float:
    """Resident memory in MB."""
    kilobytes = machine.first(f"/proc/{process}/status", "VmRSS")
    return int(kilobytes.split()[0]) * 1024 / 1e6 if kilobytes else float("nan")


def request(number: int, words: int) -> dict[str, object]:
    if number % 2:
        expression = ["[MAX", *("[MIN 2 3 ]" for _ in range((words - 2) // 4))]
        expression += ["7"] * ((words - 2) % 4)
        return {"source": "listops", "text": " ".join([*expression, "]"]), "noise_seed": number}
    text = " ".join(f"word{i}" for i in range(words))
    return {"source": "random", "text": text, "score_seed": number, "samples": 20}


async def client(
    number: int, http: httpx2.AsyncClient, words: int, end: float, tally: Tally
) -> None:
    while time.monotonic() < end:
        number += 1
        start = time.monotonic()
        try:
            reply = await http.post("/api/trees", json=request(number, words))
        except httpx2.HTTPError as error:
            tally.statuses[type(error).__name__] += 1
            continue
        tally.statuses[str(reply.status_code)] += 1
        if reply.status_code == 200:
            tally.milliseconds.append(1e3 * (time.monotonic() - start))
        elif reply.status_code == 503:
            await asyncio.sleep(float(reply.headers.get("retry-after", 1)))


async def load(process: int, address: str, clients: int, seconds: float, words: int) -> Tally:
    tally, end = Tally(), time.monotonic() + seconds
    limits = httpx2.Limits(max_connections=clients)
    async with httpx2.AsyncClient(
        base_url=address, timeout=60, limits=limits, trust_env=False
    ) as http:
        tasks = [client(1_000 * i, http, words, end, tally) for i in range(clients)]
        everything = asyncio.gather(*tasks)
        while not everything.done():
            tally.memory.append(memory(process))
            await asyncio.sleep(0.2)
        await everything
    tally.memory.append(memory(process))
    return tally


def row(clients: int, seconds: float, words: int, tally: Tally) -> Row:
    """What a load has shown."""
    times = sorted(tally.milliseconds)
    if not times:
        raise SystemExit(f"no request was answered: {dict(tally.statuses)}")
    requests = tally.statuses.total()
    return {
        **{"clients": clients, "seconds": seconds, "words": words, "requests": requests},
        "errors": requests - tally.statuses["200"] - tally.statuses["503"],
        "busy": tally.statuses["503"],
        "per_second": round(len(times) / seconds, 1),
        **{
            f"ms_p{share}": round(times[min(len(times) * share // 100, len(times) - 1)], 1)
            for share in (50, 90, 99, 100)
        },
        "memory_start_mb": round(tally.memory[0]),
        "memory_peak_mb": round(max(tally.memory)),
        "memory_end_mb": round(tally.memory[-1]),
    }


def measure(
    clients: tuple[int, ...] = (50,), seconds: float = 60.0, words: int = 30
) -> Iterator[Row]:
    """A row for each number of clients."""
    with server() as (process, address):
        for count in clients:
            tally = asyncio.run(load(process, address, count, seconds, words))
            yield row(count, seconds, words, tally)
