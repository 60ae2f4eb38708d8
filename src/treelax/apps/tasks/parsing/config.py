"""Settings of dependency parsers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal, NamedTuple

from treelax.apps.tasks.parsing.commands import SIZES
from treelax.apps.tasks.sentences.origins import SPLITS, TrainingFile
from treelax.apps.tasks.settings import DataSettings, LatentSettings, TrainSettings
from treelax.apps.training.config import override
from treelax.apps.training.settings import NOT_NEGATIVE, SEED, SHARE, SIZE, Settings, setting
from treelax.errors import InputError
from treelax.nn.transformer import Subwords
from treelax.structures import Structure, structure_named

# settings that name files: what is in them counts, not where they are
FILES = frozenset(
    f"data.{key}"
    for key in ("train", "dev", "test", "unlabelled", "more_unlabelled", "vectors", "more_vectors")
)


@dataclass(frozen=True)
class DataConfig(DataSettings):
    """Which treebanks, and how words become numbers."""

    train: str | None = setting(None, "CoNLL-U file to train on; may be compressed")
    dev: str | None = setting(None, "CoNLL-U file to select the best model by")
    test: str | None = setting(None, "CoNLL-U file for the final figures; optional")
    unlabelled: str | None = setting(
        None, "file of sentences without trees to learn from, CoNLL-U or a sentence per line"
    )
    more_unlabelled: tuple[str, ...] = setting((), "more such files")
    labelled: float = setting(1.0, "share of the training sentences whose trees are used", "(0, 1]")
    rest: Literal["unused", "unlabelled"] = setting(
        "unused", 'the other training sentences are "unused", or used as "unlabelled" ones'
    )
    vectors: str | None = setting(
        None, "file of word vectors, which stay as they are; none for none"
    )
    more_vectors: tuple[str, ...] = setting((), "files whose vectors are concatenated to those")
    tags: Literal["none", "upos", "xpos"] = setting(
        "none", 'column of tags to read with the words: "none", "upos" or "xpos"'
    )
    min_count: int = setting(2, "words seen less often in training have no learned vector", SIZE)
    max_length: int = setting(
        100, "longer training sentences are skipped; dev and test are kept", SIZE
    )
    seed: int = setting(
        0, "of the vectors of unknown words, and of which sentences are labelled", SEED
    )

    @property
    def training_files(self) -> list[TrainingFile]:
        """All files of a run that must not change."""
        splits = {name: getattr(self, name) for name in SPLITS}
        files = [TrainingFile(k, path, f"--{k} FILE") for k, path in splits.items() if path]
        option = "--vectors FILE for each of them"
        return files + [TrainingFile("vectors", path, option) for path in self.vector_files]


@dataclass(frozen=True)
class ModelConfig(Settings):
    """Sizes and kind of a parser."""

    section: ClassVar[str] = "model"

    word_size: int = setting(
        100, "size of the learned vector of a word, and of the projection of a given one", SIZE
    )
    character_size: int = setting(32, "size of the vector of a character", SIZE)
    filters: int = setting(
        64, "of the convolution over the characters of a word; 0 for none", NOT_NEGATIVE
    )
    tag_size: int = setting(32, "size of the vector of a tag", SIZE)
    encoder_size: int = setting(160, "size of each direction of the BiLSTM", SIZE)
    encoder_stacks: int = setting(2, "layers of the BiLSTM", SIZE)
    pretrained: str | None = setting(
        None, "folder of a Hugging Face model whose vectors the BiLSTM reads too"
    )
    pretrained_rate: float = setting(
        0.02, "factor of the transformer's learning rate; 0 freezes it", NOT_NEGATIVE
    )
    subwords: Subwords = setting(
        "mean", 'a word\'s vector: the "mean" of its sub-words\' or the "first"'
    )
    arc_size: int = setting(200, "size of the perceptrons that score arcs", SIZE)
    label_size: int = setting(64, "size of the perceptrons that score labels", SIZE)
    structure: Literal["projective", "nonprojective", "heads"] = setting(
        "nonprojective", 'kind of tree; "heads" has no tree constraint'
    )
    single_root: bool = setting(
        True, "one word hangs off the root, in training and in parsing; heads have no such rule"
    )
    loss: Literal["labelled", "unlabelled", "heads"] = setting(
        "unlabelled",
        'likelihood of "labelled" trees, of "unlabelled" ones, or of each word\'s head',
    )
    dropout: float = setting(0.2, "in the BiLSTM and all perceptrons", SHARE)
    input_dropout: float = setting(
        0.1, "share of words, and of characters and tags, set to zero in training", SHARE
    )
    word_dropout: float = setting(
        0.1, "share of the words whose learned vector is that of unknown words in training", SHARE
    )

    def make_structure(self) -> Structure:
        """What the trees are."""
        single_root = self.single_root and self.structure != "heads"
        return structure_named(self.structure, single_root=single_root)


@dataclass(frozen=True)
class UnlabelledConfig(LatentSettings):
    """How sentences without trees are learned from, if there are any."""

    section: ClassVar[str] = "unlabelled"

    decoder: Literal["gcn", "arcs", "masked"] = setting(
        "masked",
        '"gcn" predicts each word from an LSTM over the words before it and a graph '
        'convolution over the arcs between them and it (Corro and Titov); "arcs" from '
        'its head alone; "masked" predicts hidden words from what the parser makes of '
        "them and of their neighbours in the tree",
    )
    size: int = setting(100, "of the decoder's layers", SIZE)
    hidden: float = setting(
        0.2, "share of the words of sentences without trees that are hidden from the parser", SHARE
    )
    word_dropout: float = setting(
        0.3, 'share of the words that the LSTM of "gcn" reads as unknown', "[0, 1]"
    )
    reconstruction: float = setting(
        0.1, "weight of the loss of the words given the tree, beside that of trees", NOT_NEGATIVE
    )
    entropy: float = setting(
        0.0, "weight of the entropy of the trees, which is to be high", NOT_NEGATIVE
    )
    agreement: float = setting(
        1.0, "weight of agreeing with the trees found without dropout", NOT_NEGATIVE
    )
    warm_up: int = setting(2, "epochs on labelled sentences alone", NOT_NEGATIVE)
    relaxation: Literal["softmax", "entropy"] = "entropy"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.decoder == "masked" and not self.hidden:
            raise InputError(
                "unlabelled.decoder is masked and unlabelled.hidden 0; expected a share of words to "
                "predict, such as 0.2"
            )


@dataclass(frozen=True)
class TrainConfig(TrainSettings):
    """How to train."""

    epochs: int = setting(12, "number of epochs, each a pass over the training sentences")
    updates: int = setting(
        0, "per epoch; 0 for one pass over the larger set of sentences", "[0, 1000000]"
    )
    batch_size: int = setting(
        32, "labelled sentences per update, and as many unlabelled ones if there are any"
    )
    learning_rate: float = 2e-3
    schedule: Literal["plateau", "cosine", "constant"] = "cosine"
    second_moment: float = setting(0.9, "decay of Adam's second moment", "(0, 1)")
    pool: int = setting(50, "batches that are sorted by length together", "[1, 1000000]")


@dataclass(frozen=True)
class ParserConfig(Settings):
    """Everything that determines a run."""

    preset: str = setting("small", "the preset that it started from")
    seed: int = setting(0, "of initial weights, batches and dropout", SEED)
    data: DataConfig = field(default_factory=DataConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    unlabelled: UnlabelledConfig = field(default_factory=UnlabelledConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.unlabelled.check_structure(self.model.structure)


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
BASE = {
    "small": (ParserConfig(), "two CPU cores, minutes"),
    "full": (FULL, "a GPU: three BiLSTM layers of 400"),
}


class Row(NamedTuple):
    """A row of a table: its label, and the settings that make it differ from the preset."""

    label: str
    settings: tuple[str, ...]


STRUCTURES = {
    "heads": Row("head selection", ("model.structure=heads",)),
    "projective": Row("projective CRF", ("model.structure=projective",)),
    "nonprojective": Row("non-projective CRF", ("model.structure=nonprojective",)),
}
LABELS = {
    f"labels-{share}{suffix}": Row(
        f"{share} % of trees{more}", (f"data.labelled={share / 100}", *settings)
    )
    for share in (1, 5, 10, 100)
    for suffix, more, settings in (
        ("", "", ()),
        ("-rest", ", the rest unlabelled", ("data.rest=unlabelled",)),
    )
    if share < 100 or not suffix
}


def _presets() -> dict[str, tuple[ParserConfig, str]]:
    """The sizes, and the rows of the tables in each of them, ``SIZE-ROW``; and what they are."""
    presets = dict(BASE)
    for size in SIZES:
        for name, (label, settings) in (STRUCTURES | LABELS).items():
            config = override(BASE[size][0], [f"preset={size}-{name}", *settings])
            presets[f"{size}-{name}"] = (config, f"{size}: {label}")
    return presets


PRESETS = _presets()
