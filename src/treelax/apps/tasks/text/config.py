"""Settings of experiments on sentences."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Literal, get_args

from treelax.apps.data.text.readers_corpora import CORPORA
from treelax.apps.data.text.records import Unusable
from treelax.apps.tasks.sentences.inputs import ReadOptions
from treelax.apps.tasks.settings import DataSettings, TrainSettings, TreeSettings, clash
from treelax.apps.training.settings import (
    NOT_NEGATIVE,
    POSITIVE,
    SEED,
    SHARE,
    SIZE,
    Settings,
    setting,
)
from treelax.errors import InputError, short
from treelax.nn import LatentTree, SpanScorer
from treelax.nn.transformer import Subwords
from treelax.ops.checks import one_of
from treelax.structures import Binary

Kind = Literal["pair", "classify", "tag"]
Format = Literal["snli", "multinli", "sst", "table", "tagging"]
Classes = Literal["binary", "five"]
SPLIT = "{split}"
# settings that name files: what is in them counts, not where they are
FILES = frozenset(
    f"data.{key}"
    for key in ("path", "train", "dev", "test", "vectors", "more_vectors", "mix", "trees")
)
MOST_DRAWN = 100_000_000  # examples of an epoch, which are drawn at once


@dataclass(frozen=True)
class DataConfig(DataSettings):
    """Which texts, and how they become numbers."""

    format: Format = setting(
        "table", 'a corpus as distributed, a "table" (TSV, CSV, JSONL) or "tagging" (a word a line)'
    )
    path: str | None = setting(
        None, "folder or archive of a corpus, with all splits; none for the one downloaded"
    )
    train: str | None = setting(None, "training data, instead of the split in path")
    dev: str | None = setting(None, "data to select the best model by, likewise")
    test: str | None = setting(None, "data for the final figures, likewise; optional")
    text: tuple[str, ...] = setting(("text",), "text columns of a table, one or two")
    label: str = setting("label", "label column of a table")
    word: str | None = setting(
        None, "word column of a tagging file, by number or name; none: the first, or FORM"
    )
    tag: str | None = setting(None, "tag column, likewise; none: the last, or UPOS")
    classes: Classes = setting("binary", 'of SST, "binary" or "five"')
    tokens: bool = setting(False, "texts of a table are tokenised: words separated by spaces")
    quoted: bool | None = setting(None, "cells of a table may be quoted; none for CSV only")
    vectors: str | None = setting(
        None, "file of word vectors; none for random ones, which are all learned"
    )
    more_vectors: tuple[str, ...] = setting((), "files whose vectors are concatenated to those")
    vector_size: int = setting(100, "of random vectors", SIZE)
    normalise: bool = setting(True, "scale all word vectors to length 1")
    lower: bool = setting(False, "lowercase words")
    null: bool = setting(True, "put a NULL token in front of each text")
    max_length: int = setting(
        100, "longer training examples are skipped; dev and test are kept", f"[1, {2**31 - 1}]"
    )
    mix: str | None = setting(None, "SNLI (folder, archive or file), added to other training pairs")
    mix_share: float = setting(1.0, "share of it, drawn anew for every epoch", "(0, 1]")
    unusable: Unusable = setting(
        "error", '"drop" skips ragged lines and texts of more than 10,000 words'
    )
    trees: str | None = setting(None, "CoNLL-U files of given trees, with {split} in the name")
    seed: int = setting(0, "of random vectors", SEED)

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.text) not in (1, 2):
            raise InputError(f"data.text is {self.text}; expected the name of one column, or two")
        columns = (*self.text, self.label) if self.format == "table" else (self.word, self.tag)
        named = [column for column in columns if column is not None]
        if len(set(named)) < len(named):
            twice = short(max(named, key=named.count))
            raise InputError(f"data: the column {twice} is named twice; expected different columns")
        for name in ("word", "tag"):
            column = getattr(self, name)
            if column is not None and not column.strip("0 "):
                raise InputError(
                    f"data.{name} is {column!r}; expected the number of a column, from 1, or its name"
                )
        pairs = self.format == "multinli" or (self.format == "table" and len(self.text) == 2)
        if self.mix is not None and not pairs:
            why = "none: only pairs other than SNLI can be mixed with it"
            raise clash(self, "mix", "format", why)
        if self.trees is not None and SPLIT not in self.trees:
            raise InputError(
                f"data.trees is {self.trees}; expected a name with {SPLIT} in it for train, dev and "
                f"test, such as trees/{SPLIT}.conllu"
            )
        if self.trees is not None and self.mix is not None:
            why = "one of them: there are no trees of what is mixed in"
            raise clash(self, "trees", "mix", why)


@dataclass(frozen=True)
class ModelConfig(TreeSettings):
    """Sizes and kind of a sentence model; the defaults are the paper's for NLI (appendix A.2)."""

    learned_words: int = setting(
        1, "learned rows of the table: NULL, then unknown words; all if random", NOT_NEGATIVE
    )
    word_scale: float = setting(1.0, "factor of the word vectors", POSITIVE)
    projection_size: int | None = setting(
        200, "size of the layer on top of the word vectors, none for no such layer", SIZE
    )
    encoder: Literal["none", "bilstm", "transformer"] = setting(
        "none", '"bilstm" above the projection, or a pre-trained "transformer" below it'
    )
    encoder_size: int = setting(100, "size of each direction of the BiLSTM", SIZE)
    encoder_stacks: int = setting(1, "layers of the BiLSTM", SIZE)
    pretrained: str | None = setting(None, "folder of the transformer, a Hugging Face model")
    pretrained_rate: float = setting(
        0.02, "factor of the transformer's learning rate; 0 freezes it", NOT_NEGATIVE
    )
    subwords: Subwords = setting(
        "mean", 'a word\'s vector: the "mean" of its sub-words\' or the "first"'
    )
    trees: Literal["none", "intra", "latent", "heads", "chain", "given"] = setting(
        "latent", "CoNLL-U files of given trees, with {split} in the name"
    )
    structure: Literal["projective", "nonprojective", "binary"] = setting(
        "projective", 'of latent trees; "binary" has spans for arcs, a TreeLSTM for the GCN'
    )  # type: ignore[assignment]
    scorer_size: int = 200
    gcn_size: int = 200
    gcn_layers: int = 2
    dense: bool = setting(True, "concatenate the input of each GCN layer to its output")
    output_size: int = setting(200, "size of the hidden layers above the words", SIZE)
    output: Literal["softmax", "chain"] = setting(
        "softmax", 'of a tagger: each tag by itself, or a "chain", with learned transitions'
    )
    pooling: Literal["max", "sum"] = setting("max", 'of words, for pairs: "max" or "sum"')
    dropout: float = setting(0.2, "in all perceptrons and GCN layers", SHARE)
    projection_dropout: float | None = setting(
        None, "above the word vectors; none: as dropout, also the next three", SHARE
    )
    attend_dropout: float | None = setting(
        None, "in the perceptron that compares the words of two texts", SHARE
    )
    scorer_dropout: float | None = setting(None, "in the perceptrons that score arcs", SHARE)
    gcn_dropout: float | None = setting(None, "in GCN layers", SHARE)
    input_dropout: float = setting(0.0, "of word vectors", SHARE)
    word_dropout: float = setting(
        0.0, "share of the words whose vectors are set to zero in training", SHARE
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.encoder == "transformer") != (self.pretrained is not None):
            both = "--set model.encoder=transformer --set model.pretrained=FOLDER"
            raise clash(self, "encoder", "pretrained", f"both for a transformer: {both}")
        if self.structure == "binary":
            wanted = {"trees": "latent", "single_root": False, "root_arcs": True}
            wanted |= {"left_head_bias": 0, "step_bias": 0}
            for name, value in wanted.items():
                if getattr(self, name) != value:
                    why = "binary trees are latent, without heads and without a root"
                    raise clash(self, name, "structure", f"{str(value).lower()}: {why}")
            settings = self.estimator
            simplex = settings.projection == "simplex" and settings.form != "eg"
            if settings.name == "spigot" and simplex:
                why = "polytope: spans have no simplex of heads"
                raise clash(self, "estimator.projection", "structure", why)

    def latent_tree(self, size: int, *, dropout: float = 0.0) -> LatentTree:
        """The layer over vectors of that size, without a root in front for binary trees."""
        if self.structure != "binary":
            return super().latent_tree(size, dropout=dropout)
        scorer = SpanScorer(size, self.scorer_size, layers=self.scorer_layers, dropout=dropout)
        return LatentTree(scorer, Binary(), self.make_estimator(), validate=False)

    def dropout_of(self, part: str) -> float:
        """The dropout of a part, by default that of all."""
        rate: float | None = getattr(self, f"{part}_dropout")
        return self.dropout if rate is None else rate


