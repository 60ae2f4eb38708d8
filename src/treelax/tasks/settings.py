"""Settings that all tasks share: of the trees of a model, and of its training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin, get_type_hints

from treelax.errors import InputError
from treelax.estimators import Estimator, Relaxed, StraightThrough
from treelax.nn import ArcScorer, LatentTree
from treelax.noise import noise_named
from treelax.ops.checks import MOST_THREADS, one_of
from treelax.structures import structure_named

LARGEST_SEED = 2**63 - 1  # that torch takes
SIZE = "[1, inf)"


def check_settings(section: str, config: Any, **ranges: str) -> None:
    """Refuse values that are none of their choices, or outside of their ranges.

    >>> check_settings("train", TrainSettings(), decay="(0, 0.5]")
    Traceback (most recent call last):
    ...
    treelax.errors.InputError: train.decay is 0.9; expected more than 0 and at most 0.5
    """
    for name, kind in get_type_hints(type(config)).items():
        if get_origin(kind) is Literal:
            one_of(f"{section}.{name}", getattr(config, name), get_args(kind))
    for name, interval in ranges.items():
        value = getattr(config, name)
        low, high = (float(bound) for bound in interval[1:-1].split(","))
        above = low < value if interval[0] == "(" else low <= value
        below = value < high if interval[-1] == ")" else value <= high
        if not (above and below):
            least = f"{'more than' if interval[0] == '(' else 'at least'} {low:g}"
            shown = f"{int(high):,}" if high.is_integer() else f"{high:g}"
            most = f"{'less than' if interval[-1] == ')' else 'at most'} {shown}"
            least = "a number" if low == -float("inf") else least
            if high == float("inf"):
                most = "finite" if value == high else ""
            expected = f"{least} and {most}" if most else least
            raise InputError(f"{section}.{name} is {value}; expected {expected}")


@dataclass(frozen=True)
class TreeSettings:
    """The trees of a model.

    Attributes:
        structure: of latent trees, "projective" or "nonprojective" (with the entropy relaxation).
        scorer_size: size of every layer of the two perceptrons that score arcs.
        scorer_layers: layers per perceptron.
        distances: largest distance with a bias of its own, None for no distance bias.
        left_head_bias: initial bias of all arcs from a head on the left; 0 in the paper.
        step_bias: added to the initial bias for each word of an arc's length beyond the first;
            negative values favour short arcs; 0 in the paper.
        gcn_size: size of each GCN layer.
        gcn_layers: number of GCN layers.
        relaxation: "softmax" (the paper's) or "entropy" (arc marginals).
        temperature: of the relaxation.
        noise: "gumbel", "sum-of-gamma" or "none" (the paper's G = 0).
        noise_scale: factor of the noise.
        straight_through: discrete trees in the forward pass of training.
        single_root: the root has one child.
    """

    trees: str = "latent"
    structure: Literal["projective", "nonprojective"] = "projective"
    scorer_size: int = 100
    scorer_layers: int = 1
    distances: int | None = 11
    left_head_bias: float = 0.0
    step_bias: float = 0.0
    gcn_size: int = 100
    gcn_layers: int = 1
    relaxation: Literal["softmax", "entropy"] = "softmax"
    temperature: float = 1.0
    noise: Literal["gumbel", "sum-of-gamma", "none"] = "gumbel"
    noise_scale: float = 1.0
    straight_through: bool = False
    single_root: bool = False

    def __post_init__(self) -> None:
        sizes = dict.fromkeys(("scorer_size", "scorer_layers", "gcn_size", "gcn_layers"), SIZE)
        finite = dict.fromkeys(("left_head_bias", "step_bias"), "(-inf, inf)")
        if self.distances is not None:
            sizes["distances"] = SIZE
        positive = {"temperature": "(0, inf)", "noise_scale": "[0, inf)"}
        check_settings("model", self, **sizes, **finite, **positive)
        for name in finite:
            if getattr(self, name) and self.distances is None:
                raise InputError(
                    f"model.{name} is {getattr(self, name)} and model.distances none; expected a bias "
                    "of 0 where no distance has one"
                )
        if self.single_root and self.trees == "heads":
            raise InputError(
                "model.single_root is true and model.trees heads; expected false: words that choose "
                "alone cannot agree on one root"
            )
        if self.structure == "nonprojective" and self.relaxation == "softmax":
            raise InputError(
                "model.structure is nonprojective and model.relaxation softmax; expected entropy: "
                "there is no dynamic program whose choices could be relaxed"
            )

    def latent_tree(self, size: int, *, dropout: float = 0.0) -> LatentTree:
        """The layer over vectors of that size."""
        scorer = ArcScorer(
            size,
            self.scorer_size,
            layers=self.scorer_layers,
            distances=self.distances,
            dropout=dropout,
        )
        scorer.start_bias(left=self.left_head_bias, per_step=self.step_bias)
        name = "heads" if self.trees == "heads" else self.structure
        structure = structure_named(name, single_root=self.single_root)
        # not validated: the training loop has a word on a loss that is not finite
        return LatentTree(scorer, structure, self.estimator(), validate=False)

    def estimator(self, *, discrete: bool = False) -> Estimator:
        """What trains the layer; ``discrete``: with discrete trees without noise."""
        noise = None if discrete else noise_named(self.noise, self.noise_scale)
        relaxed = Relaxed(self.relaxation, self.temperature, noise)
        return StraightThrough(relaxed) if discrete or self.straight_through else relaxed


@dataclass(frozen=True)
class TrainSettings:
    """How to train.

    Attributes:
        epochs: number of epochs.
        updates: updates per epoch.
        batch_size: examples per update.
        learning_rate: of Adam.
        schedule: "plateau" (the paper's) multiplies the learning rate by ``decay`` and returns to the
            best model when dev has not improved for ``patience`` epochs; "cosine" lets the rate
            fall to zero; "constant".
        patience: epochs without improvement, for the plateau schedule.
        decay: factor on the learning rate, for the plateau schedule.
        clip: largest norm of the gradient.
        average: decay of a running mean of the weights, for example 0.998; 0 for none. The mean is
            then what is evaluated and saved.
        threads: of torch on the CPU; 0 leaves it to torch.
    """

    epochs: int = 100
    updates: int = 100
    batch_size: int = 64
    learning_rate: float = 1e-4
    schedule: Literal["plateau", "cosine", "constant"] = "plateau"
    patience: int = 5
    decay: float = 0.9
    clip: float = 5.0
    average: float = 0.0
    threads: int = 0

    def __post_init__(self) -> None:
        check_settings(
            "train",
            self,
            epochs=f"[1, {2**31 - 1}]",
            batch_size="[1, 1000000]",
            learning_rate="(0, inf)",
            patience=SIZE,
            decay="(0, 1]",
            clip="(0, inf)",
            average="[0, 1)",
            threads=f"[0, {MOST_THREADS}]",
        )
