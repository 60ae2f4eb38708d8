"""What all layers share: gradients, types, state and padding; what they refuse; and do they learn?"""

import pytest
import torch
from layer_checks import Given, drawn, some_vectors
from torch import nn
from torch.autograd import gradcheck
from torch.func import functional_call

import treelax as tx
from treelax.errors import InputError
from treelax.nn import (
    MLP,
    ArcScorer,
    BiaffineScorer,
    BiLSTM,
    BinaryTreeLSTM,
    LatentTree,
    Root,
    SpanScorer,
    TreeGCN,
)
from treelax.nn.attention import DecomposableAttention, IntraAttention

LENGTHS = torch.tensor([4, 1, 3])
HEADS = torch.tensor([[2, 0, 2, 3], [0, -1, -1, -1], [0, 1, 1, -1]])
TREES = tx.trees.heads_to_tree(HEADS, LENGTHS)
SPANS = tx.Binary()(some_vectors(3, 4, 4), LENGTHS).marginals
#: Layers, and how they are called with vectors of words; the noise is the same each time.
LAYERS = {
    "MLP": (lambda: MLP(3, 4, 5), lambda layer, x: layer(x)),
    "Root": (lambda: Root(3), lambda layer, x: layer(x)),
    "ArcScorer": (lambda: ArcScorer(3, 4, distances=2), lambda layer, x: layer(x)),
    "BiaffineScorer": (lambda: BiaffineScorer(3, 4, 2), lambda layer, x: layer(x)),
    "SpanScorer": (lambda: SpanScorer(3, 4, labels=2), lambda layer, x: layer(x)),
}
LATENT = {
    "projective": {},
    "entropy": {"relaxation": "entropy", "temperature": 0.8},
    "single root": {"single_root": True, "noise": "sum-of-gamma"},
    "heads": {"structure": "heads"},
    "non-projective": {"structure": "nonprojective"},
    "expected": {"structure": "heads", "estimator": tx.RLOO(2)},
}


def latent(layer, x):
    generator = torch.Generator().manual_seed(1)
    if isinstance(layer.estimator, tx.RLOO):
        return layer.expect(x, LENGTHS, lambda t: t[..., 0, -1], generator=generator)
    return layer(x, LENGTHS, generator=generator)


ROOTED = {  # vectors with the root's
    **{
        name: (lambda options=options: LatentTree(ArcScorer(3, 4), **options), latent)
        for name, options in LATENT.items()
    },
    "TreeGCN": (
        lambda: TreeGCN(3, 4, layers=2, dense=True),
        lambda layer, x: layer(x, TREES.to(x.dtype)),
    ),
}
WORDS = {
    "spans": (lambda: LatentTree(SpanScorer(3, 4), tx.Binary()), latent),
    "words": (
        lambda: BinaryTreeLSTM(3, 4),
        lambda layer, x: layer.words(layer(x, SPANS.to(x.dtype)), SPANS.to(x.dtype)),
    ),
    "sentence": (
        lambda: BinaryTreeLSTM(3, 4),
        lambda layer, x: layer.sentence(layer(x, SPANS.to(x.dtype)), LENGTHS),
    ),
    "BiLSTM": (lambda: BiLSTM(3, 4), lambda layer, x: layer(x, LENGTHS)),
    "intra": (lambda: IntraAttention(3, 4, distances=2), lambda layer, x: layer(x, LENGTHS)),
    **{
        pooling: (
            lambda pooling=pooling: DecomposableAttention(3, 4, 3, pooling=pooling),
            lambda layer, x: layer(x, LENGTHS, x.flip(0), LENGTHS.flip(0)),
        )
        for pooling in ("max", "sum")
    },
}
EVERY = LAYERS | ROOTED | WORDS
every_layer = pytest.mark.parametrize("name", EVERY)


def make(name, seed=0):
    torch.manual_seed(seed)
    build, run = EVERY[name]
    return build(), run, some_vectors(3, 4 if name in WORDS else 5, 3)


class Called(nn.Module):
    """A layer that is called as the table says."""

    def __init__(self, layer, run):
        super().__init__()
        self.layer, self.run = layer, run

    def forward(self, x):
        return self.run(self.layer, x)


