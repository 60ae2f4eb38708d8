"""How many sentences a parser parses in a second, and how long its first answer takes.

    python benchmarks/parsing_speed.py test.conllu                                  two CPU threads
    python benchmarks/parsing_speed.py test.conllu --device cuda --batch-size 64 256 1024

Writes ``results/parsing-speed-<device>-<date>.csv`` and prints a table. The sentences are read before
the clock starts; each round encodes, parses and labels all of them with ``parser.stream``. Batch sizes
take turns; figures are medians over rounds of wall time. *first_answer_s* is that of the program
``treelax parse`` in a new process, imports and loading included, median of five.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

if not __package__:  # run as a script: `benchmarks` is the package, not the search path
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    warnings.filterwarnings("ignore", message="Failed to initialize NumPy")

import argparse
import statistics
import subprocess
import time
from collections.abc import Sequence
from datetime import datetime

import torch

import treelax
from benchmarks import machine
from benchmarks.report import table, write_rows
from treelax.apps.data.conllu import read_conllu

RESULTS = Path(__file__).resolve().parent / "results"
SHOWN = (
    *("model", "device", "threads", "batch_size", "sentences", "words"),
    *("seconds", "quickest", "slowest", "sentences_per_second", "first_answer_s"),
)
COLUMNS = (*SHOWN, "rounds", "data", "machine", "torch", "commit")
TEXT = "The old cat watched a small bird."
STARTS = 5


def first_answer(model: str, device: str) -> float:
    """Seconds of a new process that parses one sentence."""
    command = [sys.executable, "-m", "treelax", "parse", model, TEXT, "--device", device]
    found = []
    for _ in range(STARTS):
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        found.append(time.perf_counter() - start)
    return statistics.median(found)


def main(arguments: Sequence[str] | None = None) -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("data", type=Path, help="sentences, CoNLL-U")
    options.add_argument("--model", default="english", help="run or model")
    options.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--batch-size", type=int, nargs="+", default=[64])
    options.add_argument("--rounds", type=int, default=9)
    options.add_argument("--commit", help="of a copy of the tree without its history")
    options.add_argument("--out", type=Path, default=RESULTS)
    given = options.parse_args(arguments)
    torch.set_num_threads(given.threads)
    parser = treelax.load(given.model, device=given.device)
    sentences = list(read_conllu(given.data))
    times: dict[int, list[float]] = {size: [] for size in given.batch_size}
    for _ in range(given.rounds + 1):
        for size, taken in times.items():
            start = time.perf_counter()
            found = sum(1 for _ in parser.stream(sentences, batch_size=size))
            taken.append(time.perf_counter() - start)
            assert found == len(sentences)
    start = first_answer(given.model, given.device)
    rows: list[dict[str, object]] = []
    for size, (_, *taken) in times.items():  # the first one warms up
        seconds = statistics.median(taken)
        rows.append(
            {
                "model": Path(given.model).name,
                "device": given.device,
                "threads": given.threads,
                "batch_size": size,
                "sentences": len(sentences),
                "words": sum(map(len, sentences)),
                "seconds": round(seconds, 3),
                "quickest": round(min(taken), 3),
                "slowest": round(max(taken), 3),
                "sentences_per_second": round(len(sentences) / seconds),
                "first_answer_s": round(start, 2),
                "rounds": given.rounds,
                "data": given.data.name,
            }
        )
    here = machine.describe(given.device, given.commit)
    path = given.out / f"parsing-speed-{given.device}-{datetime.now():%Y-%m-%d-%H%M}.csv"
    write_rows(path, COLUMNS, rows, here)
    print(table(list(SHOWN), [[str(row[name]) for name in SHOWN] for row in rows], left=2))
    print(f"{here}\n{path.name}")


if __name__ == "__main__":
    main()
