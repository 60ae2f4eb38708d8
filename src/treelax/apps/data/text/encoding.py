"""Text as flat tensors of word ids without padding, and padded batches gathered from them."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from treelax.apps.data.text.records import Record, Records, words_of
from treelax.apps.data.text.vocabulary import PADDING, Vocabulary, WordTable
from treelax.errors import DataError, short

__all__ = ["NO_TAG", "EncodedText", "encode_records"]

NO_TAG = -1  # where a batch of tags is padded
NAMES_SHOWN = 20
RECORDS_BETWEEN_REPORTS = 2048


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
    heads: Tensor | None = (
        None  # (W,), int32: given ones, counted from 1 in the sentence, 0 the root
    )

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def lengths(self) -> Tensor:
        """Words of each sentence, ``(N, texts)``, int64."""
        return self.offsets.diff().view(-1, self.texts)

    def padded(self, indices: Tensor, which: int, length: int) -> Tensor:
        """Gather one sentence of some examples, padded or cut to a length: ``(B, length)`` ids."""
        return self._gathered(self.ids, indices, which, length, PADDING)

    def padded_heads(self, indices: Tensor, which: int, length: int) -> Tensor | None:
        """Gather the given heads, if there are any, as `padded` gathers words; 0 in the padding."""
        return None if self.heads is None else self._gathered(self.heads, indices, which, length, 0)

    def targets(self, indices: Tensor, length: int) -> Tensor:
        """Gather labels as `padded` gathers words: classes ``(B,)``, or tags ``(B, length)``."""
        assert self.labels is not None  # unlabelled data are refused as they are loaded
        if self.tagged:
            return self._gathered(self.labels, indices, 0, length, NO_TAG)
        return self.labels[indices]

    def _gathered(
        self, flat: Tensor, indices: Tensor, which: int, length: int, padding: int
    ) -> Tensor:
        # nothing waits for the device and no shape depends on values: fit for a CUDA graph
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
        assert isinstance(self.table, Vocabulary)  # not vectors
        return self.table

    def where(self, index: int) -> str:
        """The file and the line of an example, for messages."""
        source, place = self.source, index
        for count, name in self.parts:
            if 0 <= place < count:
                source = name
            place -= count
        return f"{source}, line {int(self.lines[index])}"

    def to(self, device: torch.device | str) -> EncodedText:
        """The same examples with all tensors on a device."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        tensors = {k: t.to(device) for k, t in values.items() if isinstance(t, Tensor)}
        return replace(self, **tensors)  # type: ignore[arg-type]

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
        numbers = [known.get(name, -1) for name in self.label_names]
        labels = torch.tensor(numbers, device=self.labels.device)[self.labels]
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
    records: Iterable[Record],
    table: WordTable,
    *,
    progress: Callable[[int, int | None], None] | None = None,
) -> EncodedText:
    """Encode the texts and labels of records, on the CPU.

    Labels are numbered in alphabetical order, or by size if all are integers; `progress` is called
    now and then with the number of records done, and of all if it is known.
    """
    source = str(getattr(records, "source", "records"))
    total = len(records) if isinstance(records, Sequence) else None
    # flat arrays, which take no more memory than the tensors do
    ids, offsets, lines, labels = array("i"), array("q", [0]), array("q"), array("q")
    names: dict[str, int] = {}
    first: Record | None = None
    for done, record in enumerate(records, 1):
        first = first or record
        sentences = [words_of(record, i) for i in range(len(record.texts))]
        targets = (record.label,) if isinstance(record.label, str) else record.label or ()
        is_alike = len(record.texts) == len(first.texts) and type(record.label) is type(first.label)
        tags_fit = not isinstance(record.label, tuple) or len(targets) == len(sentences[0])
        if not (is_alike and tags_fit and all(sentences)):
            raise DataError(
                f"{source}, line {record.line}: received texts or a label of another kind than on line "
                f"{first.line}; expected as many texts, all with words, and a class, or a tag per word"
            )
        for words in sentences:
            ids.extend(table.ids(words))
            offsets.append(len(ids))
        lines.append(record.line)
        labels.extend([names.setdefault(name, len(names)) for name in targets])
        if progress is not None and done % RECORDS_BETWEEN_REPORTS == 0:
            progress(done, total)
    if first is None:
        raise DataError(f"{source}: received no record; expected at least one")
    if progress is not None:
        progress(len(lines), len(lines))
    integers = all(re.fullmatch("-?[0-9]{1,19}", name) for name in names)
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
    return encoded.with_labels(sorted(sorted(names), key=int if integers else str))
