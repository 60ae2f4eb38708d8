"""Settings that all tasks share: of the trees of a model, and of its training."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from inspect import signature
from operator import attrgetter
from typing import ClassVar, Literal

from treelax import estimators
from treelax.apps.training.settings import NOT_NEGATIVE, POSITIVE, SIZE, Settings, setting
from treelax.errors import InputError
from treelax.estimators import IMLE, SPIGOT, Estimator
from treelax.nn import ArcScorer, LatentTree
from treelax.noise import noise_named
from treelax.ops.checks import MOST_THREADS
from treelax.structures import structure_named

ESTIMATORS: dict[str, type[Estimator]] = {
    "relaxed": estimators.Relaxed,
    "straight-through": estimators.StraightThrough,
    "marginals": estimators.Marginals,
    "sparsemap": estimators.SparseMAP,
    "spigot": estimators.SPIGOT,
    "imle": estimators.IMLE,
    "perturbed": estimators.Perturbed,
    "reinforce": estimators.REINFORCE,
    "rloo": estimators.RLOO,
    "exact": estimators.Exact,
}
# the settings that each takes, which have the names of its parameters
TAKES = {name: tuple(signature(kind).parameters) for name, kind in ESTIMATORS.items()}
TAKES["straight-through"] = (*TAKES["relaxed"], "gradient")  # of a relaxed one
RELAXING, TEMPERED, NOISY = (
    tuple(name for name, taken in TAKES.items() if key in taken)
    for key in ("relaxation", "temperature", "noise")
)


def clash(config: Settings, first: str, second: str, expected: str) -> InputError:
    """The error for two settings of a config that do not go together."""
    parts = []
    for key in (first, second):
        value = attrgetter(key)(config)
        text = str(value).lower() if value is None or isinstance(value, bool) else str(value)
        parts.append((f"{config.section}.{key}".strip(".").removesuffix(".name"), text))
    (one, value), (other, its) = parts
    return InputError(f"{one} is {value} and {other} {its}; expected {expected}")


@dataclass(frozen=True)
class DataSettings(Settings):
    """Which data; of files that are joined, the first has a setting, and all others ``more_``."""

    section: ClassVar[str] = "data"

    def __post_init__(self) -> None:
        super().__post_init__()
        for part in fields(self):
            first = part.name.removeprefix("more_")
            if first != part.name and getattr(self, part.name) and getattr(self, first) is None:
                raise InputError(
                    f"data.{first} is none beside data.{part.name}; expected the first file there"
                )

    def files(self, name: str) -> tuple[str, ...]:
        """All files of a setting with others behind it."""
        first, more = getattr(self, name), getattr(self, f"more_{name}")
        return () if first is None else (first, *more)

    @property
    def vector_files(self) -> tuple[str, ...]:
        """All files of word vectors."""
        return self.files("vectors")


@dataclass(frozen=True)
class EstimatorSettings:
    """What trains the scores of trees: one of `treelax.estimators`."""

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
    ] = setting("relaxed", 'see treelax.estimators; "exact" is for very short sentences')
    step: float | None = setting(
        None, 'of "spigot" (none for 1) and "imle" (none for 10), for the loss of one sentence'
    )
    samples: int | None = setting(
        None, "trees per sentence of those that take several; none for the estimator's default"
    )
    gradient: Literal["relaxed", "identity"] = setting(
        "relaxed", 'of "straight-through", that of the "relaxed" tree or "identity"'
    )
    projection: Literal["simplex", "polytope"] = setting(
        "simplex", 'of "spigot": each word\'s heads ("simplex") or all trees ("polytope")'
    )
    form: Literal["spigot", "ce", "eg"] = setting("spigot", 'of "spigot", "spigot", "ce" or "eg"')
    decay: float = setting(0.9, 'of the moving baseline of "reinforce"')
    max_iterations: int | None = setting(None, 'of "sparsemap"; none to go on until it is exact')


@dataclass(frozen=True)
class LatentSettings(Settings):
    """What trains the scores of trees that are not known."""

    section: ClassVar[str] = "model"  # of a config, for messages
    root_arcs = True  # no setting where trees of a treebank are learned too

    relaxation: Literal["softmax", "entropy"] = setting(
        "softmax", '"softmax" (the paper\'s, not nonprojective) or "entropy" (arc marginals)'
    )
    temperature: float = setting(1.0, "of the relaxation", POSITIVE)
    noise: Literal["default", "gumbel", "gaussian", "sum-of-gamma", "none"] = setting(
        "default",
        "none is the paper's G = 0; the default is sum-of-gamma for imle, none for spigot and "
        "sparsemap, else gumbel",
    )
    noise_scale: float = setting(1.0, "factor of the noise", NOT_NEGATIVE)
    estimator: EstimatorSettings = field(default_factory=EstimatorSettings)

    def __post_init__(self) -> None:
        super().__post_init__()
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
        estimator, kind, section = self.estimator, self.kind, self.section
        used = {"name", *TAKES[kind]}
        for part in fields(estimator):
            value = getattr(estimator, part.name)
            if part.name not in used and value != part.default:
                taken = [p.name for p in fields(estimator)[1:] if p.name in used]
                raise InputError(
                    f"{section}.estimator.{part.name} is {value} and {section}.estimator {kind}, "
                    f"which takes {', '.join(taken) or 'no such setting'}; leave it out"
                )
        if estimator.form == "eg" and estimator.projection != "simplex":
            raise InputError(
                f"{section}.estimator.projection is {estimator.projection} and "
                f"{section}.estimator.form eg, which projects on nothing; leave it out"
            )
        if kind in NOISY and self.noise_name(kind) != "none":
            used.add("noise_scale")
        if self.noise == "none":
            used.add("noise")
        for part in fields(self):
            value, expected = getattr(self, part.name), part.default
            of_estimator = part.name in ("temperature", "relaxation", "noise", "noise_scale")
            if of_estimator and part.name not in used and value != expected:
                without = " without noise" if part.name == "noise_scale" else ""
                raise InputError(
                    f"{section}.{part.name} is {value} and {section}.estimator {kind}{without}, which "
                    f"does not use it; expected {expected}"
                )

    def noise_name(self, kind: str) -> str:
        """The noise that an estimator draws, by its name."""
        usual = {"imle": "sum-of-gamma", "spigot": "none", "sparsemap": "none"}.get(kind, "gumbel")
        return usual if self.noise == "default" else self.noise

    def make_estimator(self, *, discrete: bool = False) -> Estimator:
        """What trains the layer; ``discrete``: with discrete trees without noise."""
        kind = "straight-through" if discrete else self.kind
        name = "none" if discrete else self.noise_name(kind)
        values = {key: value for key, value in vars(self.estimator).items() if value is not None}
        values |= {"relaxation": self.relaxation, "temperature": self.temperature}
        values["noise"] = noise_named(name, self.noise_scale, root_arcs=self.root_arcs)  # type: ignore[arg-type]
        options = {key: values[key] for key in TAKES[kind] if key in values}
        try:
            if kind != "straight-through":
                return ESTIMATORS[kind](**options)
            gradient = options.pop("gradient")
            return estimators.StraightThrough(estimators.Relaxed(**options), gradient)
        except InputError as error:
            raise InputError(f"{self.section}.estimator: {error}") from None


@dataclass(frozen=True)
class TreeSettings(LatentSettings):
    """The trees of a model."""

    trees: str = "latent"
    structure: Literal["projective", "nonprojective"] = setting(
        "projective", 'of latent trees; "nonprojective" needs the entropy relaxation'
    )
    scorer_size: int = setting(
        100, "size of every layer of the two perceptrons that score arcs", SIZE
    )
    scorer_layers: int = setting(1, "layers per perceptron", SIZE)
    distances: int | None = setting(
        11, "largest distance with a separate bias, none for no distance bias", SIZE
    )
    left_head_bias: float = setting(
        0.0, "initial bias of all arcs from a head on the left; 0 in the paper", "(-inf, inf)"
    )
    step_bias: float = setting(
        0.0, "initial bias per word of an arc's length; negative favours short arcs", "(-inf, inf)"
    )
    gcn_size: int = setting(100, "size of each GCN layer", SIZE)
    gcn_layers: int = setting(1, "number of GCN layers", SIZE)
    straight_through: bool = setting(False, "discrete trees in the forward pass of training")
    single_root: bool = setting(False, "the root has one child")
    root_arcs: bool = setting(
        True, "false: arcs from the root have score 0, no noise and no effect"
    )

    def __post_init__(self) -> None:
        for name in ("left_head_bias", "step_bias"):
            if getattr(self, name) and self.distances is None:
                raise clash(self, name, "distances", "a bias of 0 where no distance has one")
        if self.single_root and self.trees == "heads":
            alone = "false: words that choose alone cannot agree on one root"
            raise clash(self, "single_root", "trees", alone)
        if self.straight_through and self.estimator.name not in RELAXING:
            raise clash(self, "straight_through", "estimator.name", "one of them")
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
class TrainSettings(Settings):
    """How to train."""

    section: ClassVar[str] = "train"

    epochs: int = setting(100, "number of epochs", f"[1, {2**31 - 1}]")
    updates: int = setting(100, "updates per epoch")
    batch_size: int = setting(64, "examples per update", "[1, 1000000]")
    learning_rate: float = setting(1e-4, "of Adam", POSITIVE)
    schedule: Literal["plateau", "cosine", "constant"] = setting(
        "plateau",
        '"plateau" (the paper\'s) multiplies the learning rate by decay and returns to '
        'the best model when dev has not improved for patience epochs; "cosine" lets '
        'the rate fall to zero; "constant"',
    )
    patience: int = setting(5, "epochs without improvement, for the plateau schedule", SIZE)
    decay: float = setting(0.9, "factor on the learning rate, for the plateau schedule", "(0, 1]")
    clip: float = setting(5.0, "largest norm of the gradient", POSITIVE)
    average: float = setting(
        0.0, "decay of the running mean of the weights that is saved; 0 for none", "[0, 1)"
    )
    threads: int = setting(0, "of torch on the CPU; 0 leaves it to torch", f"[0, {MOST_THREADS}]")
