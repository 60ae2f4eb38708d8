"""The sentences that trees are compared on, with what is known of them: heads, tags, labels."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace

from treelax.data.conllu import Sentence
from treelax.errors import InputError

__all__ = ["Corpus", "Label", "check_same_sentences", "punctuation"]

PUNCTUATION = "PUNCT"
SHOWN = 60  # characters of a sentence in a message
Label = str | tuple[str, ...] | None


@dataclass(frozen=True)
class Corpus:
    """Sentences and what is known of them.

    Attributes:
        name: where they come from.
        sentences: the texts of the first example, of the second, and so on; with heads and tags
            where they are known.
        texts: of an example: 2 for pairs.
        labels: of each example, a class or a tag for each word; None where none are known.
        listops: the sentences are ListOps expressions.

    Raises:
        InputError: there are no sentences, or they do not make whole examples.

    Example:
        >>> Corpus("two dogs", (Sentence(("Dogs", "bark"), (2, 0)),)).gold
        [(2, 0)]
    """

    name: str
    sentences: tuple[Sentence, ...]
    texts: int = 1
    labels: tuple[Label, ...] | None = None
    listops: bool = False

    def __post_init__(self) -> None:
        examples, rest = divmod(len(self.sentences), self.texts)
        if not examples or rest:
            raise InputError(
                f"{self.name}: received {len(self.sentences)} sentences; expected at least "
                f"{self.texts}, and {self.texts} for every example"
            )
        if self.labels is not None and len(self.labels) != examples:
            raise InputError(
                f"{self.name}: received {len(self.labels)} labels; expected {examples}, one for "
                "every example"
            )

    @property
    def words(self) -> list[tuple[str, ...]]:
        """The words of each sentence."""
        return [sentence.words for sentence in self.sentences]

    @property
    def gold(self) -> list[tuple[int, ...]] | None:
        """The known heads of each sentence; None unless all have some."""
        heads = [sentence.heads for sentence in self.sentences]
        return None if any(own is None for own in heads) else [own for own in heads if own]

    @property
    def tags(self) -> list[tuple[str, ...]] | None:
        """The known tags of each sentence; None unless all have some."""
        tags = [sentence.tags for sentence in self.sentences]
        return None if any(own is None for own in tags) else [own for own in tags if own]

    @property
    def examples(self) -> list[tuple[Sentence, ...]]:
        """The sentences of each example."""
        step = self.texts
        return [self.sentences[i : i + step] for i in range(0, len(self.sentences), step)]

    def part(self, *, limit: int | None = None, max_length: int | None = None) -> Corpus:
        """Leave out long examples, and all but the first of the others.

        Args:
            limit: the most examples to keep.
            max_length: the most words of a text.

        Returns:
            The others.

        Raises:
            InputError: nothing is left.

        Example:
            >>> two = (Sentence(("Hi",)), Sentence(("Dogs", "bark")))
            >>> Corpus("two", two).part(max_length=1).words
            [('Hi',)]
        """
        kept = [
            i
            for i, texts in enumerate(self.examples)
            if max_length is None or max(map(len, texts)) <= max_length
        ][:limit]
        if not kept:
            shortest = min(max(map(len, texts)) for texts in self.examples)
            raise InputError(
                f"{self.name}: received {max_length} as the most words; expected at least "
                f"{shortest}, to keep some sentences"
            )
        examples, labels = self.examples, self.labels
        return replace(
            self,
            sentences=tuple(text for i in kept for text in examples[i]),
            labels=None if labels is None else tuple(labels[i] for i in kept),
        )


def check_same_sentences(first: Corpus, second: Corpus) -> None:
    """Refuse sentences of one run that are not those of another.

    Args:
        first: sentences of a run.
        second: those of another.

    Raises:
        InputError: they differ; the message shows the first that does.

    Example:
        >>> check_same_sentences(Corpus("a", (Sentence(("Hi",)),)), Corpus("b", (Sentence(("Ho",)),)))
        Traceback (most recent call last):
        ...
        treelax.errors.InputError: b: sentence 1 is 'Ho' and that of a is 'Hi'; expected the same \
sentences for all runs: give --data FILE
    """
    advice = "expected the same sentences for all runs: give --data FILE"
    pairs = zip(first.words, second.words, strict=False)
    for number, (own, other) in enumerate(pairs, 1):
        if own != other:
            raise InputError(
                f"{second.name}: sentence {number} is {_short(other)} and that of {first.name} is "
                f"{_short(own)}; {advice}"
            )
    if len(first.sentences) != len(second.sentences):
        raise InputError(
            f"{second.name}: has {len(second.sentences)} sentences and {first.name} "
            f"{len(first.sentences)}; {advice}"
        )


def punctuation(corpus: Corpus) -> list[list[bool]]:
    """Which words are punctuation: by universal tags, or where none is such by their characters.

    Args:
        corpus: the sentences.

    Returns:
        For each word of each sentence whether it is.

    Example:
        >>> punctuation(Corpus("one", (Sentence(("Hi", "!")),)))
        [[False, True]]
    """
    if corpus.listops:  # brackets are words there
        return [[False] * len(sentence) for sentence in corpus.sentences]
    if any(PUNCTUATION in (sentence.tags or ()) for sentence in corpus.sentences):
        return [[tag == PUNCTUATION for tag in s.tags or s.words] for s in corpus.sentences]
    return [[_is_punctuation(word) for word in words] for words in corpus.words]


def _is_punctuation(word: str) -> bool:
    return all(unicodedata.category(character).startswith("P") for character in word)


def _short(words: Sequence[str]) -> str:
    text = " ".join(words)
    return repr(text if len(text) <= SHOWN else f"{text[:SHOWN]}…")
