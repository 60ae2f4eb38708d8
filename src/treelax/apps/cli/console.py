"""Where the commands print, and their tables, for people at a terminal and for log files.

Results go to `console`, stdout; progress and messages go to `error_console`, stderr. Square
brackets are no markup in either, for ListOps is full of them: pass ``style="bold"`` and the like.
Where the output is no terminal there are no colours and no control characters.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as Drawing
from rich.text import Text

from treelax.apps.table import Cell, Table, cell_text, looks_like_number

console = Console(markup=False, highlight=False, emoji=False, soft_wrap=True)
error_console = Console(stderr=True, markup=False, highlight=False, emoji=False, soft_wrap=True)

# for an output in ASCII and the like
PLAIN = str.maketrans({"–": "-", "−": "-", "±": "+-", "≤": "<=", "→": "->", "…": "..."})


def is_terminal(where: Console = console) -> bool:
    """Whether someone watches; unlike rich it does not trust FORCE_COLOR, which CI sets for logs."""
    return where.is_interactive and where.file.isatty()


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    title: str | None = None,
    note: str | None = None,
) -> None:
    """Print a table on stdout, drawn on a terminal, elsewhere as Markdown; numbers flush right."""
    columns = [_writable(name) for name in columns]
    texts = [[_writable(cell_text(cell)) for cell in row] for row in rows]
    title, note = (None if text is None else _writable(text) for text in (title, note))
    right = [all(map(looks_like_number, column)) for column in zip(*texts, strict=True)]
    right = right or [False] * len(columns)
    if not is_terminal(console):
        lines = _markdown(columns, texts, right)
        above = [] if title is None else [title, ""]
        below = [] if note is None else ["", note]
        print("\n".join(above + lines + below), file=console.file)
        return
    drawn = Drawing(box=box.SIMPLE_HEAD, pad_edge=False)
    widths = _widths(columns, texts, right, console.width - 3 * len(columns))
    for name, flush_right, width in zip(columns, right, widths, strict=True):
        drawn.add_column(
            name, justify="right" if flush_right else "left", overflow="fold", width=width
        )
    for row in texts:
        drawn.add_row(*map(Text, row))
    if title is not None:
        console.print(title, style="italic", soft_wrap=False)
    console.print(drawn, soft_wrap=False)
    if note is not None:
        console.print(note, soft_wrap=False)


def show(tables: Iterable[Table]) -> None:
    """Print tables, with a line between."""
    for content in tables:
        table(content.columns, content.rows, content.title, content.legend)
        console.print()


def _writable(text: str) -> str:
    """A text as stdout can write it, before columns are made as wide as their texts."""
    encoding = console.encoding
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(PLAIN).encode(encoding, "backslashreplace").decode(encoding)
    return text


def _widths(
    columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool], room: int
) -> list[int]:
    """Widths that fit: headings are broken first, between words; then names; numbers stay whole."""
    cells = [[cell_len(row[i]) for row in rows] for i in range(len(columns))]
    widest = [max([0, *width]) for width in cells]
    words = [max([1, *map(cell_len, name.split())]) for name in columns]
    widths = [max(cell_len(name), width) for name, width in zip(columns, widest, strict=True)]
    numbers = [width if flush else 1 for width, flush in zip(widest, right, strict=True)]
    for least in (list(map(max, words, widest)), numbers):
        while sum(widths) > room and any(map(int.__gt__, widths, least)):
            widths[max(range(len(widths)), key=lambda i: (widths[i] > least[i], widths[i]))] -= 1
    return widths


def _markdown(
    columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool]
) -> list[str]:
    """The lines of a Markdown table whose columns stand below each other."""
    rows = [[text.replace("|", "\\|") for text in row] for row in (columns, *rows)]
    widths = [max(3, *map(len, column)) for column in zip(*rows, strict=True)]
    sides = [(w, ">" if flush else "<") for w, flush in zip(widths, right, strict=True)]
    marks = [f"{':':-{side}{width}}" for width, side in sides]
    padded = [
        [f"{text:{side}{width}}" for text, (width, side) in zip(row, sides, strict=True)]
        for row in (rows[0], marks, *rows[1:])
    ]
    return [f"| {' | '.join(row)} |" for row in padded]
