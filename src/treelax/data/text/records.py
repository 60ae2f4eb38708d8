"""Records, what every reader of text gives: a text or two, and a label.

`Records` streams: it opens its file when it is iterated over, keeps no record, and may be iterated
over again. What it leaves out it counts, with line numbers, in its `Report`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypedDict, get_args

from treelax.errors import DataError, InputError

__all__ = ["CheckOptions", "Checks", "Record", "Records", "Report", "without_it"]

MAX_WORDS = 10_000
LINES_SHOWN = 5  # line numbers in a summary
TOO_LONG = "too many words"
EMPTY = "empty sentence"

Found = Literal["error", "drop"]
Empty = Literal["error", "drop", "keep"]


@dataclass(frozen=True, slots=True)
class Record:
    """One line of a data set: what is classified or tagged, and the answer.

    Attributes:
        texts: one text, or two for pairs.
        label: a class, or one tag per word, or None if unlabelled.
        line: where it begins in its file, counted from 1.
        tokens: the texts are tokenised: words with single spaces between, so that
            ``text.split(" ")`` gives them. A space inside a word is written as U+00A0, at which
            ``split(" ")`` does not split but ``split()`` does.
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
        if self.tokens:
            return [text.split(" ") for text in self.texts]
        return [text.split() for text in self.texts]


@dataclass(slots=True)
class Report:
    """What was read from a file and what was left out.

    Attributes:
        kept: how many records were given.
        dropped: the line numbers of those left out, by reason.

    Example:
        >>> report = Report(kept=3)
        >>> for line in (3, 17):
        ...     report.drop("no gold label", line)
        >>> report.read, report.lines()
        (5, ['2 lines dropped: no gold label (3, 17)'])
    """

    kept: int = 0
    dropped: dict[str, list[int]] = field(default_factory=dict)

    @property
    def read(self) -> int:
        """How many records the file has up to here, kept or not."""
        return self.kept + sum(map(len, self.dropped.values()))

    def drop(self, reason: str, line: int) -> None:
        """Note that a record is left out."""
        self.dropped.setdefault(reason, []).append(line)

    def lines(self) -> list[str]:
        """A sentence for each reason, with the first line numbers."""
        summary = []
        for reason, numbers in self.dropped.items():
            shown = [f"{number}" for number in numbers[:LINES_SHOWN]]
            if len(numbers) > LINES_SHOWN:
                shown.append("…")
            noun = "line" if len(numbers) == 1 else "lines"
            summary.append(f"{len(numbers):,} {noun} dropped: {reason} ({', '.join(shown)})")
        return summary


class CheckOptions(TypedDict, total=False):
    """The fields of `Checks`, which every reader takes by name."""

    max_words: int
    too_long: Found
    empty: Empty
    ragged: Found
    advice: str | None


@dataclass(frozen=True, slots=True)
class Checks:
    """What is asked of every record, and what happens to one that fails.

    Attributes:
        max_words: the longest text allowed, in words. A tree over n words takes memory in n² and
            time in n³, so one line without its end would halt a training run.
        too_long: a longer text is an ``"error"``, or ``"drop"`` leaves its record out.
        empty: a text without words leaves its record out (``"drop"``), is an ``"error"``, or its
            record is given like others (``"keep"``).
        ragged: a line with too few or too many columns is an ``"error"``, or ``"drop"``.
        advice: what the user can give to go on without a record that fails, for messages: the option
            of a command; empty for nothing, None for the option of Python.

    Raises:
        InputError: a field has no such value.

    Example:
        >>> Checks(max_words=100, too_long="drop").empty
        'drop'
    """

    max_words: int = MAX_WORDS
    too_long: Found = "error"
    empty: Empty = "drop"
    ragged: Found = "error"
    advice: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.max_words, bool) or not isinstance(self.max_words, int):
            raise InputError(f"max_words: received {self.max_words!r}; expected an integer")
        if self.max_words < 1:
            raise InputError(f"max_words: received {self.max_words}; expected at least 1")
        for name, values in (
            ("too_long", get_args(Found)),
            ("empty", get_args(Empty)),
            ("ragged", get_args(Found)),
        ):
            if getattr(self, name) not in values:
                raise InputError(
                    f"{name}: received {getattr(self, name)!r}; expected "
                    f"{' or '.join(map(repr, values))}"
                )


