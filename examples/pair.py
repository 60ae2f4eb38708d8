"""A classifier of pairs of texts with latent trees: train, save, load, predict."""

import json
import random
import tempfile
from pathlib import Path

import treelax
from treelax.__main__ import main

SMALL = ["data.vector_size=32", "model.projection_size=32", "model.scorer_size=16"]
SMALL += ["model.gcn_size=32", "model.output_size=32", "model.single_root=true"]
SMALL += ["train.batch_size=16", "train.epochs=8", "train.learning_rate=0.005"]

PLACES = ["at home", "in Rome", "on a train", "by the sea"]
PEOPLE = ["Ada", "Bo", "Cleo", "Dan"]


def pair(rng: random.Random) -> dict[str, str]:
    """A fact, a claim, and whether the claim is right."""
    person, place = rng.choice(PEOPLE), rng.choice(PLACES)
    right = rng.random() < 0.5
    claim = rng.choice(["Somebody is", f"{person} is"] if right else ["Nobody is", "No one is"])
    return {
        "known": f"{person} is {place}.",
        "claim": f"{claim} {place}.",
        "label": "right" if right else "wrong",
    }


def example(folder: Path) -> None:
    for seed, (split, count) in enumerate({"train": 200, "dev": 40, "test": 40}.items()):
        rng = random.Random(seed)
        lines = [json.dumps(pair(rng)) + "\n" for _ in range(count)]
        Path(folder, f"{split}.jsonl").write_text("".join(lines))

    # the same as: treelax train pair --train train.jsonl … --text known --text claim --out run
    files = [part for s in ("train", "dev", "test") for part in (f"--{s}", f"{folder}/{s}.jsonl")]
    settings = [part for setting in SMALL for part in ("--set", setting)]
    columns = ["--text", "known", "--text", "claim"]
    main(["train", "pair", *files, *columns, *settings, "--out", f"{folder}/run"])

    treelax.load(folder / "run").save_pretrained(folder / "claims")

    model = treelax.load(folder / "claims")
    pairs = [
        ("Cleo is by the sea.", "Somebody is by the sea."),
        ("Dan is at home.", "No one is at home."),
    ]
    for result in model.predict(pairs):
        known, claim = (" ".join(words) for words in result.words)
        print(f"{result.label} ({result.probability:.2f}): {known} – {claim}")
        print(f"  heads: {result.heads[0]} and {result.heads[1]}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        example(Path(place))
