"""Reader of the tables of GLUE, whose first line names the columns, but for CoLA."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import PurePath
from typing import Unpack

from treelax.data.sources import PathLike, Source, find_split
from treelax.data.text.delimited import Row, column_places, note_ragged, short, tab_rows
from treelax.data.text.ptb import single_spaces, unescape
from treelax.data.text.readers_nli import is_nli_header, nli_reader
from treelax.data.text.records import CheckOptions, Checks, Record, Records, Report
from treelax.errors import DataError

__all__ = ["read_glue"]

NO_LABEL = "no label"


@dataclass(frozen=True, slots=True)
class _Task:
    """A task of GLUE, known by the columns of its texts.

    Attributes:
        texts: the columns with texts.
        label: the column with the label; a test set has none.
        classes: what the labels stand for; as they are if it is empty.
        tokens: the texts are tokenised.
    """

    name: str
    texts: tuple[str, ...]
    label: str = "label"
    classes: Mapping[str, str] = field(default_factory=dict)
    tokens: bool = False


# QNLI before SST-2: it has a column sentence too
TASKS = (
    _Task(
        "QQP",
        ("question1", "question2"),
        "is_duplicate",
        {"0": "not_duplicate", "1": "duplicate"},
    ),
    _Task("RTE", ("sentence1", "sentence2")),
    _Task("QNLI", ("question", "sentence")),
    _Task("SST-2", ("sentence",), "label", {"0": "negative", "1": "positive"}, tokens=True),
    _Task(
        "MRPC",
        ("#1 String", "#2 String"),
        "Quality",
        {"0": "not_equivalent", "1": "equivalent"},
    ),
)
COLA = _Task("CoLA", ("sentence",), "label", {"0": "unacceptable", "1": "acceptable"})
# of training and dev data, which have no first line; a star is what the authors wrote before it
COLA_COLUMNS = ["source", "label", "star", "sentence"]
SCORE = "score"


def read_glue(
    path: PathLike,
    split: str | None = None,
    *,
    raw: bool = False,
    **checks: Unpack[CheckOptions],
) -> Records:
    r"""Read a table of GLUE: CoLA, SST-2, MNLI, SNLI, QQP, RTE, QNLI, MRPC or WNLI.

    The names in the first line tell which it is; of CoLA, which has none, the four columns. The
    test sets of CoLA and SST-2 have the same names: it is CoLA if a folder or archive is called so.
    Quotes are characters like others. Where there is no column for labels, as in test sets, the
    records have none. Labels that are numbers get names: negative and positive, not_duplicate and
    duplicate, not_equivalent and equivalent, unacceptable and acceptable. STS-B has scores, which
    are no classes, and is refused. For tables of your own there is
    `treelax.data.text.readers_table.read_table`.

    Args:
        path: a file, or a folder or zip archive with a file ``SPLIT.tsv``.
        split: the name of that file, ``"dev"`` or ``"dev_matched"`` say; a file is read whatever
            the split.
        raw: for MNLI and SNLI: give the sentences as they were written, not the tokens of their
            parses.
        checks: see `treelax.data.text.records.Checks`. QQP has a few lines that are too short:
            pass ``ragged="drop"``.

    Returns:
        The records, read as they are asked for.

    Raises:
        DataError: there is no such file, or, as it is read, a line is not what it should be.
        InputError: no split is given and ``path`` is no file.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     count = Path(folder, "dev.tsv").write_text("sentence\tlabel\nit 's fun \t1\n")
        ...     [(r.label, r.texts) for r in read_glue(folder, "dev")]
        [('positive', ("it 's fun",))]

    Reference: Wang et al. 2019, GLUE: A multi-task benchmark and analysis platform for natural
    language understanding.
    """
    source = find_split(
        path,
        [rf"{re.escape(str(split))}\.tsv"],
        split=split,
        archive="the archive of a task of GLUE",
        expected=f"{split}.tsv",
    )
    tests = Checks(**checks)

    def read(report: Report) -> Iterator[Record]:
        rows = tab_rows(source.lines())
        first = next(rows, None)
        if first is None:
            return iter(())
        if is_nli_header(first[1]):
            return nli_reader(source, raw=raw, labelled=True, checks=tests)(report)
        if _is_cola(first[1]):
            return _task_records(source, COLA, COLA_COLUMNS, chain([first], rows), tests, report)
        task = _task_of(first[1], source)
        return _task_records(source, task, first[1], rows, tests, report)

    return Records(
        source.name,
        read,
        checks=tests,
        expected="a table of GLUE",
        file=source.file,
    )


def _task_records(
    source: Source,
    task: _Task,
    columns: list[str],
    rows: Iterator[Row],
    checks: Checks,
    report: Report,
) -> Iterator[Record]:
    where, width = source.name, len(columns)
    places = column_places(columns, task.texts, f"{where}, line 1")
    label_place = columns.index(task.label) if task.label in columns else None
    for number, cells in rows:
        if cells == [""]:
            yield Record(("",), None, number)
            continue
        if len(cells) != width:
            note_ragged(checks, report, where, number, len(cells), width)
            continue
        texts = tuple(cells[place].strip() for place in places)
        if task.tokens:
            texts = tuple(unescape(single_spaces(text)) for text in texts)
        label = None
        if label_place is not None:
            label = cells[label_place].strip()
            if not label:
                report.drop(NO_LABEL, number)
                continue
            if task.classes and label not in task.classes:
                raise DataError(
                    f"{where}, line {number}: received the label {short(label)}; expected "
                    f"{' or '.join(task.classes)} as in {task.name}: for other tables there is "
                    "read_table"
                )
            label = task.classes.get(label, label)
        yield Record(texts, label, number, task.tokens)


def _is_cola(cells: list[str]) -> bool:
    """Whether a first line is a sentence of CoLA."""
    return len(cells) == len(COLA_COLUMNS) and cells[1] in COLA.classes and cells[2] in ("", "*")


def _task_of(columns: list[str], source: Source) -> _Task:
    where = f"{source.name}, line 1"
    if SCORE in columns:
        raise DataError(
            f"{where}: received a column {SCORE!r}, as in STS-B; expected classes, and scores are none"
        )
    for task in TASKS:
        if set(task.texts) <= set(columns):
            return COLA if task.texts == COLA.texts and _is_called_cola(source) else task
    known = "; ".join(f"{task.name}: {', '.join(task.texts)}" for task in TASKS)
    raise DataError(
        f"{where}: received columns {', '.join(map(short, columns[:8]))}; expected those of a "
        f"task of GLUE with classes ({known}): for other tables there is read_table"
    )


def _is_called_cola(source: Source) -> bool:
    """Whether the file lies in CoLA: its test set has the columns of another task."""
    names = (*source.file.parts, *PurePath(source.member or "").parts)
    return any(PurePath(name).stem.lower() == COLA.name.lower() for name in names)