def without_it(check: Literal["ragged", "too_long"], advice: str | None) -> str:
    """How to go on without a record that fails a check, to be put behind a message.

    Args:
        check: the field of `Checks`.
        advice: as `Checks` has it.

    Returns:
        The option of the command that reads, or that of Python; empty if there is none.

    Example:
        >>> without_it("ragged", "--unusable drop"), without_it("ragged", "")
        ('; to go on without it: --unusable drop', '')
    """
    if advice is None:
        advice = f'in Python {check}="drop"'
    return f"; to go on without it: {advice}" if advice else ""


class Records:
    """The records of one file, read as they are asked for.

    Args:
        source: the file, for messages.
        read: starts reading: takes a report, in which it notes what it leaves out, and gives the
            records. Called once for each iteration.
        checks: what is asked of every record.
        expected: what the file should hold, for the message if there is nothing.
        file: the file itself, or the archive that holds it, if there is one.

    Attributes:
        source: as given.
        file: as given.
        report: of the latest iteration, as far as it came.

    Raises:
        DataError: on iteration, if a record fails a check or none is kept; the message names the
            file and the line.

    Example:
        >>> records = Records("a.tsv", lambda report: iter([Record(("Dogs bark",), "yes", 1)]))
        >>> [record.label for record in records], records.report.kept
        (['yes'], 1)
    """

    def __init__(
        self,
        source: str,
        read: Callable[[Report], Iterator[Record]],
        *,
        checks: Checks | None = None,
        expected: str = "at least one record",
        file: Path | None = None,
    ) -> None:
        self.source = source
        self.file = file
        self.report = Report()
        self._read = read
        self._checks = checks or Checks()
        self._expected = expected

    def __iter__(self) -> Iterator[Record]:
        self.report = Report()
        return self._checked(self.report)

    def __repr__(self) -> str:
        return f"Records({self.source!r})"

    def _checked(self, report: Report) -> Iterator[Record]:
        # n words have at least n characters: nearly no text needs to be counted
        suspicious = self._checks.max_words
        for record in self._read(report):
            for text in record.texts:
                if (not text or text.isspace()) and self._fails("empty", record, report):
                    break
                if len(text) > suspicious and self._fails("too_long", record, report):
                    break
            else:
                report.kept += 1
                yield record
        if not report.kept:
            what = f"nothing left: {'; '.join(report.lines())}" if report.read else "nothing"
            raise DataError(f"{self.source}: received {what}; expected {self._expected}")

    def _fails(self, check: Literal["empty", "too_long"], record: Record, report: Report) -> bool:
        """Whether a record is to be left out, which is noted; an error if errors are asked for."""
        where = f"{self.source}, line {record.line}"
        if check == "empty":
            if self._checks.empty == "keep":
                return False
            if self._checks.empty == "error":
                raise DataError(f'{where}: received an empty sentence; pass empty="drop" to go on')
            report.drop(EMPTY, record.line)
            return True
        from treelax.data.text.tokenizer import words_of  # which imports this module

        longest = max(len(words_of(record, i)) for i in range(len(record.texts)))
        if longest <= self._checks.max_words:
            return False
        if self._checks.too_long == "error":
            raise DataError(
                f"{where}: received {longest:,} words; expected at most "
                f"{self._checks.max_words:,}: split it or take it out"
                f"{without_it('too_long', self._checks.advice)}"
            )
        report.drop(TOO_LONG, record.line)
        return True
