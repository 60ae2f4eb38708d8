"""Which settings matter on ListOps: each changed alone, over three seeds.

    python benchmarks/listops_settings.py --device cuda    train what is missing, write the records
    python benchmarks/listops_settings.py --report         write the records of what has ended

Runs go to runs/listops-settings/CHANGE/PRESET-SEED and go on where they were; those on record in
results/listops/settings/runs.csv are not trained again. `benchmarks/figures.py` makes a table.
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path

if not __package__:  # run as a script: `benchmarks` is the package, not the search path
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from treelax.analysis.listops_results import read_result
from treelax.analysis.listops_table import COLUMNS, record
from treelax.analysis.run_folders import configure, name
from treelax.analysis.sweep import sweep
from treelax.analysis.tables import to_csv
from treelax.files import atomic_write
from treelax.tasks.listops.config import ListOpsConfig
from treelax.training.metrics import read_metrics
from treelax.training.run import Run

ROOT = Path(__file__).resolve().parents[1]
RUNS = ROOT / "runs" / "listops-settings"
RESULTS = ROOT / "results" / "listops" / "settings" / "runs.csv"
SEEDS = 3
# for each change its preset, its settings, and what a line of the table says
CHANGES: dict[str, tuple[str, tuple[str, ...], str]] = {
    "length-40": ("paper-mc", ("data.max_length=40",), "at most 40 tokens"),
    "length-70": ("paper-mc", ("data.max_length=70",), "at most 70 tokens"),
    "length-100": ("paper-mc", ("data.max_length=100",), "at most 100 tokens"),
    "length-30": ("paper-mc", ("data.max_length=30",), "at most 30 tokens"),
    "rate-3e-4": ("paper-mc", ("train.learning_rate=0.0003",), "learning rate 3e-4"),
    "improve-on-best": (
        "paper-mc",
        ("train.improve_on=best",),
        "an epoch has to beat the best before it",
    ),
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
    return [configure(preset, [*settings, f"seed={seed}"]) for seed in range(SEEDS)]


def main() -> int:
    """Train, unless only the records are wanted, and write them."""
    parser = argparse.ArgumentParser(
        description="Train ListOps with one setting changed at a time."
    )
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--jobs", type=int, default=10, help="runs at a time")
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
    for change in CHANGES:
        missing = [config for (own, _), config in wanted.items() if own == change]
        if missing and not options.report:
            sweep(missing, RUNS / change, device=options.device, jobs=options.jobs)
    for (change, seed), config in wanted.items():
        folder = RUNS / change / name(config)
        if (folder / "config.toml").exists() and (result := read_result(Run.open(folder))):
            log = read_metrics(folder)
            there[change, seed] = {"change": change, **record(result, log)}
    order = {change: number for number, change in enumerate(CHANGES)}
    records = [there[key] for key in sorted(there, key=lambda key: (order[key[0]], key[1]))]
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(RESULTS, "w") as file:
        file.write(to_csv(("change", *COLUMNS), records))
    print(f"{len(records)} of {SEEDS * len(CHANGES)} runs: {RESULTS.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
