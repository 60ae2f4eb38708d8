"""Settings of experiments on sentences."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

from treelax.data.text.records import Found
from treelax.data.text.rows import short
from treelax.errors import InputError
from treelax.ops.checks import one_of
from treelax.tasks.settings import LARGEST_SEED, SIZE, TrainSettings, check_settings
from treelax.tasks.text.encoder import ModelConfig

Kind = Literal["pair", "classify", "tag"]
Format = Literal["snli", "multinli", "sst", "table", "tagging"]
Classes = Literal["binary", "five"]
SPLIT = "{split}"
# settings that name files: what is in them counts, not where they are
FILES = frozenset(
    f"data.{key}"
    for key in ("path", "train", "dev", "test", "vectors", "more_vectors", "mix", "trees")
)
MOST_DRAWN = 100_000_000  # examples for the updates of an epoch, which are drawn at once


@dataclass(frozen=True)
class DataConfig:
    """Which texts, and how they become numbers.

    Attributes:
        format: "snli", "multinli" or "sst" as they are distributed, "table" (TSV, CSV, JSON lines)
            or "tagging" (a word a line).
        path: folder or archive of a distribution, which holds all splits; none for what ``treelax
            data`` has fetched.
        train: file of the training data, instead of the split in ``path``.
        dev: file to choose the best model by, likewise.
        test: file for the figures at the end, likewise; there need not be one.
        text: columns of a table with the texts, one or two.
        label: column of a table with the label.
        word: column of the words in a tagging file, its number counted from 1 or, in CoNLL-U, its
            name; none for the first, or FORM.
        tag: column of their tags, likewise; none for the last, or UPOS.
        classes: of SST, "binary" or "five".
        tokens: texts of a table are words with spaces between, not to be tokenised.
        quoted: cells of a table may stand in quotes; none for CSV only, true for a TSV that pandas or
            a spreadsheet wrote.
        vectors: file of word vectors; none to start from random ones, which are all learned.
        more_vectors: files whose vectors are put behind those.
        vector_size: of random ones.
        normalise: give all word vectors length 1.
        lower: put words into lower case.
        null: put a NULL token in front of each text.
        max_length: training examples with a longer text are left out, others are kept whole.
        mix: SNLI, its folder, archive or training file, to be added to the training data of
            MultiNLI or of one's own pairs.
        mix_share: how much of it, drawn anew for every epoch.
        unusable: a line with too few or too many columns, or with a text of more than 10,000 words,
            is an "error", or "drop" leaves it out, which is reported with its number.
        trees: CoNLL-U files of given trees, ``{split}`` in the name standing for train, dev, test;
            also compressed or each in a ``.zip``.
        seed: of random vectors.

    Raises:
        InputError: a value is out of range, or two contradict each other; the message names the key.

    Example:
        >>> DataConfig(format="sst", classes="five").vector_size
        100
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
            max_length=SIZE,
            mix_share="(0, 1]",
            seed=f"[0, {LARGEST_SEED}]",
        )
        if len(self.text) not in (1, 2):
            raise InputError(f"data.text is {self.text}; expected the name of one column, or two")
        if len(set(self.text)) < len(self.text):
            raise InputError(f"data.text is {short(self.text[0])} twice; expected two columns")
        if self.format == "table" and self.label in self.text:
            raise InputError(
                f"data.text and data.label are both {short(self.label)}; expected two columns"
            )
        if self.word is not None and self.word == self.tag:
            raise InputError(
                f"data.word and data.tag are both {short(self.word)}; expected two columns"
            )
        for name, column in (("word", self.word), ("tag", self.tag)):
            if column is not None and not column.strip("0 "):
                raise InputError(
                    f"data.{name} is {column!r}; expected the number of a column, counted from 1, "
                    "or its name"
                )
        if self.more_vectors and self.vectors is None:
            raise InputError(
                f"data.more_vectors is {', '.join(self.more_vectors)} and data.vectors none; expected "
                "the first file as data.vectors"
            )
        if self.mix is not None and not self.has_pairs:
            raise InputError(
                f"data.mix is {self.mix} and data.format {self.format}, of one text each; expected "
                "pairs, to which SNLI can be added: leave out data.mix"
            )
        if self.mix is not None and self.format == "snli":
            raise InputError(
                f"data.mix is {self.mix} and data.format snli; expected other pairs, to which SNLI is "
                "added: leave out data.mix"
            )
        if self.trees is not None and SPLIT not in self.trees:
            raise InputError(
                f"data.trees is {self.trees}; expected a name with {SPLIT} in it, which stands for "
                f"train, dev and test, for example trees/{SPLIT}.conllu"
            )
        if self.trees is not None and self.mix is not None:
            raise InputError(
                f"data.trees is {self.trees} and data.mix {self.mix}; expected one of them: there "
                "are no trees of what is mixed in"
            )

    @property
    def has_pairs(self) -> bool:
        """Whether an example has two texts."""
        return self.format in ("snli", "multinli") or (
            self.format == "table" and len(self.text) == 2
        )


@dataclass(frozen=True)
class TrainConfig(TrainSettings):
    """How to train; the defaults are the paper's.

    Attributes:
        updates: updates per epoch; 0 for one pass over the training data.
        weight_decay: share of the learning rate by which an update shrinks all matrices of the model,
            but not its word vectors, nor those of a transformer, nor what the LSTM does to its input
            (AdamW); 0 in the paper.
        label_smoothing: share of the probability that the loss spreads evenly over all classes; 0 in
            the paper.
        consistency: every example of a batch is run twice, with dropout, noise and so trees of its own,
            and this weighs how far the two answers are apart (R-Drop), which the training loss that is
            shown has in it; 0 in the paper, for one run.
        discrete_epochs: how many of the last epochs are trained with discrete trees without noise, as
            they are used afterwards, and the gradient of soft ones; 0 in the paper.
        precision: "float32", "tf32" (of matrix products on a GPU) or "bf16" (of the layers; trees
            are always float32).
        pool: batches that are sorted by length together, see `treelax.data.batching`.
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
            # the examples of an epoch are drawn at once
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

    Raises:
        InputError: a value is out of range; the message names the key.

    Example:
        >>> TextConfig(kind="tag", data=DataConfig(format="tagging")).model.trees
        'latent'
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
                "binary, for only sst has others: leave out data.classes"
            )
        if self.model.encoder == "transformer" and self.data.vectors is not None:
            raise InputError(
                f"model.encoder is transformer and data.vectors {self.data.vectors}; expected none: "
                "the transformer makes the word vectors"
            )
