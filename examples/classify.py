"""A classifier with latent trees on your own table: train, save, load, predict. Seconds on a CPU."""

import random
import tempfile
from pathlib import Path

import treelax
from treelax.__main__ import main

SMALL = ["data.vector_size=32", "model.encoder_size=16", "model.scorer_size=16"]
SMALL += ["model.gcn_size=16", "model.output_size=16", "model.single_root=true"]
SMALL += ["train.batch_size=16", "train.epochs=8", "train.learning_rate=0.01"]


def review(rng: random.Random) -> tuple[str, str]:
    """A one-sentence film review, and whether it is praise or blame."""
    good = rng.random() < 0.5
    word = rng.choice(["fine", "moving", "funny"] if good else ["dull", "clumsy", "noisy"])
    thing = rng.choice(["film", "plot", "cast"])
    ending = rng.choice(["", " from start to end", " for those who like it"])
    return f"The {thing} is {word}{ending}.", "praise" if good else "blame"


def write_table(file: Path, count: int, seed: int) -> None:
    rng = random.Random(seed)
    rows = ["\t".join(review(rng)) for _ in range(count)]
    file.write_text("\n".join(["review\tverdict", *rows, ""]))


def example(folder: Path) -> None:
    for seed, (split, count) in enumerate({"train": 200, "dev": 40, "test": 40}.items()):
        write_table(folder / f"{split}.tsv", count, seed)

    # the same as: treelax train classify --train train.tsv … --text review --label verdict --out run
    files = [part for s in ("train", "dev", "test") for part in (f"--{s}", f"{folder}/{s}.tsv")]
    settings = [part for setting in SMALL for part in ("--set", setting)]
    columns = ["--text", "review", "--label", "verdict"]
    main(["train", "classify", *files, *columns, *settings, "--out", f"{folder}/run"])

    # a folder to share: settings, words and weights, but none of the training data
    treelax.load(folder / "run").save_pretrained(folder / "verdicts")

    model = treelax.load(folder / "verdicts")
    for result in model.predict(["The cast is funny.", "A dull film from start to end."]):
        print(f"{result.label} ({result.probability:.2f}): {' '.join(result.words[0])}")
        print(f"  heads: {result.heads[0]}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        example(Path(place))
