"""A labelled CRF on dependency trees: four structures, partly known trees, probabilities of labels."""

import random

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import treelax as tx

SIZE, STEPS = 32, 40
LABELS = ["det", "mod", "subj", "obj", "case", "root"]
WORDS = {
    "D": ["the", "a", "every"],
    "A": ["old", "small", "quick"],
    "N": ["dog", "bird", "child", "report"],
    "V": ["sees", "hears", "finds"],
    "R": ["today", "there", "again"],
    "P": ["about", "from"],
}
# tags, heads (words count from 1, 0 is the root) and labels; in the last one two arcs cross
PATTERNS = [
    ("D N V D N", [2, 3, 0, 5, 3], ["det", "subj", "root", "det", "obj"]),
    ("D A N V R", [3, 3, 4, 0, 4], ["det", "mod", "subj", "root", "mod"]),
    ("N V D A N", [2, 0, 5, 5, 2], ["subj", "root", "det", "mod", "obj"]),
    ("D N V P N", [2, 3, 0, 5, 2], ["det", "subj", "root", "case", "mod"]),
]
VOCABULARY = {word: i for i, word in enumerate(sorted({w for ws in WORDS.values() for w in ws}))}


def sentences(count: int, seed: int) -> tuple[list[list[str]], Tensor, Tensor]:
    """Words, heads ``(count, 5)`` and labels ``(count, 5)``."""
    rng = random.Random(seed)
    drawn = [rng.choice(PATTERNS) for _ in range(count)]
    words = [[rng.choice(WORDS[tag]) for tag in tags.split()] for tags, _, _ in drawn]
    labels = [[LABELS.index(label) for label in names] for _, _, names in drawn]
    return words, torch.tensor([heads for _, heads, _ in drawn]), torch.tensor(labels)


def labelled_tree(heads: Tensor, labels: Tensor) -> Tensor:
    """0/1, ``(..., n+1, n+1, labels)``."""
    kinds = F.one_hot(F.pad(labels, (1, 0)), len(LABELS))  # of each modifier
    return tx.trees.heads_to_tree(heads)[..., None] * kinds[..., None, :, :]


class Parser(nn.Module):
    """From words to scores of arcs with labels, ``(batch, n+1, n+1, labels)``."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(VOCABULARY), SIZE)
        self.encoder = tx.nn.BiLSTM(SIZE, SIZE // 2)
        self.root = tx.nn.Root(SIZE)
        self.head, self.modifier = tx.nn.MLP(SIZE, SIZE), tx.nn.MLP(SIZE, SIZE)
        self.label = nn.Parameter(torch.randn(len(LABELS), SIZE, SIZE) / SIZE)

    def forward(self, words: list[list[str]]) -> Tensor:
        tokens = torch.tensor([[VOCABULARY[word] for word in sentence] for sentence in words])
        vectors = self.root(self.encoder(self.embedding(tokens)))
        return torch.einsum(
            "bhx,lxy,bmy->bhml", self.head(vectors), self.label, self.modifier(vectors)
        )


def trained(
    structure: tx.Labelled, words: list[list[str]], heads: Tensor, labels: Tensor
) -> Parser:
    """By maximum likelihood; a head of -1 is not known, nor is the label of its arc."""
    torch.manual_seed(0)
    model = Parser()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    # what agrees with what is known: the sum of its weights over that of all trees
    arcs = tx.trees.constrain(heads=heads)[..., None]
    kinds = F.one_hot(F.pad(labels, (1, 0)), len(LABELS)).bool()
    kinds |= F.pad(heads < 0, (1, 0), value=True)[..., None]
    known = arcs.masked_fill(~kinds[:, None], -torch.inf)
    for _ in range(STEPS):
        scores = model(words)
        likelihood = structure(scores + known).log_partition - structure(scores).log_partition
        optimizer.zero_grad()
        (-likelihood.mean()).backward()
        optimizer.step()
    return model


def accuracy(
    structure: tx.Labelled, model: Parser, words: list[list[str]], heads: Tensor, labels: Tensor
) -> str:
    """Share of words with the right head and label in the best tree."""
    with torch.no_grad():
        right = structure(model(words)).mode * labelled_tree(heads, labels)
    return f"{100 * float(right.sum() / heads.numel()):.0f} %"


def example() -> None:
    words, heads, labels = sentences(40, seed=0)
    test = sentences(40, seed=1)
    projective = tx.trees.is_projective(heads)
    flat = [sentence for sentence, keep in zip(words, projective, strict=True) if keep]
    print(f"{len(words)} sentences, {len(flat)} of them projective")
    for inner in (
        tx.Projective(),
        tx.Projective(single_root=True),
        tx.NonProjective(),
        tx.NonProjective(single_root=True),
    ):
        structure = tx.Labelled(inner)
        data = (words, heads, labels)
        if isinstance(inner, tx.Projective):  # crossing arcs have no probability
            data = (flat, heads[projective], labels[projective])
        model = trained(structure, *data)
        print(f"{inner}: {accuracy(structure, model, *test)} right")

    # half of the heads and labels are not known
    hidden = torch.rand(heads.shape, generator=torch.Generator().manual_seed(0)) < 0.5
    model = trained(structure, words, heads.masked_fill(hidden, -1), labels)
    print(f"half of the arcs known: {accuracy(structure, model, *test)} right")

    sentence = ["the", "dog", "sees", "about", "child"]
    with torch.no_grad():
        [marginals] = structure(model([sentence])).marginals  # (6, 6, labels)
    for word, of_labels in zip(sentence, marginals.sum(0)[1:], strict=True):
        best = of_labels.argmax()
        print(f"{word}: {LABELS[best]} with probability {float(of_labels[best]):.2f}")


if __name__ == "__main__":
    example()
