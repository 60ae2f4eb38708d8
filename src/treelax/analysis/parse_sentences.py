"""What a sentence model says of a corpus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import torch

from treelax.analysis.corpora import Corpus, Label
from treelax.analysis.entropy import TreeEntropy, tree_entropies
from treelax.analysis.parses import MOST_SENTENCES, LabelFigures, Parses, Progress
from treelax.analysis.shapes import Heads
from treelax.data.batching import length_batches
from treelax.errors import InputError
from treelax.nn.modes import evaluating
from treelax.tasks.base import heads_without_null
from treelax.tasks.text.prediction import Prediction, sentences_of
from treelax.tasks.text.pretrained import SentenceModel

__all__ = ["parse_sentences"]

CHUNK = 512  # examples that are labelled between two reports of progress


def parse_sentences(
    model: SentenceModel, corpus: Corpus, name: str, *, progress: Progress | None = None
) -> Parses:
    """Parse the sentences of a corpus and label its examples.

    Labels are predicted if examples have as many texts as the model takes; trees are found in any
    case, for the encoder sees one sentence at a time.

    Args:
        model: of sentences, in any mode.
        corpus: the sentences.
        name: of the run.
        progress: called with the number of words done.

    Returns:
        What the model says; the trees of one that takes given trees are those of the corpus.

    Raises:
        InputError: the model has no trees, or takes given ones and the corpus has none.

    Example:
        >>> from treelax.analysis.corpora import Corpus
        >>> from treelax.data.conllu import Sentence
        >>> from treelax.data.text.vectors import random_vectors
        >>> from treelax.tasks.text.prediction import SentenceSettings
        >>> model = SentenceModel(SentenceSettings(), random_vectors(["dogs"], 8), ["yes"])
        >>> said = parse_sentences(model.eval(), Corpus("one", (Sentence(("dogs",)),)), "run")
        >>> said.trees, said.entropies[0].entropy, said.labels.same
        (((0,),), 0.0, 100.0)
    """
    trees = model.settings.model.trees
    if corpus.listops:
        raise InputError(
            f"{name}: is a model of sentences and {corpus.name} has ListOps expressions; expected "
            "sentences"
        )
    if trees in ("none", "intra"):
        raise InputError(
            f"{name}: has no trees (model.trees is {trees!r}); expected runs with latent, heads or "
            "chain"
        )
    if trees == "given":
        if corpus.gold is None:
            raise InputError(
                f"{name}: takes given trees (model.trees is 'given') and {corpus.name} has none; "
                "expected --data with a CoNLL-U file of them"
            )
        return Parses(name, tuple(corpus.gold))
    model.look_up(word for sentence in corpus.words for word in sentence)
    words = sum(map(len, corpus.words))
    labelled = model.settings.texts == corpus.texts
    passes = 3 if labelled else 1
    tell = progress or (lambda done: None)
    heads, entropies = _parsed(model, corpus.words, lambda n: tell(n // passes))
    figures = None
    if labelled:
        figures = _label_figures(model, corpus, lambda n: tell((words + n) // passes))
    return Parses(name, heads, entropies, figures, model.settings.model.single_root)


@torch.no_grad()
def _parsed(
    model: SentenceModel, sentences: Sequence[Sequence[str]], progress: Progress
) -> tuple[tuple[Heads, ...], tuple[TreeEntropy, ...] | None]:
    encoder, null = model.network.encoder, int(model.settings.null)
    if encoder.tree is None:  # a chain, which is one without the NULL token too
        return tuple(tuple(range(len(words))) for words in sentences), None
    table, device = encoder.read(model.vectors), next(model.network.parameters()).device
    heads: dict[int, Heads] = {}
    entropies: dict[int, TreeEntropy] = {}
    done = 0
    lengths = [len(words) + null for words in sentences]
    with evaluating(model.network):
        for chosen in length_batches(lengths, most_sentences=MOST_SENTENCES):
            own_words = [sentences[i] for i in chosen]
            batch = sentences_of(model.settings, table, own_words, device)
            scores = encoder.scores(batch)
            found = encoder.tree.discrete(scores, batch.lengths).argmax(-2)[:, 1:].tolist()
            own = tree_entropies(scores, batch.lengths, encoder.tree.structure)
            entropies.update(zip(chosen, own, strict=True))
            for i, row in zip(chosen, found, strict=True):
                cut = row[: len(sentences[i]) + null]
                heads[i] = heads_without_null(cut) if null else tuple(cut)
                done += len(sentences[i])
            progress(done)
    places = range(len(sentences))
    return tuple(heads[i] for i in places), tuple(entropies[i] for i in places)


def _label_figures(model: SentenceModel, corpus: Corpus, progress: Progress) -> LabelFigures:
    texts = [[list(text.words) for text in example] for example in corpus.examples]
    given = [words[0] if corpus.texts == 1 else words for words in texts]
    gold: Sequence[Label] = corpus.labels or ()
    kind = tuple if model.settings.kind == "tag" else str
    known = {one for label in gold if isinstance(label, kind) for one in _several(label)}
    if not known & set(model.labels):  # there are none, or they are labels of something else
        gold = [None] * len(given)
    counts: Counter[str] = Counter()
    done = 0
    for start in range(0, len(given), CHUNK):
        chunk = slice(start, start + CHUNK)
        pairs = zip(
            model.predict(given[chunk]), model.predict(given[chunk], soft=True), strict=True
        )
        for (hard, soft), right in zip(pairs, gold[chunk], strict=True):
            _count(counts, hard, soft, right)
        done += 2 * sum(len(text) for words in texts[chunk] for text in words)
        progress(done)
    same = 100 * counts["same"] / counts["labels"]
    if not counts["known"]:
        return LabelFigures(counts["labels"], same, None, None)
    right_share, soft_share = (100 * counts[key] / counts["known"] for key in ("right", "soft"))
    return LabelFigures(counts["labels"], same, right_share, soft_share)


def _count(counts: Counter[str], hard: Prediction, soft: Prediction, right: Label) -> None:
    """Count the labels of one example, or of its words."""
    own, other, wanted = (_several(label) for label in (hard.label, soft.label, right))
    counts["labels"] += len(own)
    counts["same"] += sum(map(str.__eq__, own, other))
    counts["known"] += len(wanted)
    counts["right"] += sum(map(str.__eq__, own, wanted))
    counts["soft"] += sum(map(str.__eq__, other, wanted))


def _several(label: Label) -> tuple[str, ...]:
    return (label,) if isinstance(label, str) else label or ()
