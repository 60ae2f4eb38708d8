"""The figures of a parser on a treebank, by the rules of the CoNLL 2018 shared task."""

from __future__ import annotations

import unicodedata
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import torch

from treelax.apps.data.conllu import Sentence
from treelax.apps.table import Table
from treelax.apps.tasks.base import Heads
from treelax.apps.tasks.parsing.lexicon import universal
from treelax.trees import is_tree

LENGTHS = (10, 20, 30, 40)  # upper ends of the rows by sentence length
ARCS = (1, 2, 3, 6, 10)  # upper ends of the rows by arc length
ROOT = "root"
KEYS = ("uas", "las", "exact_las")
HEADINGS = ("UAS", "LAS", "exact LAS")


@dataclass(frozen=True)
class ParsingFigures:
    """Heads and labels that are right, in percent of words, as F1 where the parser cut the words."""

    sentences: int
    words: int  # syntactic words, as in CoNLL-U
    uas: float  # words with the right head
    las: float  # words with the right head and label, where subtypes (nsubj:pass) do not count
    exact_las: float  # likewise, where they do
    exact_trees: float  # sentences whose heads are all right
    without_punctuation: dict[str, Any]  # the figures of words that are not punctuation marks alone
    by_label: dict[str, dict[str, Any]]  # by gold label without subtype, the most frequent first
    by_length: dict[str, dict[str, Any]]  # by length of the sentence
    by_arc: dict[str, dict[str, Any]]  # by distance between the word and its gold head
    # sentences whose heads are no tree with one root; None in results of before it was counted
    malformed: float | None = None
    word_f1: float = 100.0  # of the words; 100 for those of the treebank

    @classmethod
    def of(
        cls,
        gold: Sequence[Sentence],
        parses: Iterable[tuple[tuple[str, ...], Heads, Sequence[str]]],
    ) -> ParsingFigures:
        """Compare parsed words, heads and labels with those of gold sentences.

        >>> gold = [Sentence(("Dogs", "bark"), (2, 0), labels=("nsubj:x", "root"))]
        >>> found = ParsingFigures.of(gold, [(("Dogs", "bark"), (2, 0), ("nsubj", "root"))])
        >>> found.uas, found.las, found.exact_las
        (100.0, 100.0, 50.0)
        """
        counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)  # by table and row
        exact = malformed = 0
        for sentence, (words, heads, labels) in zip(gold, parses, strict=True):
            assert sentence.heads is not None
            assert sentence.labels is not None
            exact += words == sentence.words and heads == sentence.heads
            malformed += not is_tree(torch.tensor(heads), single_root=True)
            same = {m: m for m in range(len(sentence) + 1)}
            gold_of = same if words == sentence.words else {0: 0, **align(sentence, words)}
            # of each gold word that was found, its head as a gold word, and its label
            numbered = enumerate(zip(heads, labels, strict=True), 1)
            arcs = {gold_of[m]: (gold_of.get(h), y) for m, (h, y) in numbered if m in gold_of}
            gold_arcs = zip(sentence.words, sentence.heads, sentence.labels, strict=True)
            for m, (word, head, label) in enumerate(gold_arcs, 1):
                found_head, found_label = arcs.get(m, (None, ""))
                attached = head == found_head
                figures = {
                    "words": 1,
                    "found": m in arcs,
                    "uas": attached,
                    "las": attached and universal(label) == universal(found_label),
                    "exact_las": attached and label == found_label,
                }
                counts["label", universal(label)].update(figures)
                counts["length", _row(LENGTHS, len(sentence))].update(figures)
                counts["arc", _row(ARCS, abs(head - m)) if head else ROOT].update(figures)
                counts["all words", ""].update(figures)
                if not is_punctuation(word):
                    counts["without punctuation", ""].update(figures)
            counts["all words", ""]["parsed"] += len(words)
            counts["without punctuation", ""]["parsed"] += sum(not is_punctuation(w) for w in words)

        def table(name: str, rows: Iterable[str]) -> dict[str, dict[str, Any]]:
            return {row: _shares(counts[name, row]) for row in rows if (name, row) in counts}

        by_count = sorted(
            (-count["words"], row) for (name, row), count in counts.items() if name == "label"
        )
        return cls(
            len(gold),
            **_shares(counts["all words", ""]),
            exact_trees=100 * exact / max(len(gold), 1),
            without_punctuation=_shares(counts["without punctuation", ""]),
            by_label=table("label", (row for _, row in by_count)),
            by_length=table("length", _rows(LENGTHS)),
            by_arc=table("arc", (*_rows(ARCS), ROOT)),
            malformed=100 * malformed / max(len(gold), 1),
            word_f1=_f1(counts["all words", ""], "found"),
        )

    def record(self) -> dict[str, Any]:
        """All figures, for JSON."""
        return asdict(self)

    def tables(self, title: str) -> list[Table]:
        """All figures, for people."""
        main = {"all words": asdict(self), "without punctuation": self.without_punctuation}
        heading = f"{title}: {self.sentences:,} sentences, {self.exact_trees:.2f} % all heads right"
        if self.malformed:
            heading += f", {self.malformed:.2f} % no tree with one root"
        if self.word_f1 < 100:
            heading += f"; F1 of words {self.word_f1:.2f}"
        rest = {"label": self.by_label, "words of sentence": self.by_length, "arc": self.by_arc}
        return [
            _table("%", main, heading),
            *(_table(name, rows, None) for name, rows in rest.items()),
        ]


