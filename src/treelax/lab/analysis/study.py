"""A study of the trees of several runs on one corpus."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch

from treelax.apps.tasks.base import LabelFigures
from treelax.errors import InputError
from treelax.lab.analysis.agreement import (
    Agreement,
    PairAgreement,
    agreement,
    by_tag,
    mean_and_deviation,
    pairwise_agreement,
)
from treelax.lab.analysis.baselines import chain_trees, random_agreement, random_trees
from treelax.lab.analysis.corpora import Corpus, punctuation
from treelax.lab.analysis.entropy import EntropySummary, entropy_summary
from treelax.lab.analysis.grammar import Grammar, grammar
from treelax.lab.analysis.parses import Parses
from treelax.lab.analysis.roles import Role, roles
from treelax.lab.analysis.shapes import Heads, check_same_words

LEFT_TO_RIGHT, RIGHT_TO_LEFT = "left-to-right chain", "right-to-left chain"
RANDOM, GOLD = "random trees", "gold trees"
SEED = 0  # of the random trees whose statistics are given
WORDS_KEPT = 20  # head words in the record of a study


@dataclass(frozen=True)
class TreebankScores:
    """Agreement of some trees with those of a treebank."""

    all: Agreement
    plain: Agreement | None  # without punctuation; None if there is none
    by_tag: Mapping[str, Agreement] | None  # None if there are no tags

    def figures(self) -> dict[str, Any]:
        """The figures over all words and over those that are not punctuation, by name."""
        plain = {key: getattr(self.plain, key, None) for key in ("words", "uas", "uuas")}
        return {key: getattr(self.all, key) for key in ("words", "uas", "uuas", "exact_trees")} | {
            f"{key}_without_punctuation": value for key, value in plain.items()
        }

    def uas_of(self, tag: str) -> float | None:
        """The attachment of words with a tag."""
        return self.by_tag[tag].uas if self.by_tag else None

    def record(self) -> dict[str, Any]:
        """These, and the attachment of each tag."""
        return self.figures() | {"uas_by_tag": _records(self.by_tag, lambda one: one.uas)}


@dataclass(frozen=True)
class Study:
    """All that is known of the trees of some runs on one corpus; mappings are by the name of a run."""

    corpus: Corpus
    runs: tuple[Parses, ...]
    grammars: Mapping[str, Grammar]
    reference_grammars: Mapping[
        str, Grammar
    ]  # of the baselines and of the treebank, if there is one
    pairs: Sequence[PairAgreement]  # of every two runs
    baselines: Mapping[str, Mapping[str, Agreement]]  # with each one; expected for random trees
    treebank: Mapping[str, TreebankScores] | None  # None if there is none
    treebank_baselines: Mapping[str, TreebankScores] | None  # likewise, for each baseline
    words: Mapping[str, Sequence[Role]]  # the parts that words play
    tags: Mapping[str, Sequence[Role]] | None  # None if there are no tags
    entropies: Mapping[str, EntropySummary]  # of the runs with latent trees

    @property
    def self_agreement(self) -> tuple[float, float | None] | None:
        """Mean and deviation of the agreement of every two runs, in percent; None for one run."""
        return mean_and_deviation([pair.uas for pair in self.pairs]) if self.pairs else None

    @property
    def labels(self) -> dict[str, LabelFigures]:
        """The figures of the runs that predicted labels."""
        return {run.name: run.labels for run in self.runs if run.labels is not None}

    def all_grammars(self) -> Iterator[tuple[str, str, Grammar]]:
        """What kind of trees, whose and their statistics."""
        for name, one in self.grammars.items():
            yield "run", name, one
        for name, one in self.reference_grammars.items():
            yield "gold" if name == GOLD else "baseline", name, one

    def all_scores(self) -> Iterator[tuple[str, str, TreebankScores]]:
        """What kind of trees, whose and their agreement with the treebank."""
        for kind, scores in (("run", self.treebank), ("baseline", self.treebank_baselines)):
            for name, score in (scores or {}).items():
                yield kind, name, score

    def record(self) -> dict[str, Any]:
        """Everything as one object for JSON."""
        mean, deviation = self.self_agreement or (None, None)
        return {
            "data": self.corpus.name,
            "sentences": len(self.corpus.sentences),
            "words": sum(map(len, self.corpus.sentences)),
            "runs": [run.name for run in self.runs],
            "grammar": _records(self.grammars, asdict),
            "reference_grammar": _records(self.reference_grammars, asdict),
            "agreement": {
                "mean": mean,
                "deviation": deviation,
                "pairs": [asdict(pair) for pair in self.pairs],
                "baselines": {
                    run: _records(scores, lambda score: score.uas)
                    for run, scores in self.baselines.items()
                },
            },
            "treebank": _records(self.treebank, TreebankScores.record),
            "treebank_baselines": _records(self.treebank_baselines, TreebankScores.record),
            "head_words": _records(self.words, lambda all_: [asdict(r) for r in all_[:WORDS_KEPT]]),
            "tags": _records(self.tags, lambda all_: [asdict(role) for role in all_]),
            "entropy": _records(self.entropies, asdict),
            "labels": _records(self.labels, label_figures),
        }


def label_figures(labels: LabelFigures) -> dict[str, Any]:
    """The figures of labels by name."""
    return asdict(labels) | {"gap": labels.gap}


def _records(
    named: Mapping[str, Any] | None, record: Callable[[Any], Any]
) -> dict[str, Any] | None:
    return None if named is None else {name: record(value) for name, value in named.items()}


def study(corpus: Corpus, runs: Sequence[Parses], *, seed: int = SEED) -> Study:
    """Put together all that is known of the trees of some runs, which have different names.

    The seed is that of the random trees whose statistics are given.
    """
    trees = {run.name: run.trees for run in runs}
    if not trees or len(trees) < len(runs):
        names = [run.name for run in runs]
        raise InputError(f"runs: received {names}; expected one or more, with different names")
    for name, heads in trees.items():
        check_same_words(f"trees of {name}", heads, corpus.words)
    # random trees are such as the runs could have made
    single_root = all(run.single_root for run in runs)
    lengths = [len(sentence) for sentence in corpus.sentences]
    fixed: dict[str, Sequence[Heads]] = {
        LEFT_TO_RIGHT: chain_trees(lengths),
        RIGHT_TO_LEFT: chain_trees(lengths, "right-to-left"),
        **{
            name: [rule(words) for words in corpus.words] for name, rule in corpus.baselines.items()
        },
    }
    generator = torch.Generator().manual_seed(seed)
    drawn = random_trees(lengths, generator=generator, single_root=single_root)
    references: dict[str, Sequence[Heads]] = {**fixed, RANDOM: drawn}
    gold, tags = corpus.gold, corpus.tags
    treebank = treebank_baselines = None
    if gold is not None:
        references[GOLD] = gold
        scores = partial(_treebank, corpus)
        treebank = {name: scores(partial(agreement, heads, gold)) for name, heads in trees.items()}
        treebank_baselines = {
            name: scores(partial(agreement, heads, gold)) for name, heads in fixed.items()
        }
        expected = partial(random_agreement, gold, single_root=single_root)
        treebank_baselines[RANDOM] = scores(expected)
    return Study(
        corpus=corpus,
        runs=tuple(runs),
        grammars={name: grammar(heads) for name, heads in trees.items()},
        reference_grammars={name: grammar(heads) for name, heads in references.items()},
        pairs=pairwise_agreement(trees),
        baselines={
            run: {name: agreement(others, heads) for name, others in fixed.items()}
            | {RANDOM: random_agreement(heads, single_root=single_root)}
            for run, heads in trees.items()
        },
        treebank=treebank,
        treebank_baselines=treebank_baselines,
        words={name: roles(corpus.words, heads) for name, heads in trees.items()},
        tags=None if tags is None else {name: roles(tags, t) for name, t in trees.items()},
        entropies={
            run.name: entropy_summary(run.entropies) for run in runs if run.entropies is not None
        },
    )


def _treebank(corpus: Corpus, compare: Callable[..., Agreement]) -> TreebankScores:
    tags, marks = corpus.tags, punctuation(corpus)
    keep = [[not mark for mark in row] for row in marks]
    return TreebankScores(
        compare(),
        compare(keep=keep) if any(map(any, marks)) else None,
        None if tags is None else by_tag(compare, tags),
    )
