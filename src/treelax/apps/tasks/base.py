"""What every trained model can do, whatever its task, and what goes in and out.

The commands, the analysis, the report and the demo page use nothing else of a model.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, TypedDict, Unpack

import torch
from torch import Tensor

from treelax.apps.data.conllu import Sentence
from treelax.apps.table import Table
from treelax.brackets import brackets
from treelax.errors import InputError
from treelax.estimators import Relaxed, SparseMAP
from treelax.nn import LatentTree
from treelax.structures import Heads as HeadSelection
from treelax.trees import tree_to_heads

Heads = tuple[int, ...]
Tree = Heads | str  # of a dependency tree the heads, of a binary tree a line of brackets
# a class, or a tag for every word, None where the right one is not known or does not count
Label = str | tuple[str | int | None, ...] | None
Text = Sequence[str] | Sentence
Progress = Callable[[int], None]
Baseline = Callable[[Sequence[str]], Heads]
MOST_ENTRIES = 4_000_000  # of trees that are sampled at a time


@dataclass(frozen=True)
class Source:
    """Texts from the user: given directly, or a file and how to read it."""

    texts: tuple[str, ...] = ()  # given directly; several words without spaces are one text
    file: str | None = None  # path, or - for standard input
    form: str | None = None  # format of the file; None to infer it from the name
    columns: tuple[str, ...] = ()  # text columns of a table; as in training by default
    label: str | None = None  # label column; likewise
    tokens: bool = False  # texts are tokenised: words separated by spaces
    unusable: str | None = None  # "drop" skips lines that cannot be read; None as in training
    keep_empty: bool = False  # keep texts without words, which get no prediction
    gold: bool = False  # gold trees are required
    keep: bool = False  # keep the known heads of a CoNLL-U file, _ where they are not known
    scored: bool = False  # to be evaluated by: a parser's labelled trees are required
    raw: bool = False  # cut the texts of a CoNLL-U file into words anew

    @property
    def sentences(self) -> tuple[str, ...]:
        """The texts; words without quotes around them are one."""
        words = not any(len(text.split()) > 1 for text in self.texts)
        return (" ".join(self.texts),) if words and self.texts else self.texts


@dataclass(frozen=True)
class Example:
    """An example, with its label and trees if they are known."""

    texts: tuple[Text, ...]  # the words of each text; a `Sentence` where heads or tags are known
    line: int = 1  # where it starts in its file
    label: Label = None  # the right class or tags
    block: Sentence | None = None  # of a CoNLL-U file, the sentence with its lines
    raw: tuple[str, ...] = ()  # each text before it was cut into words; none if it was in words

    @property
    def sentences(self) -> tuple[Sentence, ...]:
        """The texts as sentences; there must be words in each."""
        return tuple(t if isinstance(t, Sentence) else Sentence(tuple(t)) for t in self.texts)

    @property
    def words(self) -> tuple[tuple[str, ...], ...]:
        """The words of each text, of which there may be none."""
        return tuple(t.words if isinstance(t, Sentence) else tuple(t) for t in self.texts)

    @property
    def gold(self) -> tuple[Heads | None, ...]:
        """The right heads of each text, None where they are not known."""
        return tuple(t.heads if isinstance(t, Sentence) else None for t in self.texts)


@dataclass(frozen=True)
class Examples:
    """Examples that are read lazily."""

    name: str  # where they come from, such as a file
    rows: Iterable[Example]
    notes: Callable[[], list[str]] = field(
        default=list
    )  # what was skipped, once all have been read
    has_punctuation: bool = (
        True  # punctuation marks are punctuation, not words of a formal language
    )
    baselines: Mapping[str, Baseline] = field(default_factory=dict)  # simple rules, by name

    def __iter__(self) -> Iterator[Example]:
        return iter(self.rows)


@dataclass(frozen=True)
class Prediction:
    """A model's prediction for one example.

    If a text has no words, there is no label, no probabilities and no tree.

    Attributes:
        words: the words of each text.
        label: the class; for a tagger, the tag of every word; or None.
        probabilities: of all classes; for a tagger, of all tags for every word; or None.
        heads: for each text the head of every word, counted from 1, 0 is the root; None if the model
            has no dependency trees. Children of the NULL token become children of its head.
        scores: for each text the arc scores ``(n + 1, n + 1)``, or the span scores ``(n, n)`` of
            binary trees, on the CPU, with the NULL token as the first word if the model has one; None
            unless requested.
        brackets: for each text its binary tree, as in ``((The cat) sat)``, without the NULL token;
            None if the model has no binary trees.
        relations: for each text the label of every word's arc; None if the model labels no arcs.
        log_prob: log-probability of the tree without its labels, if several trees were asked for.

    Example:
        >>> found = Prediction((("Dogs", "bark"),), "yes", {"no": 0.25, "yes": 0.75}, ((2, 0),))
        >>> found.label, found.probability, found.heads[0]
        ('yes', 0.75, (2, 0))
    """

    words: tuple[tuple[str, ...], ...]
    label: str | tuple[str | int, ...] | None = None
    probabilities: Mapping[str, float] | tuple[Mapping[str, float], ...] | None = field(
        default=None, hash=False
    )
    heads: tuple[Heads, ...] | None = None
    scores: tuple[Tensor, ...] | None = field(default=None, compare=False, repr=False)
    brackets: tuple[str, ...] | None = None
    relations: tuple[tuple[str, ...], ...] | None = None
    log_prob: float | None = None

    @property
    def trees(self) -> tuple[Tree, ...] | None:
        """The tree of each text, whether heads or brackets."""
        return self.heads or self.brackets

    @property
    def probability(self) -> float | tuple[float, ...] | None:
        """Probability of the label; for a tagger, of the tag of every word; or None."""
        if self.label is None or self.probabilities is None:
            return None
        if isinstance(self.probabilities, tuple):
            pairs = zip(self.probabilities, self.label, strict=True)
            return tuple(shares[str(tag)] for shares, tag in pairs)
        return self.probabilities[str(self.label)]


@dataclass(frozen=True)
class Answer:
    """A model's prediction for texts with given trees."""

    text: str  # a sentence for people
    tags: list[str] | None = None  # what to write under the words; None for models that do not tag
    gold: list[int] | None = None  # the gold heads, if the text determines them


