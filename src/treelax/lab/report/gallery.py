"""A gallery of examples: each with the trees of all runs, what they say, and whether it is right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from treelax.apps.pictures import Picture, align_pictures, draw_arcs, draw_heat_map
from treelax.lab.analysis.corpora import Corpus
from treelax.lab.report.examples import Result, Selection, Shown

FIRST = 12  # examples on paper, and on the screen until one asks for more, as report.css has it
NARROW = 540.0  # pixels of a tree that fits into half the width of a wide page


@dataclass(frozen=True)
class Gallery:
    """Examples of a corpus with what runs say of them, as the template shows them."""

    corpus: Corpus
    selection: Selection  # which of its examples the runs were asked about
    results: Mapping[str, Mapping[int, Result]]  # for each run, by its name
    texts: tuple[str, ...]  # the names of the texts of an example
    tagged: bool  # labels are of words

    @cached_property
    def chosen(self) -> tuple[int, ...]:
        """The examples that are shown."""
        return self.selection.shown(self._went_wrong)

    @cached_property
    def labels(self) -> list[str]:
        """What examples can be found by."""
        return sorted({label for i in self.chosen for label in self._labels_of(i)})

    @property
    def lengths(self) -> tuple[int, int]:
        """The least and the greatest, in words."""
        lengths = [self._length(i) for i in self.chosen]
        return min(lengths, default=0), max(lengths, default=0)

    @property
    def verdicts(self) -> bool:
        """Whether it is known of some examples if the prediction is right."""
        return any(r[i].right is not None for r in self.results.values() for i in self.chosen)

    @property
    def gold(self) -> bool:
        """Whether some gold trees are known."""
        return any(self.corpus.examples[i][0].heads is not None for i in self.chosen)

    @property
    def about(self) -> str:
        """How the examples were chosen, and how to read them."""
        count, total = len(self.chosen), len(self.corpus.examples)
        text = f"All {total:,} examples of {self.corpus.name}."
        if count < total:
            text = (
                f"{count:,} of {total:,} examples of {self.corpus.name}: two thirds from all over it, "
                "then examples that went wrong. Take counts from the tables, not from here."
            )
        if self.selection.too_long:
            text += f" {self.selection.too_long:,} were too long to draw."
        if self.gold:
            text += (
                " Above the words: the tree of the run, its wrong arcs dashed. Below, dotted: the arcs "
                "of the gold tree that it misses."
            )
        if self.tagged:
            text += " Under the words: the predicted tags; after ✗ the right one."
        return text

    @cached_property
    def examples(self) -> list[dict[str, Any]]:
        """What the template shows of each."""
        places = {name: i for i, name in enumerate(self.labels)}
        return [self._example(i, places) for i in self.chosen]

    def _example(self, i: int, places: Mapping[str, int]) -> dict[str, Any]:
        wanted, length = self._right(i), self._length(i)
        pair = self.corpus.texts > 1
        facts = f"{length} {'word' if length == 1 else 'words'}"
        results = [self._result(i, run, name) for run, name in enumerate(self.results)]
        # the trees of several runs are compared: words keep their place
        aligned = iter(align_pictures([tree[0] for result in results for tree in result["trees"]]))
        for result in results:
            result["trees"] = [(next(aligned), *rest) for _, *rest in result["trees"]]
        first: Picture = results[0]["trees"][0][0]
        return {
            "number": i + 1,
            "length": length,
            "facts": f"{facts} · label: {wanted}" if isinstance(wanted, str) else facts,
            "labels": [places[name] for name in self._labels_of(i)],
            "sentences": [
                (self.texts[k] if pair else "", " ".join(text.words))
                for k, text in enumerate(self.corpus.examples[i])
            ],
            "results": results,
            "wide": len(results) > 1 or pair or first.width > NARROW,
            "maps": self._maps(i),
        }

    def _result(self, i: int, run: int, name: str) -> dict[str, Any]:
        result = self.results[name][i]
        tags = self._tags(i, result)
        trees = []
        for k, text in enumerate(self.corpus.examples[i]):
            labels = None if result.relations is None else result.relations[k]
            heads = result.heads[k]
            drawn = draw_arcs(text.words, heads, gold=text.heads, tags=tags, labels=labels)
            title = f"Tree of {name} for example {i + 1}"
            trees.append((drawn, f"e{i}-r{run}-t{k}", self._of_text(title, k)))
        return {
            "run": name,
            "right": result.right,
            "exact": self._exact(i, result),
            "prediction": _prediction(result),
            "trees": trees,
        }

    def _maps(self, i: int) -> list[tuple[Picture, str, str, int]]:
        maps = []
        for run, (name, results) in enumerate(self.results.items()):
            for k, marginals in enumerate(results[i].marginals):
                drawn = draw_heat_map(
                    self.corpus.examples[i][k].words,
                    marginals,
                    heads=results[i].heads[k],
                    limits=(0, 1),
                    name="probability",
                )
                title = self._of_text(f"Arc marginals of {name}, example {i + 1}", k)
                maps.append((drawn, f"e{i}-r{run}-m{k}", title, run))
        return maps

    def _of_text(self, title: str, text: int) -> str:
        return f"{title}, {self.texts[text]}" if self.corpus.texts > 1 else title

    def _exact(self, i: int, result: Result) -> bool | None:
        gold = [text.heads for text in self.corpus.examples[i]]
        return None if None in gold else list(result.heads) == gold

    def _went_wrong(self, i: int) -> bool:
        """Whether a run has a wrong label, or where labels are not known a wrong tree."""
        several = [results[i] for results in self.results.values()]
        verdicts = [self._exact(i, s) if s.right is None else s.right for s in several]
        return False in verdicts

    def _right(self, i: int) -> Shown:
        """The right label as it is written; empty for words whose tag does not count."""
        label = None if self.corpus.labels is None else self.corpus.labels[i]
        if isinstance(label, tuple):
            return tuple("" if tag is None else str(tag) for tag in label)
        return label

    def _length(self, i: int) -> int:
        return max(map(len, self.corpus.examples[i]))

    def _labels_of(self, i: int) -> list[str]:
        label = self._right(i)
        if label is None:
            label = next(iter(self.results.values()))[i].label
        return sorted({label} if isinstance(label, str) else set(label or ()) - {""})

    def _tags(self, i: int, result: Result) -> list[str] | None:
        """What stands under the words: the predicted tags, and the right ones where they differ."""
        if not isinstance(result.label, tuple):
            return None
        wanted = self._right(i) if result.right is not None else None
        if not isinstance(wanted, tuple) or len(wanted) != len(result.label):
            return list(result.label)
        return [
            tag if tag == right else f"{tag or '0'} ✗ {right or '0'}"
            for tag, right in zip(result.label, wanted, strict=True)
        ]


def _prediction(result: Result) -> str | None:
    if isinstance(result.label, str):
        share = "" if result.probability is None else f" ({result.probability:.2f})"
        soft = f"; with soft trees {result.soft_label}" if result.soft_label != result.label else ""
        return f"predicted: {result.label}{share}{soft}"
    if result.label is None or result.soft_label is None:
        return None
    other = sum(a != b for a, b in zip(result.label, result.soft_label, strict=True))
    tags = "1 tag differs" if other == 1 else f"{other} tags differ"
    return f"{tags} with soft trees" if other else None
