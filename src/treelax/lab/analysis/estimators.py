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
from treelax.apps.training.steps import Stepper
from treelax.errors import InputError
from treelax.lab.analysis.sweep import ended_runs
from treelax.lab.analysis.tables import CURVES, RUNS, read_rows, spread, to_csv, write_files
from treelax.lab.plots import Curve, Panel, draw_panels
from treelax.lab.tables.by_task import TABLES
from treelax.lab.tables.paper import PaperTable

TRIAL_SEED = 100  # of no run of a table
UPDATES = 80  # to time, of which the first quarter warms up
SPEED = "speed.csv"
LAST = "dev, last epoch"
SPEED_KEYS = ("estimator", "update_ms", "memory_mb", "device")
KEYS = ("estimator", "value", "seed", "settings")
Record = dict[str, Any]


@dataclass(frozen=True)
class Row:
    """An estimator, and what is tuned."""

    label: str
    estimator: str
    key: str  # the setting that is tuned
    values: tuple[float, ...]  # those of the learning rate are factors of the preset's
    setting: str = ""  # another one of the model

    @property
    def settings(self) -> tuple[str, ...]:
        """What makes it this row."""
        names = (f"estimator={self.estimator}", self.setting)
        return tuple(f"model.{name}" for name in names if name)

    def tuned(self, value: float) -> str:
        """The tuned setting with a value, for people."""
        return f"{self.key.rpartition('.')[2]} {'×' if self.key == RATE else ''}{value:g}"