class Figures(Protocol):
    """What an evaluation found."""

    def record(self) -> dict[str, Any]:
        """All of it, for JSON."""

    def tables(self, title: str) -> list[Table]:
        """All of it, for people."""


@dataclass(frozen=True)
class LabelFigures:
    """Labels predicted with discrete trees and with soft ones, in percent.

    Example:
        >>> LabelFigures(labels=10, same=90.0, accuracy=80.0, soft_accuracy=70.0).gap
        10.0
    """

    labels: int  # how many: of examples, of words for a tagger, of operators for ListOps
    same: float  # those that are the same with either tree
    accuracy: float | None  # with discrete trees; None if the right labels are not known
    soft_accuracy: float | None  # likewise with soft trees

    @classmethod
    def of(cls, labels: Iterable[tuple[Label, Label, Label]]) -> LabelFigures | None:
        """Compare the labels of examples, with discrete and with soft trees, with the right ones.

        >>> LabelFigures.of([("yes", "no", "yes"), (("A", "B"), ("A", "B"), ("A", None))])
        LabelFigures(labels=2, same=50.0, accuracy=100.0, soft_accuracy=50.0)
        """
        counts: Counter[str] = Counter()
        for hard, soft, gold in labels:
            first, second = several_labels(hard), several_labels(soft)
            for a, b, c in zip(first, second, several_labels(gold) or first, strict=False):
                if gold is None:
                    counts.update(labels=1, same=a == b)
                elif c is not None:
                    counts.update(labels=1, same=a == b, known=1, right=a == c, soft=b == c)
        if not counts["labels"]:
            return None
        known = counts["known"]
        shares = [100 * counts[name] / known if known else None for name in ("right", "soft")]
        return cls(counts["labels"], 100 * counts["same"] / counts["labels"], *shares)

    @property
    def gap(self) -> float | None:
        """By how much discrete trees are better."""
        if self.accuracy is None or self.soft_accuracy is None:
            return None
        return self.accuracy - self.soft_accuracy

    def record(self) -> dict[str, Any]:
        """All figures, for JSON."""
        return asdict(self)

    def tables(self, title: str) -> list[Table]:
        """Accuracy, for people."""
        row = [title, f"{self.labels:,}", f"{self.accuracy:.2f}", f"{self.soft_accuracy:.2f}"]
        return [Table(["accuracy, %", "labels", "discrete trees", "soft trees"], [row])]


