"""What is in a set of sentences or pairs: classes and lengths."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from treelax.data.text.records import Record

__all__ = ["TextStatistics"]


class TextStatistics:
    """Counts records that pass by."""

    def __init__(self) -> None:
        self.records = 0
        self.labels: Counter[str] = Counter()
        self._words: list[int] = []
        self._longest: list[int] = []

    def watch(self, records: Iterable[Record]) -> Iterator[Record]:
        """Give records on as they come, and count them."""
        for record in records:
            self.add(record)
            yield record

    def add(self, record: Record) -> None:
        """Count one record."""
        self.records += 1
        if isinstance(record.label, str):
            self.labels[record.label] += 1
        elif record.label is not None:
            self.labels.update(record.label)
        lengths = list(map(len, record.words()))
        if len(lengths) > len(self._words):
            more = [0] * (len(lengths) - len(self._words))
            self._words, self._longest = self._words + more, self._longest + more
        for i, length in enumerate(lengths):
            self._words[i] += length
            self._longest[i] = max(self._longest[i], length)

    def summary(self) -> dict[str, Any]:
        """The figures: records, labels by frequency, and per text mean and greatest length."""
        return {
            "records": self.records,
            "labels": dict(self.labels.most_common()),
            "length_mean": [words / self.records for words in self._words],
            "length_max": list(self._longest),
        }
