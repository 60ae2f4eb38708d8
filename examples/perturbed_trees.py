"""Perturbed trees on ListOps: noise on scores, relaxed trees to train with, best trees and marginals."""

import torch
from torch import Tensor, nn

import treelax as tx
from treelax.apps.data.listops import VOCABULARY, encode_listops, generate_listops
from treelax.apps.pictures import draw_tree

SIZE, STEPS = 32, 60


class Scorer(nn.Module):
    """From tokens to scores of arcs."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(VOCABULARY) + 1, SIZE)
        self.encoder = tx.nn.BiLSTM(SIZE, SIZE // 2)
        self.root = tx.nn.Root(SIZE)
        self.arcs = tx.nn.ArcScorer(SIZE, SIZE)

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        return self.arcs(self.root(self.encoder(self.embedding(tokens), lengths)))


def percent(share: Tensor) -> str:
    return f"{100 * float(share):.0f} %"


def example() -> None:
    torch.manual_seed(0)
    expressions = generate_listops(128 + 12, seed=1, max_length=14)
    data = encode_listops(expressions)
    train, test = data.select(range(128)), data.select(range(128, 128 + 12))
    model = Scorer()
    structure = tx.Projective()

    # training on perturbed trees: the noise explores, the relaxation has a gradient
    estimator = tx.Relaxed("softmax", temperature=1.0, noise=tx.Gumbel())
    gold = tx.trees.heads_to_tree(train.heads, train.lengths)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(STEPS):
        trees = structure(model(train.tokens, train.lengths), train.lengths)
        loss = estimator.expect(
            trees, lambda tree: -((tree + 1e-3).log() * gold).sum((-2, -1)) / train.lengths
        )
        optimizer.zero_grad()
        loss.mean().backward()
        optimizer.step()

    # on new expressions: without noise, the best tree of each
    model.eval()
    with torch.no_grad():
        trees = structure(model(test.tokens, test.lengths), test.lengths)
        gold = tx.trees.heads_to_tree(test.heads, test.lengths)
        words = test.lengths.sum()
        print(f"attachment of the best trees: {percent((trees.mode * gold).sum() / words)}")
        print(f"expected under the marginals: {percent((trees.marginals * gold).sum() / words)}")

        # the best trees of perturbed scores are nearly samples; those of `sample` are exact
        draw = torch.Generator().manual_seed(0)
        for name, drawn in {
            "exact samples": trees.sample((200,), generator=draw),
            "Gumbel noise": trees.rsample((200,), straight_through=True, generator=draw),
            "sum-of-gamma noise": trees.rsample(
                (200,), noise="sum-of-gamma", straight_through=True, generator=draw
            ),
        }.items():
            gap = (drawn.mean(0) - trees.marginals).abs().sum() / words
            print(f"{name}: frequencies of arcs are {float(gap):.3f} a word off the marginals")

        # the longest expression, and how sure the model is of each arc
        which = int(test.lengths.argmax())
        tokens = expressions[128 + which].tokens
        heads = tx.trees.tree_to_heads(trees.mode, test.lengths)[which, : len(tokens)]
        print(draw_tree(tokens, heads, ascii=True))
        sure = trees.marginals[which, heads, torch.arange(1, len(tokens) + 1)]
        print("probabilities:", " ".join(f"{float(p):.2f}" for p in sure))


if __name__ == "__main__":
    example()
