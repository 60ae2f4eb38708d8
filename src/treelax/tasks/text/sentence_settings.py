"""What must be known of a trained sentence model, and what it says of an example."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import get_args

from treelax.data.text.corpora import CORPORA
from treelax.data.text.records import Found
from treelax.errors import InputError
from treelax.ops.checks import one_of
from treelax.tasks.text.config import Kind, TextConfig
from treelax.tasks.text.model_config import ModelConfig

__all__ = ["Prediction", "SentenceSettings", "with_learned_words"]


@dataclass(frozen=True)
class SentenceSettings:
    """What must be known of a trained model to give it new texts.

    Attributes:
        kind: "pair", "classify" or "tag".
        text: columns that its texts stand in, one or two.
        word: column of the words in files with a word a line, see `DataConfig`; or None.
        label: column of the labels; for a tagger None may stand for the usual one.
        tokens: its texts are words with spaces between, not to be tokenised.
        quoted: cells of its tables may stand in quotes; none for CSV only.
        unusable: what becomes of lines with too few or too many columns or words, see `DataConfig`.
        lower: words are put into lower case.
        null: a NULL token stands in front of each text.
        vectors: names of the files that its word vectors are from, in their order; none where these
            were learned from random ones or a transformer makes them.
        normalise: its word vectors have length 1.
        model: its kind and sizes; ``learned_words`` counts all rows that were learned.

    Raises:
        InputError: there is no such kind, or it takes another number of texts.

    Example:
        >>> from treelax.tasks.text.presets import preset
        >>> SentenceSettings.of(preset("snli-tree-1"), rows=500).text
        ('premise', 'hypothesis')
    """

    kind: Kind = "classify"
    text: tuple[str, ...] = ("text",)
    word: str | None = None
    label: str | None = None
    tokens: bool = False
    quoted: bool | None = None
    unusable: Found = "error"
    lower: bool = False
    null: bool = False
    vectors: tuple[str, ...] = ()
    normalise: bool = True
    model: ModelConfig = field(default_factory=ModelConfig)

    def __post_init__(self) -> None:
        one_of("kind", self.kind, get_args(Kind))
        one_of("unusable", self.unusable, get_args(Found))
        if len(self.text) != self.texts:
            raise InputError(f"text is {self.text}; expected {self.texts} for {self.kind!r}")

    @property
    def texts(self) -> int:
        """How many texts an example has."""
        return 2 if self.kind == "pair" else 1

    @classmethod
    def of(cls, config: TextConfig, *, rows: int) -> SentenceSettings:
        """What a run's config says of it.

        Args:
            config: of the run.
            rows: of its word vectors, padding counted.

        Returns:
            The settings.
        """
        data = config.data
        columns = {
            "table": data.text,
            "tagging": ("text",),
            "sst": CORPORA["sst-binary"].texts,
            "snli": CORPORA["snli"].texts,
            "multinli": CORPORA["multinli"].texts,
        }
        files = () if data.vectors is None else (data.vectors, *data.more_vectors)
        return cls(
            kind=config.kind,
            text=columns[data.format],
            word=data.word,
            label={"table": data.label, "tagging": data.tag}.get(data.format, "label"),
            tokens=data.format == "table" and data.tokens,
            quoted=data.quoted if data.format == "table" else None,
            unusable=data.unusable,
            lower=data.lower,
            null=data.null,
            vectors=tuple(PurePath(file).name for file in files),
            normalise=data.normalise,
            model=with_learned_words(config, rows),
        )


@dataclass(frozen=True)
class Prediction:
    """What a model says of one example.

    An example with a text without words gets no label, no probabilities and no heads.

    Attributes:
        words: of each text, as it was cut.
        label: the class; for a tagger the tag of every word; or None.
        probabilities: of each class; for a tagger of each tag for every word; or None.
        heads: of each text the head of every word, counted from 1, 0 the root; None if the model
            has no trees. Words under the NULL token hang off what it hangs off.

    Example:
        >>> said = Prediction((("Dogs", "bark"),), "yes", {"no": 0.25, "yes": 0.75}, ((2, 0),))
        >>> said.label, said.probability, said.heads[0]
        ('yes', 0.75, (2, 0))
    """

    words: tuple[tuple[str, ...], ...]
    label: str | tuple[str, ...] | None = None
    probabilities: Mapping[str, float] | tuple[Mapping[str, float], ...] | None = field(
        default=None, hash=False
    )
    heads: tuple[tuple[int, ...], ...] | None = None

    @property
    def probability(self) -> float | tuple[float, ...] | None:
        """Of the label; for a tagger of the tag of every word; or None."""
        if self.label is None or self.probabilities is None:
            return None
        if isinstance(self.probabilities, tuple):
            pairs = zip(self.probabilities, self.label, strict=True)
            return tuple(each[tag] for each, tag in pairs)
        return self.probabilities[str(self.label)]


def with_learned_words(config: TextConfig, rows: int) -> ModelConfig:
    """The model of a config with as many learned rows as its word vectors ask for.

    Args:
        config: of a run.
        rows: of its word vectors, padding counted.

    Returns:
        The settings of the model; random vectors are all learned.

    Example:
        >>> with_learned_words(TextConfig(), 500).learned_words
        499
    """
    if config.data.vectors is not None:
        return config.model
    return replace(config.model, learned_words=max(rows - 1, 0))
