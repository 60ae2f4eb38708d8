"""A gallery of examples: each with the trees of all runs, what they say, and whether it is right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from treelax.apps.pictures import Picture, align_pictures, draw_arcs, draw_heat_map
from treelax.lab.analysis.corpora import Corpus
from treelax.lab.report.examples import Said, Selection, shown_label

FIRST = 12  # examples on paper, and on the screen until one asks for more, as report.css has it
NARROW = 540.0  # pixels of a tree that fits into half the width of a wide page


@dataclass(frozen=True)
class Gallery:
    """Examples of a corpus with what runs say of them, as the template shows them."""

    corpus: Corpus
    selection: Selection  # which of its examples the runs were asked about
    said: Mapping[str, Mapping[int, Said]]  # for each run, by its name
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
        return any(own[i].right is not None for own in self.said.values() for i in self.chosen)

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
        said = [self._said(i, run, name) for run, name in enumerate(self.said)]
        # the trees of several runs are compared: words keep their place
        aligned = iter(align_pictures([tree[0] for own in said for tree in own["trees"]]))
        for own in said:
            own["trees"] = [(next(aligned), *rest) for _, *rest in own["trees"]]
        first: Picture = said[0]["trees"][0][0]
        return {
            "number": i + 1,
            "length": length,
            "facts": f"{facts} · label: {wanted}" if isinstance(wanted, str) else facts,
            "labels": [places[name] for name in self._labels_of(i)],
            "sentences": [
                (self.texts[k] if pair else "", " ".join(text.words))
                for k, text in enumerate(self.corpus.examples[i])
            ],
            "said": said,
            "wide": len(said) > 1 or pair or first.width > NARROW,
            "maps": self._maps(i),
        }

    def _said(self, i: int, run: int, name: str) -> dict[str, Any]:
        said = self.said[name][i]
        tags = self._tags(i, said)
        trees = []
        for k, text in enumerate(self.corpus.examples[i]):
            labels = None if said.relations is None else said.relations[k]
            drawn = draw_arcs(text.words, said.heads[k], gold=text.heads, tags=tags, labels=labels)
            title = f"Tree of {name} for example {i + 1}"
            trees.append((drawn, f"e{i}-r{run}-t{k}", self._of_text(title, k)))
        return {
            "run": name,
            "right": said.right,
            "exact": self._exact(i, said),
            "prediction": _prediction(said),
            "trees": trees,
        }

    def _maps(self, i: int) -> list[tuple[Picture, str, str, int]]:
        found = []
        for run, (name, own) in enumerate(self.said.items()):
            for k, marginals in enumerate(own[i].marginals):
                drawn = draw_heat_map(
                    self.corpus.examples[i][k].words,
                    marginals,
                    heads=own[i].heads[k],
                    limits=(0, 1),
                    name="probability",
                )
                title = self._of_text(f"Arc marginals of {name}, example {i + 1}", k)
                found.append((drawn, f"e{i}-r{run}-m{k}", title, run))
        return found

    def _of_text(self, title: str, text: int) -> str:
        return f"{title}, {self.texts[text]}" if self.corpus.texts > 1 else title

    def _exact(self, i: int, said: Said) -> bool | None:
        gold = [text.heads for text in self.corpus.examples[i]]
        return None if None in gold else list(said.heads) == gold

    def _went_wrong(self, i: int) -> bool:
        """Whether a run has a wrong label, or where labels are not known a wrong tree."""
        several = [own[i] for own in self.said.values()]
        verdicts = [self._exact(i, s) if s.right is None else s.right for s in several]
        return False in verdicts

    def _right(self, i: int) -> str | tuple[str, ...] | None:
        labels = self.corpus.labels
        return None if labels is None else shown_label(labels[i])

    def _length(self, i: int) -> int:
        return max(map(len, self.corpus.examples[i]))

    def _labels_of(self, i: int) -> list[str]:
        label = self._right(i)
        if label is None:
            label = next(iter(self.said.values()))[i].label
        return sorted({label} if isinstance(label, str) else set(label or ()) - {""})

    def _tags(self, i: int, said: Said) -> list[str] | None:
        """What stands under the words: the predicted tags, and the right ones where they differ."""
        if not isinstance(said.label, tuple):
            return None
        wanted = self._right(i) if said.right is not None else None
        if not isinstance(wanted, tuple) or len(wanted) != len(said.label):
            return list(said.label)
        return [
            own if own == right else f"{own or '0'} ✗ {right or '0'}"
            for own, right in zip(said.label, wanted, strict=True)
        ]


def _prediction(said: Said) -> str | None:
    if isinstance(said.label, str):
        share = "" if said.probability is None else f" ({said.probability:.2f})"
        soft = f"; with soft trees {said.soft_label}" if said.soft_label != said.label else ""
        return f"predicted: {said.label}{share}{soft}"
    if said.label is None or said.soft_label is None:
        return None
    other = sum(a != b for a, b in zip(said.label, said.soft_label, strict=True))
    tags = "1 tag differs" if other == 1 else f"{other} tags differ"
    return f"{tags} with soft trees" if other else None
