"""The sentences that trees are compared on, with what is known of them: heads, tags, labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from unicodedata import category

from treelax.apps.data.conllu import Sentence
from treelax.apps.tasks.base import Baseline, Example, Examples, Label
from treelax.errors import InputError, short

PUNCTUATION = "PUNCT"


@dataclass(frozen=True)
class Corpus:
    """Sentences and what is known of them: heads, tags, labels."""

    name: str  # where they come from
    sentences: tuple[Sentence, ...]  # the texts of the first example, of the second, and so on
    texts: int = 1  # of an example: 2 for pairs
    # of each example, a class or a tag for each word; None where none are known
    labels: tuple[Label, ...] | None = None
    has_punctuation: bool = True  # punctuation marks are no words
    # by name, the trees that a simple rule gives to words
    baselines: Mapping[str, Baseline] = field(default_factory=dict, compare=False)

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

    @classmethod
    def of(
        cls, examples: Examples, *, limit: int | None = None, max_length: int | None = None
    ) -> Corpus:
        """The corpus of some examples."""
        chosen: list[Example] = []
        shortest = 0
        for example in examples:
            length = max(map(len, example.texts))
            if all(example.texts) and (max_length is None or length <= max_length):
                chosen.append(example)
                if len(chosen) == limit:
                    break
            elif length:
                shortest = min(shortest or length, length)
        if not chosen:
            most = (
                f" of at most {max_length} words, the shortest has {shortest}" if shortest else ""
            )
            raise InputError(f"{examples.name}: received no sentences; expected at least one{most}")
        labels = tuple(example.label for example in chosen)
        return cls(
            examples.name,
            tuple(sentence for example in chosen for sentence in example.sentences),
            len(chosen[0].texts),
            None if all(label is None for label in labels) else labels,
            examples.has_punctuation,
            examples.baselines,
        )

    @property
    def words(self) -> list[tuple[str, ...]]:
        """The words of each sentence."""
        return [sentence.words for sentence in self.sentences]

    @property
    def gold(self) -> list[tuple[int, ...]] | None:
        """The known heads of each sentence; None unless all have some."""
        heads = [sentence.heads for sentence in self.sentences if sentence.heads is not None]
        return heads if len(heads) == len(self.sentences) else None

    @property
    def tags(self) -> list[tuple[str, ...]] | None:
        """The known tags of each sentence; None unless all have some."""
        tags = [sentence.tags for sentence in self.sentences if sentence.tags is not None]
        return tags if len(tags) == len(self.sentences) else None

    @property
    def examples(self) -> list[tuple[Sentence, ...]]:
        """The sentences of each example."""
        step = self.texts
        return [self.sentences[i : i + step] for i in range(0, len(self.sentences), step)]


def check_same_sentences(first: Corpus, second: Corpus) -> None:
    """Refuse sentences of one run that are not those of another."""
    advice = "expected the same sentences for all runs: give --data FILE"
    for number, (words, other) in enumerate(zip(first.words, second.words, strict=False), 1):
        if words != other:
            raise InputError(
                f"{second.name}: sentence {number} is {short(' '.join(other))} and that of "
                f"{first.name} is {short(' '.join(words))}; {advice}"
            )
    if len(first.sentences) != len(second.sentences):
        raise InputError(
            f"{second.name}: has {len(second.sentences)} sentences and {first.name} "
            f"{len(first.sentences)}; {advice}"
        )


def punctuation(corpus: Corpus) -> list[list[bool]]:
    """Which words are punctuation: by universal tags, or where none is such by their characters."""
    if not corpus.has_punctuation:
        return [[False] * len(sentence) for sentence in corpus.sentences]
    if any(PUNCTUATION in (sentence.tags or ()) for sentence in corpus.sentences):
        return [[tag == PUNCTUATION for tag in s.tags or s.words] for s in corpus.sentences]
    return [[all(category(c)[0] == "P" for c in word) for word in words] for words in corpus.words]
