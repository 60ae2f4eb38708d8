"""The trees of several runs for one sentence."""

from __future__ import annotations

from treelax.apps.data.conllu import Sentence
from treelax.lab.analysis.corpora import Corpus
from treelax.lab.report import Gallery, Result, Selection


def test_words_stand_at_the_same_place_in_the_trees_of_all_runs() -> None:
    corpus = Corpus("corpus", (Sentence(("a", "b")),), labels=(("A", "B"),))
    results = {
        name: {0: Result(((0, 1),), tags, tags, right=True)}
        for name, tags in {"one": ("A", "B"), "two": ("a very long tag", "B")}.items()
    }
    gallery = Gallery(corpus, Selection.of(corpus, 1), results, ("text",), True)
    one, two = (own["trees"][0][0] for own in gallery.examples[0]["results"])
    assert one.body != two.body
    shown = [[line for line in own.body.splitlines() if ">b</text>" in line] for own in (one, two)]
    assert shown[0] == shown[1] != []
