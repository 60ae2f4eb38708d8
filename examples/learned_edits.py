"""Differentiable alignment: an edit distance whose costs are learned from typing errors.

The log-partition over all alignments of two words is a soft edit distance: each cost has a gradient.
"""

import random

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

import treelax as tx

WORDS = ["cat", "car", "cart", "bat", "bar", "bare", "care", "hat", "hare", "rate", "date", "dare"]
KEYS, STEPS = "qwertyuiop asdfghjkl zxcvbnm ", 60


def typed(word: str, rng: random.Random) -> str:
    """A finger may land on the key beside the right one, or miss it."""
    result = ""
    for letter in word:
        place, error = KEYS.index(letter), rng.random()
        beside = (KEYS[:place][-1:] + KEYS[place + 1]).strip()
        result += rng.choice(beside) if error < 0.3 else "" if error > 0.95 else letter
    return result or word


def tensor(words: list[str]) -> tuple[Tensor, Tensor]:
    """Letters ``(words, longest)``, 0 in front of each word, and how many these are."""
    rows = [torch.tensor([0, *(ord(letter) - 96 for letter in word)]) for word in words]
    return pad_sequence(rows, batch_first=True), torch.tensor([len(row) for row in rows])


class Edits(nn.Module):
    """Scores of edits; at first every one costs 3, a kept letter nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.swap = nn.Parameter(3 * torch.eye(27) - 3)
        self.drop, self.insert = (nn.Parameter(torch.full((27,), -3.0)) for _ in range(2))

    def forward(self, given: list[str], meant: list[str]) -> Tensor:
        """How near words are to each other, ``(given, meant)``."""
        (a, n), (b, m) = tensor(meant), tensor(given)
        a, b = a[:, :, None], b[:, None, None]  # (given, meant, letters, letters) together
        edits = torch.broadcast_tensors(self.swap[a, b], self.drop[a], self.insert[b])
        lengths = torch.stack(torch.broadcast_tensors(n, m[:, None]), -1)
        return tx.Alignment()(torch.stack(edits, -1), lengths).log_partition


def example() -> None:
    rng = random.Random(0)
    gold = torch.tensor([rng.randrange(len(WORDS)) for _ in range(400)])
    given = [typed(WORDS[number], rng) for number in gold.tolist()]
    model = Edits()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    for step in range(STEPS + 1):
        if step in (0, STEPS):
            right = (model(given[200:], WORDS).argmax(-1) == gold[200:]).float().mean()
            print(f"step {step}: {100 * float(right):.0f} % of new words are understood")
        loss = nn.functional.cross_entropy(model(given[:200], WORDS), gold[:200])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    cheapest = model.swap[1].topk(2).indices.tolist()
    print("cheapest for a:", " ".join(chr(96 + letter) for letter in cheapest))


if __name__ == "__main__":
    example()
