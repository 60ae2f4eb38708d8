"""``benchmarks/listops_seeds.py``: runs side by side, without the packages of the command line."""

from __future__ import annotations

import csv
import subprocess
import sys
import tarfile
from pathlib import Path

from listops_runs import options

from treelax.__main__ import main

ROOT = Path(__file__).resolve().parents[1]
WITHOUT = """import runpy, sys
for name in ("typer", "rich", "fastapi", "nltk", "tensorboard", "matplotlib"):
    sys.modules[name] = None
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
SETTINGS = options(train__epochs=1, train__updates=1)


def seeds(folder: Path) -> str:
    command = [sys.executable, "-c", WITHOUT, ROOT / "benchmarks" / "listops_seeds.py", "--rows"]
    command += ["gold,paper-zero-st", "--seeds", "2", "--device", "cpu", "--processes", "2"]
    command += ["--runs", folder / "runs", "--out", folder / "out", *SETTINGS]
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout


def test_runs_side_by_side(tmp_path: Path) -> None:
    assert seeds(tmp_path).startswith("4 of 4 runs: ")
    results = sorted((tmp_path / "runs").glob("*/test.json"))
    times = [file.stat().st_mtime_ns for file in results]
    assert len(times) == 4
    seeds(tmp_path)
    assert [file.stat().st_mtime_ns for file in results] == times  # none was repeated
    with tarfile.open(tmp_path / "out" / "runs.tar.gz") as archive:
        archive.extractall(tmp_path / "there", filter="data")
    table = ["table", "listops", "--report", "--rows", "gold,paper-zero-st", "--seeds", "2"]
    table += ["--runs", str(tmp_path / "there"), "--results", str(tmp_path / "results")]
    assert main([*table, *SETTINGS]) == 0
    runs = (tmp_path / "results" / "runs.csv").read_text()
    assert runs == (tmp_path / "out" / "runs.csv").read_text()
    assert [row["preset"] for row in csv.DictReader(runs.splitlines())] == [
        *("gold", "gold", "paper-zero-st", "paper-zero-st")
    ]
