"""What was learned, in three sentences: their figures by hand, for all kinds of trees and runs."""

from __future__ import annotations

from typing import Any

from treelax.apps.data.conllu import Sentence
from treelax.apps.tasks.base import LabelFigures
from treelax.lab.analysis.corpora import Corpus
from treelax.lab.analysis.entropy import TreeEntropy
from treelax.lab.analysis.parses import Parses
from treelax.lab.analysis.study import study
from treelax.lab.analysis.summary import summary

GOLD = (2, 3, 0, 3)
SURE = TreeEntropy(vertices=4, entropy=0.04, greatest=4.0, best_arcs=99.0)
UNSURE = TreeEntropy(vertices=4, entropy=3.6, greatest=4.0, best_arcs=30.0)


def bank(count: int = 4, heads: tuple[int, ...] | None = GOLD, **known: Any) -> Corpus:
    return Corpus("bank", (Sentence(("the", "dog", "barks", "!"), heads),) * count, **known)


def run(heads: tuple[int, ...], name: str = "run", count: int = 4, **known: Any) -> Parses:
    return Parses(name, (heads,) * count, **known)


def test_a_parser_that_saw_gold_trees() -> None:
    right, shape, sure = summary(study(bank(), [run(GOLD, entropies=(SURE,) * 4, kind="treebank")]))
    assert right == (
        "On 4 sentences, 100.0 % of the words have their gold head (right-to-left chain: 50.0 %), "
        "and 100.0 % of the sentences their whole gold tree."
    )
    assert shape.startswith(
        "33.3 % of the arcs run from left to right, over 1.0 words on average, in trees 3.0 levels "
        "deep; the most similar simple trees are right-to-left chains, with 50.0 % of the heads "
    )
    assert sure == (
        "The model is nearly certain of its trees: an arc of the best tree has a probability of 99.0 % "
        "on average, and the entropy is 1.0 % of the largest possible."
    )


def test_labels_stand_beside_the_most_frequent_one() -> None:
    """A model that has learned nothing but the most frequent label must not look good."""
    figures = LabelFigures(labels=4, same=100.0, accuracy=75.0, soft_accuracy=50.0)
    latent = run(GOLD, entropies=(UNSURE,) * 4, labels=figures)
    corpus = bank(heads=None, labels=("good", "good", "bad", "good"))
    right, _, sure = summary(study(corpus, [latent]))
    assert right == (
        "On 4 sentences, 75.0 % of the labels are right (always good: 75.0 %), 50.0 % with soft trees."
    )
    assert sure.startswith("The model is unsure of its trees: ")
    pairs = bank(heads=None, labels=("yes", "no"), texts=2)
    assert summary(study(pairs, [latent]))[0].startswith("On 2 pairs, 75.0 % of the labels ")
    tags = bank(labels=(("D", None, "V", "."),) * 4)
    right = summary(study(tags, [latent]))[0]
    assert "75.0 % of the tags are right (always D: 33.3 %)" in right
    assert "100.0 % of the words have their gold head, which training never shows (" in right


def test_several_runs_are_ranges_and_agree() -> None:
    chain = run((0, 1, 2, 3), "chain", kind="chain")
    latent = run(GOLD, "latent", entropies=(UNSURE,) * 4)
    right, shape, sure = summary(study(bank(), [chain, latent]))
    assert right.startswith("On 4 sentences, 25.0 to 100.0 % of the words have their gold head (")
    assert "never shows" not in right  # the chain was not learned
    alone = summary(study(bank(), [chain]))[1]
    assert alone.startswith(
        "All arcs run from left to right, over 1.0 words on average, in trees 4"
    )
    assert shape.startswith("33.3 to 100.0 % of the arcs run from left to right, ")
    assert sure.startswith("The runs are unsure of the trees that they learned: ")
    assert sure.endswith("; two runs give 25.0 % of the words the same head.")


def test_trees_that_were_not_learned() -> None:
    """And are not praised for being the gold ones."""
    right, _, fixed = summary(study(bank(), [run(GOLD, kind="given")]))
    assert right == "On 4 sentences, there is nothing known that a run could get right or wrong."
    assert fixed == "The trees are not learned: they came with the sentences."


def test_trees_like_no_others() -> None:
    flat = summary(study(bank(), [run((0, 0, 0, 0))]))[1]
    assert flat == "The trees are flat: every word is a child of the root."
    nearly = summary(study(bank(), [run((0, 0, 0, 2))]))[1]
    assert "they are like no simple trees: " in nearly
    assert nearly.endswith("; they are flat, with most words right below the root.")
    both = summary(study(bank(), [run((0, 0, 0, 2)), run(GOLD, "other")]))[1]
    assert both.endswith(
        "; those of 1 of the 2 runs are flat, with most words right below the root."
    )
    cycle = summary(study(bank(), [run((2, 1, 2, 3), kind="heads")]))[1]
    assert cycle.endswith(
        "; heads are chosen one by one, and form a tree in 0.0 % of the sentences."
    )
