"""A study of the trees of several runs on one corpus."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch

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


@dataclass(frozen=True)
class Study:
    """All that is known of the trees of some runs on one corpus.

    Attributes:
        corpus: the sentences.
        runs: what each run says of them.
        grammars: statistics of the trees of each run, by its name.
        reference_grammars: of the baselines and, if there is one, of the treebank.
        pairs: agreement of every two runs.
        baselines: for each run its agreement with each baseline; expected for random trees.
        treebank: for each run its agreement with the treebank; None if there is none.
        treebank_baselines: for each baseline its agreement with the treebank, likewise.
        words: for each run the parts that words play.
        tags: for each run the parts that tags play; None if there are no tags.
        entropies: for each run with latent trees how sure it is of them.
    """

    corpus: Corpus
    runs: tuple[Parses, ...]
    grammars: Mapping[str, Grammar]
    reference_grammars: Mapping[str, Grammar]
    pairs: Sequence[PairAgreement]
    baselines: Mapping[str, Mapping[str, Agreement]]
    treebank: Mapping[str, TreebankScores] | None
    treebank_baselines: Mapping[str, TreebankScores] | None
    words: Mapping[str, Sequence[Role]]
    tags: Mapping[str, Sequence[Role]] | None
    entropies: Mapping[str, EntropySummary]

    @property
    def self_agreement(self) -> tuple[float, float | None] | None:
        """Mean and deviation of the agreement of every two runs, in percent; None for one run."""
        return mean_and_deviation([pair.uas for pair in self.pairs]) if self.pairs else None

    def record(self) -> dict[str, Any]:
        """Everything as one object for JSON."""
        mean, deviation = self.self_agreement or (None, None)
        return {
            "data": self.corpus.name,
            "sentences": len(self.corpus.sentences),
            "words": sum(map(len, self.corpus.sentences)),
            "runs": [run.name for run in self.runs],
            "grammar": {key: asdict(g) for key, g in self.grammars.items()},
            "reference_grammar": {key: asdict(g) for key, g in self.reference_grammars.items()},
            "agreement": {
                "mean": mean,
                "deviation": deviation,
                "pairs": [asdict(pair) for pair in self.pairs],
                "baselines": {
                    run: {name: score.uas for name, score in all_of_it.items()}
                    for run, all_of_it in self.baselines.items()
                },
            },
            "treebank": _records(self.treebank),
            "treebank_baselines": _records(self.treebank_baselines),
            "head_words": {
                run: [asdict(r) for r in roles[:WORDS_KEPT]] for run, roles in self.words.items()
            },
            "tags": self.tags
            and {run: [asdict(role) for role in roles] for run, roles in self.tags.items()},
            "entropy": {name: asdict(entropy) for name, entropy in self.entropies.items()},
            "labels": {
                run.name: asdict(run.labels) | {"gap": run.labels.gap}
                for run in self.runs
                if run.labels is not None
            },
        }


def study(corpus: Corpus, runs: Sequence[Parses], *, seed: int = SEED) -> Study:
    """Put together all that is known of the trees of some runs, which have different names.

    The seed is that of the random trees whose statistics are given.

    Example:
        >>> from treelax.apps.data.conllu import Sentence
        >>> corpus = Corpus("one", (Sentence(("Dogs", "bark"), (2, 0)),))
        >>> found = study(corpus, [Parses("a", ((0, 1),)), Parses("b", ((2, 0),))])
        >>> found.self_agreement, found.treebank["b"].all.uas
        ((0.0, None), 100.0)
    """
    names = [run.name for run in runs]
    if not names or len(set(names)) < len(names):
        raise InputError(f"runs: received {names}; expected one or more, with different names")
    for run in runs:
        check_same_words(f"trees of {run.name}", run.trees, corpus.words)
    # random trees are such as the runs could have made
    single_root = all(run.single_root for run in runs)
    lengths = [len(sentence) for sentence in corpus.sentences]
    fixed: dict[str, Sequence[Heads]] = {
        LEFT_TO_RIGHT: chain_trees(lengths),
        RIGHT_TO_LEFT: chain_trees(lengths, "right-to-left"),
    }
    for name, rule in corpus.baselines.items():
        fixed[name] = [rule(words) for words in corpus.words]
    generator = torch.Generator().manual_seed(seed)
    drawn = random_trees(lengths, generator=generator, single_root=single_root)
    references: dict[str, Sequence[Heads]] = {**fixed, RANDOM: drawn}
    gold, tags = corpus.gold, corpus.tags
    treebank = treebank_baselines = None
    if gold is not None:
        references[GOLD] = gold
        treebank = _treebank(
            corpus, {run.name: partial(agreement, run.trees, gold) for run in runs}
        )
        compared = {name: partial(agreement, trees, gold) for name, trees in fixed.items()}
        expected = partial(random_agreement, gold, single_root=single_root)
        treebank_baselines = _treebank(corpus, {**compared, RANDOM: expected})
    return Study(
        corpus=corpus,
        runs=tuple(runs),
        grammars={run.name: grammar(run.trees) for run in runs},
        reference_grammars={name: grammar(trees) for name, trees in references.items()},
        pairs=pairwise_agreement({run.name: run.trees for run in runs}),
        baselines={
            run.name: {name: agreement(trees, run.trees) for name, trees in fixed.items()}
            | {RANDOM: random_agreement(run.trees, single_root=single_root)}
            for run in runs
        },
        treebank=treebank,
        treebank_baselines=treebank_baselines,
        words={run.name: roles(corpus.words, run.trees) for run in runs},
        tags=None if tags is None else {run.name: roles(tags, run.trees) for run in runs},
        entropies={
            run.name: entropy_summary(run.entropies) for run in runs if run.entropies is not None
        },
    )


def _treebank(
    corpus: Corpus, compared: Mapping[str, Callable[..., Agreement]]
) -> dict[str, TreebankScores]:
    tags, marks = corpus.tags, punctuation(corpus)
    keep = [[not mark for mark in row] for row in marks] if any(map(any, marks)) else None
    return {
        name: TreebankScores(
            compare(),
            None if keep is None else compare(keep=keep),
            None if tags is None else by_tag(compare, tags),
        )
        for name, compare in compared.items()
    }


def _records(scores: Mapping[str, TreebankScores] | None) -> dict[str, Any] | None:
    if scores is None:
        return None
    records = {name: score.figures() for name, score in scores.items()}
    for name, score in scores.items():
        tags = score.by_tag
        records[name]["uas_by_tag"] = tags and {tag: one.uas for tag, one in tags.items()}
    return records
