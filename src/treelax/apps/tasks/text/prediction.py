"""Predictions of a trained network: labels, their probabilities, trees."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from threading import RLock
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from treelax.apps.data.batching import MOST_ARCS, length_batches
from treelax.apps.data.conllu import Sentence
from treelax.apps.data.text.vectors import NULL
from treelax.apps.data.text.vocabulary import WordTable
from treelax.apps.tasks.base import Heads, Prediction, Text, heads_without_null, spans_without_null
from treelax.apps.tasks.text.config import SentenceSettings
from treelax.apps.tasks.text.encoder import Sentences
from treelax.apps.tasks.text.given_trees import check_tree
from treelax.apps.tasks.text.model import TextModel
from treelax.apps.tasks.text.subwords import SubwordTable
from treelax.brackets import brackets
from treelax.errors import InputError
from treelax.nn.modes import evaluating

Texts = Sequence[Text]  # of one example
ALONE = RLock()  # for a network with a hook, or a table of sub-words, which grows with every text


def words_in(text: Text) -> tuple[str, ...]:
    """The words of a text."""
    return text.words if isinstance(text, Sentence) else tuple(text)


def known_spellings(settings: SentenceSettings, words: Iterable[str]) -> Iterable[str]:
    """Words as the model knows them."""
    return map(str.lower, words) if settings.lower else words


@dataclass(frozen=True)
class Predictor:
    """A network, and how to predict with it."""

    network: TextModel
    settings: SentenceSettings
    table: WordTable
    labels: Sequence[str]
    soft: bool = False
    scores: bool = False

    def predict(self, examples: Sequence[Texts], size: int, first: int = 0) -> list[Prediction]:
        """Predict examples, numbered from `first`, by length and in batches of bounded memory."""
        with self._alone():
            for number, example in enumerate(examples, first):
                self.check(example, f"texts[{number}]")
        texts = [tuple(map(words_in, example)) for example in examples]
        done = [Prediction(words) for words in texts]  # of an empty text there is no more to say
        longest = {i: max(map(len, text)) + 1 for i, text in enumerate(texts) if all(text)}  # NULL
        bounds = {"most_arcs": MOST_ARCS, "most_sentences": size, "texts": len(texts[0])}
        for indices in length_batches(longest, **bounds):
            with self._alone():
                predictions = self._batch([examples[index] for index in indices])
            for index, prediction in zip(indices, predictions, strict=True):
                done[index] = prediction
        return done

    def check(self, example: Texts, where: str) -> None:
        """Refuse texts that are too long for a transformer, or without the trees it needs."""
        for text in example:
            if isinstance(self.table, SubwordTable):
                self.table.check_length(known_spellings(self.settings, words_in(text)), where)
            if self.settings.model.trees != "given" or not len(text):
                continue
            if not isinstance(text, Sentence):
                raise InputError(
                    f"{where}: received words without heads, and model.trees is 'given'; expected a "
                    "tree with every text, for example sentences from read_conllu"
                )
            check_tree(text, where)

    def batches(self, examples: Sequence[Texts]) -> list[Sentences]:
        """All first texts as the network takes them, then all second ones."""
        if isinstance(self.table, SubwordTable):
            self.table.forget()
        return [self._sentences(texts) for texts in zip(*examples, strict=True)]

    def _sentences(self, texts: Sequence[Text]) -> Sentences:
        device, null = next(self.network.parameters()).device, int(self.settings.null)
        rows = [
            torch.tensor(
                [NULL] * null + self.table.ids(known_spellings(self.settings, words_in(t)))
            )
            for t in texts
        ]
        heads = None
        if self.settings.model.trees == "given":
            given = [text.heads or () for text in texts if isinstance(text, Sentence)]
            trees = [torch.tensor([0] * null + [h + null * (h > 0) for h in row]) for row in given]
            heads = pad_sequence(trees, batch_first=True).to(device)
        lengths = torch.tensor([len(row) for row in rows])
        return Sentences(pad_sequence(rows, batch_first=True).to(device), lengths.to(device), heads)

    def _alone(self) -> AbstractContextManager[Any]:
        return ALONE if isinstance(self.table, SubwordTable) else nullcontext()

    @torch.no_grad()
    def _batch(self, examples: Sequence[Texts]) -> list[Prediction]:
        encoder, null = self.network.encoder, int(self.settings.null)
        batches = self.batches(examples)
        with evaluating(self.network):
            # trees of all first texts, then of the second
            logits, tree = self.network.with_tree(*batches, soft=self.soft)
            parts = []
            if self.scores and encoder.tree is not None:
                parts = [encoder.scores(batch).float().cpu() for batch in batches]
        trees: list[Tensor] = []
        rooted = encoder.tree is None or encoder.tree.structure.rooted
        if tree is not None:
            if self.soft and encoder.tree is not None:
                tree = encoder.tree.discrete(tree, torch.cat([b.lengths for b in batches]))
            best_trees = tree[..., 1:].argmax(-2) if rooted else tree
            trees = list(best_trees.cpu().chunk(len(batches)))
        tagged = self.settings.kind == "tag"
        shares = (logits[:, null:] if tagged else logits).float().softmax(-1).tolist()
        predictions = []
        for i, example in enumerate(examples):
            words = tuple(map(words_in, example))
            sizes = [len(text) + null + rooted for text in words]
            scores = tuple(part[i, :n, :n].clone() for part, n in zip(parts, sizes, strict=False))
            pairs = [(batch[i], text) for batch, text in zip(trees, words, strict=False)]
            heads = tuple(_heads(tree, text, null) for tree, text in pairs) if rooted else ()
            lines = () if rooted else tuple(_brackets(tree, text, null) for tree, text in pairs)
            rows = shares[i][: len(words[0])] if tagged else [shares[i]]
            named = tuple(dict(zip(self.labels, row, strict=True)) for row in rows)
            best = tuple(max(row, key=row.__getitem__) for row in named)
            label, probabilities = (best, named) if tagged else (best[0], named[0])
            predictions.append(
                Prediction(
                    words, label, probabilities, heads or None, scores or None, lines or None
                )
            )
        return predictions


def _heads(row: Tensor, words: Sequence[str], null: int) -> Heads:
    heads = row[: len(words) + null].tolist()
    return heads_without_null(heads) if null else tuple(heads)


def _brackets(tree: Tensor, words: Sequence[str], null: int) -> str:
    tree = spans_without_null(tree) if null else tree
    return brackets(tree[: len(words), : len(words)], words)
