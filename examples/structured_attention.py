"""Structured attention: marginals of trees as attention weights inside a tiny classifier.

Reviews have a verdict, "good" or "bad", which "not" turns round if it stands right before it, and not if
it stands elsewhere: words have to be seen together.
"""

import random

import torch
from torch import Tensor, nn

import treelax as tx
from treelax.structures import Structure

SIZE, STEPS, LENGTH = 16, 120, 6
WORDS = ["good", "bad", "not", "the", "film", "was", "really", "long"]


def reviews(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Tokens ``(count, LENGTH)`` and labels ``(count,)``, 1 for praise."""
    rng = random.Random(seed)
    rows, labels = [], []
    for _ in range(count):
        row = [rng.randrange(3, len(WORDS)) for _ in range(LENGTH)]
        place, verdict, turned = rng.randrange(1, LENGTH), rng.randrange(2), rng.random() < 0.5
        row[place] = verdict
        row[
            place - 1 if turned else rng.choice([i for i in range(LENGTH) if abs(i - place) > 1])
        ] = 2
        rows.append(row)
        labels.append(verdict ^ (not turned))
    return torch.tensor(rows), torch.tensor(labels)


class NoAttention(nn.Module):
    """Every word for itself."""

    def __init__(self) -> None:
        super().__init__()
        self.output_size = SIZE

    def forward(self, vectors: Tensor) -> Tensor:
        return vectors


class ArcAttention(nn.Module):
    """Every word with the average of its heads, weighted by the marginals of a structure of arcs."""

    def __init__(self, structure: Structure) -> None:
        super().__init__()
        self.structure = structure
        self.root = tx.nn.Root(SIZE)
        self.scorer = tx.nn.ArcScorer(SIZE, SIZE)
        self.output_size = 2 * SIZE

    def forward(self, vectors: Tensor) -> Tensor:
        vectors = self.root(vectors)
        weights = self.structure(self.scorer(vectors)).marginals  # [head, modifier]
        return torch.cat((vectors, weights.mT @ vectors), -1)[..., 1:, :]


class SpanAttention(nn.Module):
    """The words at both ends of each span, weighted by the marginals of binary trees."""

    def __init__(self) -> None:
        super().__init__()
        self.scorer = tx.nn.SpanScorer(SIZE, SIZE)
        self.output_size = 2 * SIZE

    def forward(self, vectors: Tensor) -> Tensor:
        weights = tx.Binary()(self.scorer(vectors)).marginals.triu(1)  # [first, last]
        return torch.cat((vectors, weights @ vectors), -1)


class Classifier(nn.Module):
    """Word vectors, attention, and the average of what a perceptron makes of each word."""

    def __init__(self, attention: nn.Module) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(WORDS), SIZE)
        self.attention = attention
        self.words = tx.nn.MLP(attention.output_size, SIZE)
        self.output = nn.Linear(SIZE, 2)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.output(self.words(self.attention(self.embedding(tokens))).mean(-2))


def accuracy(attention: nn.Module) -> float:
    """On new reviews, after training."""
    model = Classifier(attention)
    tokens, labels = reviews(200, seed=0)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(STEPS):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(tokens), labels).backward()
        optimizer.step()
    tokens, labels = reviews(200, seed=1)
    with torch.no_grad():
        return float((model(tokens).argmax(-1) == labels).float().mean())


def example() -> None:
    for name, make in {
        "no attention": NoAttention,
        "heads, each on its own": lambda: ArcAttention(tx.Heads()),
        "non-projective trees": lambda: ArcAttention(tx.NonProjective()),
        "binary trees": SpanAttention,
    }.items():
        torch.manual_seed(0)
        print(f"{name}: {100 * accuracy(make()):.0f} % right")


if __name__ == "__main__":
    example()