@dataclass(frozen=True)
class TrainConfig(TrainSettings):
    """How to train; the defaults are the paper's."""

    epochs: int = 200
    updates: int = setting(0, "updates per epoch; 0 for one pass over the training data")
    weight_decay: float = setting(
        0.0, "of AdamW, for matrices other than embeddings; 0 in the paper", NOT_NEGATIVE
    )
    label_smoothing: float = setting(
        0.0, "share of a label spread over all classes; 0 in the paper", SHARE
    )
    consistency: float = setting(
        0.0, "weight of R-Drop: two runs of each example agree; 0 in the paper", NOT_NEGATIVE
    )
    discrete_epochs: int = setting(
        0, "final epochs with discrete trees without noise; 0 in the paper"
    )
    precision: Literal["float32", "tf32", "bf16"] = setting(
        "float32", '"tf32" for products on a GPU, "bf16" for layers; trees are float32'
    )
    pool: int = setting(50, "batches that are sorted by length together", "[1, 1000000]")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_range("updates", f"[0, {MOST_DRAWN // self.batch_size}]")
        self.check_range("discrete_epochs", f"[0, {self.epochs}]")


@dataclass(frozen=True)
class TextConfig(Settings):
    """Everything that determines a run."""

    preset: str = setting("pair", "the preset that it started from")
    kind: Kind = setting(
        "pair", '"pair" (relation of two texts), "classify" (class of a text) or "tag" (of words)'
    )
    seed: int = setting(0, "of initial weights, batches, noise and dropout", SEED)
    data: DataConfig = field(default_factory=DataConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    train: TrainConfig = field(default_factory=TrainConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.data.classes != "binary" and self.data.format != "sst":
            raise clash(self, "data.classes", "data.format", "binary: only sst has others")
        if self.train.discrete_epochs and self.model.estimator.name != "relaxed":
            why = "0: only relaxed trees become discrete"
            raise clash(self, "train.discrete_epochs", "model.estimator.name", why)
        if self.model.estimator.name == "exact" and (self.kind == "pair" or self.train.consistency):
            why = "kind pair" if self.kind == "pair" else "train.consistency not 0"
            raise InputError(
                f"model.estimator is exact and {why}, where two trees share a loss; expected another "
                "estimator"
            )
        check_output(self.kind, self.model)
        if (
            self.model.output == "chain"
            and (train := self.train).label_smoothing + train.consistency
        ):
            raise InputError(
                f"model.output is chain, train.label_smoothing {train.label_smoothing} and "
                f"train.consistency {train.consistency}; expected 0: they are for labels by themselves"
            )
        if self.model.encoder == "transformer" and self.data.vectors is not None:
            why = "none: the transformer makes the word vectors"
            raise clash(self, "model.encoder", "data.vectors", why)


@dataclass(frozen=True)
class SentenceSettings(ReadOptions):
    """What must be known of a trained model to give it new texts; see `DataConfig`."""

    kind: Kind = "classify"
    lower: bool = False
    null: bool = False
    vectors: tuple[str, ...] = ()  # names of the files; none if random or made by a transformer
    normalise: bool = True
    model: ModelConfig = field(default_factory=ModelConfig)

    def __post_init__(self) -> None:
        one_of("kind", self.kind, get_args(Kind))
        one_of("unusable", self.unusable, get_args(Unusable))
        check_output(self.kind, self.model)
        if len(self.text) != self.texts:
            raise InputError(f"text is {self.text}; expected {self.texts} for {self.kind!r}")

    @property
    def needs_trees(self) -> bool:
        """Whether trees are given with the texts."""
        return self.model.trees == "given"

    @classmethod
    def of(cls, config: TextConfig, *, rows: int) -> SentenceSettings:
        """What a run's config says of it."""
        data = config.data
        corpus = CORPORA.get("sst-binary" if data.format == "sst" else data.format)
        columns = data.text if data.format == "table" else ("text",)
        return cls(
            kind=config.kind,
            text=columns if corpus is None else corpus.texts,
            word=data.word,
            label={"table": data.label, "tagging": data.tag}.get(data.format, "label"),
            tokens=data.format == "table" and data.tokens,
            quoted=data.quoted if data.format == "table" else None,
            unusable=data.unusable,
            lower=data.lower,
            null=data.null,
            vectors=tuple(PurePath(file).name for file in data.vector_files),
            normalise=data.normalise,
            model=with_learned_words(config, rows),
        )


def check_output(kind: Kind, model: ModelConfig) -> None:
    """Refuse a chain of labels that are not those of words."""
    if model.output == "chain" and kind != "tag":
        raise InputError(f"model.output is chain and kind {kind}; expected softmax, or kind tag")


def with_learned_words(config: TextConfig, rows: int) -> ModelConfig:
    """The model of a config with as many learned rows as its word vectors ask for."""
    if config.data.vectors is not None:
        return config.model
    return replace(config.model, learned_words=max(rows - 1, 0))
