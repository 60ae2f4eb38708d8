"""How far a piece of work has come: a bar on a terminal, now and then a line elsewhere; on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from rich.console import RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, Task, TextColumn
from rich.progress import Progress as Bars
from rich.table import Column
from rich.text import Text

from treelax.apps.cli.console import error_console, is_terminal

# where there is no terminal: a line at each such part of the whole, but not more often than
# LEAST_SECONDS, and no less often than MOST_SECONDS
PARTS = 10
LEAST_SECONDS, MOST_SECONDS = 2.0, 30.0

Item = TypeVar("Item")


@contextmanager
def progress(
    description: str,
    total: int | None = None,
    *,
    start: int = 0,
    unit: str = "steps",
    transient: bool = False,
) -> Iterator[Progress]:
    """Show progress on stderr: a bar on a terminal, elsewhere a line at each tenth or every 30 s."""
    if not is_terminal(error_console):
        plain = Progress(description, total, start, unit)
        yield plain
        if not transient and (plain.done > plain.printed or plain.printed == start):
            plain.print()
        return
    bars = _Bars(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=None, table_column=Column(ratio=1, min_width=5)),
        MofNCompleteColumn(),
        _SpeedColumn(unit),
        console=error_console,
        transient=transient,
        # rich would send to stderr what is printed on stdout, even where that is a pipe
        redirect_stdout=sys.stdout.isatty(),
        expand=True,
    )
    with bars:
        yield _Bar(bars, description, total, start, unit)


def advancing(items: Iterable[Item], bar: Progress, *, every: int) -> Iterator[Item]:
    """The items as they are, each of them counted once it has been dealt with."""
    number = 0
    for number, item in enumerate(items, 1):
        yield item
        if number % every == 0:
            bar.advance(every)
    if number % every:
        bar.advance(number % every)


class Progress:
    """How far a piece of work has come, in a file or pipe; made by `progress`."""

    def __init__(self, description: str, total: int | None, start: int, unit: str) -> None:
        self.description, self.total, self.unit, self.note = description, total, unit, ""
        self.done = self.start = self.printed = start
        self.begun = self.printed_at = time.monotonic()

    def advance(self, steps: int = 1) -> None:
        """Say that so many steps more are done."""
        self.update(self.done + steps)

    def update(self, done: int, note: str | None = None) -> None:
        """Say how much is done."""
        self.done = done
        self.note = self.note if note is None else note
        self._show()

    def _show(self) -> None:
        waited = time.monotonic() - self.printed_at
        tenth, printed = (
            n * PARTS // self.total if self.total else 0 for n in (self.done, self.printed)
        )
        if waited >= MOST_SECONDS or (waited >= LEAST_SECONDS and tenth > printed):
            self.print()

    def print(self) -> None:
        """Print a line."""
        now = time.monotonic()
        gone = now - self.begun
        rate = (self.done - self.start) / gone if gone > 0 else None
        count, left = f"{self.done}/{'?' if self.total is None else self.total}", None
        if self.total:
            count += f" ({100 * self.done // self.total} %)"
            left = (self.total - self.done) / rate if rate else None
        parts = filter(None, (count, self.note, _speed(rate, self.unit, gone, left)))
        print(f"{self.description}: {', '.join(parts)}", file=error_console.file, flush=True)
        self.printed, self.printed_at = self.done, now


class _Bar(Progress):
    """The progress on a terminal."""

    def __init__(
        self, bars: Bars, description: str, total: int | None, start: int, unit: str
    ) -> None:
        super().__init__(description, total, start, unit)
        self.bars = bars
        self.task = bars.add_task(description, total=total, completed=start, note="")

    def _show(self) -> None:
        self.bars.update(self.task, completed=self.done, note=self.note)


class _Bars(Bars):
    """The bar with the note in a line below, so that neither takes the other's room."""

    def get_renderables(self) -> Iterable[RenderableType]:
        yield self.make_tasks_table(self.tasks)
        for task in self.tasks:
            if task.fields["note"]:
                yield Text(task.fields["note"], style="dim", no_wrap=True, overflow="ellipsis")


class _SpeedColumn(ProgressColumn):
    """Rate, time gone and time left."""

    def __init__(self, unit: str) -> None:
        super().__init__(table_column=Column(no_wrap=True))
        self.unit = unit

    def render(self, task: Task) -> Text:
        rate = task.finished_speed or task.speed
        return Text(_speed(rate, self.unit, task.elapsed or 0, task.time_remaining))


def _speed(rate: float | None, unit: str, gone: float, left: float | None) -> str:
    parts = [f"{_clock(gone)} gone"]
    if rate:
        parts.insert(0, f"{rate:.0f} {unit}/s" if rate >= 100 else f"{rate:.3g} {unit}/s")
    if left:
        parts.append(f"{_clock(left)} left")
    return ", ".join(parts)


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}"
