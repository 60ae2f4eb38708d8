"""Sections of figures on the trials behind the tuned recipes; see `benchmarks.figures`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

from benchmarks.figures_records import spread, table
from benchmarks.figures_text import runs_of
from treelax.apps.tasks.text.presets import preset
from treelax.apps.training.config import override
from treelax.lab.tables.text import label

# Trials of five epochs to compare: what a line says, the round, and the settings that single it out.
TRIALS = (
    ("dropout 0.1, word vectors of length 1", 2, "model.dropout=0.1 model.word_scale=1"),
    ("… of length 3", 2, "model.dropout=0.1 model.word_scale=3"),
    ("no dropout, length 3", 3, ""),
    ("… no bias for heads on the left", 3, "model.left_head_bias=0"),
    ("… half the noise", 3, "model.noise_scale=0.5"),
    ("… no noise", 3, "model.noise=none"),
    ("… straight-through", 3, "model.straight_through=true"),
    ("… entropy relaxation", 3, "model.relaxation=entropy"),
)
NOISE = "model.noise_scale=0.5"
# The same for a choice of options, from trials of the third round.
OPTIONS = (
    ("Gumbel noise, temperature 1, several roots", ""),
    ("… half the noise", NOISE),
    ("… no noise", "model.noise=none"),
    ("… temperature 0.5", "model.temperature=0.5"),
    ("… one root", "model.single_root=true"),
)
ROUND = {
    2: "train.learning_rate=0.001",
    3: "train.learning_rate=0.001 model.word_scale=3 model.dropout=0",
}
LEFT = "model.left_head_bias=2"  # which trees start with


def cells(preset: str, number: int, settings: str) -> list[str]:
    """Dev accuracies of a trial on SNLI with discrete and with soft trees.

    Args:
        preset: of the trial.
        number: its round.
        settings: what it changes in the settings of its round.

    Returns:
        Both figures, dashes if there is no such trial.
    """
    rows = runs_of("tuning", "snli.csv")
    common = set.intersection(
        *(set(row["settings"].split()) for row in rows if row["round"] == "3")
    )
    wanted = {*ROUND[number].split(), *settings.split()}
    if preset != "snli-none" and "left_head_bias" not in settings:
        wanted.add(LEFT)
    for row in rows:
        same = set(row["settings"].split()) - common == wanted - common
        if same and (row["preset"], row["round"]) == (preset, str(number)):
            return [row["best_dev_accuracy"], row["soft_dev_accuracy"]]
    return ["–", "–"]


def trials() -> str:
    """Some of the trials behind the recipe for SNLI, on dev."""
    rows = runs_of("tuning", "snli.csv")
    lines = [
        [text, *cells("snli-tree-2", *which), cells("snli-none", *which)[0]]
        for text, *which in TRIALS
    ]
    header = ["dev of SNLI after 5 epochs, %", "latent tree, 2 GCN", "soft", "no intra-attention"]
    return "\n\n".join(
        [
            table(header, lines),
            f"One seed each, of {len(rows)} [trials](results/tuning/README.md); "
            "batches of 128, learning rate 0.001.",
        ]
    )


def options() -> str:
    """What one change of the noise, the temperature or the roots does, and the noise on SST."""
    lines = [[text, *cells("snli-tree-2", 3, settings)] for text, settings in OPTIONS]
    half, whole = _sst_noise(half=True), _sst_noise(half=False)
    header = ["dev of SNLI after 5 epochs, %", "discrete trees", "soft trees"]
    return "\n\n".join(
        [
            table(header, lines),
            "Latent trees with 2 GCN layers on a part of SNLI, one seed each. On SST half the noise has "
            f"{spread(half)} on dev and all of it {spread(whole)}, over the same {len(half)} seeds. "
            "Some of the [trials](results/tuning/README.md) behind the tuned recipes.",
        ]
    )


def _sst_noise(*, half: bool) -> list[float]:
    """Dev accuracies of the trials of half the noise on SST, or of those that differ in nothing else."""
    rows = [row for row in runs_of("tuning", "sst.csv") if row["preset"] == "sst-tree"]
    halved = [row for row in rows if NOISE in row["settings"].split()]
    if half:
        return [float(row["best_dev_accuracy"]) for row in halved]
    [settings] = {frozenset(row["settings"].split()) - {NOISE} for row in halved}
    [vectors] = {row["vectors"] for row in halved}
    seeds = {row["seed"] for row in halved}
    return [
        float(row["best_dev_accuracy"])
        for row in rows
        if (set(row["settings"].split()), row["vectors"]) == (settings, vectors)
        and row["seed"] in seeds
    ]


def _sharper(factor: int) -> tuple[str, ...]:
    """Settings by which the learned part of the scores counts more, beside the same noise."""
    return (
        f"model.temperature={1 / factor}",
        f"model.noise_scale={1 / factor}",
        f"model.left_head_bias={2 / factor}",
    )


ARITHMETIC = {"train.precision=tf32"}
STOPPED = ", stopped"  # beside the figure of trials that ended early
# What the trials of a task had in common beside its recipe.
TRIED = {"snli": ("train.epochs=20",), "sst": ()}
# Runs of several seeds: what they change in the recipe, and where they are in results/.
SEVERAL_SEEDS: dict[str, dict[tuple[str, ...], str]] = {
    "snli": {(): "snli-tuned", ("train.epochs=20",): "snli-tuned/shorter"},
    "sst": {(): "sst-tuned"},
}
# Settings that dev chose between: what a line says, and what it changes in what was tried.
CHOICES: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "snli": (
        ("20 epochs, consistency 1, decay 0.3 and 0.1", ()),
        ("… 40 epochs: the recipe", ("train.epochs=40",)),
        ("… no consistency", ("train.consistency=0",)),
        ("… consistency 0.5", ("train.consistency=0.5",)),
        ("… consistency 2", ("train.consistency=2",)),
        ("… consistency 3, decay 0.1", ("train.consistency=3", "train.weight_decay=0.1")),
        ("… decay 0.03", ("train.weight_decay=0.03",)),
        ("… decay 0.1", ("train.weight_decay=0.1",)),
        ("… decay 0.2", ("train.weight_decay=0.2",)),
        ("… decay 0.3", ("train.weight_decay=0.3",)),
        ("… twice the learning rate", ("train.learning_rate=0.002",)),
        ("… dropout 0.2", ("model.dropout=0.2",)),
        ("… dropout of words 0.1", ("model.word_dropout=0.1",)),
        ("… a third of the noise", ("model.noise_scale=0.3",)),
        ("… scores at 4 times the scale", _sharper(4)),
        ("… scores at 16 times the scale", _sharper(16)),
        ("… last 5 epochs with discrete trees", ("train.discrete_epochs=5",)),
    ),
    "sst": (
        ("no consistency, rate 0.0005", ("train.consistency=0", "train.learning_rate=0.0005")),
        ("no consistency, rate 0.002", ("train.consistency=0",)),
        ("no consistency, rate 0.003", ("train.consistency=0", "train.learning_rate=0.003")),
        ("consistency 0.5, rate 0.002", ("train.consistency=0.5",)),
        ("consistency 1, rate 0.002", ()),
        ("… last 10 epochs with discrete trees", ("train.discrete_epochs=10",)),
        ("… decay 0.1", ("train.weight_decay=0.1",)),
        ("… dropout 0.4", ("model.dropout=0.4",)),
        ("… dropout of the input 0.2", ("model.input_dropout=0.2",)),
        ("… dropout of words 0.3", ("model.word_dropout=0.3",)),
        ("… running mean 0.999", ("train.average=0.999",)),
        ("… 60 epochs", ("train.epochs=60",)),
        ("… rate 0.004", ("train.learning_rate=0.004",)),
        ("consistency 3, rate 0.002", ("train.consistency=3",)),
    ),
}


def recorded(name: str, changes: tuple[str, ...]) -> set[str]:
    """Settings of a tuned preset with changes that the paper's has not, as the records have them."""
    ours = override(preset(name), changes, list_all="")
    paper = preset(name.replace("-tuned", ""))
    return {
        f"{part}.{key}={value:g}" if isinstance(value, float) else f"{part}.{key}={value}"
        for part in ("model", "train")
        for key, value in asdict(getattr(ours, part)).items()
        if asdict(getattr(paper, part))[key] != value
    }


