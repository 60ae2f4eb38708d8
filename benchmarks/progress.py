"""A line per step, with the time that is left."""

from __future__ import annotations

import time
from collections.abc import Callable


class Progress:
    """Steps with expected durations; corrects its expectations by how long past steps took."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say = say
        self.expected: list[float] = []
        self.started = 0
        self.start = 0.0

    def expect(self, seconds: float) -> None:
        """Announces one more step."""
        self.expected.append(seconds)

    def begin(self, what: str) -> None:
        """The next step begins."""
        now = time.perf_counter()
        if self.started == 0:
            self.start = now
        past = sum(self.expected[: self.started])
        left = sum(self.expected[self.started :])
        if past > 0:
            left *= min(2.0, max(0.5, (now - self.start) / past))
        self.started += 1
        minutes, seconds = divmod(round(left), 60)
        counter = f"[{self.started}/{len(self.expected)}]"
        self.say(f"{counter} {what}; about {minutes}:{seconds:02d} left")
