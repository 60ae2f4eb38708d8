"""What the commands print: tables and progress, for people at a terminal and for log files.

Results go to `console`, stdout; all that is said on the way goes to `error_console`, stderr. Square
brackets are no markup in either, for ListOps is full of them: pass ``style="bold"`` and the like.
Where the output is no terminal there are no colours and no control characters.
"""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from rich import box
from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
)
from rich.progress import Progress as RichProgress
from rich.table import Column, Table
from rich.text import Text

from treelax.analysis.cells import Cell, cell_text
from treelax.cli.stacked import fill, stacked_lines

__all__ = ["Progress", "console", "error_console", "is_terminal", "progress", "table"]

console = Console(markup=False, highlight=False, emoji=False, soft_wrap=True)
error_console = Console(stderr=True, markup=False, highlight=False, emoji=False, soft_wrap=True)

# for an output in ASCII and the like
PLAIN = str.maketrans({"–": "-", "−": "-", "±": "+-", "≤": "<=", "→": "->", "…": "..."})
# where there is no terminal: a line at each such part of the whole, but not more often than
# LEAST_SECONDS, and no less often than MOST_SECONDS
PARTS = 10
LEAST_SECONDS, MOST_SECONDS = 2.0, 30.0

LEAST_TEXT, LONG_WORD = 8, 10  # letters in a line of a column of text, of a word of a heading
BETWEEN = 3  # columns between two of a drawn table


def is_terminal(where: Console = console) -> bool:
    """Whether someone watches: no pipe, no file, no terminal without control characters.

    Unlike `rich.console.Console.is_terminal` it does not believe ``FORCE_COLOR``, which would put
    bars into the log files of a continuous integration.

    Args:
        where: `console` or `error_console`.

    Returns:
        Whether bars and colours may be shown.

    Example:
        >>> import io
        >>> is_terminal(Console(file=io.StringIO()))
        False
    """
    return where.is_interactive and where.file.isatty()


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    *,
    title: str | None = None,
    note: str | None = None,
) -> None:
    """Print a table on stdout: a drawn one on a terminal, otherwise aligned Markdown.

    On a terminal too narrow for its numbers there is a line for each cell instead.

    Columns of numbers are flush right; a text counts as one if it starts with a digit,
    with or without a sign, or is only a dash.

    Args:
        columns: the heads of the columns.
        rows: a cell for each column; whole numbers are grouped by thousands, other numbers get two
            decimals (give text for more or fewer), None is left empty.
        title: a line above the table.
        note: a line below it, or some; on a terminal they are as long as it is wide at most.

    Example:
        >>> table(["model", "accuracy"], [["arborescence", 96.2], ["lstm", None]], title="Test:")
        Test:
        <BLANKLINE>
        | model        | accuracy |
        | :----------- | -------: |
        | arborescence |    96.20 |
        | lstm         |          |
    """
    columns = [_writable(name) for name in columns]
    texts = [[_writable(cell_text(cell)) for cell in row] for row in rows]
    title, note = (None if text is None else _writable(text) for text in (title, note))
    right = [all(map(_looks_like_number, column)) for column in zip(*texts, strict=True)]
    right = right or [False] * len(columns)
    if not is_terminal(console):
        lines = _markdown(columns, texts, right)
        above = [] if title is None else [title, ""]
        below = [] if note is None else ["", note]
        print("\n".join(above + lines + below), file=console.file)
        return
    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    least = 2  # columns in which all numbers can be read, and the words above them
    for name, flush_right, column in zip(columns, right, zip(*texts, strict=True), strict=False):
        widest = max(map(len, column)) if flush_right else LEAST_TEXT
        widest = max(widest, *(min(len(word), LONG_WORD) for word in name.split()), 1)
        drawn.add_column(
            name, justify="right" if flush_right else "left", overflow="fold", min_width=widest
        )
        least += widest + (BETWEEN if drawn.columns[1:] else 0)
    for line in [] if title is None else fill(title, console.width):
        console.print(line, style="italic")
    if least > console.width:
        console.print()
        for line, heading in stacked_lines(columns, texts, console.width):
            console.print(line, style="bold" if heading else None)
        console.print()
    else:
        for row in texts:
            drawn.add_row(*(Text(text) for text in row))
        console.print(drawn, crop=False, no_wrap=False)
    for line in [] if note is None else fill(note, console.width):
        console.print(line)


