"""What a trained sentence model says of new texts: labels, their probabilities, trees."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import islice
from threading import Lock
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from treelax.data.batching import MOST_ARCS, length_batches
from treelax.data.conllu import Sentence
from treelax.data.text.vectors import NULL
from treelax.data.text.vocabulary import WordTable
from treelax.errors import InputError
from treelax.nn.modes import evaluating
from treelax.tasks.base import Prediction, heads_without_null
from treelax.tasks.text.given_trees import check_tree
from treelax.tasks.text.model import ClassModel, PairModel, Sentences, TagModel
from treelax.tasks.text.sentence_settings import SentenceSettings, with_learned_words
from treelax.tasks.text.subwords import SubwordTable

__all__ = [
    "WINDOW",
    "Prediction",
    "SentenceSettings",
    "Texts",
    "known_spellings",
    "new_network",
    "predict_words",
    "refuse_long",
    "sentences_of",
    "with_learned_words",
    "words_in",
]

# the words of each text, and for a model that takes given trees their heads
Texts = Sequence[Sequence[str] | Sentence]
TextModel = PairModel | ClassModel | TagModel
NETWORKS: dict[str, type[TextModel]] = {"pair": PairModel, "classify": ClassModel, "tag": TagModel}
# examples are read ahead by so many batches, to be sorted by length
WINDOW = 32
TABLE_IN_USE = Lock()  # of words with sub-words, which grow with every text


def new_network(settings: SentenceSettings, table: Tensor, classes: int) -> TextModel:
    """A network with new weights."""
    return NETWORKS[settings.kind](settings.model, table, classes)


def predict_words(
    network: TextModel,
    settings: SentenceSettings,
    table: WordTable,
    labels: Sequence[str],
    examples: Iterable[Texts],
    *,
    soft: bool = False,
    scores: bool = False,
    batch_size: int = 64,
) -> Iterator[Prediction]:
    """What a model says of some examples, in their order.

    Examples are read ahead a little, sorted by length and put into batches, smaller ones where
    sentences are long; so the memory that is needed does not grow with their number.
    """
    if batch_size < 1:
        raise InputError(f"batch_size is {batch_size}; expected at least 1")
    one_batch = _OneBatch(network, settings, table, labels, soft, scores)
    return _in_order(iter(examples), one_batch, batch_size)


def _in_order(
    examples: Iterator[Texts], one_batch: _OneBatch, batch_size: int
) -> Iterator[Prediction]:
    passed = 0
    while window := list(islice(examples, WINDOW * batch_size)):
        with one_batch.alone():
            for number, example in enumerate(window, passed):
                one_batch.check(example, f"texts[{number}]")
        passed += len(window)
        texts = [tuple(map(words_in, example)) for example in window]
        done = [Prediction(words) for words in texts]
        # without those that have an empty text; NULL counts as a word
        longest = {i: max(map(len, text)) + 1 for i, text in enumerate(texts) if all(text)}
        for indices in length_batches(
            longest, most_arcs=MOST_ARCS, most_sentences=batch_size, texts=len(texts[0])
        ):
            with one_batch.alone():
                said = one_batch([window[index] for index in indices])
            for index, prediction in zip(indices, said, strict=True):
                done[index] = prediction
        yield from done


def refuse_long(settings: SentenceSettings, table: WordTable, example: Texts, where: str) -> None:
    """Refuse an example with a text that is too long for a transformer; others take any."""
    if isinstance(table, SubwordTable):
        for text in example:
            table.check_length(known_spellings(settings, words_in(text)), where)


def words_in(text: Sequence[str] | Sentence) -> tuple[str, ...]:
    """Refuse an example with a text that is too long for a transformer; others take any."""
    return text.words if isinstance(text, Sentence) else tuple(text)


def _heads(text: Sequence[str] | Sentence) -> tuple[int, ...]:
    assert isinstance(text, Sentence)  # was checked
    assert text.heads is not None
    return text.heads


def known_spellings(settings: SentenceSettings, words: Iterable[str]) -> Iterable[str]:
    """The words of a text of an example."""
    return map(str.lower, words) if settings.lower else words


def sentences_of(
    settings: SentenceSettings,
    table: WordTable,
    texts: Sequence[Sequence[str]],
    device: torch.device | str = "cpu",
    *,
    heads: Sequence[Sequence[int]] | None = None,
) -> Sentences:
    """A batch of texts as the network takes them, with the NULL token in front if it has one."""
    front = [NULL] * settings.null
    rows = []
    for words in texts:
        rows.append(torch.tensor(front + table.ids(known_spellings(settings, words))))
    lengths = torch.tensor([len(row) for row in rows])
    ids = pad_sequence(rows, batch_first=True)
    given = None
    if heads is not None:
        trees = [
            torch.tensor(
                [*[0] * settings.null, *(head + (settings.null and head > 0) for head in each)]
            )
            for each in heads
        ]
        given = pad_sequence(trees, batch_first=True).to(device)
    return Sentences(ids.to(device), lengths.to(device), given)


@dataclass(frozen=True)
class _OneBatch:
    """Predicts examples that fit into memory together."""

    network: TextModel
    settings: SentenceSettings
    table: WordTable
    labels: Sequence[str]
    soft: bool
    scores: bool

    @property
    def given(self) -> bool:
        """Whether trees come with the texts."""
        return self.settings.model.trees == "given"

    def alone(self) -> AbstractContextManager[Any]:
        """Keeps other threads out where they would change the same table of words."""
        return TABLE_IN_USE if isinstance(self.table, SubwordTable) else nullcontext()

    def check(self, example: Texts, where: str) -> None:
        """Refuse what the model cannot take."""
        refuse_long(self.settings, self.table, example, where)
        for text in example if self.given else ():
            if not isinstance(text, Sentence):
                if not text:
                    continue  # gets no label, as everywhere
                raise InputError(
                    f"{where}: received words without heads, and model.trees is 'given'; expected a "
                    "tree with every text, for example sentences from read_conllu"
                )
            check_tree(text, where)

    def __call__(self, batch: Sequence[Texts]) -> list[Prediction]:
        if isinstance(self.table, SubwordTable):
            self.table.forget()
        device = next(self.network.parameters()).device
        examples = [tuple(map(words_in, example)) for example in batch]
        batches = [
            sentences_of(
                self.settings,
                self.table,
                list(map(words_in, texts)),
                device,
                heads=[_heads(text) for text in texts] if self.given else None,
            )
            for texts in zip(*batch, strict=True)
        ]
        logits, tree = self._run(batches)
        heads = [] if tree is None else self._heads(tree, batches)  # of each text
        arcs = self._scores(batches)
        best, shares = logits.argmax(-1).tolist(), logits.float().softmax(-1).tolist()
        said = []
        for i, words in enumerate(examples):
            label, probabilities = self._named(best[i], shares[i], len(words[0]))
            own = [self._own(rows[i], len(text)) for rows, text in zip(heads, words, strict=False)]
            scores = None
            if arcs is not None:
                sizes = [len(text) + self.settings.null + 1 for text in words]
                scores = tuple(text[i, :n, :n].clone() for text, n in zip(arcs, sizes, strict=True))
            said.append(Prediction(words, label, probabilities, tuple(own) or None, scores))
        return said

    @torch.no_grad()
    def _scores(self, batches: list[Sentences]) -> list[Tensor] | None:
        """Of each text, on the CPU; None unless asked for and there are some."""
        if not self.scores or self.network.encoder.tree is None:
            return None
        with evaluating(self.network):
            return [self.network.encoder.scores(batch).float().cpu() for batch in batches]

    @torch.no_grad()
    def _run(self, batches: list[Sentences]) -> tuple[Tensor, Tensor | None]:
        """Logits, those of NULL left out, and the trees: of all first texts, then of the second."""
        with evaluating(self.network):
            logits, tree = self.network.with_tree(*batches, soft=self.soft)
        return logits[:, self.settings.null :] if self.settings.kind == "tag" else logits, tree

    @torch.no_grad()
    def _heads(self, tree: Tensor, batches: list[Sentences]) -> list[list[list[int]]]:
        """The heads of all words, NULL counted; padding has heads that mean nothing."""
        layer = self.network.encoder.tree
        if self.soft and layer is not None:
            tree = layer.discrete(tree, torch.cat([batch.lengths for batch in batches]))
        heads = tree[..., 1:].argmax(-2)  # (texts · batch, n)
        return [part.tolist() for part in heads.chunk(len(batches))]

    def _own(self, heads: list[int], length: int) -> tuple[int, ...]:
        """The heads of so many words, counted without NULL."""
        if self.settings.null:
            return heads_without_null(heads[: length + 1])
        return tuple(heads[:length])

    def _named(
        self, best: Any, shares: Any, length: int
    ) -> tuple[str | tuple[str, ...], dict[str, float] | tuple[dict[str, float], ...]]:
        """Names for the numbers of a class, or of the tags of so many words."""
        if self.settings.kind != "tag":
            return self.labels[best], dict(zip(self.labels, shares, strict=True))
        return (
            tuple(self.labels[number] for number in best[:length]),
            tuple(dict(zip(self.labels, each, strict=True)) for each in shares[:length]),
        )
