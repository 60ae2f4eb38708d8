"""What must be known of a trained sentence model."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import get_args

from treelax.data.text.readers_corpora import CORPORA
from treelax.data.text.records import Found
from treelax.errors import InputError
from treelax.ops.checks import one_of
from treelax.tasks.text.config import Kind, TextConfig
from treelax.tasks.text.model_config import ModelConfig

__all__ = ["SentenceSettings", "with_learned_words"]


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
        """What a run's config says of it."""
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


def with_learned_words(config: TextConfig, rows: int) -> ModelConfig:
    """The model of a config with as many learned rows as its word vectors ask for."""
    if config.data.vectors is not None:
        return config.model
    return replace(config.model, learned_words=max(rows - 1, 0))
