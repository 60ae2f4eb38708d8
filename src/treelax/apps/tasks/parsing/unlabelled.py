"""Sentences without trees: which they are, and what a parser learns from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from treelax.apps.data.conllu import Sentence
from treelax.apps.tasks.base import Source
from treelax.apps.tasks.parsing.config import DataConfig, ParserConfig, UnlabelledConfig
from treelax.apps.tasks.parsing.decoders import Encoded
from treelax.apps.tasks.parsing.inputs import read_examples
from treelax.apps.tasks.parsing.lexicon import Forms, tags_of
from treelax.apps.tasks.parsing.model import ParserModel
from treelax.apps.tasks.parsing.treebank import Batch
from treelax.errors import DataError, counted
from treelax.estimators import Estimator, Marginals, fenchel_young_loss
from treelax.nn.modes import evaluating
from treelax.trees import heads_to_tree


def choose_labelled(
    sentences: Sequence[Sentence], data: DataConfig
) -> tuple[list[Sentence], list[Sentence]]:
    """The share of the training sentences that is labelled, and the others; more contain fewer."""
    generator = torch.Generator().manual_seed(data.seed)
    order = torch.randperm(len(sentences), generator=generator).tolist()
    count = max(1, round(data.labelled * len(sentences)))
    return tuple([sentences[i] for i in sorted(part)] for part in (order[:count], order[count:]))  # type: ignore[return-value]


def load_unlabelled(
    config: ParserConfig, rest: Sequence[Sentence]
) -> tuple[list[Sentence], list[str]]:
    """The sentences without trees of a config, and notes on them."""
    data, structure = config.data, config.model.make_structure()
    sentences = list(rest) if data.rest == "unlabelled" else []
    notes: list[str] = []
    for file in data.unlabelled_files:
        examples = read_examples(config, structure, Source(file=file))
        for example in examples:
            [sentence] = example.sentences
            if data.tags != "none" and set(tags_of(sentence, data.tags)) == {"_"}:
                raise DataError(
                    f"{examples.name}, line {example.line}: received words without "
                    f"{data.tags.upper()}, which data.tags={data.tags} reads; expected CoNLL-U with "
                    "them"
                )
            sentences.append(sentence)
        notes += examples.notes()
    chosen = [
        replace(sentence, heads=None, labels=None, lines=())
        for sentence in sentences
        if len(sentence) <= data.max_length
    ]
    if sentences:
        notes.append(f"unlabelled: {counted(len(chosen), 'sentence')}")
    if left := len(sentences) - len(chosen):
        notes[-1] += f", and {left:,} of more than {data.max_length} words left out"
    return chosen, notes


def mixed_loss(
    model: ParserModel,
    config: UnlabelledConfig,
    estimator: Estimator,
    batch: Batch,
    forms: Forms,
    labelled: Tensor,
    generator: torch.Generator,
) -> Tensor:
    r"""``(batch,)``: the losses of sentences with and without trees.

    .. math::
        \ell(s, T) &= -\log q(T \mid s) - \alpha \log p(s \mid T) \\
        \ell(s) &= -\alpha \, \mathbb{E}_{T \sim q(\cdot \mid s)} \log p(s \mid T)
                   - \beta \, \mathrm{H}(q(\cdot \mid s))
                   - \gamma \, \mathbb{E}_{T \sim \bar q(\cdot \mid s)} \log q(T \mid s)

    with the parser :math:`q`, as it is without dropout :math:`\bar q`, the decoder :math:`p`, and the
    weights :math:`\alpha` of the reconstruction, :math:`\beta` of the entropy and :math:`\gamma` of the
    agreement. With :math:`\alpha = \beta = 1` and :math:`\gamma = 0` it is minus the bound of a
    variational autoencoder whose prior takes all trees for equally likely. `labelled` ``(batch,)`` tells
    whether a sentence has a tree.
    """
    assert model.decoder is not None
    decoder, lengths, known = model.decoder, batch.lengths, labelled[:, None]
    place = torch.arange(batch.heads.shape[1], device=lengths.device)
    hidden = torch.empty_like(batch.heads, dtype=torch.bool)
    hidden.bernoulli_(config.hidden, generator=generator)
    hidden &= (place < lengths[:, None]) & ~known
    vertices = model.vertices(batch, forms, hidden)
    # a chain in place of the tree that is not known: any tree will do, its loss is left out
    batch = batch._replace(heads=torch.where(known, batch.heads, place))
    loss = model.tree_loss(vertices, batch) * labelled
    trees = model.trees(vertices, lengths)
    # the reconstruction of a tree that is known does not train the scores
    free = torch.where(known[..., None], trees.scores.detach(), trees.scores)
    gold = heads_to_tree(batch.heads, lengths, validate=False).to(free)
    given = Encoded(forms.learned[batch.forms], vertices, hidden)

    def rebuilt(latent: Tensor) -> Tensor:
        chosen = torch.where(known[..., None], gold, latent)
        return decoder(given, chosen, model.words.learned.weight, generator)

    expected = estimator.expect(
        model.tree.distribution_from_scores(free, lengths), rebuilt, generator=generator
    )
    loss = loss + config.reconstruction * expected
    if config.entropy:
        loss = loss - config.entropy * trees.entropy() * ~labelled
    if config.agreement:
        with torch.no_grad(), evaluating(model):
            sure = model.trees(model.vertices(batch, forms), lengths).marginals
        apart = fenchel_young_loss(trees, sure, Marginals())
        loss = loss + config.agreement * apart * ~labelled
    return loss
