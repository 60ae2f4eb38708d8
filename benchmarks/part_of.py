"""Draw a part of a file of examples, one to a line, as the tables of results by amount of data had it.

A line is kept or not by chance alone, lines stay in their order, and a smaller part of the same seed
lies within a larger one.

    python benchmarks/part_of.py train_116k.tsv.xz 0.5 train_58k.tsv.xz
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

from treelax.errors import TreelaxError
from treelax.files import atomic_write, compressed


def part_of(lines: list[str], share: float, seed: int = 0) -> list[str]:
    """A share of lines, in their order.

    Args:
        lines: all of them.
        share: how much of them, at most 1.
        seed: of the draw.

    Returns:
        The lines drawn.

    Example:
        >>> half = part_of(list("abcdefgh"), 0.5)
        >>> len(half), set(part_of(list("abcdefgh"), 0.25)) < set(half)
        (4, True)
    """
    order = list(range(len(lines)))
    random.Random(seed).shuffle(order)
    return [lines[i] for i in sorted(order[: int(len(lines) * share)])]


def main() -> None:
    """Read a file, write a part of it; names in .gz, .xz or .bz2 are compressed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, help="lines of examples, none of them names of columns")
    parser.add_argument("share", type=float, help="how much of the lines, such as 0.5")
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    if not 0 < args.share <= 1:
        parser.error(f"share is {args.share}; expected more than 0, at most 1")
    try:
        with args.file.open("rb") as raw, compressed(raw, args.file, "rb") as file:
            lines = file.read().decode().splitlines()
        part = part_of(lines, args.share, args.seed)
        if not part:
            parser.error(f"a share of {args.share} of {len(lines)} lines is none; expected more")
        with atomic_write(args.out) as raw, compressed(raw, args.out, "wb") as out:
            out.write("".join(f"{line}\n" for line in part).encode())
    except TreelaxError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
