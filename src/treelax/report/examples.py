"""What a trained model says of single examples: labels with either tree, and marginals of arcs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from treelax.analysis.corpora import Corpus, Label
from treelax.analysis.parses import Parses
from treelax.analysis.shapes import Heads
from treelax.analysis.subjects import ListOpsSubject, SentenceSubject, Subject
from treelax.data.listops import Expression, encode_listops
from treelax.nn import LatentTree
from treelax.nn.modes import evaluating
from treelax.tasks.listops.evaluation import parse_all
from treelax.tasks.base import weights_without_null
from treelax.tasks.text.prediction import sentences_of

__all__ = ["Said", "ask", "right_label"]


@dataclass(frozen=True)
class Said:
    """What a model says of one example.

    Attributes:
        heads: of each text, counted from 1, 0 the root.
        label: with discrete trees: a class, or a tag for each word, empty where it has none to
            show; None if none was predicted.
        soft_label: likewise with soft trees.
        probability: of the class.
        right: whether the label is right; None if that is not known.
        marginals: of each text, ``(n + 1, n + 1)``; none if they were not asked for.

    Example:
        >>> Said(((2, 0),), label="yes", soft_label="no").right is None
        True
    """

    heads: tuple[Heads, ...]
    label: Label = None
    soft_label: Label = None
    probability: float | None = None
    right: bool | None = None
    marginals: tuple[Tensor, ...] = ()


def right_label(corpus: Corpus, example: int) -> Label:
    """The right label of an example: for ListOps the number of arguments of each operator.

    Args:
        corpus: the sentences.
        example: its number, from 0.

    Returns:
        A class, a tag for each word, or None if it is not known.

    Example:
        >>> from treelax.analysis.corpus_readers import listops_corpus
        >>> from treelax.data.listops import parse_expression
        >>> right_label(listops_corpus([parse_expression("[MAX 2 9 ]")], "one"), 0)
        ('2', '', '', '')
    """
    if corpus.listops:
        [sentence] = corpus.examples[example]
        return tuple(str(n) if n else "" for n in Expression(sentence.words).valencies)
    return None if corpus.labels is None else corpus.labels[example]


def ask(
    subject: Subject,
    corpus: Corpus,
    parses: Parses,
    asked: Sequence[int],
    *,
    mapped: Collection[int] = (),
) -> dict[int, Said]:
    """Ask a model about some examples.

    Args:
        subject: the model.
        corpus: the sentences.
        parses: what the model says of all of them.
        asked: the numbers of the examples, from 0.
        mapped: those of them whose marginals are wanted.

    Returns:
        What it says, by the number of the example.

    Example:
        >>> from treelax.analysis.corpus_readers import listops_corpus
        >>> from treelax.analysis.subjects import load_subject
        >>> from treelax.data.listops import parse_expression
        >>> corpus = listops_corpus([parse_expression("[MAX 2 9 ]")], "one")
        >>> subject = load_subject("listops")
        >>> ask(subject, corpus, subject.parse(corpus), [0])[0].label
        ('2', '', '', '')
    """
    if isinstance(subject, ListOpsSubject):
        labels = _listops_labels(subject, corpus, asked)
    elif isinstance(subject, SentenceSubject):
        labels = _sentence_labels(subject, corpus, asked)
    else:
        labels = {}
    found = {}
    for i in asked:
        place = i * corpus.texts
        heads = parses.trees[place : place + corpus.texts]
        marginals = [_marginals(subject, text.words) for text in corpus.examples[i] if i in mapped]
        known = tuple(own for own in marginals if own is not None)
        found[i] = Said(heads, *labels.get(i, (None, None, None, None)), marginals=known)
    return found


Labels = tuple[Label, Label, float | None, bool | None]  # discrete, soft, probability, right


def _listops_labels(
    subject: ListOpsSubject, corpus: Corpus, asked: Sequence[int]
) -> dict[int, Labels]:
    expressions = [Expression(corpus.sentences[i].words) for i in asked]
    parsed = parse_all(subject.loaded.model, expressions)
    found: dict[int, Labels] = {}
    for i, expression, one in zip(asked, expressions, parsed, strict=True):
        operators = [place for place, kind in enumerate(expression.kinds) if kind == "operator"]

        def shown(tags: Sequence[int], own: Collection[int] = tuple(operators)) -> Label:
            return tuple(str(tag) if tag or n in own else "" for n, tag in enumerate(tags))

        right = [one.tags[n] == expression.valencies[n] for n in operators]
        verdict = all(right) if right else None
        found[i] = (shown(one.tags), shown(one.soft_tags), None, verdict)
    return found


def _sentence_labels(
    subject: SentenceSubject, corpus: Corpus, asked: Sequence[int]
) -> dict[int, Labels]:
    model = subject.model
    if model.settings.texts != corpus.texts or model.settings.model.trees == "given":
        return {}
    kind = tuple if model.settings.kind == "tag" else str
    several = [label for label in corpus.labels or () if isinstance(label, kind)]
    known = {one for label in several for one in ((label,) if isinstance(label, str) else label)}
    knows = bool(known & set(model.labels))  # else they are labels of something else
    texts = [[list(text.words) for text in corpus.examples[i]] for i in asked]
    given = [words[0] if corpus.texts == 1 else words for words in texts]
    found: dict[int, Labels] = {}
    pairs = zip(model.predict(given), model.predict(given, soft=True), strict=True)
    for i, (hard, soft) in zip(asked, pairs, strict=True):
        wanted = right_label(corpus, i)
        right = hard.label == wanted if knows and isinstance(wanted, kind) else None
        probability = hard.probability if isinstance(hard.probability, float) else None
        found[i] = (hard.label, soft.label, probability, right)
    return found


@torch.no_grad()
def _marginals(subject: Subject, words: Sequence[str]) -> Tensor | None:
    """The probability of every arc, from the scores as they are; None without latent trees."""
    if isinstance(subject, ListOpsSubject):
        model = subject.loaded.model
        if model.parser is None:
            return None
        batch = encode_listops([Expression(tuple(words))]).to(model.composer.vertex.device)
        scores = model.parser.scores(batch.tokens, batch.lengths)[0]
        return _shares(model.parser.tree, scores)
    if isinstance(subject, SentenceSubject):
        network, settings = subject.model.network, subject.model.settings
        encoder = network.encoder
        if encoder.tree is None:
            return None
        device = next(network.parameters()).device
        text = sentences_of(settings, encoder.read(subject.model.vectors), [words], device)
        with evaluating(network):
            shares = _shares(encoder.tree, encoder.scores(text)[0])
        return weights_without_null(shares) if settings.null else shares
    return None


def _shares(layer: LatentTree, scores: Tensor) -> Tensor:
    return layer.structure(scores.detach().cpu().double()).marginals
