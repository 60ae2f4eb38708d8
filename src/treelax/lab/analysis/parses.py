"""What a trained model predicts for a corpus: trees, their entropy, labels with either tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import torch
from torch import Tensor
from torch.nn.functional import pad

from treelax.apps.data.batching import length_batches
from treelax.apps.tasks.base import (
    Heads,
    Label,
    LabelFigures,
    Progress,
    TrainedParser,
    several_labels,
)
from treelax.errors import InputError
from treelax.lab.analysis.corpora import Corpus
from treelax.lab.analysis.entropy import TreeEntropy, tree_entropies
from treelax.structures import Structure

CHUNK = 512  # examples between two reports of progress


@dataclass(frozen=True)
class Parses:
    """What a model says of a corpus."""

    name: str  # of the run
    trees: tuple[Heads, ...]  # of each sentence the heads, counted from 1, 0 the root
    entropies: tuple[TreeEntropy, ...] | None = None  # None where the trees are not latent
    labels: LabelFigures | None = None  # None if no labels were predicted
    single_root: bool = False  # all trees have one word under the root
    kind: str = "latent"  # where the trees come from, as `TrainedParser.trees` says


def parse_corpus(
    parser: TrainedParser, corpus: Corpus, *, progress: Progress | None = None
) -> Parses:
    """Parse the sentences of a corpus and label its examples.

    Labels are predicted if examples have as many texts as the model takes; trees are found in any
    case, those of a model that takes given trees in the corpus. ``progress`` is called with the number
    of words done.
    """
    if parser.takes_trees:
        if corpus.gold is None:
            raise InputError(
                f"{parser.name}: takes given trees (model.trees is 'given') and {corpus.name} has "
                "none; expected --data with a CoNLL-U file of them"
            )
        return Parses(parser.name, tuple(corpus.gold), kind=parser.trees)
    parser.require_heads()
    texts = len(parser.text)
    labelled = texts == corpus.texts
    # a model of pairs parses a lone sentence as a pair with itself
    groups = corpus.examples if labelled else [(text,) * texts for text in corpus.sentences]
    items = [group if texts > 1 else group[0] for group in groups]
    hard = parser.stream(items, scores=parser.tree is not None)
    soft = parser.stream(items, soft=True) if labelled else iter(())
    gold = known_labels(parser, corpus) if labelled else []
    trees: list[Heads] = []
    entropies: list[TreeEntropy] = []
    labels: list[tuple[Label, Label, Label]] = []
    done = 0
    for start in range(0, len(items), CHUNK):
        some = list(islice(hard, CHUNK))
        scores: list[Tensor] = []
        for prediction in some:
            used = slice(None) if labelled else slice(1)
            trees += (prediction.heads or ())[used]
            scores += (prediction.scores or ())[used]
        if parser.tree is not None:
            entropies += _entropies(scores, parser.tree.structure)
        for prediction, other, right in zip(some, soft, gold[start : start + CHUNK], strict=False):
            labels.append((prediction.label, other.label, right))
        done += sum(len(text) for prediction in some for text in prediction.words)
        if progress is not None:
            progress(done if labelled else done // texts)
    return Parses(
        parser.name,
        tuple(trees),
        tuple(entropies) if parser.tree is not None else None,
        LabelFigures.of(labels),
        getattr(parser.tree and parser.tree.structure, "single_root", False),
        parser.trees,
    )


def _entropies(scores: Sequence[Tensor], structure: Structure) -> list[TreeEntropy]:
    by_number: dict[int, TreeEntropy] = {}
    for chosen in length_batches(list(map(len, scores))):
        size = max(len(scores[i]) for i in chosen)
        room = [size - len(scores[i]) for i in chosen]
        batch = [pad(scores[i], (0, n, 0, n)) for i, n in zip(chosen, room, strict=True)]
        lengths = torch.tensor([size - 1 - n for n in room])
        entropies = tree_entropies(torch.stack(batch), lengths, structure)
        by_number.update(zip(chosen, entropies, strict=True))
    return [by_number[i] for i in range(len(scores))]


def known_labels(parser: TrainedParser, corpus: Corpus) -> list[Label]:
    """The right labels, None where they are of something else than the model's."""
    kind = tuple if parser.is_tagger else str
    labels = [label if isinstance(label, kind) else None for label in corpus.labels or ()]
    known = {str(one) for label in labels for one in several_labels(label) if one is not None}
    return labels if known & set(parser.labels) else [None] * len(corpus.examples)
