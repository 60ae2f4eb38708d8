"""Kind and sizes of sentence models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from treelax.errors import InputError
from treelax.nn.transformer import Subwords
from treelax.tasks.settings import SIZE, TreeSettings, check_settings

DROPOUTS = (
    *("dropout", "projection_dropout", "attend_dropout", "scorer_dropout", "gcn_dropout"),
    *("input_dropout", "word_dropout"),
)


@dataclass(frozen=True)
class ModelConfig(TreeSettings):
    """Sizes and kind of a sentence model; the defaults are the paper's for NLI (appendix A.2).

    Attributes:
        learned_words: how many of the first rows of the embedding table are learned: the NULL token
            and the unknown words; the others are frozen. Random vectors are all learned.
        word_scale: factor of the word vectors, which is their length where they are normalised.
        projection_size: of the layer on top of the word vectors, None for none.
        encoder: "none" or "bilstm", between projection and trees; or "transformer", a pre-trained
            one in place of word vectors, before the projection.
        encoder_size: of each direction of the BiLSTM.
        encoder_stacks: of the BiLSTM.
        pretrained: folder of the transformer, a Hugging Face model.
        pretrained_rate: factor of the transformer's learning rate; 0 leaves it as it is.
        subwords: vector of a word from the transformer: the "mean" of its sub-words' or the "first".
        trees: "none", "intra" (attention within the sentence), "latent" projective trees, "heads"
            chosen without a tree constraint, a left-to-right "chain", or "given" with the data.
        dense: put each GCN layer's output behind its input.
        output_size: of the hidden layers above the words.
        pooling: of words, for pairs: "max" or "sum".
        dropout: in all perceptrons and GCN layers.
        projection_dropout: instead of ``dropout`` in the layer on top of the word vectors; None for
            the same, likewise the next three.
        attend_dropout: in the perceptron that compares the words of two texts.
        scorer_dropout: in the perceptrons that score arcs.
        gcn_dropout: in GCN layers.
        input_dropout: of word vectors.
        word_dropout: how many words are left out of training, their vectors put to zero.
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
        sizes = ("projection_size", "encoder_size", "encoder_stacks", "output_size")
        check_settings(
            "model",
            self,
            **{name: SIZE for name in sizes if getattr(self, name) is not None},
            **{name: "[0, 1)" for name in DROPOUTS if getattr(self, name) is not None},
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

    def dropout_of(self, part: str) -> float:
        """The dropout of a part: its own, or that of all."""
        own: float | None = getattr(self, f"{part}_dropout")
        return self.dropout if own is None else own
