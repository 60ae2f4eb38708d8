"""Text as flat tensors of word ids, and batches gathered from them on any device.

All words of all sentences stand in one tensor, one sentence behind the other, and offsets tell
where each begins: no padding is stored, a whole data set fits on a device, and a batch is padded to
any length as it is gathered, in a few operations of fixed shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from treelax.data.text.delimited import short
from treelax.data.text.vocabulary import PADDING, Vocabulary, WordTable
from treelax.errors import DataError, InputError

__all__ = ["NO_TAG", "EncodedText"]

NO_TAG = -1  # where a batch of tags is padded
NAMES_SHOWN = 20


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
        parts: of joined sets, the number of examples and the file of each; empty for a single one.
        truncated: how many sentences were cut.
        dropped: how many examples were left out for their length.
        notes: what was left out or cut, in words.

    Example:
        >>> from treelax.data.text.encoding import encode_records
        >>> from treelax.data.text.records import Record
        >>> record = Record(("dogs bark", "cats do"), "no", 1, tokens=True)
        >>> data = encode_records([record], Vocabulary())
        >>> data.ids, data.offsets, data.labels, data.label_names
        (tensor([1, 2, 3, 4], dtype=torch.int32), tensor([0, 2, 4]), tensor([0]), ('no',))
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
    truncated: int = 0
    dropped: int = 0
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
        """Gather one sentence of some examples, padded to a given length.

        Nothing waits for the device and all shapes follow from the arguments' shapes and
        ``length``, so this may be captured in a CUDA graph. For the same reason the indices and the
        length are not checked: a sentence longer than ``length`` is cut.

        Args:
            indices: ``(B,)`` integers from 0 to N - 1, on the same device.
            which: 0 for the first sentence of an example, 1 for the second.
            length: how many columns, `lengths` of the longest of the B sentences for example.

        Returns:
            ``(B, length)`` ids, int64, 0 where there is no word.

        Raises:
            InputError: there is no such sentence, or the length is negative.

        Example:
            >>> from treelax.data.text.encoding import encode_records
            >>> from treelax.data.text.records import Record
            >>> records = [Record((t,), "x", 1, tokens=True) for t in ("dogs bark", "no")]
            >>> encode_records(records, Vocabulary()).padded(torch.tensor([1, 0]), 0, 3)
            tensor([[3, 0, 0],
                    [1, 2, 0]])
        """
        return self._gathered(self.ids, indices, which, length, PADDING)

    def targets(self, indices: Tensor, length: int) -> Tensor:
        """Gather the labels of some examples, as `padded` gathers words.

        Args:
            indices: ``(B,)`` integers from 0 to N - 1, on the same device.
            length: how many columns tags are padded to; not used for classes.

        Returns:
            Classes ``(B,)``, or tags ``(B, length)`` with -1 where there is no word; int64.

        Raises:
            InputError: there are no labels, or the length is negative.

        Example:
            >>> from treelax.data.text.encoding import encode_records
            >>> from treelax.data.text.records import Record
            >>> record = Record(("dogs bark",), ("NOUN", "VERB"), 1, tokens=True)
            >>> encode_records([record], Vocabulary()).targets(torch.tensor([0]), 3)
            tensor([[ 0,  1, -1]])
        """
        if self.labels is None:
            raise InputError(f"labels: {self.source} has none; expected labelled data")
        if self.tagged:
            return self._gathered(self.labels, indices, 0, length, NO_TAG)
        return self.labels[indices]

    def _gathered(
        self, flat: Tensor, indices: Tensor, which: int, length: int, padding: int
    ) -> Tensor:
        if not 0 <= which < self.texts:
            raise InputError(f"which: received {which}; expected 0 to {self.texts - 1}")
        if length < 0:
            raise InputError(f"length: received {length}; expected 0 or more")
        sentence = indices * self.texts + which
        begin, end = self.offsets[sentence], self.offsets[sentence + 1]
        place = begin[:, None] + torch.arange(length, device=flat.device)  # (B, length)
        values = flat[place.clamp(max=len(flat) - 1)].long()
        return values.masked_fill(place >= end[:, None], padding)

    def words(self, index: int, which: int = 0) -> list[str]:
        """The words of one sentence, as its `Vocabulary` has them.

        Args:
            index: the example, from 0 to N - 1.
            which: 0 for its first sentence, 1 for its second.

        Returns:
            The words.

        Raises:
            InputError: there is no such sentence, or the ids are rows of vectors, which words share.

        Example:
            >>> from treelax.data.text.encoding import encode_records
            >>> from treelax.data.text.records import Record
            >>> record = Record(("Dogs bark",), None, 1)
            >>> encode_records([record], Vocabulary(lower=True)).words(0)
            ['dogs', 'bark']
        """
        if not isinstance(self.table, Vocabulary):
            raise InputError("table: the ids are those of vectors; expected those of a vocabulary")
        if not (0 <= index < len(self) and 0 <= which < self.texts):
            raise InputError(
                f"index and which: received {index} and {which}; expected less than {len(self)} "
                f"and {self.texts}"
            )
        begin, end = self.offsets[index * self.texts + which :][:2].tolist()
        return [self.table.word(number) for number in self.ids[begin:end].tolist()]

    def where(self, index: int) -> str:
        """The file and the line of an example, for messages.

        Args:
            index: the example, from 0 to N - 1.

        Returns:
            Both, in words.

        Example:
            >>> from treelax.data.text.encoding import encode_records
            >>> from treelax.data.text.records import Record
            >>> encode_records([Record(("a b",), "x", 7)], Vocabulary()).where(0)
            'records, line 7'
        """
        source, before = self.source, 0
        for count, name in self.parts:
            if before <= index < before + count:
                source = name
            before += count
        return f"{source}, line {int(self.lines[index])}"

    def to(self, device: torch.device | str) -> EncodedText:
        """Put all tensors on a device.

        Args:
            device: where to.

        Returns:
            The same examples there.

        Example:
            >>> from treelax.data.text.encoding import encode_records
            >>> from treelax.data.text.records import Record
            >>> encode_records([Record(("a b",), "x", 1)], Vocabulary()).to("cpu").lengths
            tensor([[2]])
        """
        return replace(
            self,
            ids=self.ids.to(device),
            offsets=self.offsets.to(device),
            labels=None if self.labels is None else self.labels.to(device),
            lines=self.lines.to(device),
        )

    def with_table(self, table: WordTable) -> EncodedText:
        """Give the words the ids of another table, those of loaded vectors for example.

        Args:
            table: the other.

        Returns:
            The same examples with its ids.

        Raises:
            InputError: the present ids are not those of a `Vocabulary`.

        Example:
            >>> from treelax.data.text.encoding import encode_records
            >>> from treelax.data.text.records import Record
            >>> data = encode_records([Record(("a b",), "x", 1)], Vocabulary())
            >>> data.with_table(Vocabulary(["b", "a"])).ids
            tensor([2, 1], dtype=torch.int32)
        """
        if not isinstance(self.table, Vocabulary):
            raise InputError("table: the ids are those of vectors; expected those of a vocabulary")
        new = torch.tensor([PADDING, *table.ids(self.table)], dtype=torch.int32)
        if torch.equal(new, torch.arange(len(new), dtype=torch.int32)):
            return replace(self, table=table)  # a file mapped into memory stays unread
        return replace(self, ids=new.to(self.ids.device)[self.ids], table=table)

    def with_labels(self, names: Sequence[str]) -> EncodedText:
        """Number the labels in another order, that of the training data for example.

        Args:
            names: all labels there are.

        Returns:
            The same examples with labels numbered like that.

        Raises:
            DataError: a label is not among the names; the message names file and line.
            InputError: a name comes twice.

        Example:
            >>> from treelax.data.text.encoding import encode_records
            >>> from treelax.data.text.records import Record
            >>> data = encode_records([Record(("a b",), "x", 1)], Vocabulary())
            >>> data.with_labels(["y", "x"]).labels
            tensor([1])
        """
        known = {name: number for number, name in enumerate(names)}
        if len(known) != len(names):
            raise InputError(f"names: received {_listed(names)}; expected different ones")
        if self.labels is None or tuple(names) == self.label_names:
            return replace(self, label_names=tuple(names))
        number = torch.tensor(
            [known.get(name, -1) for name in self.label_names], device=self.labels.device
        )
        labels = number[self.labels]
        strange = (labels < 0).nonzero()
        if len(strange):
            place = int(strange[0])
            example = place
            if self.tagged:  # one sentence an example: the offsets are those of examples
                example = int(torch.searchsorted(self.offsets, place, right=True)) - 1
            raise DataError(
                f"{self.where(example)}: received the label "
                f"{short(self.label_names[int(self.labels[place])])}; expected one of the training "
                f"data: {_listed(names)}; train with an example of it, or take "
                f"{'this sentence' if self.tagged else 'this line'} out"
            )
        return replace(self, labels=labels, label_names=tuple(names))


def _listed(names: Sequence[str]) -> str:
    """Names for a message, the first ones if there are many."""
    shown = [short(name) for name in names[:NAMES_SHOWN]]
    if len(names) > NAMES_SHOWN:
        shown.append(f"… ({len(names)} in all)")
    return ", ".join(shown)