def several_labels(label: Label) -> tuple[str | int | None, ...]:
    """The labels of an example: its class, or the tags of its words."""
    return (label,) if isinstance(label, str) else label or ()


class PredictOptions(TypedDict, total=False):
    """The options of `TrainedParser.stream`."""

    soft: bool
    scores: bool
    batch_size: int
    tokens: bool | None


class TrainedParser(ABC):
    """A trained model of any task."""

    name: str  # what messages call it
    task: str  # its name in ``treelax.apps.tasks.TASKS``
    text: tuple[str, ...] = ("text",)  # names of the texts of an example
    labels: tuple[str, ...]  # names of its classes or tags
    is_tagger: bool  # every word has a label
    # where its trees come from: "latent" or "heads" (it scores arcs), "treebank" (likewise, as in the
    # treebank of its training), "chain", "given" with the texts, "gold", or "none" and "intra" for
    # models without trees
    trees: str
    tree: LatentTree | None  # makes trees from scores; None for models that score no arcs
    null: bool = False  # its scores have a NULL token in front of the words
    takes_vectors: bool = False  # it can look up new words in the word vectors used in training
    tag_column: str = "UPOS"  # CoNLL-U column of its tags
    keeps_heads: bool = False  # its `stream` takes ``keep``, to keep given heads and labels
    sample: tuple[str, ...]  # an example for each of ``text``
    about: Mapping[str, Any] | None = None  # what a model in one file says of itself

    @abstractmethod
    def stream(
        self,
        texts: Iterable[Any],
        *,
        soft: bool = False,
        scores: bool = False,
        batch_size: int = 64,
        tokens: bool | None = None,
    ) -> Iterator[Prediction]:
        """Label and parse any number of texts in bounded memory, in order.

        Args:
            texts: for each example a text, or a list of texts where it has several. A text is a
                string, a list of words, or a `treelax.apps.data.conllu.Sentence`.
            soft: predict with soft trees.
            scores: also return arc scores, if the model has them.
            batch_size: examples per batch.
            tokens: strings are tokenised: words separated by spaces; by default as in training.
        """

    @abstractmethod
    def words(self, text: str) -> tuple[str, ...]:
        """A text as the model cuts it into words, also one that is not finished."""

    @abstractmethod
    def read(self, source: Source) -> Examples:
        """Read the examples of a source."""

    @abstractmethod
    def own_examples(self, split: str, *, limit: int | None = None) -> Examples:
        """The examples of a split of the run's data."""

    @abstractmethod
    def evaluate(self, examples: Sequence[Example], *, progress: Progress | None = None) -> Figures:
        """Evaluate the model on examples with known labels or trees."""

    @abstractmethod
    def arc_scores(self, text: Text) -> Tensor:
        """The arc scores of one text ``(n + 1, n + 1)``, a sentence or split into words by `words`.

        Of a model with binary trees, its span scores ``(n, n)``.
        """

    @abstractmethod
    def answer(self, texts: Sequence[Sequence[str]], trees: Sequence[Tensor]) -> Answer | None:
        """What the model says of texts given their trees, each ``(n + 1, n + 1)`` of 0 and 1."""

    def check(self, example: Example, where: str) -> None:  # noqa: B027
        """Refuse an example that the model cannot take, a text that is too long for it."""

    def look_up(self, words: Iterable[str]) -> tuple[int, int]:
        """Look up new words in files of word vectors; how many were looked for, and found."""
        return 0, 0

    def unknown_words(self, words: Collection[str]) -> str | None:
        """A sentence for people if many words are unknown that files of word vectors may have."""
        return None

    def trained_with(self, file: Path) -> str | None:
        """What a file was to the training, "train data"; None if it was nothing."""
        return None

    def shown_tags(self, prediction: Prediction) -> tuple[str, ...] | None:
        """What to write under the words, empty for a word without; None for models without tags."""
        return tuple(map(str, prediction.label)) if isinstance(prediction.label, tuple) else None

    def predict(self, texts: Iterable[Any], **options: Unpack[PredictOptions]) -> list[Prediction]:
        """Label texts and find their trees; see `stream`."""
        return list(self.stream(texts, **options))

    def parse(self, texts: Iterable[Any], *, tokens: bool | None = None) -> list[Prediction]:
        """Find trees with the scores of their arcs; see `stream`."""
        self.require_trees()
        return self.predict(texts, scores=True, tokens=tokens)

    def ask(
        self, examples: Examples, *, keep: bool = False, **options: Unpack[PredictOptions]
    ) -> Iterator[tuple[Example, Prediction]]:
        """Each example with what the model says of it; see `stream`, and `keeps_heads` for keep."""
        options["tokens"] = True
        more: Any = {"keep": True} if keep else {}  # which others do not take
        waiting: deque[Example] = deque()  # read and not yet predicted

        def texts() -> Iterator[Any]:
            for example in examples:
                self.check(example, f"{examples.name}, line {example.line}")
                waiting.append(example)
                yield example.texts[0] if len(self.text) == 1 else example.texts

        for prediction in self.stream(texts(), **options, **more):
            yield waiting.popleft(), prediction

    def best_trees(
        self, text: Text, prediction: Prediction, count: int, *, keep: bool = False
    ) -> list[Prediction]:
        """The most probable trees of a text, which was parsed with its scores; see `keeps_heads`."""
        raise InputError(f"--best: received {self.name}; expected a dependency parser")

    # ------------------------------------------------------------------ trees from scores

    def soft_tree(self, scores: Tensor, *, temperature: float | None = None) -> Tensor:
        """The relaxed tree of scores, without noise and without the NULL token.

        ``temperature`` replaces the model's.
        """
        tree, trained = self.require_scores(), self.relaxation[1]
        heat = 1.0 if temperature is None else temperature / trained  # dividing scores is the same
        return self._of_words(tree.soft(scores / heat).double().cpu())

    @property
    def relaxation(self) -> tuple[str, float]:
        """How soft trees come from scores, and at which temperature.

        "softmax", "SparseMAP", or "entropy" where the weights of arcs are their probabilities.
        """
        layer = self.require_scores()
        estimator: Any = getattr(layer.estimator, "relaxed", layer.estimator)
        name = "SparseMAP" if isinstance(estimator, SparseMAP) else "entropy"
        if isinstance(estimator, Relaxed) and not isinstance(layer.structure, HeadSelection):
            name = estimator.relaxation
        return name, float(getattr(estimator, "temperature", 1.0))

    @torch.no_grad()
    def marginals(self, scores: Tensor) -> Tensor:
        """The probability of every arc, without the NULL token."""
        structure = self.require_scores().structure
        return self._of_words(structure(scores.detach().cpu().double()).marginals)

    @torch.no_grad()
    def best_tree(self, words: Sequence[str], scores: Tensor) -> Tree:
        """The best tree of scores, without the NULL token."""
        return self._written(words, self.require_scores().structure(scores.cpu()).mode[None])[0]

    def sample_trees(
        self, words: Sequence[str], scores: Tensor, count: int, *, seed: int = 0
    ) -> list[Tree]:
        """Exact samples from the distribution defined by scores, the same on every device."""
        structure, scores = self.require_scores().structure, scores.cpu()
        generator = torch.Generator().manual_seed(seed)
        samples: list[Tree] = []
        while left := count - len(samples):
            size = min(left, max(MOST_ENTRIES // scores.numel(), 1))
            trees = structure(scores).sample((size,), generator=generator)
            samples += self._written(words, trees)
        return samples

    def _written(self, words: Sequence[str], trees: Tensor) -> list[Tree]:
        if self.notation == "brackets":
            return [brackets(tree, words) for tree in self._of_words(trees)]
        heads = heads_without_null if self.null else tuple
        return [heads(row) for row in tree_to_heads(trees).tolist()]

    def _of_words(self, tree: Tensor) -> Tensor:
        without = weights_without_null if self.notation == "heads" else spans_without_null
        return without(tree) if self.null else tree

    @property
    def notation(self) -> Literal["heads", "brackets"]:
        """How its predictions say a tree: heads of words, or a line of brackets for binary trees."""
        return "heads" if self.tree is None or self.tree.structure.rooted else "brackets"

    @property
    def takes_trees(self) -> bool:
        """Whether its trees are given with the texts."""
        return self.trees == "given"

    def require_trees(self) -> None:
        """Refuse a model that finds no trees."""
        if self.takes_trees or self.trees in ("none", "intra"):
            takes = "takes given trees and finds none" if self.takes_trees else "has no trees"
            raise InputError(
                f"{self.name}: {takes} (model.trees is {self.trees!r}); expected a model with latent "
                "trees, heads or chain: treelax predict gives its labels"
            )

    def require_heads(self, purpose: str | None = None) -> None:
        """Refuse a model that finds no dependency trees, for a purpose that messages name."""
        self.require_trees()
        if self.notation != "heads":
            raise InputError(
                f"{self.name}: has binary trees (model.structure is 'binary'); expected a model with "
                f"dependency trees{f' for {purpose}' if purpose else ''}"
            )

    def require_scores(self) -> LatentTree:
        """The layer that makes trees from scores; refuse a model without one."""
        if self.tree is None:
            raise InputError(
                f"{self.name}: its arcs have no scores (model.trees is {self.trees!r}); expected a "
                "model with latent trees or heads"
            )
        return self.tree


def heads_without_null(heads: Sequence[int]) -> Heads:
    """Take the NULL token, the first word, out of a tree: its children become its head's.

    >>> heads_without_null((0, 1, 2)), heads_without_null((3, 1, 0))
    ((0, 1), (2, 0))
    """
    above, *others = heads
    shifted = []
    for word, head in enumerate(others, 2):
        place = above if head == 1 else head
        # without a tree constraint a word and NULL may be each other's heads
        shifted.append(0 if place in (0, word) else place - 1)
    return tuple(shifted)


def spans_without_null(tree: Tensor) -> Tensor:
    """Take the NULL token, the first word, out of binary trees ``(..., n, n)``, or weights of spans.

    A span with NULL may then be one that the tree has as well; the weight of both is that of either,
    as if they were independent.

    >>> spans_without_null(torch.tensor([[1.0, 0.5, 1.0], [0.0, 1.0, 0.5], [0.0, 0.0, 1.0]]))
    tensor([[1., 1.],
            [0., 1.]])
    """
    with_null, rest = tree[..., 0, 1:], tree[..., 1:, 1:].clone()
    rest[..., 0, :] += with_null * (1 - rest[..., 0, :])
    return rest


def weights_without_null(tree: Tensor) -> Tensor:
    """Weights of arcs between words: children of NULL go to its heads, in proportion.

    >>> tree = torch.tensor([[0.0, 1.0, 0.25], [0.0, 0.0, 0.75], [0.0, 0.0, 0.0]])
    >>> weights_without_null(tree)
    tensor([[0., 1.],
            [0., 0.]])
    """
    others = [0, *range(2, len(tree))]
    folded = tree[others][:, others] + tree[others, 1][:, None] * tree[1, others]
    folded.fill_diagonal_(0)
    folded[0, 1:] += 1 - folded[:, 1:].sum(0)  # a word cannot be its own head: the root is
    folded[:, 0] = 0
    return folded.clamp(0, 1)
