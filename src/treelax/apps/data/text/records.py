"""Records, what every reader of text gives: a text or two, and a label."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack, get_args

from treelax.apps.data.text.tokenizer import Cut, tokenize
from treelax.errors import DataError, counted
from treelax.ops.checks import one_of

__all__ = ["CheckOptions", "Record", "Records", "Report", "words_of"]

MAX_WORDS = 10_000
LINES_SHOWN = 5  # line numbers in a summary
TOO_LONG = "too many words"
EMPTY = "empty sentence"

Unusable = Literal["error", "drop"]
Empty = Literal["drop", "keep"]


@dataclass(frozen=True, slots=True)
class Record:
    """One example of a data set: what is classified or tagged, and the answer.

    Attributes:
        texts: one text, or two for pairs.
        label: a class, or one tag per word, or None if unlabelled.
        line: where it begins in its file, counted from 1.
        tokens: the texts are tokenised: ``text.split(" ")`` gives the words; a space inside a word
            is written as U+00A0.
        extra: further columns, the genre for example.

    Example:
        >>> Record(("Dogs bark .",), "positive", 1, tokens=True).words()
        [['Dogs', 'bark', '.']]
    """

    texts: tuple[str, ...]
    label: str | tuple[str, ...] | None
    line: int
    tokens: bool = False
    extra: Mapping[str, str] = field(default_factory=dict, hash=False)

    def words(self) -> list[list[str]]:
        """The words of each text: its tokens, or what stands between white space."""
        return [text.split(" " if self.tokens else None) for text in self.texts]


class CheckOptions(TypedDict, total=False):
    """What every reader does with records that cannot be used.

    Attributes:
        unusable: a text of more than 10,000 words (a tree over n words takes memory in n² and time
            in n³), or a line with the wrong number of columns, is an ``"error"``, the default, or
            ``"drop"`` skips it.
        empty: ``"drop"``, the default, skips a record with a text without words, ``"keep"`` gives it.
        advice: the option that skips unusable records, for messages.
    """

    unusable: Unusable
    empty: Empty
    advice: str


@dataclass(slots=True)
class Report:
    """What was read from a file and what was skipped."""

    count: int = 0  # of the records that were given
    dropped: dict[str, list[int]] = field(default_factory=dict)  # lines skipped, by reason
    source: str = ""
    checks: CheckOptions = field(default_factory=CheckOptions)

    def drop(self, reason: str, line: int) -> None:
        """Note that a record is skipped."""
        self.dropped.setdefault(reason, []).append(line)

    def refuse(self, reason: str, line: int, message: str) -> None:
        """Skip an unusable record and note it, or raise, as asked."""
        if self.checks.get("unusable", "error") == "drop":
            return self.drop(reason, line)
        advice = self.checks.get("advice", 'in Python unusable="drop"')
        hint = f"; to go on without it: {advice}" if advice else ""
        raise DataError(f"{self.source}, line {line}: {message}{hint}")

    def lines(self) -> list[str]:
        """A sentence for each reason, with the first line numbers."""
        summary = []
        for reason, numbers in self.dropped.items():
            shown = [*numbers[:LINES_SHOWN], *["…"] * (len(numbers) > LINES_SHOWN)]
            where = ", ".join(map(str, shown))
            summary.append(f"{counted(len(numbers), 'line')} dropped: {reason} ({where})")
        return summary


class Records:
    """The records of one file, read lazily, and again for each iteration.

    `read` is called with a report, in which it notes what it skips, and yields the records; `source`,
    `file` and what is `expected` in it are for messages.

    Attributes:
        report: of the latest iteration, as far as it came.

    Raises:
        DataError: on iteration, if a record fails a check (see `CheckOptions`) or none is kept.

    Example:
        >>> records = Records("a.tsv", lambda report: iter([Record(("Dogs bark",), "yes", 1)]))
        >>> [record.label for record in records], records.report.count
        (['yes'], 1)
    """

    def __init__(
        self,
        source: str,
        read: Callable[[Report], Iterator[Record]],
        *,
        expected: str = "at least one record",
        file: Path | None = None,
        **checks: Unpack[CheckOptions],
    ) -> None:
        one_of("unusable", checks.get("unusable", "error"), get_args(Unusable))
        one_of("empty", checks.get("empty", "drop"), get_args(Empty))
        self.source = source
        self.file = file
        self.report = Report()
        self._read = read
        self._checks = checks
        self._expected = expected

    def __iter__(self) -> Iterator[Record]:
        self.report = report = Report(source=self.source, checks=self._checks)
        skips_empty = self._checks.get("empty", "drop") == "drop"
        for record in self._read(report):
            if skips_empty and not all(map(str.strip, record.texts)):
                report.drop(EMPTY, record.line)
                continue
            # n words have at least n characters: few texts need to be counted
            if max(map(len, record.texts)) > MAX_WORDS:
                longest = max(len(words_of(record, i)) for i in range(len(record.texts)))
                if longest > MAX_WORDS:
                    message = f"received {longest:,} words; expected at most {MAX_WORDS:,}"
                    report.refuse(TOO_LONG, record.line, f"{message}: split it or remove it")
                    continue
            report.count += 1
            yield record
        if not report.count:
            lines = "; ".join(report.lines())
            what = f"nothing left: {lines}" if lines else "nothing"
            raise DataError(f"{self.source}: received {what}; expected {self._expected}")


class TextStatistics:
    """Counts records that pass by."""

    def __init__(self) -> None:
        self.labels: Counter[str] = Counter()
        self.lengths = defaultdict[int, Counter[int]](Counter)  # by place of the text in its record

    def watch(self, records: Iterable[Record]) -> Iterator[Record]:
        """Give records on as they come, and count them."""
        for record in records:
            label = record.label
            self.labels.update([label] if isinstance(label, str) else label or ())
            for i, words in enumerate(record.words()):
                self.lengths[i][len(words)] += 1
            yield record

    def summary(self) -> dict[str, Any]:
        """The figures: records, labels by frequency, and per text mean and greatest length."""
        lengths = self.lengths.values()
        return {
            "records": self.lengths[0].total(),
            "labels": dict(self.labels.most_common()),
            "length_mean": [sum(counts.elements()) / counts.total() for counts in lengths],
            "length_max": list(map(max, lengths)),
        }


def words_of(record: Record, i: int, cut: Cut = tokenize) -> list[str]:
    """The words of one text of a record, none empty: its tokens, or what ``cut`` gives."""
    if not record.tokens:
        return cut(record.texts[i])
    return [word for word in record.texts[i].split(" ") if word]