@every_layer
def test_gradients_by_finite_differences(name):
    """Of vectors and every parameter, noise and all."""
    layer, run, vectors = make(name)
    called = Called(drawn(layer, std=0.5), run)
    if name == "expected":  # its gradient is an estimate
        called(vectors.requires_grad_()).sum().backward()
        assert all(p.grad.isfinite().all() for p in [vectors, *called.parameters()])
        return
    names, values = zip(*called.named_parameters(), strict=True)

    def at(x, *given):
        return functional_call(called, dict(zip(names, given, strict=True)), (x,))

    assert gradcheck(at, (vectors.requires_grad_(), *values), fast_mode=True)


@every_layer
def test_types_and_state(name):
    (layer, run, vectors), (other, *_) = make(name, seed=0), make(name, seed=1)
    expected = run(layer, vectors.float())
    other.load_state_dict(layer.state_dict())
    assert torch.equal(run(other, vectors.float()), expected)
    for dtype in (torch.float64, torch.bfloat16):
        assert run(layer.to(dtype), vectors.to(dtype)).dtype == dtype


@pytest.mark.parametrize("junk", [torch.nan, torch.inf])
@pytest.mark.parametrize("name", [*ROOTED, *WORDS])
def test_padding_may_hold_anything(name, junk):
    """It reaches no output at a word and no gradient."""
    layer, run, vectors = make(name)
    word = torch.arange(vectors.shape[1]) < LENGTHS[:, None] + (name in ROOTED)
    results = []
    for held in (0.0, junk):
        own = vectors.float().masked_fill(~word[..., None], held).requires_grad_()
        output = run(layer, own)
        if output.shape[:2] == word.shape:
            output = output[word]
        inputs = [own, *layer.parameters()]
        slopes = torch.autograd.grad(output.square().sum(), inputs, allow_unused=True)
        results.append((output, *(x for x in slopes if x is not None)))
    for expected, got in zip(*results, strict=True):
        assert torch.equal(got, expected)


def zeros(*shape, **options):
    return torch.zeros(shape, **options)