def choices(name: str, *rows: str) -> str:
    """Dev accuracies of some rows of a table for the settings that decided a recipe."""
    trials = [row for row in runs_of("tuning", f"{name}.csv") if " " in row["vectors"]]

    def cell(row: str, changes: tuple[str, ...]) -> str:
        # all arithmetics, for they agree within the seeds
        tuned = f"{name}-tuned-{row}"
        wanted = recorded(tuned, (*TRIED[name], *changes)) - ARITHMETIC
        found = [
            float(run["dev_accuracy"])
            for own, folder in SEVERAL_SEEDS[name].items()
            if wanted == recorded(tuned, own) - ARITHMETIC
            for run in runs_of(folder)
            if run["preset"] == tuned
        ]
        stopped = False
        for trial in trials if not found else ():
            settings = set(trial["settings"].split()) - ARITHMETIC
            if (trial["preset"], settings) == (f"{name}-{row}", wanted):
                found.append(float(trial["best_dev_accuracy"]))
                stopped |= trial["epochs_run"] != trial["epochs_planned"]
        if not found:
            return "–"
        figure = spread(found) if len(found) > 1 else f"{found[0]:.2f}"
        return f"{figure} ({len(found)}{STOPPED if stopped else ''})"

    lines = [[text, *(cell(row, changes) for row in rows)] for text, changes in CHOICES[name]]
    header = [f"dev of {name.upper()}, %", *(label(f"{name}-{row}") for row in rows)]
    early = any(STOPPED in each for line in lines for each in line)
    stopped = f";{STOPPED[1:]}: one or more trials ended some epochs early" if early else ""
    return "\n\n".join(
        [
            table(header, lines),
            "Mean ± standard deviation (and number of trials); both files of word vectors. The recipe's "
            f"figures are those of the runs in the table above{_shorter(name)}{stopped}. Some of "
            f"{len(runs_of('tuning', f'{name}.csv'))} [trials](results/tuning/README.md).",
        ]
    )


def _shorter(name: str) -> str:
    """Where the runs of what was tried are, if the recipe is another."""
    if not TRIED[name]:
        return ""
    folder = SEVERAL_SEEDS[name][TRIED[name]]
    return f", those of the first line of [runs of their own](results/{folder}/table.md)"


TRIAL_SECTIONS: dict[str, Callable[[], str]] = {
    "trials": trials,
    "options": options,
    "snli-choices": lambda: choices("snli", "tree-2", "none", "chain-2"),
    "sst-choices": lambda: choices("sst", "tree", "none"),
}
