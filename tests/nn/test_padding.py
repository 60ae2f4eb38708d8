"""What the padding holds, NaN for instance, reaches no output at a word and no gradient."""

import pytest
import torch

import treelax as tx
from treelax.nn.attention import DecomposableAttention, IntraAttention

LENGTHS = torch.tensor([4, 1, 3])
SIZE = 6


def latent(scorer, structure, method="forward", **options):
    """A layer of trees; the noise is the same each time."""
    layer = tx.nn.LatentTree(scorer, structure, **options)

    def apply(vectors):
        generator = torch.Generator().manual_seed(1)
        if method == "forward":
            return layer(vectors, LENGTHS, generator=generator)
        return layer.expect(vectors, LENGTHS, lambda t: t[..., 0, -1], generator=generator)

    return layer, apply


def convolved():
    """Over discrete trees of the sentences."""
    layer = tx.nn.TreeGCN(SIZE, 5, layers=2, dense=True)
    trees = tx.Projective()(torch.randn(3, 5, 5), LENGTHS).mode
    return layer, lambda vectors: layer(vectors, trees)


def binary(method):
    """Over soft binary trees."""
    layer = tx.nn.BinaryTreeLSTM(SIZE, 5)
    trees = tx.Binary()(torch.randn(3, 4, 4), LENGTHS).marginals

    def apply(vectors):
        states = layer(vectors, trees)
        return layer.words(states, trees) if method == "words" else layer.sentence(states, LENGTHS)

    return layer, apply


def recurrent():
    layer = tx.nn.BiLSTM(SIZE, 5)
    return layer, lambda vectors: layer(vectors, LENGTHS)


def attending():
    layer = IntraAttention(SIZE, 5)
    return layer, lambda vectors: layer(vectors, LENGTHS)


def comparing():
    layer = DecomposableAttention(SIZE, 5, 3)
    return layer, lambda vectors: layer(vectors, LENGTHS, vectors.flip(0), LENGTHS.flip(0))


ROOTED = {
    "projective": lambda: latent(tx.nn.ArcScorer(SIZE, 5), tx.Projective()),
    "non-projective": lambda: latent(tx.nn.BiaffineScorer(SIZE, 5), tx.NonProjective()),
    "expected": lambda: latent(
        tx.nn.ArcScorer(SIZE, 5), tx.Heads(), "expect", estimator=tx.RLOO(2)
    ),
    "convolved": convolved,
}
WORDS = {
    "spans": lambda: latent(tx.nn.SpanScorer(SIZE, 5), tx.Binary()),
    "words": lambda: binary("words"),
    "sentence": lambda: binary("sentence"),
    "recurrent": recurrent,
    "attending": attending,
    "comparing": comparing,
}


@pytest.mark.parametrize("name", [*ROOTED, *WORDS])
@pytest.mark.parametrize("junk", [torch.nan, torch.inf])
def test_padding_may_hold_anything(name, junk):
    torch.manual_seed(0)
    layer, apply = {**ROOTED, **WORDS}[name]()
    vectors = torch.randn(3, 5 if name in ROOTED else 4, SIZE)
    word = torch.arange(vectors.shape[1]) < LENGTHS[:, None] + (name in ROOTED)
    results = []
    for held in (0.0, junk):
        own = vectors.masked_fill(~word[..., None], held).requires_grad_()
        output = apply(own)
        if output.shape[:2] == word.shape:
            output = output[word]
        inputs = [own, *layer.parameters()]
        slopes = torch.autograd.grad(output.square().sum(), inputs, allow_unused=True)
        results.append((output, *(x for x in slopes if x is not None)))
    for expected, got in zip(*results, strict=True):
        assert torch.equal(got, expected)
