"""Draw a part of a file of examples, one to a line, as the tables of results by amount of data had it.

    python benchmarks/part_of.py train_116k.tsv.xz 0.5 train_58k.tsv.xz

Lines are chosen by chance (seed 0) and stay in their order; a smaller part lies within a larger one.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

from treelax.files import atomic_write, compressed


def part_of(lines: list[str], share: float) -> list[str]:
    """A share of lines, in their order."""
    order = list(range(len(lines)))
    random.Random(0).shuffle(order)
    return [lines[i] for i in sorted(order[: int(len(lines) * share)])]


if __name__ == "__main__":
    whole, share, out = Path(sys.argv[1]), float(sys.argv[2]), Path(sys.argv[3])
    with whole.open("rb") as raw, compressed(raw, whole, "rb") as source:
        lines = source.read().decode().splitlines()
    with atomic_write(out) as raw, compressed(raw, out, "wb") as file:
        file.write("".join(f"{line}\n" for line in part_of(lines, share)).encode())
