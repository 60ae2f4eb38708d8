"""Latent segmentation: the words of a text without spaces, learned from the loss of a language model.

A segment scores the log-probability of its letters as one word. The log-partition sums over all
segmentations, so it is the log-likelihood of a sentence, whatever its words are.
"""

import random
from itertools import accumulate

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

import treelax as tx

WORDS = ["the", "a", "dog", "cat", "bird", "sees", "hears", "old", "small", "quick", "today"]
LONGEST, STEPS = 6, 60


def sentences(count: int, seed: int) -> list[list[str]]:
    rng = random.Random(seed)
    return [[rng.choice(WORDS) for _ in range(rng.randint(2, 5))] for _ in range(count)]


def segment(text: str, value: Tensor) -> list[str]:
    """The words of a segmentation ``(n, LONGEST, 1)``."""
    return [text[i : i + k + 1] for i, k, _ in value.nonzero().tolist()]


def shared(found: list[list[str]], gold: list[list[str]]) -> str:
    """F1 of words at their places, which end after so many letters."""
    places = [
        [set(zip(accumulate(map(len, w)), w, strict=True)) for w in ws] for ws in (found, gold)
    ]
    right = sum(len(a & b) for a, b in zip(*places, strict=True))
    return f"{200 * right / sum(map(len, [*found, *gold])):.0f} %"


def example() -> None:
    gold = sentences(200, seed=0)
    texts = ["".join(words) for words in gold]
    lengths = torch.tensor([len(text) for text in texts])
    pieces = [[[t[i : i + k + 1] for k in range(LONGEST)] for i in range(len(t))] for t in texts]
    lexicon = sorted({piece for rows in pieces for row in rows for piece in row})
    number = {piece: i for i, piece in enumerate(lexicon)}
    ids = [torch.tensor([[number[piece] for piece in row] for row in rows]) for rows in pieces]
    padded = pad_sequence(ids, batch_first=True)  # (sentences, letters, LONGEST)

    logits = torch.zeros(len(lexicon), requires_grad=True)
    optimizer = torch.optim.Adam([logits], lr=0.2)
    structure = tx.Segments(max_length=LONGEST)
    for step in range(STEPS + 1):
        segments = structure(logits.log_softmax(0)[padded][..., None], lengths)
        if step in (0, STEPS):
            found = [segment(*pair) for pair in zip(texts, segments.mode, strict=True)]
            perplexity = (segments.log_partition.sum() / -lengths.sum()).exp().item()
            print(f"step {step}: {perplexity:.2f} per letter, {shared(found, gold)} of words,")
            print("  " + " ".join(found[0]))
        loss = -segments.log_partition.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    likely = logits.topk(len(WORDS)).indices.tolist()
    print("likely words:", " ".join(sorted(lexicon[i] for i in likely)))


if __name__ == "__main__":
    example()
