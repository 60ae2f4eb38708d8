"""Settings that all tasks share: of the trees of a model, and of its training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Literal, get_args, get_origin

from treelax.apps.training.config import hints_of
from treelax.errors import InputError
from treelax.estimators import (
    IMLE,
    REINFORCE,
    RLOO,
    SPIGOT,
    Estimator,
    Exact,
    Marginals,
    Perturbed,
    Relaxed,
    SparseMAP,
    StraightThrough,
)
from treelax.nn import ArcScorer, LatentTree
from treelax.noise import noise_named
from treelax.ops.checks import MOST_THREADS, one_of
from treelax.structures import structure_named

LARGEST_SEED = 2**63 - 1  # that torch takes
SIZE = "[1, inf)"
# settings of model.estimator that each takes
TAKES = {
    "relaxed": ("samples",),
    "straight-through": ("samples", "gradient"),
    "sparsemap": ("samples", "max_iterations"),
    "spigot": ("samples", "step", "projection", "form"),
    "imle": ("samples", "step"),
    "perturbed": ("samples",),
    "reinforce": ("samples", "decay"),
    "rloo": ("samples",),
}
# those that look at model.temperature, and those that draw noise
RELAXING = ("relaxed", "straight-through")
TEMPERED = ("relaxed", "straight-through", "marginals", "sparsemap")
NOISY = ("relaxed", "straight-through", "sparsemap", "spigot", "imle", "perturbed")


def check_settings(section: str, config: Any, **ranges: str) -> None:
    """Refuse values that are none of their choices, or outside of their ranges.

    >>> check_settings("train", TrainSettings(), decay="(0, 0.5]")
    Traceback (most recent call last):
    ...
    treelax.errors.InputError: train.decay is 0.9; expected more than 0 and at most 0.5
    """
    for name, kind in hints_of(config.__class__).items():
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
class EstimatorSettings:
    """What trains the scores of trees: one of `treelax.estimators`.

    Attributes:
        name: "relaxed" (the paper's), "straight-through", "marginals", "sparsemap", "spigot", "imle",
            "perturbed", "reinforce", "rloo", or "exact" for very short sentences.
        step: of "spigot" (none for 1) and "imle" (none for 10), for the loss of one sentence.
        samples: trees per sentence of those that take several; none for the estimator's default.
        gradient: of "straight-through", that of the "relaxed" tree or "identity".
        projection: of "spigot", on the "simplex" of each word's heads or the "polytope" of all trees.
        form: of "spigot", "spigot", "ce" or "eg".
        decay: of the moving baseline of "reinforce".
        max_iterations: of "sparsemap"; none to go on until it is exact.
    """

    name: Literal[
        "relaxed",
        "straight-through",
        "marginals",
        "sparsemap",
        "spigot",
        "imle",
        "perturbed",
        "reinforce",
        "rloo",
        "exact",
    ] = "relaxed"
    step: float | None = None
    samples: int | None = None
    gradient: Literal["relaxed", "identity"] = "relaxed"
    projection: Literal["simplex", "polytope"] = "simplex"
    form: Literal["spigot", "ce", "eg"] = "spigot"
    decay: float = 0.9
    max_iterations: int | None = None


@dataclass(frozen=True)
class LatentSettings:
    """What trains the scores of trees that are not known.

    Attributes:
        relaxation: "softmax" (the paper's, not for non-projective trees) or "entropy" (arc marginals).
        temperature: of the relaxation.
        noise: "gumbel", "gaussian", "sum-of-gamma" or "none" (the paper's G = 0); "default" for the
            estimator's default: sum-of-gamma for "imle", none for "spigot" and "sparsemap", else gumbel.
        noise_scale: factor of the noise.
        estimator: what trains the scores; it takes from here the relaxation, temperature and noise
            that it has. A temperature or noise that it does not have is refused.
    """

    section: ClassVar[str] = "model"  # of a config, for messages
    root_arcs = True  # no setting where trees of a treebank are learned too

    relaxation: Literal["softmax", "entropy"] = "softmax"
    temperature: float = 1.0
    noise: Literal["default", "gumbel", "gaussian", "sum-of-gamma", "none"] = "default"
    noise_scale: float = 1.0
    estimator: EstimatorSettings = field(default_factory=EstimatorSettings)

    def __post_init__(self) -> None:
        check_settings(self.section, self, temperature="(0, inf)", noise_scale="[0, inf)")
        self._refuse_unused()
        self.make_estimator()  # which checks its settings

    @property
    def kind(self) -> str:
        """The name of the estimator."""
        return self.estimator.name

    def check_structure(self, structure: str) -> None:
        """Refuse trees without the relaxation that the estimator needs."""
        if (structure, self.relaxation) == ("nonprojective", "softmax") and self.kind in RELAXING:
            raise InputError(
                f"model.structure is nonprojective and {self.section}.relaxation softmax; expected "
                "entropy: there is no dynamic program whose choices could be relaxed"
            )

    def _refuse_unused(self) -> None:
        """Refuse settings that the estimator would not look at."""
        estimator, usual, kind = self.estimator, EstimatorSettings(), self.kind
        for setting in fields(estimator):
            value, taken = getattr(estimator, setting.name), TAKES.get(kind, ())
            if setting.name not in ("name", *taken) and value != getattr(usual, setting.name):
                raise InputError(
                    f"{self.section}.estimator.{setting.name} is {value} and {self.section}.estimator "
                    f"{kind}, which takes {', '.join(taken) or 'no such setting'}; leave it out"
                )
        if estimator.form == "eg" and estimator.projection != usual.projection:
            raise InputError(
                f"{self.section}.estimator.projection is {estimator.projection} and "
                f"{self.section}.estimator.form eg, which projects on nothing; leave it out"
            )
        noise = self.noise_name(kind) if kind in NOISY else "none"
        unused = {
            "temperature": kind not in TEMPERED,
            "relaxation": kind not in RELAXING,
            "noise": kind not in NOISY and self.noise != "none",
            "noise_scale": noise == "none",
        }
        for setting in fields(self):
            value = getattr(self, setting.name)
            if unused.get(setting.name) and value != setting.default:
                without = " without noise" if setting.name == "noise_scale" else ""
                raise InputError(
                    f"{self.section}.{setting.name} is {value} and {self.section}.estimator {kind}"
                    f"{without}, which does not use it; expected {setting.default}"
                )

    def noise_name(self, kind: str) -> str:
        """The noise that an estimator draws, by its name."""
        usual = {"imle": "sum-of-gamma", "spigot": "none", "sparsemap": "none"}.get(kind, "gumbel")
        return usual if self.noise == "default" else self.noise

    def make_estimator(self, *, discrete: bool = False) -> Estimator:
        """What trains the layer; ``discrete``: with discrete trees without noise."""
        settings = self.estimator
        kind = "straight-through" if discrete else self.kind
        name = "none" if discrete else self.noise_name(kind)
        noise = noise_named(name, self.noise_scale, root_arcs=self.root_arcs)  # type: ignore[arg-type]
        relaxed = Relaxed(self.relaxation, self.temperature, noise)
        given = {"step": settings.step, "samples": settings.samples}

        def chosen(*names: str) -> dict[str, Any]:
            return {name: given[name] for name in names if given[name] is not None}

        makers: dict[str, Callable[[], Estimator]] = {
            "relaxed": lambda: replace(relaxed, **chosen("samples")),
            "straight-through": lambda: StraightThrough(
                replace(relaxed, **chosen("samples")), settings.gradient
            ),
            "marginals": lambda: Marginals(self.temperature),
            "sparsemap": lambda: SparseMAP(
                self.temperature, settings.max_iterations, noise, **chosen("samples")
            ),
            "spigot": lambda: SPIGOT(
                projection=settings.projection,
                form=settings.form,
                noise=noise,
                **chosen("step", "samples"),
            ),
            "imle": lambda: IMLE(noise=noise, **chosen("step", "samples")),
            "perturbed": lambda: Perturbed(noise=noise, **chosen("samples")),  # type: ignore[arg-type]
            "reinforce": lambda: REINFORCE(decay=settings.decay, **chosen("samples")),
            "rloo": lambda: RLOO(**chosen("samples")),
            "exact": Exact,
        }
        try:
            return makers[kind]()
        except InputError as error:
            raise InputError(f"{self.section}.estimator: {error}") from None


@dataclass(frozen=True)
class TreeSettings(LatentSettings):
    """The trees of a model.

    Attributes:
        structure: of latent trees, "projective" or "nonprojective" (with the entropy relaxation).
        scorer_size: size of every layer of the two perceptrons that score arcs.
        scorer_layers: layers per perceptron.
        distances: largest distance with a separate bias, None for no distance bias.
        left_head_bias: initial bias of all arcs from a head on the left; 0 in the paper.
        step_bias: added to the initial bias for each word of an arc's length beyond the first;
            negative values favour short arcs; 0 in the paper.
        gcn_size: size of each GCN layer.
        gcn_layers: number of GCN layers.
        straight_through: discrete trees in the forward pass of training.
        single_root: the root has one child.
        root_arcs: treat arcs from the root as all others; if false they have score 0 and no noise,
            and the layers above do not see them.
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
    straight_through: bool = False
    single_root: bool = False
    root_arcs: bool = True

    def __post_init__(self) -> None:
        sizes = dict.fromkeys(("scorer_size", "scorer_layers", "gcn_size", "gcn_layers"), SIZE)
        finite = dict.fromkeys(("left_head_bias", "step_bias"), "(-inf, inf)")
        if self.distances is not None:
            sizes["distances"] = SIZE
        check_settings("model", self, **sizes, **finite)
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
        if self.straight_through and self.estimator.name not in ("relaxed", "straight-through"):
            raise InputError(
                f"model.straight_through is true and model.estimator {self.estimator.name}; expected "
                "one of them"
            )
        super().__post_init__()
        self.check_structure(self.structure)

    @property
    def kind(self) -> str:
        """The name of the estimator."""
        return "straight-through" if self.straight_through else self.estimator.name

    def latent_tree(self, size: int, *, dropout: float = 0.0) -> LatentTree:
        """The layer over vectors of that size."""
        scorer = ArcScorer(
            size,
            self.scorer_size,
            layers=self.scorer_layers,
            distances=self.distances,
            dropout=dropout,
            root_arcs=self.root_arcs,
        )
        scorer.start_bias(left=self.left_head_bias, per_step=self.step_bias)
        name = "heads" if self.trees == "heads" else self.structure
        structure = structure_named(name, single_root=self.single_root)
        # not validated: the training loop has a word on a loss that is not finite
        return LatentTree(scorer, structure, self.make_estimator(), validate=False)


def for_batches(estimator: Estimator, size: int) -> Estimator:
    """The estimator for a loss that is a mean over so many sentences: steps are for that of one."""
    if isinstance(estimator, IMLE | SPIGOT):
        return replace(estimator, step=size * estimator.step)
    return estimator


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
