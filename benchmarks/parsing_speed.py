"""How many sentences a parser parses in a second, and how long its first answer takes.

    python benchmarks/run.py parsing-speed test.conllu
    python benchmarks/run.py parsing-speed test.conllu --device cuda --batch-size 64 256 1024

The sentences are read before the clock starts; each round encodes, parses and labels all of them with
``parser.stream``. Batch sizes take turns; figures are medians over rounds of wall time.
*first_answer_s* is that of the program ``treelax parse`` in a new process, imports and loading
included, median of five.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import torch

import treelax
from benchmarks.measure import Row, seconds_of, turns
from treelax.apps.data.conllu import read_conllu

TEXT = "The old cat watched a small bird."


def measure(
    data: Path,
    model: str = "english",
    device: str = "cpu",
    threads: int = 2,
    batch_size: tuple[int, ...] = (64,),
    rounds: int = 9,
    starts: int = 5,
) -> Iterator[Row]:
    """A row for each batch size."""
    torch.set_num_threads(threads)
    parser = treelax.load(model, device=device)
    sentences = list(read_conllu(data))

    def parse(size: int) -> None:
        count = sum(1 for _ in parser.stream(sentences, batch_size=size))
        assert count == len(sentences)

    times = turns({size: lambda size=size: parse(size) for size in batch_size}, rounds)
    command = [sys.executable, "-m", "treelax", "parse", model, TEXT, "--device", device]
    first = statistics.median(
        seconds_of(
            lambda: subprocess.run(command, check=True, capture_output=True), time.perf_counter
        )
        for _ in range(starts)
    )
    for size, taken in times.items():
        seconds = statistics.median(taken)
        yield {
            **{"model": Path(model).name, "device": device, "threads": threads},
            **{"batch_size": size, "sentences": len(sentences), "words": sum(map(len, sentences))},
            "seconds": round(seconds, 3),
            "quickest": round(min(taken), 3),
            "slowest": round(max(taken), 3),
            "sentences_per_second": round(len(sentences) / seconds),
            "first_answer_s": round(first, 2),
            **{"rounds": rounds, "data": data.name},
        }
