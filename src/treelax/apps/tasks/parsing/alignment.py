"""Which words of a parser are which words of a treebank, if it cut the text itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from treelax.apps.data.conllu import Sentence


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
