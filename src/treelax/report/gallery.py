"""A gallery of examples: each with the trees of all runs, what they say, and whether it is right."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from treelax.analysis.corpora import Corpus
from treelax.pictures import Picture, draw_arcs, draw_heat_map
from treelax.report.examples import Said, shown_label
from treelax.report.filters import filter_form
from treelax.report.markup import Html, join, tag
from treelax.report.selection import Selection
from treelax.report.trees import inline_picture

__all__ = ["Gallery"]

PRINTED = 12  # examples on paper, as report.css has it
NARROW = 540.0  # pixels of a tree that fits into half the width of a wide page


@dataclass(frozen=True)
class Gallery:
    """Examples of a corpus with what runs say of them.

    Attributes:
        corpus: the sentences.
        selection: which of them the runs were asked about.
        said: for each run, by its name, what it says of each of these.
        texts: the names of the texts of an example.
        tagged: labels are of words.
    """

    corpus: Corpus
    selection: Selection
    said: Mapping[str, Mapping[int, Said]]
    texts: tuple[str, ...]
    tagged: bool

    def html(self) -> Html:
        """The form, the examples, and how they were chosen."""
        shown = self.selection.shown(self._went_wrong)
        names = self._label_names(shown)
        labels = {name: i for i, name in enumerate(names)}
        cards = [self._card(i, labels) for i in shown]
        lengths = [self._length(i) for i in shown]
        form = filter_form(
            runs=list(self.said),
            labels=names,
            label_title="Tag" if self.tagged else "Label",
            lengths=(min(lengths, default=0), max(lengths, default=0)),
            verdicts=self._any(shown, lambda i, said: said.right is not None),
            gold=self._any(shown, lambda i, said: self._gold(i, 0) is not None),
            count=len(cards),
        )
        none = tag("p", "No example passes the filters.", id="none", hidden=True)
        gallery = tag("div", *cards, class_="gallery")
        return join([self._about(len(cards)), _about_print(len(cards)), form, gallery, none])

    def _about(self, count: int) -> Html:
        total = len(self.corpus.examples)
        if count == total:
            parts = [f"All {total:,} examples of {self.corpus.name}."]
        else:
            parts = [
                f"{count:,} of {total:,} examples of {self.corpus.name}: two thirds from "
                "all over it, then such as went wrong, as far as there are any: count in the tables, "
                "not here."
            ]
        if self.selection.too_long:
            parts.append(f" {self.selection.too_long:,} were too long to draw.")
        if self._any(self.selection.fixed, lambda i, said: self._gold(i, 0) is not None):
            parts.append(
                " Above the words stands the tree of the run, its wrong arcs dashed; below them, "
                "dotted, the arcs of the gold tree that are missed."
            )
        if self.tagged:
            parts.append(
                " Under the words are the tags that the run predicts; after ✗ the right one."
            )
        return tag("p", "".join(parts), class_="note")

    # ------------------------------------------------------------------ what is known

    def _any(self, shown: Sequence[int], check: Callable[[int, Said], bool]) -> bool:
        return any(check(i, own[i]) for own in self.said.values() for i in shown)

    def _gold(self, example: int, text: int) -> tuple[int, ...] | None:
        return self.corpus.examples[example][text].heads

    def _exact(self, example: int, said: Said) -> bool | None:
        gold = [self._gold(example, text) for text in range(self.corpus.texts)]
        if any(own is None for own in gold):
            return None
        return list(said.heads) == gold

    def _went_wrong(self, example: int) -> bool:
        """Whether a run has a wrong label, or where labels are not known a wrong tree."""
        for own in self.said.values():
            said = own[example]
            verdict = self._exact(example, said) if said.right is None else said.right
            if verdict is False:
                return True
        return False

    def _right(self, example: int) -> str | tuple[str, ...] | None:
        labels = self.corpus.labels
        return None if labels is None else shown_label(labels[example])

    def _length(self, example: int) -> int:
        return max(map(len, self.corpus.examples[example]))

    def _labels_of(self, example: int) -> list[str]:
        """What an example can be found by."""
        label = self._right(example)
        if label is None:
            label = next(iter(self.said.values()))[example].label
        return sorted({label} if isinstance(label, str) else set(label or ()) - {""})

    def _label_names(self, shown: Sequence[int]) -> list[str]:
        return sorted({label for i in shown for label in self._labels_of(i)})

    # ------------------------------------------------------------------ one example

    def _card(self, example: int, labels: Mapping[str, int]) -> Html:
        wanted = self._right(example)
        length = self._length(example)
        facts = [f"{length} {'word' if length == 1 else 'words'}"]
        if isinstance(wanted, str):
            facts.append(f"label: {wanted}")
        heading = tag("h3", f"Example {example + 1}", tag("small", " · ".join(facts)))
        sentences = [
            tag(
                "p",
                tag("b", f"{self.texts[i]}: ") if self.corpus.texts > 1 else None,
                tag("bdi", " ".join(text.words)),
                class_="sentence",
            )
            for i, text in enumerate(self.corpus.examples[example])
        ]
        drawn = [self._drawn(example, own[example]) for own in self.said.values()]
        said = [self._said(example, run, name, drawn[run]) for run, name in enumerate(self.said)]
        wide = len(drawn) * self.corpus.texts > 1 or drawn[0][0].width > NARROW
        return tag(
            "article",
            heading,
            *sentences,
            tag("div", *said, class_="runs"),
            self._maps(example),
            class_="example wide" if wide else "example",
            data_length=length,
            data_labels=" ".join(str(labels[name]) for name in self._labels_of(example)),
        )

    def _drawn(self, example: int, said: Said) -> list[Picture]:
        """The trees of one run, one for each text."""
        tags = self._tags(example, said)
        return [
            draw_arcs(text.words, said.heads[i], gold=text.heads, tags=tags)
            for i, text in enumerate(self.corpus.examples[example])
        ]

    def _said(self, example: int, run: int, name: str, pictures: Sequence[Picture]) -> Html:
        """What one run says of an example."""
        said = self.said[name][example]
        exact = self._exact(example, said)
        trees = []
        for i, picture in enumerate(pictures):
            title = f"Tree of {name} for example {example + 1}"
            if self.corpus.texts > 1:
                title += f", {self.texts[i]}"
            trees.append(inline_picture(picture, f"e{example}-r{run}-t{i}", title))
        line = [
            tag("bdi", name, class_="run") if len(self.said) > 1 else None,
            self._prediction(said),
            _verdict(said.right, *self._words_of_verdict()),
            _verdict(exact, "gold tree", "not the gold tree"),
        ]
        return tag(
            "div",
            tag("p", *line, class_="verdict") if any(line) else None,
            tag("div", *trees, class_="trees"),
            class_="said",
            data_run=run,
            data_right=_flag(said.right),
            data_exact=_flag(exact),
        )

    def _words_of_verdict(self) -> tuple[str, str]:
        if self.tagged:
            return "all tags right", "wrong tags"
        return "right label", "wrong label"

    def _prediction(self, said: Said) -> Html | None:
        if isinstance(said.label, str):
            share = "" if said.probability is None else f" ({said.probability:.2f})"
            soft = f"; with soft trees {said.soft_label}" if said.soft_label != said.label else ""
            return tag("span", "predicted: ", tag("b", said.label), f"{share}{soft}")
        if said.label is None or said.soft_label is None:
            return None
        other = sum(a != b for a, b in zip(said.label, said.soft_label, strict=True))
        if not other:
            return None
        words = "1 tag differs" if other == 1 else f"{other} tags differ"
        return tag("span", f"{words} with soft trees")

    def _tags(self, example: int, said: Said) -> list[str] | None:
        """What stands under the words: the predicted tags, and the right ones where they differ."""
        if not isinstance(said.label, tuple):
            return None
        wanted = self._right(example) if said.right is not None else None
        if not isinstance(wanted, tuple) or len(wanted) != len(said.label):
            return list(said.label)
        return [
            own if own == right else f"{own or '0'} ✗ {right or '0'}"
            for own, right in zip(said.label, wanted, strict=True)
        ]

    def _maps(self, example: int) -> Html | None:
        drawn = []
        for run, (name, own) in enumerate(self.said.items()):
            said = own[example]
            for i, marginals in enumerate(said.marginals):
                words = self.corpus.examples[example][i].words
                picture = draw_heat_map(
                    words, marginals, heads=said.heads[i], limits=(0, 1), name="probability"
                )
                place = f"e{example}-r{run}-m{i}"
                title = f"Arc marginals of {name}, example {example + 1}"
                if self.corpus.texts > 1:
                    title += f", {self.texts[i]}"
                caption = tag("figcaption", title)
                box = inline_picture(picture, place, title)
                drawn.append(tag("figure", caption, box, class_="said", data_run=run))
        if not drawn:
            return None
        return tag("details", tag("summary", "Arc marginals"), *drawn, class_="maps")


def _about_print(count: int) -> Html | None:
    """What paper says of the examples that it leaves out."""
    if count <= PRINTED:
        return None
    text = f"On paper are at most the first {PRINTED} examples; the file itself has all {count:,}."
    return tag("p", text, class_="note printed")


def _flag(value: bool | None) -> str | None:
    return None if value is None else str(int(value))


def _verdict(right: bool | None, yes: str, no: str) -> Html | None:
    if right is None:
        return None
    return tag("span", f"✓ {yes}" if right else f"✗ {no}", class_="right" if right else "wrong")