class Progress(ABC):
    """How far a piece of work has come; made by `progress`.

    Attributes:
        done: how much of it is done.
    """

    def __init__(self, start: int) -> None:
        self.done = start

    @abstractmethod
    def update(self, done: int, note: str | None = None) -> None:
        """Say how much is done.

        Args:
            done: how much, of the total.
            note: a few words to show with it, ``"loss 0.31"`` say; those of before by default.
        """

    def advance(self, steps: int = 1, note: str | None = None) -> None:
        """Say that so many steps more are done.

        Args:
            steps: how many.
            note: as in `update`.
        """
        self.update(self.done + steps, note)

    def say(self, text: str, style: str | None = None) -> None:
        """Print a line on stderr that stays, above the bar where there is one.

        Args:
            text: the line.
            style: a style of rich, such as ``"bold"``.
        """
        error_console.print(text, style=style)


@contextmanager
def progress(
    description: str,
    total: int | None = None,
    *,
    start: int = 0,
    unit: str = "it",
    transient: bool = False,
) -> Iterator[Progress]:
    """Show on stderr how far a piece of work has come, as a context manager.

    On a terminal: a bar, count, rate, time gone, time left, and the note in a line below. Elsewhere:
    a plain line with all that at each tenth of the work or every 30 seconds, and one at the end.

    Args:
        description: what is done, ``"training"`` say.
        total: how much there is to do; None if that is not known.
        start: how much was done before, as in a run that goes on.
        unit: what is counted, for the rate.
        transient: leave nothing behind: the bar goes at the end, and the last plain line is left
            out.

    Returns:
        A context manager that gives a `Progress`.

    Example:
        >>> with progress("drawing", 3, transient=True) as bar:
        ...     for loss in (3.5, 2.5, 1.5):
        ...         bar.advance(note=f"loss {loss}")
    """
    if not is_terminal(error_console):
        plain = _PlainProgress(description, total, start, unit)
        yield plain
        if not transient:
            plain.finish()
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
        task = bars.add_task(description, total=total, completed=start, note="")
        yield _Bar(bars, task, start)


class _Bars(RichProgress):
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


class _Bar(Progress):
    """The progress on a terminal."""

    def __init__(self, bars: RichProgress, task: TaskID, start: int) -> None:
        super().__init__(start)
        self.bars = bars
        self.task = task

    def update(self, done: int, note: str | None = None) -> None:
        self.done = done
        self.bars.update(self.task, completed=done)
        if note is not None:
            self.bars.update(self.task, note=note)


class _PlainProgress(Progress):
    """The progress in a file or pipe."""

    def __init__(self, description: str, total: int | None, start: int, unit: str) -> None:
        super().__init__(start)
        self.description = description
        self.total = total
        self.unit = unit
        self.note = ""
        self.start = self.printed = start
        self.begun = self.printed_at = time.monotonic()

    def update(self, done: int, note: str | None = None) -> None:
        self.done = done
        self.note = self.note if note is None else note
        waited = time.monotonic() - self.printed_at
        if waited >= MOST_SECONDS or (
            waited >= LEAST_SECONDS and self._part(done) > self._part(self.printed)
        ):
            self._print()

    def finish(self) -> None:
        if self.done > self.printed or self.printed == self.start:
            self._print()

    def _part(self, done: int) -> int:
        return done * PARTS // self.total if self.total else 0

    def _print(self) -> None:
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


def _writable(text: str) -> str:
    """A text as stdout can write it, before columns are made as wide as their texts."""
    encoding = console.encoding
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(PLAIN).encode(encoding, "backslashreplace").decode(encoding)
    return text


def _looks_like_number(text: str) -> bool:
    unsigned = text.lstrip("+-−–")
    return not unsigned or unsigned[0].isdigit()


def _markdown(
    columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool]
) -> list[str]:
    """The lines of a Markdown table whose columns stand below each other."""
    rows = [[text.replace("|", "\\|") for text in row] for row in (columns, *rows)]
    widths = [max(3, *map(len, column)) for column in zip(*rows, strict=True)]

    def line(texts: Iterable[str]) -> str:
        return f"| {' | '.join(texts)} |"

    marks = (
        f"{'-' * (width - 1)}:" if flush_right else f":{'-' * (width - 1)}"
        for width, flush_right in zip(widths, right, strict=True)
    )
    lines = [
        line(
            text.rjust(width) if flush_right else text.ljust(width)
            for text, width, flush_right in zip(row, widths, right, strict=True)
        )
        for row in rows
    ]
    return [lines[0], line(marks), *lines[1:]]
