"""What a ListOps tagger says of expressions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import torch

from treelax.analysis.corpora import Corpus
from treelax.analysis.entropy import TreeEntropy, tree_entropies
from treelax.analysis.parses import MOST_SENTENCES, LabelFigures, Parses, Progress
from treelax.data.batching import length_batches
from treelax.data.listops import Expression, encode_listops
from treelax.errors import InputError
from treelax.tasks.listops.evaluation import parse_all
from treelax.tasks.listops.model import ListOpsTagger

__all__ = ["parse_listops"]


def parse_listops(
    model: ListOpsTagger, corpus: Corpus, name: str, *, progress: Progress | None = None
) -> Parses:
    """Parse and tag ListOps expressions.

    Args:
        model: the tagger, in any mode.
        corpus: the expressions.
        name: of the run.
        progress: called with the number of tokens done.

    Returns:
        What the tagger says.

    Raises:
        InputError: the corpus is none of ListOps.

    Example:
        >>> from treelax.analysis.corpus_readers import listops_corpus
        >>> from treelax.data.listops import parse_expression
        >>> from treelax.tasks.listops.model import ModelConfig
        >>> corpus = listops_corpus([parse_expression("[MAX 2 9 ]")], "one")
        >>> parse_listops(ListOpsTagger(ModelConfig(trees="chain")), corpus, "chain").trees
        ((0, 1, 2, 3),)
    """
    if not corpus.listops:
        raise InputError(
            f"{name}: is a model of ListOps and {corpus.name} has other sentences; expected a file "
            "of ListOps expressions"
        )
    expressions = [Expression(words) for words in corpus.words]
    # the scores, which the entropy is made of, take one more pass over all tokens
    latent = model.parser is not None
    tokens = sum(map(len, expressions))
    tell = progress or (lambda done: None)
    parsed = parse_all(model, expressions, progress=lambda n: tell(n // 2 if latent else n))
    counts: Counter[str] = Counter()
    for expression, one in zip(expressions, parsed, strict=True):
        for place, valency in enumerate(expression.valencies):
            if valency:  # a tag is that of an operator, as in the paper
                tag, soft = one.tags[place], one.soft_tags[place]
                counts.update(labels=1, same=tag == soft)
                counts.update(right=tag == valency, soft=soft == valency)
    figures = None
    if counts["labels"]:
        shares = [100 * counts[key] / counts["labels"] for key in ("same", "right", "soft")]
        figures = LabelFigures(counts["labels"], *shares)
    return Parses(
        name,
        tuple(one.heads for one in parsed),
        _listops_entropies(model, expressions, lambda n: tell((tokens + n) // 2)),
        figures,
        model.config.single_root,
    )


@torch.no_grad()
def _listops_entropies(
    model: ListOpsTagger, expressions: Sequence[Expression], progress: Progress
) -> tuple[TreeEntropy, ...] | None:
    if model.parser is None:
        return None
    parser, device = model.parser, model.composer.vertex.device
    found: dict[int, TreeEntropy] = {}
    done = 0
    lengths = [len(each) for each in expressions]
    for chosen in length_batches(lengths, most_sentences=MOST_SENTENCES):
        batch = encode_listops([expressions[i] for i in chosen]).to(device)
        scores = parser.scores(batch.tokens, batch.lengths)
        entropies = tree_entropies(scores, batch.lengths, parser.tree.structure)
        found.update(zip(chosen, entropies, strict=True))
        done += int(batch.lengths.sum())
        progress(done)
    return tuple(found[i] for i in range(len(expressions)))