TWO = zeros(2, 5, 4)
ELSEWHERE = torch.ones(2, dtype=torch.long, device="meta")
SCORER = ArcScorer(4, 6)
LAYER = LatentTree(SCORER)
ENCODER = BiLSTM(4, 3)
GCN = TreeGCN(3, 4)
INTRA = IntraAttention(4, 3)
BETWEEN = DecomposableAttention(4, 3, 2)
REFUSED = [
    (lambda: MLP(3), r"\(3,\).*at least two"),
    (lambda: MLP(3, 4.0), r"sizes\[1\] is 4\.0"),
    (lambda: MLP(3, 4, dropout=1.5), "dropout is 1.5"),
    (lambda: MLP(3, 4)(zeros(2, 5)), r"\(2, 5\); expected \(\.\.\., 3\)"),
    (lambda: Root(5)(zeros(5)), r"\(5,\); expected \(\.\.\., n, 5\)"),
    (lambda: Root(5)(zeros(3, 5, dtype=torch.long)), "int64.*Embedding"),
    (lambda: ArcScorer(0, 6), "input_size is 0"),
    (lambda: SCORER(zeros(4)), r"\(4,\); expected \(\.\.\., n \+ 1, 4\)"),
    (lambda: BiLSTM(4, 3, stacks=0), "stacks is 0"),
    (lambda: ENCODER(zeros(5, 4)), r"\(5, 4\); expected \(batch, n, 4\)"),
    (lambda: ENCODER(zeros(2, 0, 4)), "n of at least 1"),
    (lambda: ENCODER(TWO, torch.tensor([5.0, 3.0])), "float32.*long"),
    (lambda: GCN(zeros(4, 3), zeros(5, 5)), r"tree.*\(5, 5\).*nn\.Root"),
    (lambda: GCN(zeros(5, 3), [2, 0, 4, 2]), "tree is a list.*heads_to_tree"),
    (lambda: GCN(zeros(2, 5, 3), zeros(3, 5, 5)), "broadcast"),
    (lambda: INTRA(TWO, torch.tensor([1])), "lengths has shape"),
    (lambda: DecomposableAttention(4, 3, 2, pooling="mean"), "pooling"),
    (lambda: BETWEEN(TWO, None, zeros(2, 5, 5), None), "b has shape"),
    (lambda: LatentTree(lambda v: v), "scorer is a function"),
    (lambda: LatentTree(SCORER, structure="head"), "Did you mean 'heads'"),
    (lambda: LatentTree(SCORER, temperature=1e-36), "temperature is 1e-36"),
    (lambda: LatentTree(SCORER, tx.Projective(), single_root=True), "single_root is True"),
    (lambda: LatentTree(SCORER, estimator=tx.Relaxed(), noise="none"), "estimator is"),
    (lambda: LatentTree(SCORER, "projective", "softmax"), "estimator is 'softmax'"),
    (lambda: LatentTree(SCORER, noise_scale=-1.0), "noise_scale is -1.0"),
    (lambda: LatentTree(SCORER, structure="heads", single_root=True), "single_root is True"),
    (lambda: LAYER(zeros(2, 5, 3)), r"\(2, 5, 3\); expected \(\.\.\., n \+ 1, 4\)"),
    (lambda: LAYER(zeros(2, 0, 4)), r"\(2, 0, 4\).*nn\.Root"),
    (lambda: LAYER(TWO, [4, 2]), "lengths is a list"),
    (lambda: LAYER(TWO, torch.ones(2, 4).bool()), r"mask\.sum\(-1\)"),
    (lambda: LAYER(TWO, ELSEWHERE), "meta; expected cpu"),
    (lambda: LatentTree(Given(zeros(2, 4, 5)))(TWO), r"scores has shape \(2, 4, 5\).*n\+1, n\+1"),
    (lambda: LatentTree(Given(zeros(2, 4, 4)))(TWO), r"scorer made \(2, 4, 4\).*of 4 words"),
]


@pytest.mark.parametrize(("call", "said"), REFUSED)
def test_what_is_refused(call, said):
    with pytest.raises(InputError, match=said) as caught:
        call()
    assert "\n" not in str(caught.value)
    assert "expected" in str(caught.value)


class LeftNeighbours(nn.Module):
    """Says of every word which word stands before it; only a tree can tell it."""

    def __init__(self, vocabulary, **options):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary + 1, 16, padding_idx=0)
        self.root = Root(16)
        self.tree = LatentTree(ArcScorer(16, 16), **options)
        self.gcn = TreeGCN(16, 32)
        self.output = nn.Linear(32, vocabulary + 1)

    def forward(self, tokens, lengths, generator=None):
        vectors = self.root(self.embedding(tokens))
        tree = self.tree(vectors, lengths, generator=generator)
        return self.output(self.gcn(vectors, tree)[..., 1:, :]), tree


@pytest.mark.parametrize(
    "options",
    [{}, {"relaxation": "entropy", "straight_through": True}, {"structure": "heads"}],
    ids=str,
)
def test_a_tree_is_learned_from_the_task_alone(options):
    """The only arcs that help are those from the left neighbour; no tree is ever shown."""
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    vocabulary, n = 6, 6
    model = LeftNeighbours(vocabulary, **options)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for _ in range(120):
        tokens = torch.randint(1, vocabulary + 1, (32, n), generator=generator)
        lengths = torch.randint(2, n + 1, (32,), generator=generator)
        tokens = tokens.masked_fill(torch.arange(n) >= lengths[:, None], 0)
        before = torch.cat((torch.zeros(32, 1, dtype=torch.long), tokens[:, :-1]), -1)
        logits, _ = model(tokens, lengths, generator)
        words = tokens > 0
        loss = nn.functional.cross_entropy(logits[words], before[words])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    _, tree = model.eval()(tokens, lengths)
    left = tree.diagonal(1, -2, -1)[words].mean()
    assert sum(losses[-10:]) < 0.5 * sum(losses[:10])
    assert left > 0.8
