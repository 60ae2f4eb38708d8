"""Measurements other than the comparison with peers: one function each, whose rows become a record."""

from __future__ import annotations

import argparse
import importlib
import inspect
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks import machine, records, report
from benchmarks.measure import Row, say

RESULTS = Path(__file__).resolve().parent / "results"
# each is a module with a function `measure`, whose parameters are the options
OTHERS = (
    *("accuracy", "demo-latency", "demo-load", "gpu-calls", "parsing-speed", "paths"),
    *("text-encoding", "text-training", "training-step"),
)


def options_of(name: str, argv: Sequence[str]) -> tuple[Any, dict[str, Any], argparse.Namespace]:
    """A measurement, what it is called with, and the other options of its command line."""
    module = importlib.import_module(f"benchmarks.{name.replace('-', '_')}")
    parser = argparse.ArgumentParser(
        prog=f"benchmarks/run.py {name}",
        description=module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the CSV")
    parser.add_argument("--commit", help="the commit to write down, for a copy without history")
    parameters = inspect.signature(module.measure).parameters.values()
    for parameter in parameters:
        flag, default = f"--{parameter.name.replace('_', '-')}", parameter.default
        if isinstance(default, tuple):
            parser.add_argument(flag, type=type(default[0]), nargs="+", default=default)
        elif default is parameter.empty:
            parser.add_argument(parameter.name, type=Path)
        elif isinstance(default, bool):
            parser.add_argument(flag, action="store_true")
        else:
            parser.add_argument(flag, type=type(default), default=default)
    given = parser.parse_args(argv)
    return module, {p.name: getattr(given, p.name) for p in parameters}, given


def other(name: str, argv: Sequence[str]) -> int:
    """Makes one of the other measurements and writes its rows; 1 if they count errors."""
    module, options, given = options_of(name, argv)
    device = options.get("device", getattr(module, "DEVICE", "cpu"))
    here = machine.describe(device, given.commit)
    about = {key: getattr(here, key) for key in ("machine", "torch", "commit", "dirty")}
    name += f"-{device}" if "device" in options else ""
    path: Path = given.out / f"{name}-{datetime.now():%Y-%m-%d-%H%M}.csv"
    rows: list[Row] = []
    for row in module.measure(**options):
        rows.append(row)
        columns = list(dict.fromkeys(key for one in rows for key in one))
        report.write_csv(path, [*columns, *about], [one | about for one in rows])
        say(", ".join(f"{key} {value}" for key, value in row.items()))
    lines = [columns, ["---"] * len(columns)]
    lines += [[one[column] for column in columns] for one in records.read(path)]
    print(records.markdown("\n".join(records.row(*line) for line in lines)))
    say(f"{here}\n{path.name}")
    return int(any(row.get("errors") for row in rows))
