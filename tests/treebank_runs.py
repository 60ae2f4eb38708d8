"""A tiny treebank, and small parsers trained on it."""

from __future__ import annotations

import random
from pathlib import Path

from treelax.__main__ import main

SETTINGS = {
    "data.min_count": 1,
    "model.word_size": 16,
    "model.filters": 8,
    "model.encoder_size": 24,
    "model.encoder_stacks": 1,
    "model.arc_size": 24,
    "model.label_size": 16,
    "train.epochs": 12,
    "train.batch_size": 8,
    "train.learning_rate": 0.02,
    "train.threads": 1,
}


def treebank(seed: int, count: int) -> str:
    """Sentences such as "the small cats see dogs ." with their trees, as CoNLL-U."""
    rng = random.Random(seed)

    def phrase(label: str) -> list[tuple[str, str, str]]:
        words = [("the", "DET", "det")] * rng.randint(0, 1)
        words += [(rng.choice(["small", "old"]), "ADJ", "amod")] * rng.randint(0, 1)
        return [*words, (rng.choice(["cats", "dogs", "birds"]), "NOUN", label)]

    blocks = []
    for number in range(count):
        words = [*phrase("nsubj"), (rng.choice(["see", "hear"]), "VERB", "root")]
        words += [*phrase("obj"), (".", "PUNCT", "punct")]
        tags = [tag for _, tag, _ in words]
        verb = tags.index("VERB") + 1
        text = " ".join(word for word, _, _ in words)
        lines = [f"# sent_id = s{number}", f"# text = {text}"]
        for m, (word, tag, label) in enumerate(words, 1):
            noun = tags.index("NOUN", m - 1) + 1 if tag in ("DET", "ADJ") else verb
            head = 0 if label == "root" else noun
            lines.append("\t".join([str(m), word, "_", tag, "_", "_", str(head), label, "_", "_"]))
        blocks.append("\n".join(lines) + "\n\n")
    return "".join(blocks)


def train(folder: Path, *options: str, train: str = "train.conllu") -> int:
    """Train on the files of a folder; returns the exit status."""
    settings = [part for key, value in SETTINGS.items() for part in ("--set", f"{key}={value}")]
    files = ["--train", str(folder / train), "--dev", str(folder / "dev.conllu")]
    device = ["--device", "cpu"]
    return main(
        ["train", "parser", *files, "--out", str(folder / "run"), *device, *settings, *options]
    )


def write_treebanks(folder: Path) -> None:
    (folder / "train.conllu").write_text(treebank(1, 64))
    (folder / "dev.conllu").write_text(treebank(2, 20))
