"""Rows of the ListOps table over many seeds, side by side on one GPU.

    python benchmarks/listops_seeds.py --seeds 10 --out FOLDER

The runs are those of `treelax table listops`, in the same folders, and need nothing but torch: no
package of the command line. The records go to FOLDER/runs.csv, the folders of finished runs, without
weights, to FOLDER/runs.tar.gz: unpacked into runs/table-listops, `treelax table listops --report` makes
the table of them. Finished runs are not repeated, and interrupted ones go on where they were.
"""

from __future__ import annotations

import argparse
import os
import sys
import tarfile
import time
from contextlib import ExitStack
from multiprocessing import get_context
from pathlib import Path
from typing import Any

if not __package__:  # run as a script: `benchmarks` is the package, not the search path
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from treelax.apps.tasks.listops.config import ListOpsConfig
from treelax.apps.tasks.listops.data import load_splits
from treelax.apps.training.devices import find_device
from treelax.apps.training.loop import Training
from treelax.apps.training.metrics import read_metrics
from treelax.apps.training.results import write_result
from treelax.apps.training.run import Run
from treelax.files import atomic_write
from treelax.lab.analysis.sweep import open_or_create, run_name
from treelax.lab.analysis.tables import to_csv
from treelax.lab.listops.experiment import ListOpsExperiment
from treelax.lab.listops.table import PAPER, TABLE
from treelax.lab.listops.task import LISTOPS

KEPT = ("config.toml", "metrics.jsonl", "test.json")


def result(folder: Path) -> dict[str, Any] | None:
    """What a run's test said, if it has ended."""
    return LISTOPS.result(Run.open(folder)) if (folder / "config.toml").exists() else None


def train(configs: dict[Path, ListOpsConfig], device: str) -> None:
    """Train and test runs on the same data side by side, an update of each in turn.

    One run leaves most of a GPU idle.
    """
    with ExitStack() as locks:
        going = {}
        for folder, config in configs.items():
            run = open_or_create(LISTOPS, folder, config)
            locks.enter_context(run.lock())
            training = Training(run, ListOpsExperiment(config, find_device(device, threads=1)))
            going[training] = training.steps()
        while going:
            for training, steps in list(going.items()):
                if next(steps, None) is None:
                    del going[training]
                    training.load_best()
                    write_result(training.run, LISTOPS.finish(training))


def train_all(
    configs: dict[Path, ListOpsConfig], device: str, processes: int, minutes: float
) -> None:
    """Train runs in processes that share the data; those that take too long are stopped."""
    context = get_context("fork")
    started = []
    end = time.monotonic() + 60 * minutes
    for data in {config.data: None for config in configs.values()}:
        load_splits(data)  # before the fork, once for all
        folders = [folder for folder, config in configs.items() if config.data == data]
        for first in range(min(processes, len(folders))):
            share = {folder: configs[folder] for folder in folders[first::processes]}
            started.append(context.Process(target=train, args=(share, device)))
            started[-1].start()
    for process in started:
        process.join(max(0.0, end - time.monotonic()))
        if process.is_alive():
            process.terminate()
            process.join()


def write(configs: dict[Path, ListOpsConfig], out: Path) -> int:
    """Write the records and folders of the runs that have ended; returns how many have not."""
    ended = {folder: test for folder in configs if (test := result(folder))}
    records = [TABLE.record(test, read_metrics(folder)) for folder, test in ended.items()]
    out.mkdir(parents=True, exist_ok=True)
    with atomic_write(out / "runs.csv", "w") as file:
        file.write(to_csv(TABLE.keys, records))
    with tarfile.open(out / "runs.tar.gz", "w:gz") as archive:
        for folder in ended:
            for name in KEPT:
                archive.add(folder / name, Path(folder.name, name))
    print(f"{len(ended)} of {len(configs)} runs: {out / 'runs.csv'}")
    return len(configs) - len(ended)


def main() -> int:
    """Train what is missing and write the records."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", default=",".join(PAPER), help="presets, with commas between")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument(
        "--set", action="append", default=[], help="a setting of all runs: KEY=VALUE"
    )
    parser.add_argument("--runs", type=Path, default=Path("runs", "table-listops"))
    parser.add_argument("--out", type=Path, required=True, help="folder for the records")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--minutes", type=float, default=9.0, help="stop what takes longer")
    options = parser.parse_args()
    configs = [
        LISTOPS.configured(preset, [*options.set, f"seed={seed}"])
        for preset in options.rows.split(",")
        for seed in range(options.seeds)
    ]
    folders = {options.runs / run_name(config): config for config in configs}
    missing = {folder: config for folder, config in folders.items() if not result(folder)}
    if missing:
        train_all(missing, options.device, options.processes, options.minutes)
    return min(write(folders, options.out), 1)


if __name__ == "__main__":
    sys.exit(main())
