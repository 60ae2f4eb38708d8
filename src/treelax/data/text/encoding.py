"""Text as flat tensors of word ids, and batches gathered from them on any device.

All words of all sentences stand in one tensor, one sentence after the other, and offsets tell
where each begins: no padding is stored, a whole data set fits on a device, and a batch is padded to
any length as it is gathered, in a few operations of fixed shape.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from treelax.data.text.records import Record, Records
from treelax.data.text.rows import MOST_DIGITS, counted, short
from treelax.data.text.tokenizer import words_of
from treelax.data.text.vocabulary import PADDING, Vocabulary, WordTable
from treelax.errors import DataError, InputError

__all__ = ["NO_TAG", "EncodedText", "RecordsProgress", "encode_records"]

NO_TAG = -1  # where a batch of tags is padded
NAMES_SHOWN = 20
RECORDS_BETWEEN_REPORTS = 2048

RecordsProgress = Callable[[int, int | None], None]  # records done, and all of them if known


@dataclass(frozen=True, eq=False, slots=True)
class EncodedText:
    """N examples of one or two sentences each, with W words in all.

    Attributes:
        ids: ``(W,)``, int32: the words of the first example's first sentence, then of its second if
            there is one, then of the next example.
        offsets: ``(N * texts + 1,)``, int64: where each sentence begins, and W.
        texts: sentences in an example, 1 or 2.
        labels: int64: ``(N,)`` classes, or ``(W,)`` tags if ``tagged``; None if there are none.
        label_names: what the labels stand for.
        lines: ``(N,)``, int64: the line of each example in its file.
        table: what gave the words their ids.
        tagged: whether labels are of words.
        source: the file, for messages; of joined sets all their files.
        notes: what was skipped, in words.
        parts: of joined sets, the number of examples and the file of each; empty for a single one.
    """

    ids: Tensor
    offsets: Tensor
    texts: int
    labels: Tensor | None
    label_names: tuple[str, ...]
    lines: Tensor
    table: WordTable
    tagged: bool = False
    source: str = "records"
    notes: tuple[str, ...] = ()
    parts: tuple[tuple[int, str], ...] = ()

    def __len__(self) -> int:
        """The number of examples."""
        return len(self.lines)

    @property
    def lengths(self) -> Tensor:
        """Words of each sentence, ``(N, texts)``, int64."""
        return self.offsets.diff().view(-1, self.texts)

    def padded(self, indices: Tensor, which: int, length: int) -> Tensor:
        """Gather one sentence of some examples, padded to a given length: ``(B, length)`` ids.

        Nothing waits for the device and all shapes follow from the arguments' shapes and
        ``length``, so this may be captured in a CUDA graph. For the same reason the indices and the
        length are not checked: a sentence longer than ``length`` is cut.
        """
        return self._gathered(self.ids, indices, which, length, PADDING)

    def targets(self, indices: Tensor, length: int) -> Tensor:
        """Gather labels as `padded` gathers words: classes ``(B,)``, or tags ``(B, length)``."""
        if self.labels is None:
            raise InputError(f"labels: {self.source} has none; expected labelled data")
        if self.tagged:
            return self._gathered(self.labels, indices, 0, length, NO_TAG)
        return self.labels[indices]

    def _gathered(
        self, flat: Tensor, indices: Tensor, which: int, length: int, padding: int
    ) -> Tensor:
        sentence = indices * self.texts + which
        begin, end = self.offsets[sentence], self.offsets[sentence + 1]
        place = begin[:, None] + torch.arange(length, device=flat.device)  # (B, length)
        values = flat[place.clamp(max=len(flat) - 1)].long()
        return values.masked_fill(place >= end[:, None], padding)

    def words(self, index: int, which: int = 0) -> list[str]:
        """The words of one sentence, as its `Vocabulary` has them."""
        vocabulary = self._vocabulary()
        begin, end = self.offsets[index * self.texts + which :][:2].tolist()
        return [vocabulary.word(number) for number in self.ids[begin:end].tolist()]

    def _vocabulary(self) -> Vocabulary:
        if not isinstance(self.table, Vocabulary):
            raise InputError("table: the ids are those of vectors; expected those of a vocabulary")
        return self.table

    def where(self, index: int) -> str:
        """The file and the line of an example, for messages."""
        source, before = self.source, 0
        for count, name in self.parts:
            if before <= index < before + count:
                source = name
            before += count
        return f"{source}, line {int(self.lines[index])}"

    def to(self, device: torch.device | str) -> EncodedText:
        """The same examples with all tensors on a device."""
        return replace(
            self,
            ids=self.ids.to(device),
            offsets=self.offsets.to(device),
            labels=None if self.labels is None else self.labels.to(device),
            lines=self.lines.to(device),
        )

    def with_table(self, table: WordTable) -> EncodedText:
        """The same examples with the ids of another table, of loaded vectors for example."""
        new = torch.tensor([PADDING, *table.ids(self._vocabulary())], dtype=torch.int32)
        if torch.equal(new, torch.arange(len(new), dtype=torch.int32)):
            return replace(self, table=table)  # a file mapped into memory stays unread
        return replace(self, ids=new.to(self.ids.device)[self.ids], table=table)

    def with_labels(self, names: Sequence[str]) -> EncodedText:
        """The same examples with labels numbered as in `names`, those of the training data."""
        if self.labels is None or tuple(names) == self.label_names:
            return replace(self, label_names=tuple(names))
        known = {name: number for number, name in enumerate(names)}
        number = torch.tensor(
            [known.get(name, -1) for name in self.label_names], device=self.labels.device
        )
        labels = number[self.labels]
        strange = (labels < 0).nonzero()
        if len(strange):
            place = example = int(strange[0])
            if self.tagged:  # one sentence an example: the offsets are those of examples
                example = int(torch.searchsorted(self.offsets, place, right=True)) - 1
            shown = ", ".join(map(short, names[:NAMES_SHOWN]))
            more = f", … ({len(names)} in all)" if len(names) > NAMES_SHOWN else ""
            raise DataError(
                f"{self.where(example)}: received the label "
                f"{short(self.label_names[int(self.labels[place])])}; expected one of the training "
                f"data: {shown}{more}; train with an example of it, or take "
                f"{'this sentence' if self.tagged else 'this line'} out"
            )
        return replace(self, labels=labels, label_names=tuple(names))


def encode_records(
    records: Iterable[Record], table: WordTable, *, progress: RecordsProgress | None = None
) -> EncodedText:
    """Encode the texts and labels of records, on the CPU.

    Labels are numbered in alphabetical order, or by size if all are integers; `progress` is called
    now and then with the number of records done, and of all if it is known.

    Example:
        >>> records = [Record(("It is good .",), "yes", 1), Record(("No .",), "no", 2)]
        >>> data = encode_records(records, Vocabulary())
        >>> data.label_names, data.labels, data.lengths.tolist(), data.ids.tolist()
        (('no', 'yes'), tensor([1, 0]), [[4], [2]], [1, 2, 3, 4, 5, 4])
    """
    source = str(getattr(records, "source", "records"))
    builder = _Builder(source, table)
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
    return encoded


class _Builder:
    """Collects records in flat arrays, which take no more memory than the tensors do."""

    def __init__(self, source: str, table: WordTable) -> None:
        self.source, self.table = source, table
        self.first: Record | None = None
        self.ids, self.offsets, self.lines = array("i"), array("q", [0]), array("q")
        self.labels = array("q")
        self.names: dict[str, int] = {}

    def add(self, record: Record) -> None:
        first = self.first = self.first or record
        label = record.label
        if len(record.texts) != len(first.texts) or type(label) is not type(first.label):
            raise self._error(record, _kind(record), f"{_kind(first)}, as on line {first.line}")
        sentences = [words_of(record, i) for i in range(len(record.texts))]
        if not all(sentences):
            raise self._error(record, "a text without words", "at least one word")
        if isinstance(label, tuple) and len(label) != len(sentences[0]):
            each = f"one for each of the {counted(len(sentences[0]), 'word')}"
            raise self._error(record, counted(len(label), "tag"), each)
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
        labels = None
        if self.first.label is not None:
            labels = torch.frombuffer(self.labels, dtype=torch.int64)
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
            notes=tuple(notes),
        )
        return encoded.with_labels(_sorted_names(self.names))

    def _error(self, record: Record, received: str, expected: str) -> DataError:
        return DataError(
            f"{self.source}, line {record.line}: received {received}; expected {expected}"
        )


def _kind(record: Record) -> str:
    """What a record has, for messages: ``2 texts and a class``."""
    label = {type(None): "no label", str: "a class"}.get(type(record.label), "tags")
    return f"{counted(len(record.texts), 'text')} and {label}"


def _sorted_names(names: Iterable[str]) -> list[str]:
    """In alphabetical order, or by size if all are integers that are not too long."""
    ordered = sorted(names)
    digits = [name.removeprefix("-") for name in ordered]
    if all(d.isascii() and d.isdigit() and len(d) <= MOST_DIGITS for d in digits):
        ordered.sort(key=int)
    return ordered
