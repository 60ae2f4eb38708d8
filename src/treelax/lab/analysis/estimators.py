"""The comparison of estimators on whole tasks: each tuned on dev, then trained over several seeds.

A row is an estimator with one setting that is tuned: all rows get the same number of trials, a run each
with a separate seed, and the value with the best dev score, the smaller one in a tie, is trained over
the seeds of the table. Runs on record in ``runs.csv`` are not trained again, so a comparison can be made
on several machines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import torch

from treelax.apps.tasks import task_named
from treelax.apps.tasks.task import Task
from treelax.apps.training.metrics import read_metrics
from treelax.apps.training.results import device_name
from treelax.apps.training.run import CONFIG, Run
from treelax.apps.training.steps import Stepper
from treelax.errors import InputError
from treelax.files import atomic_write
from treelax.lab.analysis.sweep import refuse_other_settings
from treelax.lab.analysis.tables import RUNS, read_rows, spread, to_csv
from treelax.lab.plots import Curve, Panel, draw_panels
from treelax.lab.tables.by_task import TABLES
from treelax.lab.tables.paper import PaperTable

TRIAL_SEED = 100  # of no run of a table
UPDATES = 80  # to time, of which the first quarter warms up
SPEED, CURVES = "speed.csv", "curves.csv"
LAST = "dev, last epoch"
SPEED_KEYS = ("estimator", "update_ms", "memory_mb", "device")
KEYS = ("estimator", "value", "seed", "settings")
Record = dict[str, Any]


@dataclass(frozen=True)
class Row:
    """An estimator, and what is tuned."""

    label: str
    key: str  # the setting that is tuned
    values: tuple[float, ...]  # those of the learning rate are factors of the preset's
    settings: tuple[str, ...] = ()


def _row(
    label: str, name: str, key: str, values: tuple[float, ...], more: str | None = None
) -> Row:
    settings = (f"model.estimator={name}", *([f"model.{more}"] if more else []))
    return Row(label, key, values, settings)


HEAT, STEP, RATE = "model.temperature", "model.estimator.step", "train.learning_rate"
SCALE = "model.noise_scale"
# ranges whose lower end did best in first trials on ListOps were moved down by one value
HEATS, COOL, RATES = (0.5, 1, 2), (0.25, 0.5, 1), (1, 3, 10)
STEPS, IMLE_STEPS, SCALES = (0.01, 0.1, 1), (0.1, 1, 10), (0.1, 0.3, 1)
IMLE_4_STEPS = tuple(step / 4 for step in IMLE_STEPS)  # the same for a mean of four losses
THROUGH, FOUR = "straight-through", "estimator.samples=4"
ROWS: dict[str, Row] = {
    "relaxed": _row("relaxed, softmax", "relaxed", HEAT, HEATS),
    "entropy": _row("relaxed, entropy", "relaxed", HEAT, HEATS, "relaxation=entropy"),
    "marginals": _row("marginals", "marginals", HEAT, COOL),
    # to the end it takes hundreds of trees at 50 tokens, and many times the time of all other rows
    "sparsemap-10": _row(
        "SparseMAP, 10 steps", "sparsemap", HEAT, COOL, "estimator.max_iterations=10"
    ),
    THROUGH: _row("straight-through", THROUGH, HEAT, HEATS),
    "identity": _row(
        "straight-through, identity", THROUGH, SCALE, SCALES, "estimator.gradient=identity"
    ),
    "spigot": _row("SPIGOT, simplex", "spigot", STEP, STEPS),
    "spigot-polytope": _row(
        "SPIGOT, polytope", "spigot", STEP, STEPS, "estimator.projection=polytope"
    ),
    "spigot-ce": _row("SPIGOT-CE", "spigot", STEP, STEPS, "estimator.form=ce"),
    "spigot-eg": _row("SPIGOT-EG", "spigot", STEP, STEPS, "estimator.form=eg"),
    "imle": _row("I-MLE, 1 sample", "imle", STEP, IMLE_STEPS),
    "imle-4": _row("I-MLE, 4 samples", "imle", STEP, IMLE_4_STEPS, FOUR),
    "perturbed": _row("perturbed, 4 samples", "perturbed", SCALE, SCALES, FOUR),
    "reinforce": _row("REINFORCE, 1 sample", "reinforce", RATE, RATES),
    "reinforce-4": _row("REINFORCE, 4 samples", "reinforce", RATE, RATES, FOUR),
    "rloo-4": _row("RLOO, 4 samples", "rloo", RATE, RATES, FOUR),
}
PANELS = {  # of the curves
    "trained on soft trees": ("relaxed", "entropy", "marginals", "sparsemap-10"),
    "discrete trees: straight-through and I-MLE": (THROUGH, "identity", "imle", "imle-4"),
    "discrete trees: SPIGOT and perturbed": (
        *("spigot", "spigot-polytope", "spigot-ce", "spigot-eg"),
        "perturbed",
    ),
    "discrete trees: score functions": ("reinforce", "reinforce-4", "rloo-4"),
}


@dataclass(frozen=True)
class Comparison:
    """A task to compare estimators on."""

    title: str
    task: str
    preset: str  # what all rows start from
    table: str  # of the task, whose records are stored
    score: str  # the dev figure that chooses a setting, with discrete trees
    columns: Mapping[str, str]  # of the table, by their headings
    axis: tuple[float, float] = (0, 100)  # of the curves: lowest and highest accuracy
    tuned_by: str | None = None  # the comparison whose settings are taken, if it is another
    without: tuple[str, ...] = ()  # rows that take too long, unless they are asked for or on record
    settings: tuple[str, ...] = ()  # that all rows change


LISTOPS = {
    "accuracy": "operator_accuracy",
    "attachment": "attachment",
    "exact trees": "exact_trees",
    "accuracy, soft trees": "soft_operator_accuracy",
}
SST = {"dev": "dev_accuracy", "test": "test_accuracy", "test, soft trees": "test_soft_accuracy"}
# the longer an expression, the more trees its projections mix: many times the cost of all other rows
SLOW = ("spigot-polytope",)
COMPARISONS: dict[str, Comparison] = {
    "listops": Comparison(
        "ListOps, the paper's recipe, at most 50 tokens",
        *("listops", "paper-mc", "listops", "operator_accuracy", LISTOPS),
        settings=("data.max_length=50", "model.root_arcs=true"),
    ),
    "longer": Comparison(
        "ListOps, balanced recipe, at most 100 tokens",
        *("listops", "balanced-mc", "listops", "operator_accuracy", LISTOPS),
        without=SLOW,
    ),
    "paulus": Comparison(
        "ListOps of Paulus et al. (2020), balanced recipe",
        *("listops", "paulus", "listops", "operator_accuracy", LISTOPS),
        tuned_by="longer",
        without=SLOW,
    ),
    "sst": Comparison(
        "Sentiment of SST, binary",
        *("classify", "sst-tuned-tree", "sst-tuned", "accuracy", SST),
        axis=(45, 90),
    ),
}


class Key(NamedTuple):
    """A run of a comparison."""

    row: str
    value: float
    seed: int


class Study:
    """The runs of a comparison: on record in ``results``, or in folders ``ROW/VALUE-SEED``."""

    def __init__(
        self,
        name: str,
        runs: Path,
        results: Path,
        rows: Sequence[str] | None = None,
        changes: Sequence[str] = (),
    ) -> None:
        self.comparison = COMPARISONS[name]
        self.task: Task = task_named(self.comparison.task)
        self.table: PaperTable = TABLES[self.task.name][self.comparison.table]
        self.runs, self.results = runs / name, results / name
        self.changes = tuple(changes)
        free = {*self.task.files, "data.path"}
        beyond = (change for change in self.changes if change.partition("=")[0].strip() not in free)
        self.settings = " ".join(beyond)  # beyond those of the rows; files may be elsewhere
        self.records = {}
        for line in _read(self.results / RUNS, (*KEYS, "dev")):
            if line["settings"] != self.settings:
                raise InputError(
                    f"{self.results / RUNS}: holds runs with the settings "
                    f"{line['settings'] or 'of the presets'}, and received "
                    f"{self.settings or 'no others'}; expected the same, or another --results"
                )
            self.records[Key(line["estimator"], float(line["value"]), int(line["seed"]))] = line
        if rows is None:
            left_out = set(self.comparison.without) - {key.row for key in self.records}
            rows = [row for row in ROWS if row not in left_out]
        self.rows = tuple(rows)
        other = self.comparison.tuned_by
        self.tuning = self if other is None else Study(other, runs, results, rows, changes)

    def config(self, key: Key) -> Any:
        """The config of a run."""
        row, value = ROWS[key.row], key.value
        preset = self.task.preset(self.comparison.preset)
        if row.key == RATE:
            value *= preset.train.learning_rate
        changes = (*self.comparison.settings, *self.changes, *row.settings)
        settings = (*changes, f"{row.key}={value:g}", f"seed={key.seed}")
        return self.task.configured(self.comparison.preset, settings)

    def path(self, key: Key) -> Path:
        """The folder of a run."""
        return self.runs / key.row / f"{key.value:g}-{key.seed}"

    def trials(self) -> list[Key]:
        """The runs that choose settings."""
        return [Key(row, value, TRIAL_SEED) for row in self.rows for value in ROWS[row].values]

    def finals(self, seeds: int) -> list[Key]:
        """The runs of rows whose settings are chosen."""
        chosen = self.tuning.chosen()
        return [Key(r, chosen[r], seed) for r in self.rows if r in chosen for seed in range(seeds)]

    def chosen(self) -> dict[str, float]:
        """The best value of each row on record whose trials have all ended."""
        best = {}
        for row, spec in ROWS.items():
            keys = [Key(row, value, TRIAL_SEED) for value in spec.values]
            if all(key in self.records for key in keys):
                best[row] = max(keys, key=lambda key: float(self.records[key]["dev"])).value
        return best

    def missing(self, keys: Sequence[Key]) -> dict[Path, Any]:
        """The runs that are not on record, by folder."""
        return {self.path(key): self.config(key) for key in keys if key not in self.records}

    def collect(self, keys: Sequence[Key]) -> None:
        """Put runs that have ended on record."""
        curves = _read(self.results / CURVES, ("estimator", "seed", "epoch"))
        for key in keys:
            path = self.path(key)
            if key in self.records or not (path / CONFIG).exists():
                continue
            run = Run.open(path)
            refuse_other_settings(self.task, run, self.config(key))
            result = self.task.result(run)
            if result is None:
                continue
            log = read_metrics(run.metrics_file)
            best = next(line for line in log if line["epoch"] == result["best_epoch"])
            self.records[key] = {
                **{"estimator": key.row, "setting": ROWS[key.row].key, "value": key.value},
                "settings": self.settings,
                "dev": round(best["dev"][self.comparison.score], 3),
                **self.table.record(result, log),
            }
            if key.seed == TRIAL_SEED:
                continue
            curves += [
                {
                    **{"estimator": key.row, "value": key.value, "seed": key.seed},
                    **{"epoch": line["epoch"], "loss": line["loss"]},
                    "dev": line["dev"][self.comparison.score],
                }
                for line in log
            ]
        ordered = sorted(self.records, key=lambda key: (list(ROWS).index(key.row), key[1:]))
        names = ("estimator", "setting", "value", "settings", "dev", *self.table.keys)
        self._write(RUNS, names, [self.records[key] for key in ordered])
        self._write(CURVES, ("estimator", "value", "seed", "epoch", "loss", "dev"), curves)

    def measure(self, device: torch.device, tell: Callable[[str], None]) -> None:
        """Time an update of each row whose settings are chosen, alone on the device."""
        speeds = _read(self.results / SPEED, SPEED_KEYS)
        there = {line["estimator"] for line in speeds}
        for row, value in self.tuning.chosen().items():
            if row in self.rows and row not in there:
                tell(row)
                measures = speed(self, Key(row, value, 0), device)
                speeds.append({"estimator": row, **measures})
                self._write(SPEED, SPEED_KEYS, speeds)

    def table_rows(self, seeds: int) -> tuple[list[str], list[list[str]]]:
        """Headings and rows of the table, of all rows on record."""
        columns, first = self.comparison.columns, next(iter(self.comparison.columns))
        headings = ["estimator", "tuned", "trials, dev", "seeds", *columns]
        headings += [f"{first}, every seed", LAST, "ms an update", "MB"]
        speeds = {line["estimator"]: line for line in _read(self.results / SPEED, SPEED_KEYS)}
        curves = self.curves(seeds)
        rows = []
        for row, value in self.tuning.chosen().items():
            runs = [
                self.records[key]
                for seed in range(seeds)
                if (key := Key(row, value, seed)) in self.records
            ]
            if not runs:
                continue
            figures = {name: [float(line[key]) for line in runs] for name, key in columns.items()}
            tried = [self.tuning.records[Key(row, v, TRIAL_SEED)]["dev"] for v in ROWS[row].values]
            ends = [curve[max(curve)] for curve in curves.get(row, {}).values()]
            cost = speeds.get(row, {})
            rows.append([
                ROWS[row].label,
                f"{ROWS[row].key.rpartition('.')[2]} {'×' if ROWS[row].key == RATE else ''}{value:g}",
                ", ".join(f"{float(dev):.1f}" for dev in tried),
                str(len(runs)),
                *map(spread, figures.values()),
                ", ".join(f"{v:.1f}" for v in figures[first]),
                spread(ends) if ends else "–",
                *(
                    f"{float(cost[key]):.1f}" if cost.get(key) else "–"
                    for key in ("update_ms", "memory_mb")
                ),
            ])  # fmt: skip
        return headings, rows

    def curves(self, seeds: int) -> dict[str, dict[str, dict[float, float]]]:
        """Dev figures of the runs of the table, by row, seed and epoch."""
        chosen = self.tuning.chosen()
        lines: dict[str, dict[str, dict[float, float]]] = {}
        for line in _read(self.results / CURVES, ("estimator", "value", "seed", "epoch", "dev")):
            row = line["estimator"]
            if float(line["value"]) == chosen.get(row) and int(line["seed"]) < seeds:
                runs = lines.setdefault(row, {}).setdefault(line["seed"], {})
                runs[int(line["epoch"])] = float(line["dev"])
        return lines

    def plot(self, seeds: int, file: Path) -> None:
        """Draw these figures."""
        lines = self.curves(seeds)
        panels = []
        for title, rows in PANELS.items():
            curves = [
                Curve.of_runs(ROWS[row].label, lines[row], look=look)
                for look, row in enumerate(rows)
                if row in lines
            ]
            if curves:
                panels.append(
                    Panel(curves, "epoch", "dev accuracy, %", title, self.comparison.axis)
                )
        if panels:
            draw_panels(panels, columns=2, spread="lines").save(file)

    def _write(self, name: str, keys: Sequence[str], lines: Sequence[Record]) -> None:
        self.results.mkdir(parents=True, exist_ok=True)
        with atomic_write(self.results / name, "w") as file:
            file.write(to_csv(keys, lines))


def _read(file: Path, keys: Sequence[str]) -> list[Record]:
    """The lines of a CSV, none if it is not there."""
    return read_rows(file, dict.fromkeys(keys, str)) if file.exists() else []


def speed(study: Study, key: Key, device: torch.device) -> Record:
    """Milliseconds an update, and the most memory that training held, in MB, on a GPU."""
    config = study.config(key)
    experiment = study.task.experiment(config, device, study.runs, lambda _: None, lambda *_: None)
    experiment.begin(1)
    experiment.model.train()
    cuda = device.type == "cuda"
    if cuda:
        torch.cuda.reset_peak_memory_stats(device)
        base = torch.cuda.memory_allocated(device)
    generator = torch.Generator(device)
    stepper = Stepper(
        experiment.model, experiment.loss, experiment.groups(), generator, config.train.clip, device
    )
    batches = experiment.batches(0)[:UPDATES]
    stepper.prepare(dict(batches))
    stepper.set_rate(config.train.learning_rate)
    times = []
    for index, (shape, batch) in enumerate(batches):
        start = perf_counter()
        stepper.step(shape, batch)
        stepper.mean_loss(1)  # waits
        if index >= len(batches) // 4:
            times.append(perf_counter() - start)
    memory = round((torch.cuda.max_memory_allocated(device) - base) / 1e6, 1) if cuda else None
    return {
        "update_ms": round(1e3 * median(times), 3),
        "memory_mb": memory,
        "device": device_name(device),
    }


def check_rows(names: str | None) -> list[str] | None:
    """The rows of a list with commas."""
    if names is None:
        return None
    rows = list(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))
    wrong = [name for name in rows if name not in ROWS]
    if wrong or not rows:
        received = wrong[0] if wrong else names
        raise InputError(f"--rows: received {received!r}; expected some of {', '.join(ROWS)}")
    return rows
