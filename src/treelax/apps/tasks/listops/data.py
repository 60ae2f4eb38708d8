"""The expressions that a config asks for."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from treelax.apps.data.listops import Expression, generate_splits, read_listops
from treelax.apps.tasks.listops.config import DataConfig

SPLITS = ("train", "dev", "test")


@lru_cache(maxsize=2)
def load_splits(config: DataConfig) -> dict[str, list[Expression]]:
    """Read or generate the expressions of "train", "dev" and "test"."""
    if config.folder is not None:
        return {name: load_split(config, name) for name in SPLITS}
    return generate_splits(
        {name: getattr(config, name) for name in SPLITS},
        variant=config.variant,
        seed=config.seed,
        min_length=config.min_length,
        max_length=config.max_length,
    )


def load_split(config: DataConfig, split: str) -> list[Expression]:
    """One of them; of files, no other is read."""
    if config.folder is None:
        return load_splits(config)[split]
    file = Path(config.folder, f"{split}.tsv")
    return read_listops(file, min_length=config.min_length, max_length=config.max_length)
