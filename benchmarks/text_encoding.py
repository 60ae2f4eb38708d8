"""How long it takes to read, tokenise and encode pairs of texts into the cache, on one core.

    python benchmarks/run.py text-encoding                     100,000 generated pairs
    python benchmarks/run.py text-encoding --train snli.tsv    pairs of SNLI, which are cut already

*encode* is the first call, with an empty cache; *again* a second one, which maps what the first has
written. Generated pairs are plain text with punctuation, as long as those of SNLI, so that they have to
be tokenised.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import torch

from benchmarks.measure import Row, seconds_of
from benchmarks.text_training import random_pairs
from treelax.apps.tasks.text.config import DataConfig
from treelax.apps.tasks.text.data import encoded_splits


def generated(folder: Path, pairs: int) -> DataConfig:
    """Plain text in a table, to be tokenised."""
    files = {}
    for split, count in (("train", pairs), ("dev", 10)):
        rows = (f"{one}.\t{other}.\tyes\n" for one, other in random_pairs(count, 20_000))
        files[split] = str(folder / f"{split}.tsv")
        Path(files[split]).write_text("".join(["first\tsecond\tlabel\n", *rows]), encoding="utf-8")
    return DataConfig(text=("first", "second"), **files)


def measure(train: str = "", pairs: int = 100_000) -> Iterator[Row]:
    """One row."""
    torch.set_num_threads(1)
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TREELAX_CACHE"] = folder
        config = generated(Path(folder), pairs)
        if train:
            config = DataConfig(format="snli", train=train, dev=train)
        encode, again = (
            seconds_of(lambda: encoded_splits(config), time.perf_counter) for _ in range(2)
        )
        data = encoded_splits(config)["train"]
        yield {
            "data": Path(train).name if train else "generated",
            "pairs": len(data),
            "words": len(data.ids),
            "encode_s": round(encode, 2),
            "again_s": round(again, 2),
            "pairs_per_second": round(len(data) / encode),
            "s_per_100000": round(encode * 100_000 / len(data), 2),
        }
