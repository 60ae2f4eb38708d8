"""Which settings matter on ListOps: each changed alone, over three seeds.

    python benchmarks/listops_settings.py --device cuda    train what is missing, write the records
    python benchmarks/listops_settings.py --report         write the records of what has ended

Runs go to runs/listops-settings/CHANGE/PRESET-SEED and go on where they were; those on record in
results/listops/settings/runs.csv are not trained again. `benchmarks/figures.py` makes a table.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

if not __package__:  # run as a script: `benchmarks` is the package, not the search path
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from benchmarks.listops_seeds import record, result, train_all
from benchmarks.records import ROOT, read
from treelax.apps.tasks.listops.config import ListOpsConfig
from treelax.files import atomic_write
from treelax.lab.analysis.sweep import run_name
from treelax.lab.analysis.tables import to_csv
from treelax.lab.listops.table import TABLE
from treelax.lab.listops.task import LISTOPS

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


def main() -> None:
    """Train, unless only the records are wanted, and write them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--changes", nargs="+", choices=CHANGES, default=list(CHANGES))
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--report", action="store_true", help="train nothing")
    options = parser.parse_args()
    there = {(row["change"], int(row["seed"])): row for row in read(RESULTS)}
    missing = {
        (change, config.seed): config
        for change in CHANGES
        for config in configs(change)
        if (change, config.seed) not in there
    }
    folders = {key: RUNS / key[0] / run_name(config) for key, config in missing.items()}
    if not options.report:
        wanted = {
            folders[key]: config
            for key, config in missing.items()
            if key[0] in options.changes and result(folders[key]) is None
        }
        train_all(wanted, options.device, options.processes)
    for key, folder in folders.items():
        if result(folder):
            there[key] = {"change": key[0], **record(folder)}
    lines = [there[key] for change in CHANGES for key in sorted(there) if key[0] == change]
    with atomic_write(RESULTS, "w") as file:
        file.write(to_csv(("change", *TABLE.keys), lines))
    print(f"{len(lines)} of {SEEDS * len(CHANGES)} runs: {RESULTS.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
