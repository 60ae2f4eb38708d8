"""Which settings matter on ListOps: each changed alone, over three seeds.

    python benchmarks/listops_settings.py --device cuda    train what is missing, write the records
    python benchmarks/listops_settings.py --report         write the records of what has ended

Runs go to runs/listops-settings/CHANGE/PRESET-SEED and go on where they were; those on record in
results/listops/settings/runs.csv are not trained again. All of them are trained at once: a run leaves
most of a GPU idle, so a process has several, each on a stream of its own, and takes their updates in
turn. `benchmarks/figures.py` makes a table.
"""

from __future__ import annotations

import argparse
import csv
import multiprocessing
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

if not __package__:  # run as a script: `benchmarks` is the package, not the search path
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from treelax.apps.tasks.listops.config import ListOpsConfig
from treelax.apps.training.devices import find_device
from treelax.apps.training.loop import Training
from treelax.apps.training.metrics import read_metrics
from treelax.apps.training.results import write_result
from treelax.apps.training.run import Run
from treelax.files import atomic_write
from treelax.lab.analysis.sweep import open_or_create, run_name
from treelax.lab.analysis.tables import to_csv
from treelax.lab.listops.experiment import ListOpsExperiment
from treelax.lab.listops.table import TABLE
from treelax.lab.listops.task import LISTOPS

ROOT = Path(__file__).resolve().parents[1]
RUNS = ROOT / "runs" / "listops-settings"
RESULTS = ROOT / "results" / "listops" / "settings" / "runs.csv"
SEEDS = 3
# the reading of the paper's recipe that its changes were tried on
PAPER = ("model.root_arcs=true", "data.max_length=50")
# for each change its preset, its settings, and what a line of the table says
CHANGES: dict[str, tuple[str, tuple[str, ...], str]] = {
    "length-30": ("paper-mc", ("data.max_length=30",), "at most 30 tokens"),
    "length-40": ("paper-mc", ("data.max_length=40",), "at most 40 tokens"),
    "length-70": ("paper-mc", ("data.max_length=70",), "at most 70 tokens"),
    "length-100": ("paper-mc", ("data.max_length=100",), "at most 100 tokens"),
    "rate-3e-4": ("paper-mc", ("train.learning_rate=0.0003",), "learning rate 3e-4"),
    "composer-0.1": ("paper-mc", ("train.composer_rate=0.1",), "composer at 0.1 of the rate"),
    "rate-3e-4-composer-0.1": (
        "paper-mc",
        ("train.learning_rate=0.0003", "train.composer_rate=0.1"),
        "learning rate 3e-4, composer at 0.1 of it",
    ),
    "rate-1e-3": ("paper-mc", ("train.learning_rate=0.001",), "learning rate 1e-3"),
    "loss-operators": ("balanced-mc", ("train.loss=operators",), "loss on operators only"),
    "not-balanced": ("balanced-mc", ("train.balance=false",), "tags weigh as they come"),
    "no-left-bias": ("balanced-mc", ("model.left_head_bias=0",), "no bias for heads on the left"),
    "composer-1": ("balanced-mc", ("train.composer_rate=1",), "composer at the parser's rate"),
}


def configs(change: str) -> list[ListOpsConfig]:
    """The runs of a change."""
    preset, settings, _ = CHANGES[change]
    base = PAPER if preset == "paper-mc" else ()
    return [LISTOPS.configured(preset, [*base, *settings, f"seed={seed}"]) for seed in range(SEEDS)]


def result(folder: Path) -> dict[str, Any] | None:
    """What a run's test said, if it has ended."""
    return LISTOPS.result(Run.open(folder)) if (folder / "config.toml").exists() else None


def train(configs: dict[Path, ListOpsConfig], device: str) -> None:
    """Train and test runs on the same data side by side, an update of each in turn."""
    with ExitStack() as locks:
        going = {}
        for folder, config in configs.items():
            run = open_or_create(LISTOPS, folder, config)
            locks.enter_context(run.lock())
            experiment = ListOpsExperiment(config, find_device(device, threads=1))
            training = Training(run, experiment)
            going[training] = training.steps()
        while going:
            for training, steps in list(going.items()):
                if next(steps, None) is None:
                    del going[training]
                    training.load_best()
                    write_result(training.run, LISTOPS.finish(training))


def train_all(configs: dict[Path, ListOpsConfig], device: str, together: int) -> int:
    """Train all runs at once, so many in a process; returns how many processes failed."""
    context = multiprocessing.get_context("fork")
    processes = []
    for data in {config.data: None for config in configs.values()}:
        own = [(folder, config) for folder, config in configs.items() if config.data == data]
        for first in range(0, len(own), together):
            share = dict(own[first : first + together])
            processes.append(context.Process(target=train, args=(share, device)))
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    return sum(process.exitcode != 0 for process in processes)


def main() -> int:
    """Train, unless only the records are wanted, and write them."""
    parser = argparse.ArgumentParser(
        description="Train ListOps with one setting changed at a time."
    )
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--changes", nargs="+", choices=CHANGES, help="all by default")
    parser.add_argument("--together", type=int, default=6, help="runs in a process")
    parser.add_argument("--report", action="store_true", help="train nothing")
    options = parser.parse_args()
    there: dict[tuple[str, int], dict[str, object]] = {}
    if RESULTS.exists():
        with RESULTS.open(newline="", encoding="utf-8") as file:
            there = {(row["change"], int(row["seed"])): dict(row) for row in csv.DictReader(file)}
    wanted = {
        (change, config.seed): config
        for change in CHANGES
        for config in configs(change)
        if (change, config.seed) not in there
    }
    folders = {key: RUNS / key[0] / run_name(config) for key, config in wanted.items()}
    failed = 0
    if not options.report:
        missing = {
            folders[key]: config
            for key, config in wanted.items()
            if key[0] in (options.changes or CHANGES) and result(folders[key]) is None
        }
        failed = train_all(missing, options.device, options.together)
    for (change, seed), folder in folders.items():
        if figures := result(folder):
            there[change, seed] = {"change": change, **TABLE.record(figures, read_metrics(folder))}
    order = {change: number for number, change in enumerate(CHANGES)}
    records = [there[key] for key in sorted(there, key=lambda key: (order[key[0]], key[1]))]
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(RESULTS, "w") as file:
        file.write(to_csv(("change", *TABLE.keys), records))
    print(f"{len(records)} of {SEEDS * len(CHANGES)} runs: {RESULTS.relative_to(ROOT)}")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
