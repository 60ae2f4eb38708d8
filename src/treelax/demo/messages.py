"""What the page and the server say to each other, as types; `/openapi.json` describes them."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from treelax.tasks.base import Answer

MOST_WORDS = 200
MOST_CHARACTERS = 20_000
MOST_SAMPLES = 1_000
MOST_ARCS = (MOST_WORDS + 2) ** 2  # the root and a NULL token in front
LARGEST_SCORE = 1e6  # far beyond any use, and far from where float32 loses whole numbers
LARGEST_SEED = 2**31 - 1

SourceName = str  # zero, random, run, or a model that comes with treelax
Matrix = list[list[float | None]]


class _Message(BaseModel):
    """Exact types, no unknown keys, no NaN and no infinity."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


class Arc(_Message):
    """An arc from a head to a word."""

    head: int = Field(ge=0, le=MOST_WORDS + 1, description="Position; 0 is the root.")
    word: int = Field(ge=1, le=MOST_WORDS + 1, description="Position, counted from 1.")


class Edit(Arc):
    """A score in place of the one from the source."""

    score: float = Field(ge=-LARGEST_SCORE, le=LARGEST_SCORE)


class Text(_Message):
    """A text and what was changed by hand in the scores of its arcs."""

    text: str = Field(
        max_length=MOST_CHARACTERS,
        description=f"A sentence or expression of 1 to {MOST_WORDS} words.",
    )
    edits: list[Edit] = Field(
        default=[], max_length=MOST_ARCS, description="Scores put in by hand; the last one counts."
    )
    pinned: list[Arc] = Field(
        default=[],
        max_length=MOST_WORDS + 1,
        description="Arcs that every tree has: all other heads of their words are forbidden.",
    )
    forbidden: list[Arc] = Field(
        default=[], max_length=MOST_ARCS, description="Arcs that no tree has."
    )


class SecondText(Text):
    """The second text of a pair, for models that label two texts."""


class TreeRequest(Text):
    """All that a picture depends on; the same request always gets the same reply."""

    source: SourceName = Field(
        default="listops",
        description="Where scores come from: zero (all 0), random, english or listops (models that "
        "come with treelax), or run, that which the demo was started with; /api/info lists them.",
    )
    second: SecondText | None = Field(
        default=None,
        description="The second text, for a source with two; both together have at most "
        f"{MOST_WORDS} words. Without it there are trees of the first, and no label.",
    )
    shown: Literal["first", "second"] = Field(
        default="first", description="The text whose scores and trees are asked for."
    )
    score_seed: int = Field(default=0, ge=0, le=LARGEST_SEED, description="Of random scores.")
    noise_scale: float = Field(default=1.0, ge=0, le=100, description="Factor of Gumbel noise.")
    noise_seed: int = Field(default=0, ge=0, le=LARGEST_SEED, description="Of the noise.")
    relaxation: Literal["softmax", "entropy"] = Field(
        default="softmax", description="softmax is that of Corro & Titov; entropy gives marginals."
    )
    temperature: float = Field(default=1.0, ge=0.01, le=100, description="Of the relaxation.")
    single_root: bool = Field(default=False, description="The root has one child only.")
    samples: int = Field(default=0, ge=0, le=MOST_SAMPLES, description="How many exact samples.")
    sample_seed: int = Field(default=0, ge=0, le=LARGEST_SEED, description="Of the samples.")


class Samples(BaseModel):
    """Exact samples of the distribution of trees."""

    count: int = Field(description="How many were drawn.")
    last: list[int] | None = Field(description="Heads of the last one; null if there is none.")
    frequencies: Matrix = Field(description="Share of the samples that have each arc.")


class TreeReply(BaseModel):
    """Trees of one text.

    Matrices are (n + 1) × (n + 1), rows are heads, columns words, index 0 is the root. In scores null
    is an arc that is forbidden or cannot be; everywhere else it is 0. Heads are counted from 1, 0 is
    the root. All is computed in float64 and rounded to six decimals.
    """

    words: list[str] = Field(description="Of the text that is shown.")
    null: bool = Field(
        description="The first word is the NULL token that the model has in front of every text."
    )
    other_words: list[str] | None = Field(description="Of the other text; null if there is none.")
    scores: Matrix = Field(description="After edits, pins and forbidden arcs.")
    perturbed: Matrix = Field(description="Scores with noise.")
    soft: Matrix = Field(description="The relaxed tree of the perturbed scores.")
    marginals: Matrix = Field(
        description="Probability of each arc where a tree has the weight exp(sum of scores): no "
        "noise, no temperature. Samples are drawn from the same distribution."
    )
    best: list[int] = Field(description="Heads of the best tree of the scores.")
    best_perturbed: list[int] = Field(description="Heads of the best tree with noise.")
    best_log_probability: float = Field(description="Of the best tree of the scores.")
    log_partition: float
    entropy: float = Field(description="In nats.")
    samples: Samples
    answer: Answer | None = Field(
        description="What the model says with the best tree of the scores: a line, tags of the "
        "words, the right heads where known."
    )


class Defaults(BaseModel):
    """Settings to begin with."""

    relaxation: Literal["softmax", "entropy"] = "softmax"
    temperature: float = 1.0
    noise_scale: float = 1.0
    single_root: bool = False


class SourceInfo(BaseModel):
    """A source of scores."""

    name: SourceName
    label: str = Field(description="For people.")
    texts: list[str] = Field(
        default=["text"], description="Names of the texts that it takes: one, or two for pairs."
    )
    examples: list[str] = Field(
        default=["the old cat watched a small bird"], description="A text for each name."
    )
    structure: str = Field(
        default="projective",
        description="projective trees, or heads: every word chooses its head alone, so that best "
        "trees and samples need not be trees.",
    )
    defaults: Defaults = Field(default=Defaults(), description="What its model was trained with.")


class Info(BaseModel):
    """What this server has."""

    version: str
    most_words: int
    most_samples: int
    sources: list[SourceInfo]


class Problem(BaseModel):
    """Why there is no picture."""

    detail: str = Field(description="One line: what was received, what was expected.")
