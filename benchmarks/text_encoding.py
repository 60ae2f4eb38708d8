"""How long it takes to read, tokenise and encode pairs of texts into the cache, on one core.

    python benchmarks/text_encoding.py                        100,000 generated pairs
    python benchmarks/text_encoding.py --train snli.tsv       pairs of SNLI, which are cut already

Writes ``results/text-encoding-<date>.csv`` and prints a table. *encode* is the first call, with an empty
cache; *again* a second one, which maps what the first has written. Generated pairs are plain text with
punctuation, as long as those of SNLI, so that they have to be tokenised.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

if not __package__:  # run as a script: `benchmarks` is the package, not the search path
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    warnings.filterwarnings("ignore", message="Failed to initialize NumPy")

import argparse
import os
import random
import tempfile
import time
from datetime import datetime

import torch

from benchmarks import machine
from benchmarks.report import table, write_rows
from treelax.apps.tasks.text.config import DataConfig
from treelax.apps.tasks.text.data import encoded_splits

RESULTS = Path(__file__).resolve().parent / "results"
COLUMNS = (
    *("data", "pairs", "words", "encode_s", "again_s", "pairs_per_second", "s_per_100000"),
    *("machine", "torch", "commit"),
)


def generated(folder: Path, pairs: int) -> DataConfig:
    """Plain text in a table, to be tokenised."""
    rng = random.Random(0)
    words = [f"w{i}" for i in range(20_000)]
    for split, count in (("train", pairs), ("dev", 10)):
        with (folder / f"{split}.tsv").open("w", encoding="utf-8") as file:
            file.write("first\tsecond\tlabel\n")
            for number in range(count):
                texts = [
                    ", ".join(
                        " ".join(rng.choices(words, k=max(1, round(rng.gauss(mean, mean / 3)))))
                        for _ in range(2)
                    )
                    for mean in (6, 3)
                ]
                file.write(f"{texts[0]}.\t{texts[1]}.\t{'abc'[number % 3]}\n")
    files = {split: str(folder / f"{split}.tsv") for split in ("train", "dev")}
    return DataConfig(text=("first", "second"), **files)


def seconds(config: DataConfig) -> tuple[float, int, int]:
    """Time of one call, and what it gave: pairs and words."""
    start = time.perf_counter()
    train = encoded_splits(config)["train"]
    return time.perf_counter() - start, len(train), len(train.ids)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--train", help="a file of SNLI; generated pairs by default")
    parser.add_argument("--pairs", type=int, default=100_000, help="to generate")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TREELAX_CACHE"] = folder
        if arguments.train:
            path = arguments.train
            config = DataConfig(format="snli", train=path, dev=path)
        else:
            config = generated(Path(folder), arguments.pairs)
        encode, pairs, words = seconds(config)
        again, *_ = seconds(config)
    row: dict[str, object] = {
        "data": Path(arguments.train).name if arguments.train else "generated",
        "pairs": pairs,
        "words": words,
        "encode_s": round(encode, 2),
        "again_s": round(again, 2),
        "pairs_per_second": round(pairs / encode),
        "s_per_100000": round(encode * 100_000 / pairs, 2),
    }
    here = machine.describe("cpu")
    path = arguments.out / f"text-encoding-{datetime.now():%Y-%m-%d-%H%M}.csv"
    write_rows(path, COLUMNS, [row], here)
    shown = COLUMNS[:7]
    print(table(list(shown), [[str(row[name]) for name in shown]]))
    print(f"{here}\n{path.name}")


if __name__ == "__main__":
    main()
