"""Settings of dependency parsers."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePath
from typing import ClassVar, Literal

from treelax.apps.tasks.settings import (
    LARGEST_SEED,
    SIZE,
    LatentSettings,
    TrainSettings,
    check_settings,
)
from treelax.apps.tasks.text.config import DataConfig as TextData
from treelax.apps.tasks.text.config import ModelConfig as TextModel
from treelax.apps.tasks.text.config import SentenceSettings
from treelax.errors import InputError
from treelax.nn.transformer import Subwords
from treelax.ops.checks import one_of
from treelax.structures import Structure, structure_named

# settings that name files: what is in them counts, not where they are
FILES = frozenset(
    f"data.{key}"
    for key in ("train", "dev", "test", "unlabelled", "more_unlabelled", "vectors", "more_vectors")
)


@dataclass(frozen=True)
class DataConfig:
    """Which treebanks, and how words become numbers.

    Attributes:
        train: CoNLL-U file to train on; may be compressed.
        dev: CoNLL-U file to select the best model by.
        test: CoNLL-U file for the final figures; optional.
        unlabelled: file of sentences without trees to learn from, CoNLL-U or a sentence per line.
        more_unlabelled: more such files.
        labelled: share of the training sentences whose trees are used.
        rest: the other training sentences are "unused", or used as "unlabelled" ones.
        vectors: file of word vectors, which stay as they are; None for none.
        more_vectors: files whose vectors are concatenated to those.
        tags: column of tags to read with the words: "none", "upos" or "xpos".
        min_count: words seen less often in training have no learned vector.
        max_length: longer training sentences are skipped; dev and test are kept.
        seed: of the vectors of unknown words, and of which sentences are labelled.
    """

    train: str | None = None
    dev: str | None = None
    test: str | None = None
    unlabelled: str | None = None
    more_unlabelled: tuple[str, ...] = ()
    labelled: float = 1.0
    rest: Literal["unused", "unlabelled"] = "unused"
    vectors: str | None = None
    more_vectors: tuple[str, ...] = ()
    tags: Literal["none", "upos", "xpos"] = "none"
    min_count: int = 2
    max_length: int = 100
    seed: int = 0

    def __post_init__(self) -> None:
        ranges = {"min_count": SIZE, "max_length": SIZE, "seed": f"[0, {LARGEST_SEED}]"}
        check_settings("data", self, **ranges, labelled="(0, 1]")
        for name in ("vectors", "unlabelled"):
            if getattr(self, f"more_{name}") and getattr(self, name) is None:
                raise InputError(
                    f"data.{name} is none beside data.more_{name}; expected the first file there"
                )

    @property
    def vector_files(self) -> tuple[str, ...]:
        """All files of word vectors."""
        return () if self.vectors is None else (self.vectors, *self.more_vectors)

    @property
    def unlabelled_files(self) -> tuple[str, ...]:
        """All files of sentences without trees."""
        return () if self.unlabelled is None else (self.unlabelled, *self.more_unlabelled)

    @property
    def sentences(self) -> SentenceSettings:
        """How texts are read and new words looked up, as for other models of sentences."""
        names = tuple(PurePath(file).name for file in self.vector_files)
        return SentenceSettings(vectors=names, model=TextModel(learned_words=0))

    @property
    def files(self) -> TextData:
        """The files as those of other tasks, to keep account of them."""
        return TextData(
            "tagging",
            train=self.train,
            dev=self.dev,
            test=self.test,
            vectors=self.vectors,
            more_vectors=self.more_vectors,
        )


@dataclass(frozen=True)
class ModelConfig:
    """Sizes and kind of a parser.

    Attributes:
        word_size: size of the learned vector of a word, and of the projection of a given one.
        character_size: size of the vector of a character.
        filters: of the convolution over the characters of a word; 0 for none.
        tag_size: size of the vector of a tag.
        encoder_size: size of each direction of the BiLSTM.
        encoder_stacks: layers of the BiLSTM.
        pretrained: folder of a transformer, a Hugging Face model, whose vectors the BiLSTM reads beside
            those of words, characters and tags; None for none.
        pretrained_rate: factor of the transformer's learning rate; 0 freezes it.
        subwords: vector of a word from the transformer: the "mean" of its sub-words' or the "first".
        arc_size: size of the perceptrons that score arcs.
        label_size: size of the perceptrons that score labels.
        structure: "projective" or "nonprojective" trees, or "heads" chosen without a tree constraint.
        single_root: one word hangs off the root, in training and in parsing; heads have no such rule.
        loss: "labelled" (likelihood of the tree with its labels), "unlabelled" (likelihood of the tree,
            and of the label of each of its arcs) or "heads" (likelihood of each word's head alone, and
            of its label).
        dropout: in the BiLSTM and all perceptrons.
        input_dropout: share of the words whose vector, likewise of those whose characters and tags,
            are set to zero in training; what is left weighs more.
        word_dropout: share of the words whose learned vector is that of unknown words in training.
    """

    word_size: int = 100
    character_size: int = 32
    filters: int = 64
    tag_size: int = 32
    encoder_size: int = 160
    encoder_stacks: int = 2
    pretrained: str | None = None
    pretrained_rate: float = 0.02
    subwords: Subwords = "mean"
    arc_size: int = 200
    label_size: int = 64
    structure: Literal["projective", "nonprojective", "heads"] = "nonprojective"
    single_root: bool = True
    loss: Literal["labelled", "unlabelled", "heads"] = "unlabelled"
    dropout: float = 0.2
    input_dropout: float = 0.1
    word_dropout: float = 0.1

    def __post_init__(self) -> None:
        sizes = ("word", "character", "tag", "encoder", "arc", "label")
        shares = dict.fromkeys(("dropout", "input_dropout", "word_dropout"), "[0, 1)")
        ranges = {f"{name}_size": SIZE for name in sizes} | {"encoder_stacks": SIZE}
        positive = dict.fromkeys(("filters", "pretrained_rate"), "[0, inf)")
        check_settings("model", self, **ranges, **shares, **positive)

    def make_structure(self) -> Structure:
        """What the trees are."""
        single_root = self.single_root and self.structure != "heads"
        return structure_named(self.structure, single_root=single_root)


@dataclass(frozen=True)
class UnlabelledConfig(LatentSettings):
    """How sentences without trees are learned from, if there are any.

    Attributes:
        decoder: "gcn" predicts each word from an LSTM over the words before it and a graph convolution
            over the arcs between them and it (Corro and Titov); "arcs" from its head alone; "masked"
            predicts hidden words from what the parser makes of them and of their neighbours in
            the tree.
        size: of the decoder's layers.
        hidden: share of the words of sentences without trees that are hidden from the parser.
        word_dropout: share of the words that the LSTM of "gcn" reads as unknown.
        reconstruction: weight of the loss of the words given the tree, beside that of trees.
        entropy: weight of the entropy of the trees, which is to be high.
        agreement: weight of the agreement with the trees of the parser without dropout and hidden
            words.
        warm_up: epochs on labelled sentences alone.
    """

    section: ClassVar[str] = "unlabelled"

    decoder: Literal["gcn", "arcs", "masked"] = "masked"
    size: int = 100
    hidden: float = 0.2
    word_dropout: float = 0.3
    reconstruction: float = 0.1
    entropy: float = 0.0
    agreement: float = 1.0
    warm_up: int = 2
    relaxation: Literal["softmax", "entropy"] = "entropy"

    def __post_init__(self) -> None:
        super().__post_init__()
        weights = dict.fromkeys(("reconstruction", "entropy", "agreement"), "[0, inf)")
        check_settings("unlabelled", self, size=SIZE, warm_up="[0, inf)", **weights)
        check_settings("unlabelled", self, word_dropout="[0, 1]", hidden="[0, 1)")
        if self.decoder == "masked" and not self.hidden:
            raise InputError(
                "unlabelled.decoder is masked and unlabelled.hidden 0; expected a share of words to "
                "predict, such as 0.2"
            )


@dataclass(frozen=True)
class TrainConfig(TrainSettings):
    """How to train.

    Attributes:
        epochs: number of epochs, each a pass over the training sentences.
        updates: updates per epoch; 0 for one pass, over labelled or unlabelled sentences, whichever
            are more.
        batch_size: labelled sentences per update, and as many unlabelled ones if there are any.
        second_moment: decay of Adam's second moment.
        pool: batches that are sorted by length together.
    """

    epochs: int = 12
    updates: int = 0
    batch_size: int = 32
    learning_rate: float = 2e-3
    schedule: Literal["plateau", "cosine", "constant"] = "cosine"
    second_moment: float = 0.9
    pool: int = 50

    def __post_init__(self) -> None:
        super().__post_init__()
        ranges = {"updates": "[0, 1000000]", "second_moment": "(0, 1)", "pool": "[1, 1000000]"}
        check_settings("train", self, **ranges)


@dataclass(frozen=True)
class ParserConfig:
    """Everything that determines a run.

    Attributes:
        preset: the preset that it started from.
        seed: of initial weights, batches and dropout.
        data: which treebanks.
        model: its kind and sizes.
        train: how.
        unlabelled: how, from sentences without trees.
    """

    preset: str = "small"
    seed: int = 0
    data: DataConfig = field(default_factory=DataConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    unlabelled: UnlabelledConfig = field(default_factory=UnlabelledConfig)

    def __post_init__(self) -> None:
        self.unlabelled.check_structure(self.model.structure)
        if not 0 <= self.seed <= LARGEST_SEED:
            raise InputError(f"seed is {self.seed}; expected 0 to {LARGEST_SEED}")


FULL = ParserConfig(
    "full",
    model=ModelConfig(
        character_size=50,
        filters=100,
        tag_size=100,
        encoder_size=400,
        encoder_stacks=3,
        arc_size=500,
        label_size=100,
        dropout=0.33,
        input_dropout=0.33,
        word_dropout=0.1,
    ),
    train=TrainConfig(epochs=40, batch_size=64),
)
PRESETS = {
    "small": (ParserConfig(), "two CPU cores, minutes"),
    "full": (FULL, "a GPU: three BiLSTM layers of 400"),
}


def preset(name: str) -> ParserConfig:
    """The config of a preset."""
    one_of("preset", name, tuple(PRESETS))
    return PRESETS[name][0]
