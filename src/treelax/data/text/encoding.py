"""Text as flat tensors of word ids, and batches gathered from them on any device.

All words of all sentences stand in one tensor, and offsets tell where each sentence begins: no
padding is stored, and a batch is padded as it is gathered, in a few operations of fixed shape.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from treelax.data.text.records import Record, Records
from treelax.data.text.rows import MOST_DIGITS
from treelax.data.text.tokenizer import words_of
from treelax.data.text.vocabulary import PADDING, Vocabulary, WordTable
from treelax.errors import DataError, InputError, counted, short

__all__ = ["NO_TAG", "EncodedText", "RecordsProgress", "encode_records"]

NO_TAG = -1  # where a batch of tags is padded
NAMES_SHOWN = 20
RECORDS_BETWEEN_REPORTS = 2048

RecordsProgress = Callable[[int, int | None], None]  # records done, and all of them if known


@dataclass(frozen=True, eq=False, slots=True)
class EncodedText:
    """N examples of one or two sentences each, with W words in all."""

    ids: Tensor  # (W,), int32: of the first example's first sentence, then of its second, and so on
    offsets: Tensor  # (N * texts + 1,), int64: where each sentence begins, and W
    texts: int  # sentences in an example, 1 or 2
    labels: Tensor | None  # int64: (N,) classes, or (W,) tags if tagged
    label_names: tuple[str, ...]
    lines: Tensor  # (N,), int64: the line of each example in its file
    table: WordTable  # what gave the words their ids
    tagged: bool = False
    source: str = "records"  # the file, for messages; of joined sets all their files
    notes: tuple[str, ...] = ()  # what was skipped, in words
    parts: tuple[tuple[int, str], ...] = ()  # of joined sets: examples and file of each

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def lengths(self) -> Tensor:
        """Words of each sentence, ``(N, texts)``, int64."""
        return self.offsets.diff().view(-1, self.texts)

    def padded(self, indices: Tensor, which: int, length: int) -> Tensor:
        """Gather one sentence of some examples, padded or cut to a length: ``(B, length)`` ids.

        Nothing waits for the device and no shape depends on values, so this may be captured in a
        CUDA graph.
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
        begin, end = self.offsets[index * self.texts + which :][:2].tolist()
        return list(map(self._vocabulary().word, self.ids[begin:end].tolist()))

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
        tensors = {name: getattr(self, name) for name in ("ids", "offsets", "labels", "lines")}
        return replace(self, **{k: v.to(device) for k, v in tensors.items() if v is not None})

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
            label = short(self.label_names[int(self.labels[place])])
            raise DataError(
                f"{self.where(example)}: received the label {label}; expected one of the training "
                f"data: {shown}{more}"
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
    total = len(records) if isinstance(records, Sequence) else None
    # flat arrays, which take no more memory than the tensors do
    ids, offsets, lines, labels = array("i"), array("q", [0]), array("q"), array("q")
    names: dict[str, int] = {}
    first: Record | None = None
    for done, record in enumerate(records, 1):
        first = first or record
        for words in _sentences(record, first, source):
            ids.extend(table.ids(words))
            offsets.append(len(ids))
        lines.append(record.line)
        own = (record.label,) if isinstance(record.label, str) else record.label or ()
        labels.extend([names.setdefault(name, len(names)) for name in own])
        if progress is not None and done % RECORDS_BETWEEN_REPORTS == 0:
            progress(done, total)
    if first is None:
        raise DataError(f"{source}: received no record; expected at least one")
    if progress is not None:
        progress(len(lines), len(lines))
    encoded = EncodedText(
        ids=torch.frombuffer(ids, dtype=torch.int32),
        offsets=torch.frombuffer(offsets, dtype=torch.int64),
        texts=len(first.texts),
        labels=None if first.label is None else torch.frombuffer(labels, dtype=torch.int64),
        label_names=tuple(names),
        lines=torch.frombuffer(lines, dtype=torch.int64),
        table=table,
        tagged=isinstance(first.label, tuple),
        source=source,
        notes=tuple(records.report.lines()) if isinstance(records, Records) else (),
    )
    return encoded.with_labels(_sorted_names(names))


def _sentences(record: Record, first: Record, source: str) -> list[list[str]]:
    """The words of a record, which must be like the first one."""
    label, received = record.label, ""
    sentences = [words_of(record, i) for i in range(len(record.texts))]
    if len(record.texts) != len(first.texts) or type(label) is not type(first.label):
        received, expected = _kind(record), f"{_kind(first)}, as on line {first.line}"
    elif not all(sentences):
        received, expected = "a text without words", "at least one word"
    elif isinstance(label, tuple) and len(label) != len(sentences[0]):
        received = counted(len(label), "tag")
        expected = f"one for each of the {counted(len(sentences[0]), 'word')}"
    if received:
        raise DataError(f"{source}, line {record.line}: received {received}; expected {expected}")
    return sentences


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
