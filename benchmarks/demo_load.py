"""What `treelax demo` does under load: errors, latency and memory.

    python benchmarks/demo_load.py                          a minute
    python benchmarks/demo_load.py --clients 100 --seconds 20

Starts the demo in a process of its own and asks it for trees from many clients at once, each of which
asks anew as soon as it has an answer. Requests have changing seeds and take turns between the model that
comes with treelax and random scores. Clients run on the same machine and take their share of it.

Writes ``results/demo-load-<date>.csv`` and prints a table. *busy* counts answers 503, after which a
client waits as long as it is told; *errors* all others but 200. Memory is resident memory of the
server. Exit status 1 if there were errors.
"""

from __future__ import annotations

import sys
from pathlib import Path

if not __package__:  # run as a script: `benchmarks` is the package, not the search path
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import argparse
import asyncio
import csv
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime

import httpx2

from benchmarks import machine
from benchmarks.report import table

RESULTS = Path(__file__).resolve().parent / "results"
PERCENTILES = (50, 90, 99, 100)
COLUMNS = (
    *("date", "clients", "seconds", "words", "requests", "errors", "busy", "per_second"),
    *(f"ms_p{percentile}" for percentile in PERCENTILES),
    *("memory_start_mb", "memory_peak_mb", "memory_end_mb", "machine", "torch", "commit", "dirty"),
)


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
    number: int, asking: httpx2.AsyncClient, words: int, end: float, tally: Tally
) -> None:
    while time.monotonic() < end:
        number += 1
        start = time.monotonic()
        try:
            reply = await asking.post("/api/trees", json=request(number, words))
        except httpx2.HTTPError as error:
            tally.statuses[type(error).__name__] += 1
            continue
        tally.statuses[str(reply.status_code)] += 1
        if reply.status_code == 200:
            tally.milliseconds.append(1e3 * (time.monotonic() - start))
        elif reply.status_code == 503:
            await asyncio.sleep(float(reply.headers.get("retry-after", 1)))


async def watch(process: int, end: float, tally: Tally) -> None:
    while time.monotonic() < end:
        tally.memory.append(memory(process))
        await asyncio.sleep(0.2)


async def load(process: int, address: str, clients: int, seconds: float, words: int) -> Tally:
    tally = Tally()
    limits = httpx2.Limits(max_connections=clients)
    asked = httpx2.AsyncClient(base_url=address, timeout=60, limits=limits, trust_env=False)
    async with asked as asking:
        end = time.monotonic() + seconds
        tasks = [client(1_000 * i, asking, words, end, tally) for i in range(clients)]
        await asyncio.gather(watch(process, end, tally), *tasks)
    tally.memory.append(memory(process))
    return tally


def row(clients: int, seconds: float, words: int, tally: Tally) -> dict[str, object]:
    times = sorted(tally.milliseconds)
    if not times:
        raise SystemExit(f"no request was answered: {dict(tally.statuses)}")
    requests = tally.statuses.total()
    shares = {
        f"ms_p{percentile}": round(times[min(len(times) * percentile // 100, len(times) - 1)], 1)
        for percentile in PERCENTILES
    }
    return {
        "date": f"{datetime.now():%Y-%m-%d %H:%M}",
        "clients": clients,
        "seconds": seconds,
        "words": words,
        "requests": requests,
        "errors": requests - tally.statuses["200"] - tally.statuses["503"],
        "busy": tally.statuses["503"],
        "per_second": round(len(times) / seconds, 1),
        **shares,
        "memory_start_mb": round(tally.memory[0]),
        "memory_peak_mb": round(max(tally.memory)),
        "memory_end_mb": round(tally.memory[-1]),
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clients", type=int, nargs="+", default=[50], help="at once")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--words", type=int, default=30, help="of each sentence")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    here = machine.describe("cpu")
    rows = []
    with server() as (process, address):
        for clients in arguments.clients:
            done = load(process, address, clients, arguments.seconds, arguments.words)
            rows.append(row(clients, arguments.seconds, arguments.words, asyncio.run(done)))
    about = {
        "machine": here.machine,
        "torch": here.torch,
        "commit": here.commit,
        "dirty": here.dirty,
    }
    path = arguments.out / f"demo-load-{datetime.now():%Y-%m-%d-%H%M}.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(each | about for each in rows)
    shown = [name for name in COLUMNS[1:] if name not in about]
    print(table(shown, [[str(each[name]) for name in shown] for each in rows]))
    print(f"{here}\n{path.name}")
    return int(any(each["errors"] for each in rows))


if __name__ == "__main__":
    sys.exit(main())
