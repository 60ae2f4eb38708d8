"""The corpora of the paper: what their parts are called, how many records they have, who reads them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from treelax.data.sources import NoSuchSplitError
from treelax.data.text.readers_nli import NLI_CLASSES, read_multinli, read_snli
from treelax.data.text.readers_sst import SST_CLASSES, read_sst
from treelax.data.text.records import CheckOptions, Found, Records

__all__ = ["CORPORA", "Corpus"]


@dataclass(frozen=True, slots=True)
class Corpus:
    """A published corpus."""

    title: str
    archive: str
    read: Callable[..., Records]
    official: Mapping[str, int]
    texts: tuple[str, ...]
    classes: tuple[str, ...]
    optional: tuple[str, ...] = ()

    def splits(self, path: Path, unusable: Found = "error") -> dict[str, Records]:
        """The splits that are there."""
        checks: CheckOptions = {
            "ragged": unusable,
            "too_long": unusable,
            "advice": 'treelax data --unusable drop, in Python unusable="drop"',
        }
        if path.is_file() and path.suffix.lower() != ".zip":
            return {path.name: self.read(path, None, **checks)}
        found: dict[str, Records] = {}
        refusals: list[NoSuchSplitError] = []
        for split in (*self.official, *self.optional):
            try:
                found[split] = self.read(path, split, **checks)
            except NoSuchSplitError as error:
                refusals.append(error)
        if not found:
            raise refusals[0]
        return found


def _sst(title: str, classes: Literal["binary", "five"], sizes: tuple[int, int, int]) -> Corpus:
    return Corpus(
        title=title,
        archive="sst",
        read=partial(read_sst, classes=classes),
        official=dict(zip(("train", "dev", "test"), sizes, strict=True)),
        texts=("sentence",),
        classes=SST_CLASSES[classes],
    )


CORPORA: Mapping[str, Corpus] = MappingProxyType(
    {
        "snli": Corpus(
            title="SNLI",
            archive="snli",
            read=read_snli,
            official={"train": 549_367, "dev": 9_842, "test": 9_824},
            texts=("premise", "hypothesis"),
            classes=NLI_CLASSES,
        ),
        "multinli": Corpus(
            title="MultiNLI",
            archive="multinli",
            read=read_multinli,
            official={"train": 392_702, "dev_matched": 9_815, "dev_mismatched": 9_832},
            texts=("premise", "hypothesis"),
            classes=NLI_CLASSES,
            optional=("test_matched", "test_mismatched"),
        ),
        "sst-binary": _sst("SST, two classes", "binary", (6_920, 872, 1_821)),
        "sst-five": _sst("SST, five classes", "five", (8_544, 1_101, 2_210)),
    }
)
