"""Settings of experiments on sentences."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from pathlib import PurePath
from typing import Literal, get_args

from treelax.apps.data.text.readers_corpora import CORPORA
from treelax.apps.data.text.records import Found
from treelax.apps.tasks.settings import (
    LARGEST_SEED,
    SIZE,
    TrainSettings,
    TreeSettings,
    check_settings,
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
class DataConfig:
    """Which texts, and how they become numbers.

    Attributes:
        format: "snli", "multinli" or "sst" as distributed, "table" (TSV, CSV, JSON lines) or
            "tagging" (one word per line).
        path: folder or archive of a corpus, with all splits; None for the one downloaded.
        train: training data, instead of the split in ``path``.
        dev: data to select the best model by, likewise.
        test: data for the final figures, likewise; optional.
        text: text columns of a table, one or two.
        label: label column of a table.
        word: word column of a tagging file, by number (from 1) or, in CoNLL-U, by name; None for the
            first, or FORM.
        tag: tag column, likewise; None for the last, or UPOS.
        classes: of SST, "binary" or "five".
        tokens: texts of a table are tokenised: words separated by spaces.
        quoted: cells of a table may be quoted; None for CSV only, true for a TSV written by pandas or
            a spreadsheet.
        vectors: file of word vectors; None for random ones, which are all learned.
        more_vectors: files whose vectors are concatenated to those.
        vector_size: of random vectors.
        normalise: scale all word vectors to length 1.
        lower: lowercase words.
        null: put a NULL token in front of each text.
        max_length: training examples with a longer text are skipped; dev and test are kept.
        mix: SNLI (folder, archive or training file), added to the training data of MultiNLI or of
            your own pairs.
        mix_share: share of it, drawn anew for every epoch.
        unusable: "error", or "drop" to skip and report lines with too few or too many columns and
            texts of more than 10,000 words.
        trees: CoNLL-U files of given trees, with ``{split}`` in the name for train, dev and test; may
            be compressed.
        seed: of random vectors.
    """

    format: Format = "table"
    path: str | None = None
    train: str | None = None
    dev: str | None = None
    test: str | None = None
    text: tuple[str, ...] = ("text",)
    label: str = "label"
    word: str | None = None
    tag: str | None = None
    classes: Classes = "binary"
    tokens: bool = False
    quoted: bool | None = None
    vectors: str | None = None
    more_vectors: tuple[str, ...] = ()
    vector_size: int = 100
    normalise: bool = True
    lower: bool = False
    null: bool = True
    max_length: int = 100
    mix: str | None = None
    mix_share: float = 1.0
    unusable: Found = "error"
    trees: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_settings(
            "data",
            self,
            vector_size=SIZE,
            max_length=f"[1, {2**31 - 1}]",
            mix_share="(0, 1]",
            seed=f"[0, {LARGEST_SEED}]",
        )
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
        if self.more_vectors and self.vectors is None:
            raise InputError(
                "data.vectors is none beside data.more_vectors; expected the first file there"
            )
        pairs = self.format == "multinli" or (self.format == "table" and len(self.text) == 2)
        if self.mix is not None and not pairs:
            raise InputError(
                f"data.mix is {self.mix} and data.format {self.format}; expected none: only pairs "
                "other than SNLI can be mixed with it"
            )
        if self.trees is not None and SPLIT not in self.trees:
            raise InputError(
                f"data.trees is {self.trees}; expected a name with {SPLIT} in it for train, dev and "
                f"test, such as trees/{SPLIT}.conllu"
            )
        if self.trees is not None and self.mix is not None:
            raise InputError(
                f"data.trees is {self.trees} and data.mix {self.mix}; expected one of them: there "
                "are no trees of what is mixed in"
            )


@dataclass(frozen=True)
class ModelConfig(TreeSettings):
    """Sizes and kind of a sentence model; the defaults are the paper's for NLI (appendix A.2).

    Attributes:
        learned_words: number of learned rows at the start of the embedding table (the NULL token, then
            unknown words); the rest is frozen. Random vectors are all learned.
        word_scale: factor of the word vectors.
        projection_size: size of the layer on top of the word vectors, None for no such layer.
        encoder: "none" or "bilstm", between projection and trees; or "transformer", a pre-trained
            one in place of word vectors, before the projection.
        encoder_size: size of each direction of the BiLSTM.
        encoder_stacks: layers of the BiLSTM.
        pretrained: folder of the transformer, a Hugging Face model.
        pretrained_rate: factor of the transformer's learning rate; 0 freezes it.
        subwords: vector of a word from the transformer: the "mean" of its sub-words' or the "first".
        trees: "none", "intra" (attention within the sentence), "latent" trees, "heads" chosen without
            a tree constraint, a left-to-right "chain", or "given" with the data.
        structure: of latent trees, "projective", "nonprojective" (with the entropy relaxation) or
            "binary": spans in place of arcs, a TreeLSTM in place of the GCN, with gcn_size and dense.
        dense: concatenate the input of each GCN layer to its output.
        output_size: size of the hidden layers above the words.
        pooling: of words, for pairs: "max" or "sum".
        dropout: in all perceptrons and GCN layers.
        projection_dropout: instead of ``dropout`` in the layer on top of the word vectors; None for
            the same, likewise the next three.
        attend_dropout: in the perceptron that compares the words of two texts.
        scorer_dropout: in the perceptrons that score arcs.
        gcn_dropout: in GCN layers.
        input_dropout: of word vectors.
        word_dropout: share of the words whose vectors are set to zero in training.
    """

    learned_words: int = 1
    word_scale: float = 1.0
    projection_size: int | None = 200
    encoder: Literal["none", "bilstm", "transformer"] = "none"
    encoder_size: int = 100
    encoder_stacks: int = 1
    pretrained: str | None = None
    pretrained_rate: float = 0.02
    subwords: Subwords = "mean"
    trees: Literal["none", "intra", "latent", "heads", "chain", "given"] = "latent"
    structure: Literal["projective", "nonprojective", "binary"] = "projective"  # type: ignore[assignment]
    scorer_size: int = 200
    gcn_size: int = 200
    gcn_layers: int = 2
    dense: bool = True
    output_size: int = 200
    pooling: Literal["max", "sum"] = "max"
    dropout: float = 0.2
    projection_dropout: float | None = None
    attend_dropout: float | None = None
    scorer_dropout: float | None = None
    gcn_dropout: float | None = None
    input_dropout: float = 0.0
    word_dropout: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        ranges = dict.fromkeys(
            ("projection_size", "encoder_size", "encoder_stacks", "output_size"), SIZE
        )
        ranges |= {field.name: "[0, 1)" for field in fields(self) if "dropout" in field.name}
        check_settings(
            "model",
            self,
            **{name: r for name, r in ranges.items() if getattr(self, name) is not None},
            learned_words="[0, inf)",
            pretrained_rate="[0, inf)",
            word_scale="(0, inf)",
        )
        if (self.encoder == "transformer") != (self.pretrained is not None):
            raise InputError(
                f"model.encoder is {self.encoder} and model.pretrained {self.pretrained or 'none'}; "
                "expected both for a transformer: --set model.encoder=transformer --set "
                "model.pretrained=FOLDER"
            )
        if self.structure == "binary":
            wanted = {"trees": "latent", "single_root": False, "root_arcs": True}
            wanted |= {"left_head_bias": 0, "step_bias": 0}
            for name, value in wanted.items():
                if getattr(self, name) != value:
                    given, expected = (str(v).lower() for v in (getattr(self, name), value))
                    raise InputError(
                        f"model.{name} is {given} and model.structure binary; expected {expected}: "
                        "binary trees are latent, without heads and without a root"
                    )
            settings = self.estimator
            simplex = settings.projection == "simplex" and settings.form != "eg"
            if settings.name == "spigot" and simplex:
                raise InputError(
                    "model.estimator.projection is simplex and model.structure binary; expected "
                    "polytope: spans have no simplex of heads"
                )

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
    """How to train; the defaults are the paper's.

    Attributes:
        updates: updates per epoch; 0 for one pass over the training data.
        weight_decay: decoupled weight decay (AdamW) of all matrices except word vectors, the tables
            of a transformer and the input gates of the LSTM; 0 in the paper.
        label_smoothing: share of the probability that the loss spreads evenly over all classes; 0 in
            the paper.
        consistency: weight of the divergence between two runs of every example, each with different
            dropout and noise (R-Drop); part of the training loss that is shown; 0 in the paper.
        discrete_epochs: number of final epochs that are trained with discrete trees without noise, as
            at test time, and the gradient of soft ones; 0 in the paper.
        precision: "float32", "tf32" (of matrix products on a GPU) or "bf16" (of the layers; trees
            are always float32).
        pool: batches that are sorted by length together.
    """

    epochs: int = 200
    updates: int = 0
    weight_decay: float = 0.0
    label_smoothing: float = 0.0
    consistency: float = 0.0
    discrete_epochs: int = 0
    precision: Literal["float32", "tf32", "bf16"] = "float32"
    pool: int = 50

    def __post_init__(self) -> None:
        super().__post_init__()
        check_settings(
            "train",
            self,
            updates=f"[0, {MOST_DRAWN // self.batch_size}]",
            weight_decay="[0, inf)",
            label_smoothing="[0, 1)",
            consistency="[0, inf)",
            discrete_epochs=f"[0, {self.epochs}]",
            pool="[1, 1000000]",
        )


@dataclass(frozen=True)
class TextConfig:
    """Everything that determines a run.

    Attributes:
        preset: the preset that it started from.
        kind: "pair" (relation of two texts), "classify" (class of a text) or "tag" (of words).
        seed: of initial weights, batches, noise and dropout.
        data: which texts.
        model: its kind and sizes.
        train: how.
    """

    preset: str = "pair"
    kind: Kind = "pair"
    seed: int = 0
    data: DataConfig = field(default_factory=DataConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    train: TrainConfig = field(default_factory=TrainConfig)

    def __post_init__(self) -> None:
        one_of("kind", self.kind, get_args(Kind))
        if not 0 <= self.seed <= LARGEST_SEED:
            raise InputError(f"seed is {self.seed}; expected 0 to {LARGEST_SEED}")
        if self.data.classes != "binary" and self.data.format != "sst":
            raise InputError(
                f"data.classes is {self.data.classes} and data.format {self.data.format}; expected "
                "binary: only sst has others"
            )
        if self.train.discrete_epochs and self.model.estimator.name != "relaxed":
            raise InputError(
                f"train.discrete_epochs is {self.train.discrete_epochs} and model.estimator "
                f"{self.model.estimator.name}; expected 0: only relaxed trees become discrete"
            )
        if self.model.estimator.name == "exact" and (self.kind == "pair" or self.train.consistency):
            why = "kind pair" if self.kind == "pair" else "train.consistency not 0"
            raise InputError(
                f"model.estimator is exact and {why}, where two trees share a loss; expected another "
                "estimator"
            )
        if self.model.encoder == "transformer" and self.data.vectors is not None:
            raise InputError(
                f"model.encoder is transformer and data.vectors {self.data.vectors}; expected none: "
                "the transformer makes the word vectors"
            )


@dataclass(frozen=True)
class SentenceSettings:
    """What must be known of a trained model to give it new texts; see `DataConfig`."""

    kind: Kind = "classify"
    text: tuple[str, ...] = ("text",)
    word: str | None = None
    label: str | None = None  # of a tagger, the column of its tags
    tokens: bool = False
    quoted: bool | None = None
    unusable: Found = "error"
    lower: bool = False
    null: bool = False
    vectors: tuple[str, ...] = ()  # names of the files; none if random or made by a transformer
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
        corpus = CORPORA.get("sst-binary" if data.format == "sst" else data.format)
        columns = data.text if data.format == "table" else ("text",)
        files = () if data.vectors is None else (data.vectors, *data.more_vectors)
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
            vectors=tuple(PurePath(file).name for file in files),
            normalise=data.normalise,
            model=with_learned_words(config, rows),
        )


def with_learned_words(config: TextConfig, rows: int) -> ModelConfig:
    """The model of a config with as many learned rows as its word vectors ask for."""
    if config.data.vectors is not None:
        return config.model
    return replace(config.model, learned_words=max(rows - 1, 0))
