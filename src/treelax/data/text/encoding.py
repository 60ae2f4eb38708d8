"""From records to `EncodedText`."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import torch

from treelax.data.text.delimited import MOST_DIGITS, counted
from treelax.data.text.encoded import NO_TAG, EncodedText
from treelax.data.text.records import Record, Records
from treelax.data.text.tokenizer import words_of
from treelax.data.text.vocabulary import WordTable
from treelax.errors import DataError, InputError

__all__ = ["NO_TAG", "EncodedText", "Overlong", "RecordsProgress", "encode_records"]

Overlong = Literal["truncate", "drop"]
RecordsProgress = Callable[[int, int | None], None]  # records done, and all of them if known

RECORDS_BETWEEN_REPORTS = 2048


def encode_records(
    records: Iterable[Record],
    table: WordTable,
    labels: Sequence[str] | None = None,
    *,
    max_length: int | None = None,
    overlong: Overlong = "truncate",
    progress: RecordsProgress | None = None,
) -> EncodedText:
    """Encode the texts and labels of records.

    Args:
        records: what a reader gives, read once from start to end.
        table: gives words their ids: a `Vocabulary`, which grows, or vectors.
        labels: the names of the labels, as the training data have them; by default those that
            occur, in the order of the alphabet, or of size if all are integers.
        max_length: the longest sentence allowed, in words; no limit by default.
        overlong: ``"truncate"`` cuts longer sentences (and their tags), ``"drop"`` leaves their
            examples out; both are counted.
        progress: called now and then with the number of records done, and of all if it is known.

    Returns:
        The encoded examples, on the CPU.

    Raises:
        DataError: there is no record, or none is left; one has no words, or another number of texts
            than the first, or a class where others have tags or nothing, or not one tag for each
            word; or a label is not among ``labels``. The message names the file and the line. And
            whatever the reader raises.
        InputError: ``max_length`` or ``overlong`` has no such value.
        BackendError: raw text needs the nltk library and it is not installed.

    Example:
        >>> from treelax.data.text.vocabulary import Vocabulary
        >>> records = [Record(("It is good .",), "yes", 1), Record(("No .",), "no", 2)]
        >>> data = encode_records(records, Vocabulary(), max_length=3)
        >>> data.label_names, data.labels, data.lengths.tolist(), data.notes
        (('no', 'yes'), tensor([1, 0]), [[3], [2]], ('1 text cut to 3 words',))
    """
    if max_length is not None and max_length < 1:
        raise InputError(f"max_length: received {max_length}; expected 1 or more, or None")
    if overlong not in ("truncate", "drop"):
        raise InputError(f"overlong: received {overlong!r}; expected 'truncate' or 'drop'")
    source = str(getattr(records, "source", "records"))
    builder = _Builder(source, table, max_length, overlong == "drop")
    total = len(records) if isinstance(records, Sequence) else None
    done = 0
    for done, record in enumerate(records, 1):
        builder.add(record)
        if progress is not None and done % RECORDS_BETWEEN_REPORTS == 0:
            progress(done, total)
    notes = records.report.lines() if isinstance(records, Records) else []
    encoded = builder.finish(notes)
    if progress is not None:
        progress(done, done)
    return encoded if labels is None else encoded.with_labels(labels)


class _Builder:
    """Collects records in flat arrays, which take no more memory than the tensors do."""

    def __init__(self, source: str, table: WordTable, max_length: int | None, drop: bool) -> None:
        self.source, self.table = source, table
        self.max_length, self.drop = max_length, drop
        self.first: Record | None = None
        self.ids, self.offsets, self.lines = array("i"), array("q", [0]), array("q")
        self.labels = array("q")
        self.names: dict[str, int] = {}
        self.truncated = self.dropped = 0

    def add(self, record: Record) -> None:
        """Take a record, or leave it out and count it."""
        first = self.first
        if first is None:
            first = self.first = self._checked_first(record)
        if len(record.texts) != len(first.texts):
            raise self._error(record, counted(len(record.texts), "text"), f"{len(first.texts)}")
        label = record.label
        if type(label) is not type(first.label):
            raise self._error(
                record, _kind(label), f"{_kind(first.label)}, as on line {first.line}"
            )
        sentences = [words_of(record, i) for i in range(len(record.texts))]
        if not all(sentences):
            raise self._error(record, "a text without words", "at least one word")
        if isinstance(label, tuple) and len(label) != len(sentences[0]):
            raise self._error(
                record,
                counted(len(label), "tag"),
                f"one for each of the {counted(len(sentences[0]), 'word')}",
            )
        limit = self.max_length
        if limit is not None and max(map(len, sentences)) > limit:
            if self.drop:
                self.dropped += 1
                return
            self.truncated += sum(len(words) > limit for words in sentences)
            sentences = [words[:limit] for words in sentences]
            label = label[:limit] if isinstance(label, tuple) else label
        for words in sentences:
            self.ids.extend(self.table.ids(words))
            self.offsets.append(len(self.ids))
        self.lines.append(record.line)
        if isinstance(label, str):
            self.labels.append(self.names.setdefault(label, len(self.names)))
        elif label is not None:
            self.labels.extend([self.names.setdefault(tag, len(self.names)) for tag in label])

    def finish(self, notes: Sequence[str]) -> EncodedText:
        """The tensors; labels are numbered as they are sorted, whatever came first."""
        if self.first is None:
            raise DataError(f"{self.source}: received no record; expected at least one")
        if not self.lines:
            all_of = (
                "the one record is" if self.dropped == 1 else f"all {self.dropped:,} records are"
            )
            raise DataError(
                f"{self.source}: received nothing left: {all_of} longer "
                f"than max_length={self.max_length}; expected some that are not: raise it"
            )
        labels = (
            None if self.first.label is None else torch.frombuffer(self.labels, dtype=torch.int64)
        )
        encoded = EncodedText(
            ids=torch.frombuffer(self.ids, dtype=torch.int32),
            offsets=torch.frombuffer(self.offsets, dtype=torch.int64),
            texts=len(self.first.texts),
            labels=labels,
            label_names=tuple(self.names),
            lines=torch.frombuffer(self.lines, dtype=torch.int64),
            table=self.table,
            tagged=isinstance(self.first.label, tuple),
            source=self.source,
            truncated=self.truncated,
            dropped=self.dropped,
            notes=(*notes, *self._notes()),
        )
        return encoded.with_labels(_sorted_names(self.names))

    def _checked_first(self, record: Record) -> Record:
        """The first record, which says what the others must be like."""
        if len(record.texts) not in (1, 2):
            raise self._error(record, counted(len(record.texts), "text"), "1 or 2")
        if isinstance(record.label, tuple) and len(record.texts) != 1:
            raise self._error(record, "tags of two texts", "tags of one, or a class")
        return record

    def _notes(self) -> list[str]:
        notes = []
        if self.truncated:
            most = counted(self.max_length or 0, "word")
            notes.append(f"{counted(self.truncated, 'text')} cut to {most}")
        if self.dropped:
            most = counted(self.max_length or 0, "word")
            notes.append(f"{counted(self.dropped, 'record')} dropped: more than {most}")
        return notes

    def _error(self, record: Record, received: str, expected: str) -> DataError:
        return DataError(
            f"{self.source}, line {record.line}: received {received}; expected {expected}"
        )


def _kind(label: str | tuple[str, ...] | None) -> str:
    if label is None:
        return "no label"
    return "a class" if isinstance(label, str) else "tags"


def _sorted_names(names: Iterable[str]) -> list[str]:
    """In the order of the alphabet, or of size if all are integers that are not too long."""
    ordered = sorted(names)
    if all(map(_is_integer, ordered)):
        ordered.sort(key=int)
    return ordered


def _is_integer(name: str) -> bool:
    digits = name.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) <= MOST_DIGITS
