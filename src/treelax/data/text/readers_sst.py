"""Reader of the Stanford Sentiment Treebank: sentences and how they feel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, Unpack

from treelax.data.text.ptb import labelled_tree
from treelax.data.text.records import CheckOptions, Checks, Record, Records, Report
from treelax.data.text.sources import PathLike, find_split
from treelax.errors import DataError
from treelax.ops.checks import one_of

__all__ = ["SST_CLASSES", "read_sst"]

SPLITS = ("train", "dev", "test")
NEUTRAL = "neutral"
# the label at the root of a tree to the class; None is left out
FIVE = dict(
    zip(
        "01234",
        ("very negative", "negative", NEUTRAL, "positive", "very positive"),
        strict=True,
    )
)
BINARY = {"0": "negative", "1": "negative", "2": None, "3": "positive", "4": "positive"}
SST_CLASSES = {"binary": ("negative", "positive"), "five": tuple(FIVE.values())}


def read_sst(
    path: PathLike,
    split: str | None = None,
    classes: Literal["binary", "five"] = "binary",
    **checks: Unpack[CheckOptions],
) -> Records:
    """Read the sentences of the Stanford Sentiment Treebank with the labels of whole sentences.

    Args:
        path: ``trainDevTestTrees_PTB.zip``, its folder, or a file with a tree in each line. A file
            may be compressed.
        split: ``"train"``, ``"dev"`` or ``"test"``; a file is read whatever the split.
        classes: ``"binary"``: labels 0 and 1 are negative, 3 and 4 positive, and 2, neutral, is
            left out and counted; ``"five"``: very negative, negative, neutral, positive and very
            positive.
        checks: see `treelax.data.text.records.Checks`.

    Returns:
        The sentences in words, read as they are asked for.

    Raises:
        DataError: there is no such file, or, as it is read, a line is not a tree; the message
            names file, line and column.
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
        [rf"{split}\.txt", rf"{split}\.(?:trees|ptb)"],
        split=split,
        archive="trainDevTestTrees_PTB.zip",
        expected=f"{split}.txt",
    )
    names: dict[str, str | None] = {**(BINARY if classes == "binary" else FIVE)}
    where = source.name

    def read(report: Report) -> Iterator[Record]:
        for number, text in source.lines():
            if not text or text.isspace():
                yield Record(("",), None, number)
                continue
            root, words = labelled_tree(text, f"{where}, line {number}")
            if root not in names:
                raise DataError(
                    f"{where}, line {number}: received the label {root} at the root; expected 0 "
                    "to 4"
                )
            label = names[root]
            if label is None:
                report.drop(NEUTRAL, number)
            else:
                yield Record((words,), label, number, tokens=True)

    return Records(
        where, read, checks=Checks(**checks), expected="at least one tree", file=source.file
    )
