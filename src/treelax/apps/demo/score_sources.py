"""Where the scores on the page come from: trained models, random numbers, zeros."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor

from treelax.apps.demo.messages import MOST_WORDS, Defaults, SourceInfo, SourceName
from treelax.apps.tasks import BUILT_IN, load
from treelax.apps.tasks.base import Answer, TrainedParser
from treelax.nn import LatentTree

RECENT = 16  # texts whose scores are kept: most changes on the page leave the words as they are
RANDOM_SCALE = 2.0  # of random scores: enough for one tree to stand out


class Source(ABC):
    """Something that has scores for the words of a text; usable from several threads."""

    info: SourceInfo
    null = False  # the NULL token stands in front of the words in its scores

    def words(self, text: str) -> tuple[str, ...]:
        """A text as words."""
        return tuple(text.split())

    @abstractmethod
    def scores(self, words: Sequence[str], seed: int) -> Tensor:
        """Scores ``(n + 1, n + 1)`` of all arcs; the seed is of random ones."""

    def answer(self, texts: Sequence[Sequence[str]], trees: Sequence[Tensor]) -> Answer | None:
        """What the model says of texts given their trees, each ``(n + 1, n + 1)`` of 0 and 1."""
        return None


class ZeroSource(Source):
    """All scores 0: every tree is as good as any other."""

    info = SourceInfo(name="zero", label="no model: all scores 0")

    def scores(self, words: Sequence[str], seed: int) -> Tensor:
        """Zeros."""
        return torch.zeros(len(words) + 1, len(words) + 1)


class RandomSource(Source):
    """Gaussian scores; a word more leaves those of the words before it as they were.

    >>> short, long = (RandomSource().scores(words, 7) for words in ("ab", "abc"))
    >>> torch.equal(short, long[:3, :3])
    True
    """

    info = SourceInfo(name="random", label="no model: random scores")

    def scores(self, words: Sequence[str], seed: int) -> Tensor:
        """The scores that the seed gives."""
        generator = torch.Generator().manual_seed(seed)
        everything = torch.randn(MOST_WORDS + 1, MOST_WORDS + 1, generator=generator)
        size = len(words) + 1
        return RANDOM_SCALE * everything[:size, :size]


class ModelSource(Source):
    """A trained model of any task."""

    def __init__(self, parser: TrainedParser, name: SourceName, label: str) -> None:
        structure = parser.require_scores().structure
        assert parser.tree is not None
        self.parser = parser
        self.recent_scores = lru_cache(RECENT)(parser.arc_scores)
        self.null = parser.null
        self.words = parser.words  # type: ignore[method-assign]
        self.info = SourceInfo(
            name=name,
            label=label,
            texts=list(parser.text),
            examples=list(parser.sample[: len(parser.text)]),
            structure=structure.name,
            structures=["projective", "nonprojective", "heads"] if structure.rooted else ["binary"],
            defaults=_defaults(parser.tree),
        )

    def scores(self, words: Sequence[str], seed: int) -> Tensor:
        """Those of the model."""
        return self.recent_scores(tuple(words))

    def answer(self, texts: Sequence[Sequence[str]], trees: Sequence[Tensor]) -> Answer | None:
        """What the model says."""
        return self.parser.answer(texts, trees)


TITLES = {"english": "dependency parsing", "listops": "ListOps"}  # of the built-in models


def load_sources(run: str | os.PathLike[str] | None = None) -> dict[SourceName, Source]:
    """All sources of a demo, that of a run, or the model named, first.

    >>> list(load_sources()), list(load_sources("listops"))[:2]
    (['english', 'listops', 'zero', 'random'], ['listops', 'english'])
    """
    sources: dict[SourceName, Source] = {}
    if run is not None and str(run) not in BUILT_IN:
        label = f"run {Path(run).resolve().name}"
        sources["run"] = ModelSource(load(run), "run", label)
    for name in sorted(BUILT_IN, key=lambda name: name != str(run)):
        sources[name] = ModelSource(load(name), name, f"{name}: {TITLES[name]}")
    return sources | {"zero": ZeroSource(), "random": RandomSource()}


def _defaults(layer: LatentTree) -> Defaults:
    relaxed = getattr(layer.estimator, "relaxed", layer.estimator)  # straight-through holds one
    noise = getattr(relaxed, "noise", None)
    return Defaults(
        relaxation=getattr(relaxed, "relaxation", "softmax"),
        temperature=float(getattr(relaxed, "temperature", 1.0)),
        noise_scale=0.0 if noise is None else noise.scale,
        single_root=getattr(layer.structure, "single_root", False),
    )