HEAT, STEP, RATE = "model.temperature", "model.estimator.step", "train.learning_rate"
SCALE = "model.noise_scale"
# ranges whose lower end did best in first trials on ListOps were moved down by one value
HEATS, COOL, RATES = (0.5, 1, 2), (0.25, 0.5, 1), (1, 3, 10)
STEPS, IMLE_STEPS, SCALES = (0.01, 0.1, 1), (0.1, 1, 10), (0.1, 0.3, 1)
IMLE_4_STEPS = tuple(step / 4 for step in IMLE_STEPS)  # the same for a mean of four losses
THROUGH, FOUR = "straight-through", "estimator.samples=4"
ROWS: dict[str, Row] = {
    "relaxed": Row("relaxed, softmax", "relaxed", HEAT, HEATS),
    "entropy": Row("relaxed, entropy", "relaxed", HEAT, HEATS, "relaxation=entropy"),
    "marginals": Row("marginals", "marginals", HEAT, COOL),
    # to the end it takes hundreds of trees at 50 tokens, and many times the time of all other rows
    "sparsemap-10": Row(
        "SparseMAP, 10 steps", "sparsemap", HEAT, COOL, "estimator.max_iterations=10"
    ),
    THROUGH: Row("straight-through", THROUGH, HEAT, HEATS),
    "identity": Row(
        "straight-through, identity", THROUGH, SCALE, SCALES, "estimator.gradient=identity"
    ),
    "spigot": Row("SPIGOT, simplex", "spigot", STEP, STEPS),
    "spigot-polytope": Row(
        "SPIGOT, polytope", "spigot", STEP, STEPS, "estimator.projection=polytope"
    ),
    "spigot-ce": Row("SPIGOT-CE", "spigot", STEP, STEPS, "estimator.form=ce"),
    "spigot-eg": Row("SPIGOT-EG", "spigot", STEP, STEPS, "estimator.form=eg"),
    "imle": Row("I-MLE, 1 sample", "imle", STEP, IMLE_STEPS),
    "imle-4": Row("I-MLE, 4 samples", "imle", STEP, IMLE_4_STEPS, FOUR),
    "perturbed": Row("perturbed, 4 samples", "perturbed", SCALE, SCALES, FOUR),
    "reinforce": Row("REINFORCE, 1 sample", "reinforce", RATE, RATES),
    "reinforce-4": Row("REINFORCE, 4 samples", "reinforce", RATE, RATES, FOUR),
    "rloo-4": Row("RLOO, 4 samples", "rloo", RATE, RATES, FOUR),
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
        for line in self._read(RUNS, (*KEYS, "dev")):
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
        curves = self._read(CURVES, ("estimator", "seed", "epoch"))
        by_folder = {self.path(key): key for key in keys}
        for run, result in ended_runs(self.task, self.missing(keys)):
            key, log = by_folder[run.path], read_metrics(run.metrics_file)
            best = next(line for line in log if line["epoch"] == result["best_epoch"])
            about = {"estimator": key.row, "value": key.value}
            self.records[key] = {
                **about,
                **{"setting": ROWS[key.row].key, "settings": self.settings},
                "dev": round(best["dev"][self.comparison.score], 3),
                **self.table.record(result, log),
            }
            if key.seed != TRIAL_SEED:
                curves += [
                    {**about, "seed": key.seed, "epoch": line["epoch"], "loss": line["loss"]}
                    | {"dev": line["dev"][self.comparison.score]}
                    for line in log
                ]
        ordered = sorted(self.records, key=lambda key: (list(ROWS).index(key.row), key[1:]))
        names = ("estimator", "setting", "value", "settings", "dev", *self.table.keys)
        self._write(RUNS, names, [self.records[key] for key in ordered])
        self._write(CURVES, ("estimator", "value", "seed", "epoch", "loss", "dev"), curves)

    def measure(self, device: torch.device, tell: Callable[[str], None]) -> None:
        """Time an update of each row whose settings are chosen, alone on the device."""
        speeds = self._read(SPEED, SPEED_KEYS)
        there = {line["estimator"] for line in speeds}
        for row, value in self.tuning.chosen().items():
            if row in self.rows and row not in there:
                tell(row)
                measures = speed(self, Key(row, value, 0), device)
                speeds.append({"estimator": row, **measures})
                self._write(SPEED, SPEED_KEYS, speeds)

    def table_rows(self, seeds: int) -> tuple[list[str], list[list[str]]]:
        """Headings and rows of the table, of all rows on record."""
        columns, first = self.comparison.columns, next(iter(self.comparison.columns.values()))
        headings = ["estimator", "tuned", "trials, dev", "seeds", *columns]
        headings += [f"{next(iter(columns))}, every seed", LAST, "ms an update", "MB"]
        speeds = {line["estimator"]: line for line in self._read(SPEED, SPEED_KEYS)}
        curves = self.curves(seeds)
        rows = []
        for name, value in self.tuning.chosen().items():
            keys = (Key(name, value, seed) for seed in range(seeds))
            runs = [self.records[key] for key in keys if key in self.records]
            if not runs:
                continue
            row = ROWS[name]
            tried = (self.tuning.records[Key(name, v, TRIAL_SEED)]["dev"] for v in row.values)
            ends = [curve[max(curve)] for curve in curves.get(name, {}).values()]
            cost = (speeds.get(name, {}).get(key) for key in ("update_ms", "memory_mb"))
            rows.append([
                *(row.label, row.tuned(value), ", ".join(f"{float(dev):.1f}" for dev in tried)),
                str(len(runs)),
                *(spread([float(line[key]) for line in runs]) for key in columns.values()),
                ", ".join(f"{float(line[first]):.1f}" for line in runs),
                spread(ends),
                *(f"{float(figure):.1f}" if figure else "–" for figure in cost),
            ])  # fmt: skip
        return headings, rows

    def curves(self, seeds: int) -> dict[str, dict[str, dict[float, float]]]:
        """Dev figures of the runs of the table, by row, seed and epoch."""
        chosen = self.tuning.chosen()
        lines: dict[str, dict[str, dict[float, float]]] = {}
        for line in self._read(CURVES, ("estimator", "value", "seed", "epoch", "dev")):
            row = line["estimator"]
            if float(line["value"]) == chosen.get(row) and int(line["seed"]) < seeds:
                runs = lines.setdefault(row, {}).setdefault(line["seed"], {})
                runs[int(line["epoch"])] = float(line["dev"])
        return lines

    def plot(self, seeds: int, file: Path) -> None:
        """Draw these figures."""
        lines = self.curves(seeds)
        curves = {
            row: Curve.of_runs(ROWS[row].label, lines[row], look=look)
            for rows in PANELS.values()
            for look, row in enumerate(rows)
            if row in lines
        }
        panels = [
            Panel(known, "epoch", "dev accuracy, %", title, self.comparison.axis)
            for title, rows in PANELS.items()
            if (known := [curves[row] for row in rows if row in curves])
        ]
        if panels:
            draw_panels(panels, columns=2, spread="lines").save(file)

    def _read(self, name: str, keys: Sequence[str]) -> list[Record]:
        """The lines of a CSV, none if it is not there."""
        file = self.results / name
        return read_rows(file, dict.fromkeys(keys, str)) if file.exists() else []

    def _write(self, name: str, keys: Sequence[str], lines: Sequence[Record]) -> None:
        write_files(self.results, {name: to_csv(keys, lines)})


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
