"""What ``treelax parse`` asks of a trained model: trees, labels, weights of arcs, samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import torch
from torch import Tensor

from treelax.data.conllu import Sentence
from treelax.data.listops import Expression, encode_listops
from treelax.errors import InputError
from treelax.nn import LatentTree
from treelax.nn.modes import evaluating
from treelax.tasks.listops.evaluation import parse_all
from treelax.tasks.base import heads_without_null, weights_without_null
from treelax.tasks.text.prediction import Prediction, sentences_of
from treelax.training.models import TrainedModel
from treelax.tasks.text.pretrained import SentenceModel
from treelax.trees import tree_to_heads

Heads = tuple[int, ...]
Text = str | Sequence[str]  # to be cut into words, or words
AT_A_TIME = 256  # expressions
MOST_ENTRIES = 4_000_000  # of sampled trees at a time


@dataclass(frozen=True)
class Given:
    """An example to parse.

    Attributes:
        line: where it stands in its file, or which of the arguments it is, from 1.
        texts: one, or two for pairs.
        gold: of each text the right heads, None where they are not known.
        block: the lines of a CoNLL-U file that it is from; None for other texts.
    """

    line: int
    texts: tuple[Text, ...]
    gold: tuple[Heads | None, ...] = (None, None)
    block: Sentence | None = None


@dataclass(frozen=True)
class Asked:
    """What is asked besides the trees.

    Attributes:
        weights: those of the arcs, of the soft tree without noise.
        samples: how many sampled trees.
        seed: of the samples; those of a text do not depend on the other texts.
    """

    weights: bool = False
    samples: int = 0
    seed: int = 0


@dataclass(frozen=True)
class Tree:
    """A text with its tree.

    Attributes:
        words: of the text.
        heads: counted from 1, 0 the root.
        gold: the right heads, None if they are not known.
        tags: of the words, as the model says; None for models that do not tag.
        notes: what to show of the tags, empty for a word without; None without tags.
        weights: ``weights[h][m]`` of the soft tree; None if not asked for.
        samples: sampled heads and how often, the most frequent first.
    """

    words: tuple[str, ...]
    heads: Heads
    gold: Heads | None = None
    tags: tuple[str | int, ...] | None = None
    notes: tuple[str, ...] | None = None
    weights: list[list[float]] | None = None
    samples: tuple[tuple[Heads, int], ...] = ()


@dataclass(frozen=True)
class Parsed:
    """What a model says of an example.

    Attributes:
        line: as given.
        trees: of each text.
        label: the class; None for models that do not classify.
        probability: of the label.
        block: as given.
    """

    line: int
    trees: tuple[Tree, ...]
    label: str | None = None
    probability: float | None = None
    block: Sentence | None = None


# ------------------------------------------------------------------ ListOps


def parse_listops(
    trained: TrainedModel, examples: Iterable[tuple[int, Expression]], asked: Asked
) -> Iterator[Parsed]:
    """Parse expressions in their order."""
    model = trained.model
    if model.parser is None and (asked.weights or asked.samples):
        raise _no_scores(trained.config.model.trees)
    return _parsed_listops(trained, iter(examples), asked)


def _parsed_listops(
    trained: TrainedModel, examples: Iterator[tuple[int, Expression]], asked: Asked
) -> Iterator[Parsed]:
    model = trained.model
    while some := list(islice(examples, AT_A_TIME)):
        for (line, expression), parsed in zip(
            some, parse_all(model, [expression for _, expression in some]), strict=True
        ):
            more = _More()
            if model.parser is not None and (asked.weights or asked.samples):
                batch = encode_listops([expression]).to(model.composer.vertex.device)
                with torch.inference_mode():
                    scores = model.parser.scores(batch.tokens, batch.lengths)[0]
                    more = _more(model.parser.tree, scores, asked)
            notes = tuple(
                str(tag) if kind == "operator" or tag else ""
                for kind, tag in zip(expression.kinds, parsed.tags, strict=True)
            )
            tree = Tree(
                expression.tokens,
                parsed.heads,
                expression.heads,
                parsed.tags,
                notes,
                more.weights,
                more.samples,
            )
            yield Parsed(line, (tree,))


# ------------------------------------------------------------------ sentences


def parse_sentences(
    model: SentenceModel, examples: Iterable[Given], asked: Asked, *, tokens: bool | None = None
) -> Iterator[Parsed]:
    """Parse sentences in their order."""
    trees = model.settings.model.trees
    if trees in ("none", "intra"):
        raise InputError(
            f"the model has no trees (model.trees is {trees!r}); expected one trained with latent "
            "trees, heads or chain: treelax predict gives its labels"
        )
    if trees == "given":
        raise InputError(
            "the model takes given trees and finds none (model.trees is 'given'); expected one trained "
            "with latent trees, heads or chain: treelax predict RUN FILE.conllu gives its labels"
        )
    if model.network.encoder.tree is None and (asked.weights or asked.samples):
        raise _no_scores(trees)
    return _parsed_sentences(model, examples, asked, tokens)


def _parsed_sentences(
    model: SentenceModel, examples: Iterable[Given], asked: Asked, tokens: bool | None
) -> Iterator[Parsed]:
    waiting: list[Given] = []  # read and not yet predicted

    def texts() -> Iterator[object]:
        for example in examples:
            waiting.append(example)
            yield example.texts if model.settings.texts > 1 else example.texts[0]

    for said in model.stream(texts(), tokens=tokens):
        example = waiting.pop(0)
        if said.heads is None:
            raise InputError(f"text {example.line}: has no words; expected at least one")
        is_tagger = model.settings.kind == "tag"
        tags = tuple(said.label) if is_tagger and said.label is not None else None
        trees = []
        for i, words in enumerate(said.words):
            more = _more_of_words(model, words, asked)
            trees.append(
                Tree(words, said.heads[i], example.gold[i], tags, tags, more.weights, more.samples)
            )
        yield Parsed(example.line, tuple(trees), *_label(said), example.block)


def _label(said: Prediction) -> tuple[str | None, float | None]:
    if isinstance(said.label, str) and isinstance(said.probability, float):
        return said.label, said.probability
    return None, None


def _more_of_words(model: SentenceModel, words: Sequence[str], asked: Asked) -> _More:
    layer = model.network.encoder.tree
    if layer is None or not (asked.weights or asked.samples):
        return _More()
    encoder, settings = model.network.encoder, model.settings
    device = next(model.network.parameters()).device
    batch = sentences_of(settings, encoder.read(model.vectors), [words], device)
    with evaluating(model.network), torch.inference_mode():
        return _more(layer, encoder.scores(batch)[0], asked, null=settings.null)


# ------------------------------------------------------------------ weights and samples


@dataclass(frozen=True)
class _More:
    weights: list[list[float]] | None = None
    samples: tuple[tuple[Heads, int], ...] = ()


def _no_scores(trees: str) -> InputError:
    return InputError(
        f"--soft, --samples and heat maps: the model's trees are given (model.trees is {trees!r}), "
        "so its arcs have no weights; expected a model with latent trees or heads"
    )


def _more(layer: LatentTree, scores: Tensor, asked: Asked, *, null: bool = False) -> _More:
    """Weights and samples for the scores of one text, whose first word may be NULL."""
    weights = None
    if asked.weights:
        soft = layer.soft(scores).double().cpu()
        weights = (weights_without_null(soft) if null else soft).tolist()
    counts: Counter[Heads] = Counter()
    generator = torch.Generator().manual_seed(asked.seed)
    scores = scores.cpu()  # so that a seed gives the same trees on every device
    left = asked.samples
    while left:
        count = min(left, max(MOST_ENTRIES // scores.numel(), 1))
        for heads in _sampled(layer, scores, count, generator):
            counts[heads_without_null(heads) if null else tuple(heads)] += 1
        left -= count
    return _More(weights, tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0]))))


def _sampled(
    layer: LatentTree, scores: Tensor, count: int, generator: torch.Generator
) -> list[list[int]]:
    """Exact samples of the distribution that the scores define."""
    trees = layer.structure(scores).sample((count,), generator=generator)
    found: list[list[int]] = tree_to_heads(trees).tolist()
    return found
