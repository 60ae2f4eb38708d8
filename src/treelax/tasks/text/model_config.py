"""Kind and sizes of sentence models."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from treelax.errors import InputError
from treelax.nn.attention import POOLINGS
from treelax.nn.checks import check_size
from treelax.nn.transformer import Subwords
from treelax.noise import NOISES
from treelax.ops.checks import one_of
from treelax.ops.eisner.common import RELAXATIONS

__all__ = ["ModelConfig"]

Encoder = Literal["none", "bilstm", "transformer"]
Trees = Literal["none", "intra", "latent", "heads", "chain", "given"]
SIZES = (
    *("encoder_size", "encoder_stacks", "scorer_size", "scorer_layers"),
    *("gcn_size", "gcn_layers", "output_size"),
)
DROPOUTS = (
    *("dropout", "projection_dropout", "attend_dropout", "scorer_dropout", "gcn_dropout"),
    *("input_dropout", "word_dropout"),
)


@dataclass(frozen=True)
class ModelConfig:
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
        scorer_size: of every layer of the two perceptrons that score arcs.
        scorer_layers: of each of them; one fits the paper's parameter counts.
        distances: largest distance with a bias of its own, None for no distance bias.
        left_head_bias: initial bias of all arcs from a head on the left; 0 in the paper.
        step_bias: what each step of an arc's length beyond the first adds to the initial bias, below
            0 for short arcs; 0 in the paper.
        gcn_size: of each GCN layer.
        gcn_layers: number of them.
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
        relaxation: "softmax" (the paper's) or "entropy" (arc marginals).
        temperature: of the relaxation.
        noise: "gumbel", "sum-of-gamma" or "none".
        noise_scale: factor of the noise.
        straight_through: discrete trees in the forward pass of training.
        single_root: allow one modifier of the root only.

    Raises:
        InputError: a value is out of range, or two contradict each other; the message names the
            key, ``model.gcn_size`` say.

    Example:
        >>> ModelConfig(trees="intra").scorer_size
        200
    """

    learned_words: int = 1
    word_scale: float = 1.0
    projection_size: int | None = 200
    encoder: Encoder = "none"
    encoder_size: int = 100
    encoder_stacks: int = 1
    pretrained: str | None = None
    pretrained_rate: float = 0.02
    subwords: Subwords = "mean"
    trees: Trees = "latent"
    scorer_size: int = 200
    scorer_layers: int = 1
    distances: int | None = 11
    left_head_bias: float = 0.0
    step_bias: float = 0.0
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
    relaxation: Literal["softmax", "entropy"] = "softmax"
    temperature: float = 1.0
    noise: Literal["gumbel", "sum-of-gamma", "none"] = "gumbel"
    noise_scale: float = 1.0
    straight_through: bool = False
    single_root: bool = False

    def __post_init__(self) -> None:
        for name in SIZES:
            check_size(f"model.{name}", getattr(self, name))
        for name in ("projection_size", "distances"):
            if getattr(self, name) is not None:
                check_size(f"model.{name}", getattr(self, name))
        if self.learned_words < 0:
            raise InputError(f"model.learned_words is {self.learned_words}; expected at least 0")
        one_of("model.encoder", self.encoder, get_args(Encoder))
        one_of("model.subwords", self.subwords, get_args(Subwords))
        if not 0 <= self.pretrained_rate < math.inf:
            raise InputError(
                f"model.pretrained_rate is {self.pretrained_rate}; expected 0, which leaves the "
                "transformer as it is, or more"
            )
        if (self.encoder == "transformer") != (self.pretrained is not None):
            raise InputError(
                f"model.encoder is {self.encoder} and model.pretrained {self.pretrained or 'none'}; "
                "expected both for a transformer: --set model.encoder=transformer --set "
                "model.pretrained=FOLDER"
            )
        one_of("model.trees", self.trees, get_args(Trees))
        one_of("model.pooling", self.pooling, POOLINGS)
        one_of("model.relaxation", self.relaxation, RELAXATIONS)
        one_of("model.noise", self.noise, NOISES)
        for name in DROPOUTS:
            if not 0 <= (getattr(self, name) or 0) < 1:
                raise InputError(
                    f"model.{name} is {getattr(self, name)}; expected at least 0, less than 1"
                )
        if not 0 < self.temperature < math.inf:
            raise InputError(
                f"model.temperature is {self.temperature}; expected more than 0, and finite"
            )
        if not 0 < self.word_scale < math.inf:
            raise InputError(f"model.word_scale is {self.word_scale}; expected more than 0")
        if not 0 <= self.noise_scale < math.inf:
            raise InputError(f"model.noise_scale is {self.noise_scale}; expected at least 0")
        for name in ("left_head_bias", "step_bias"):
            value = getattr(self, name)
            if not math.isfinite(value):
                raise InputError(f"model.{name} is {value}; expected a number")
            if value and self.distances is None:
                raise InputError(
                    f"model.{name} is {value} and model.distances none; expected a bias of 0 where "
                    "no distance has one"
                )
        if self.single_root and self.trees == "heads":
            raise InputError(
                "model.single_root is true and model.trees heads; expected false: words that "
                "choose alone cannot agree on one root"
            )

    def dropout_of(self, part: str) -> float:
        """The dropout of a part: its own, or that of all."""
        own: float | None = getattr(self, f"{part}_dropout")
        return self.dropout if own is None else own
