"""What all layers share, and all of them together: does it learn?"""

import copy
import subprocess
import sys

import pytest
import torch
from torch import nn

import treelax as tx
from treelax.nn import MLP, ArcScorer, BiLSTM, LatentTree, Root, TreeGCN

LENGTHS = torch.tensor([4, 2])
TREE = tx.trees.heads_to_tree(torch.tensor([[2, 0, 2, 3], [0, 1, -1, -1]]), LENGTHS)
LAYERS = {
    "MLP": (lambda: MLP(3, 4, 5), lambda layer, x: layer(x)),
    "Root": (lambda: Root(3), lambda layer, x: layer(x)),
    "ArcScorer": (lambda: ArcScorer(3, 4), lambda layer, x: layer(x)),
    "LatentTree": (
        lambda: LatentTree(ArcScorer(3, 4)),
        lambda layer, x: layer(x, LENGTHS, generator=torch.Generator().manual_seed(0)),
    ),
    "TreeGCN": (
        lambda: TreeGCN(3, 4, layers=2, dense=True),
        lambda layer, x: layer(x, TREE.to(x.dtype)),
    ),
    "BiLSTM": (lambda: BiLSTM(3, 4), lambda layer, x: layer(x, LENGTHS)),
}
every_layer = pytest.mark.parametrize("name", LAYERS)


def make(name, seed=0):
    torch.manual_seed(seed)
    build, run = LAYERS[name]
    return build(), run


def some_vectors(dtype=torch.float32):
    return torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(1)).to(dtype)


def test_the_public_names():
    assert sorted(tx.nn.__all__) == sorted(LAYERS)
    for name in LAYERS:
        assert getattr(tx.nn, name).__module__.startswith("treelax.nn.")


def test_they_are_there_after_importing_treelax():
    code = "import treelax as tx; print(tx.nn.ArcScorer(2, 2).distances)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "11\n"


@every_layer
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
def test_to_another_type(name, dtype):
    layer, run = make(name)
    assert run(layer.to(dtype), some_vectors(dtype)).dtype == dtype


@every_layer
def test_to_another_device(name):
    layer, _ = make(name)
    layer.to("meta")
    assert all(p.is_meta for p in (*layer.parameters(), *layer.buffers()))


@every_layer
def test_state_dict_carries_everything(name):
    (one, run), (other, _) = make(name, seed=0), make(name, seed=1)
    expected = run(one, some_vectors())
    assert not torch.equal(run(other, some_vectors()), expected)
    other.load_state_dict(one.state_dict())
    assert torch.equal(run(other, some_vectors()), expected)


@every_layer
def test_deepcopy_is_equal_and_apart(name):
    layer, run = make(name)
    expected = run(layer, some_vectors())
    twin = copy.deepcopy(layer)
    assert torch.equal(run(twin, some_vectors()), expected)
    for parameter in twin.parameters():
        parameter.data.add_(1)
    assert torch.equal(run(layer, some_vectors()), expected)
    assert repr(twin) == repr(layer)


@every_layer
def test_every_parameter_gets_a_gradient(name):
    layer, run = make(name)
    output = run(layer, some_vectors())
    (
        output * torch.randn(output.shape, generator=torch.Generator().manual_seed(2))
    ).sum().backward()
    for name, parameter in layer.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name


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
    [{}, {"relaxation": "entropy"}, {"straight_through": True}, {"structure": "heads"}],
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
