"""A line per step, with the time that is left."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Step = TypeVar("Step")


def with_progress(
    steps: Iterable[tuple[str, float, Step]], say: Callable[[str], None]
) -> Iterator[Step]:
    """Goes through named steps with expected seconds, which are corrected by how long past ones took."""
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
