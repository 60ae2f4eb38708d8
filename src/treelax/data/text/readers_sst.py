"""Reader of the Stanford Sentiment Treebank: sentences and how they feel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Literal, Unpack

from treelax.data.sources import PathLike, find_split
from treelax.data.text.delimited import note_ragged, short, tab_rows
from treelax.data.text.ptb import labelled_tree, single_spaces
from treelax.data.text.records import CheckOptions, Checks, Record, Records, Report
from treelax.errors import DataError
from treelax.files import Line
from treelax.ops.checks import one_of

__all__ = ["SST_CLASSES", "read_sst"]

SPLITS = ("train", "dev", "test")
NEUTRAL = "neutral"
# the label at the root of a tree to the class
FIVE = dict(
    zip(
        "01234",
        ("very negative", "negative", NEUTRAL, "positive", "very positive"),
        strict=True,
    )
)
# of five classes to one of two; None is left out
BINARY = {
    "very negative": "negative",
    "negative": "negative",
    NEUTRAL: None,
    "positive": "positive",
    "very positive": "positive",
}
SST_CLASSES = {"binary": ("negative", "positive"), "five": tuple(FIVE.values())}
TABLE = ["label", "sentence"]  # the first line of a table

Sentence = tuple[int, str, str]  # line, class among five (of an empty line none), words


def read_sst(
    path: PathLike,
    split: str | None = None,
    classes: Literal["binary", "five"] = "binary",
    **checks: Unpack[CheckOptions],
) -> Records:
    """Read the sentences of the Stanford Sentiment Treebank with the labels of whole sentences.

    Args:
        path: ``trainDevTestTrees_PTB.zip``, its folder, or a file with a tree in each line; or what
            ``treelax data sst --out`` writes, where two classes cannot be read as five. A file may
            be compressed.
        split: ``"train"``, ``"dev"`` or ``"test"``; a file is read whatever the split.
        classes: ``"binary"``: labels 0 and 1 are negative, 3 and 4 positive, and 2, neutral, is
            left out and counted; ``"five"``: very negative, negative, neutral, positive and very
            positive.
        checks: see `treelax.data.text.records.Checks`.

    Returns:
        The sentences in words, read as they are asked for.

    Raises:
        DataError: there is no such file, or, as it is read, a line is not a tree, or a table has
            other classes; the message names file, line and column.
        InputError: there is no such split or no such set of classes, or no split is given and
            ``path`` is no file.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     count = Path(folder, "dev.txt").write_text("(3 (2 Not) (3 bad))\\n(2 (2 Hm) (2 .))")
        ...     records = read_sst(folder, "dev")
        ...     [(r.label, r.texts) for r in records], records.report.lines()
        ([('positive', ('Not bad',))], ['1 line dropped: neutral (2)'])

    Reference: Socher et al. 2013, Recursive deep models for semantic compositionality over a
    sentiment treebank.
    """
    one_of("classes", classes, SST_CLASSES)
    if split is not None:
        one_of("split", split, SPLITS)
    source = find_split(
        path,
        [rf"{split}\.txt", rf"{split}\.(?:trees|ptb)", rf"{split}\.tsv"],
        split=split,
        archive="trainDevTestTrees_PTB.zip",
        expected=f"{split}.txt",
    )
    tests = Checks(**checks)

    def read(report: Report) -> Iterator[Record]:
        lines = source.lines()
        first = next(lines, None)
        if first is None:
            return
        if first[1].split("\t") == TABLE:
            labelled = _table(lines, source.name, classes, tests, report)
        else:
            labelled = _trees(chain([first], lines), source.name)
        for number, label, words in labelled:
            name = label if classes == "five" else BINARY.get(label, label)
            if name is None:
                report.drop(NEUTRAL, number)
            else:
                yield Record((words,), name, number, tokens=True)

    return Records(source.name, read, checks=tests, expected="at least one tree", file=source.file)


def _trees(lines: Iterable[Line], where: str) -> Iterator[Sentence]:
    """Sentences of a file with a tree in each line."""
    for number, text in lines:
        if not text or text.isspace():
            yield number, "", ""
            continue
        root, words = labelled_tree(text, f"{where}, line {number}")
        if root not in FIVE:
            raise DataError(
                f"{where}, line {number}: received the label {root} at the root; expected 0 to 4"
            )
        yield number, FIVE[root], words


def _table(
    lines: Iterable[Line], where: str, classes: str, checks: Checks, report: Report
) -> Iterator[Sentence]:
    """Sentences of a table as ``treelax data sst --out`` writes it, with two classes or five."""
    has_five, number = False, 1
    for number, cells in tab_rows(lines):
        if cells == [""]:
            yield number, "", ""
        elif len(cells) != len(TABLE):
            note_ragged(checks, report, where, number, len(cells), len(TABLE))
        elif cells[0] not in BINARY:
            raise DataError(
                f"{where}, line {number}: received the label {short(cells[0])}; expected "
                f"{', '.join(BINARY)}, as treelax data sst writes them: for other tables there is "
                "treelax train classify"
            )
        else:
            has_five = has_five or cells[0] not in SST_CLASSES["binary"]
            yield number, cells[0], single_spaces(cells[1])
    if classes == "five" and not has_five and number > 1:
        raise DataError(
            f"{where}: received negative and positive only; expected five classes: write it anew "
            "with treelax data sst --classes five, or ask for two, binary"
        )