def is_punctuation(word: str) -> bool:
    """Whether a word is made of punctuation marks alone.

    >>> is_punctuation("..."), is_punctuation("$"), is_punctuation("o'clock")
    (True, False, False)
    """
    return all(unicodedata.category(character).startswith("P") for character in word)


def _rows(ends: Sequence[int]) -> list[str]:
    """Rows of lengths, up to each of their ends and beyond."""
    starts = (1, *(end + 1 for end in ends))
    pairs = zip(starts, (*ends, ""), strict=True)
    return [str(start) if start == end else f"{start}-{end}" for start, end in pairs]


def _row(ends: Sequence[int], length: int) -> str:
    return _rows(ends)[bisect_left(ends, length)]


def _shares(counts: Counter[str]) -> dict[str, Any]:
    return {"words": counts["words"]} | {key: _f1(counts, key) for key in KEYS}


def _f1(counts: Counter[str], key: str) -> float:
    """F1 of what is right; where the parser's words are not counted, the share of gold."""
    words = counts["words"]
    return 200 * counts[key] / max(words + counts.get("parsed", words), 1)


def _table(name: str, rows: dict[str, dict[str, Any]], title: str | None) -> Table:
    cells = [[key, row["words"], *(float(row[k]) for k in KEYS)] for key, row in rows.items()]
    return Table([name, "words", *HEADINGS], cells, title)


# ------------------------------------------------------------------ words that the parser cut


def surface_tokens(sentence: Sentence) -> Iterator[tuple[str, range]]:
    """The tokens of a sentence as its text has them, each with the numbers of its words.

    >>> lines = [f"{number}\\t{form}" for number, form in (("1-2", "don't"), (1, "do"), (2, "n't"))]
    >>> list(surface_tokens(Sentence(("do", "n't"), lines=tuple(lines))))
    [("don't", range(1, 3))]
    """
    end = 0
    for line in sentence.lines or [f"{m}\t{word}" for m, word in enumerate(sentence.words, 1)]:
        if line.startswith("#"):
            continue
        number, form = line.split("\t")[:2]
        first, _, last = number.partition("-")
        if "." not in number and int(first) > end:  # no empty node, no word of a multiword token
            end = int(last or first)
            yield form, range(int(first), end + 1)


def characters(text: str) -> str:
    """What is compared of a text: all but its spaces."""
    return "".join(text.split())


def align(gold: Sentence, words: Sequence[str]) -> dict[int, int]:
    """For words that cut the same text otherwise, the number of the gold word that each of them is.

    By the rules of the CoNLL 2018 shared task: a word is a gold word if both have the same characters
    of the text. The words of a gold multiword token have none; among the words within
    it, they are found by the longest common subsequence of forms, whatever their case.

    >>> align(Sentence(("well", "-", "known", ".")), ("well-known", "."))
    {2: 4}
    """
    ends, end = [], 0
    for word in words:
        ends.append(end := end + len(characters(word)))
    spans = {span: m for m, span in enumerate(zip([0, *ends], ends, strict=False), 1)}
    numbers_of, start = {}, 0
    for form, numbers in surface_tokens(gold):
        end = start + len(characters(form))
        if len(numbers) == 1:
            if (start, end) in spans:
                numbers_of[spans[start, end]] = numbers[0]
        else:
            inside = [m for (a, b), m in spans.items() if start <= a and b <= end]
            gold_forms = tuple(gold.words[g - 1].lower() for g in numbers)
            forms = tuple(words[m - 1].lower() for m in inside)
            numbers_of |= {inside[j]: numbers[i] for i, j in _common(gold_forms, forms)}
        start = end
    return numbers_of


def _common(one: Sequence[str], other: Sequence[str]) -> tuple[tuple[int, int], ...]:
    """The places of a longest common subsequence."""

    @cache
    def best(i: int, j: int) -> tuple[tuple[int, int], ...]:
        if i == len(one) or j == len(other):
            return ()
        if one[i] == other[j]:
            return ((i, j), *best(i + 1, j + 1))
        return max(best(i + 1, j), best(i, j + 1), key=len)

    return best(0, 0)
