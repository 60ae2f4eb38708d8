"""What the page and the server say to each other, as types; `/openapi.json` describes them."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from treelax.apps.tasks.base import Answer
from treelax.structures import StructureName

MOST_WORDS = 200
MOST_CHARACTERS = 20_000
MOST_SAMPLES = 1_000
MOST_ARCS = (MOST_WORDS + 2) ** 2  # the root and a NULL token in front
LARGEST_SCORE = 1e6  # far beyond any use, and far from where float32 loses whole numbers
LARGEST_SEED = 2**31 - 1

SourceName = str  # zero, random, run, or a model that comes with treelax
# those that give a tree with a gradient and take the noise that is shown
EstimatorName = Literal["relaxed", "straight-through", "marginals", "sparsemap", "spigot", "imle"]
Matrix = list[list[float | None]]
Parts = list[tuple[int, int]]


class _Message(BaseModel):
    """Exact types, no unknown keys, no NaN and no infinity."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


class Arc(_Message):
    """An arc from a head to a word; of binary trees, the span from one word to another."""

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


class TreeRequest(Text):
    """All that a picture depends on; the same request always gets the same reply."""

    source: SourceName | None = Field(
        default=None,
        description="Where scores come from: zero (all 0), random, english or listops (models that "
        "come with treelax), or run, that which the demo was started with; null for the first in "
        "/api/info, which lists them.",
    )
    second: Text | None = Field(
        default=None,
        description="The second text, for a source with two; both together have at most "
        f"{MOST_WORDS} words. Without it there are trees of the first, and no label.",
    )
    shown: Literal["first", "second"] = Field(
        default="first", description="The text whose scores and trees are asked for."
    )
    structure: StructureName | None = Field(
        default=None, description="What trees are; null for those of the source."
    )
    estimator: EstimatorName = Field(
        default="relaxed", description="What makes the soft tree and its gradient."
    )
    score_seed: int = Field(default=0, ge=0, le=LARGEST_SEED, description="Of random scores.")
    noise_scale: float = Field(default=1.0, ge=0, le=100, description="Factor of Gumbel noise.")
    relative: bool = Field(
        default=False,
        description="Noise and temperature are multiples of the spread of the scores.",
    )
    noise_seed: int = Field(default=0, ge=0, le=LARGEST_SEED, description="Of the noise.")
    relaxation: Literal["softmax", "entropy"] | None = Field(
        default=None,
        description="softmax is that of Corro & Titov; entropy gives marginals; null for that of "
        "the source.",
    )
    temperature: float = Field(default=1.0, ge=0.01, le=100, description="Of the relaxation.")
    single_root: bool = Field(default=False, description="The root has one child only.")
    target: Arc | None = Field(
        default=None,
        description="The arc of the loss 1 - weight, whose gradient is asked for; null for the one "
        "whose weight is nearest 0.5.",
    )
    samples: int = Field(default=0, ge=0, le=MOST_SAMPLES, description="How many exact samples.")
    sample_seed: int = Field(default=0, ge=0, le=LARGEST_SEED, description="Of the samples.")


class Samples(BaseModel):
    """Exact samples of the distribution of trees."""

    count: int = Field(description="How many were drawn.")
    last: Parts | None = Field(description="The last one; null if there is none.")
    frequencies: Matrix = Field(description="Share of the samples that have each arc.")


class TreeReply(BaseModel):
    """Trees of one text.

    Matrices are (n + 1) × (n + 1), rows are heads, columns words, index 0 is the root. In scores and
    noise null is an arc that is forbidden or cannot be; everywhere else it is 0. Trees are lists of
    arcs, [head, word]. Of binary trees rows are first words and columns last words of spans; single
    words, which all trees have, are left out. All is computed in float64 and rounded to six decimals.
    """

    words: list[str] = Field(description="Of the text that is shown.")
    null: bool = Field(
        description="The first word is the NULL token that the model has in front of every text."
    )
    other_words: list[str] | None = Field(description="Of the other text; null if there is none.")
    scores: Matrix = Field(description="After edits, pins and forbidden arcs.")
    spread: float = Field(
        description="Standard deviation of the scores around the mean of each word's, or of all spans: "
        "what is added to all of them changes no tree. 1 if they are all equal."
    )
    noise: Matrix = Field(description="Gumbel noise, scaled.")
    perturbed: Matrix = Field(description="Scores with noise.")
    soft: Matrix = Field(description="The tree that the estimator gives.")
    gap: float | None = Field(
        description="Of SparseMAP, which stops early on long sentences at high temperatures: how far "
        "half the squared distance to the scores may be from the least; 0 for an exact tree. Null for "
        "other estimators."
    )
    target: Arc | None = Field(description="That of the request, or the one chosen for it.")
    gradient: Matrix | None = Field(
        description="Of the loss, 1 - soft[head][word] of the target, as the estimator has it; null "
        "if the target is no arc of this text."
    )
    marginals: Matrix = Field(
        description="Probability of each arc where a tree has the weight exp(sum of scores): no "
        "noise, no temperature. Samples are drawn from the same distribution."
    )
    best: Parts = Field(description="The best tree of the scores.")
    best_perturbed: Parts = Field(description="The best tree with noise.")
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
    structure: str = Field(default="projective", description="What its trees are.")
    structures: list[str] = Field(
        default=["projective", "nonprojective", "heads", "binary"],
        description="What it has scores for.",
    )
    defaults: Defaults = Field(default=Defaults(), description="What its model was trained with.")


class Info(BaseModel):
    """What this server has."""

    version: str
    most_words: int
    most_samples: int
    sources: list[SourceInfo]
    sizes: dict[str, float] = Field(description="Of drawings of trees, in pixels.")


class Problem(BaseModel):
    """Why there is no picture."""

    detail: str = Field(description="One line: what was received, what was expected.")
