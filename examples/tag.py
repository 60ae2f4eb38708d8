"""A word tagger with latent trees: train, save, load, predict, and write the trees as CoNLL-U."""

import random
import tempfile
from pathlib import Path

import treelax
from treelax.__main__ import main
from treelax.apps.data.conllu import Sentence, write_conllu

SMALL = ["data.vector_size=32", "model.encoder_size=16", "model.scorer_size=16"]
SMALL += ["model.gcn_size=16", "model.output_size=16", "model.single_root=true"]
SMALL += ["train.batch_size=16", "train.epochs=8", "train.learning_rate=0.01"]

WORDS = {
    "DET": ["the", "a", "every"],
    "ADJ": ["old", "small", "quick"],
    "NOUN": ["dog", "bird", "saw", "watch"],
    "VERB": ["sees", "hears", "saw", "watch"],  # the last two are nouns too
}
PATTERNS = ["DET NOUN VERB DET NOUN", "DET ADJ NOUN VERB DET NOUN", "DET NOUN VERB"]


def sentence(rng: random.Random) -> str:
    """One word with its tag per line, then a blank line."""
    tags = rng.choice(PATTERNS).split()
    return "".join(f"{rng.choice(WORDS[tag])}\t{tag}\n" for tag in tags) + "\n"


def example(folder: Path) -> None:
    for seed, (split, count) in enumerate({"train": 200, "dev": 40, "test": 40}.items()):
        rng = random.Random(seed)
        Path(folder, f"{split}.conll").write_text("".join(sentence(rng) for _ in range(count)))

    # the same as: treelax train tag --train train.conll --dev dev.conll --test test.conll --out run
    files = [part for s in ("train", "dev", "test") for part in (f"--{s}", f"{folder}/{s}.conll")]
    settings = [part for setting in SMALL for part in ("--set", setting)]
    main(["train", "tag", *files, *settings, "--out", f"{folder}/run"])

    treelax.load(folder / "run").save_pretrained(folder / "tagger")

    model = treelax.load(folder / "tagger")
    [result] = model.predict(["the old saw saw a watch"])
    print(
        " ".join(f"{word}/{tag}" for word, tag in zip(result.words[0], result.label, strict=True))
    )

    tree = Sentence(result.words[0], result.heads[0], result.label)
    write_conllu(folder / "trees.conllu", [tree])
    print((folder / "trees.conllu").read_text(), end="")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        example(Path(place))
