"""Sweeps: what starts, what goes on, what is left alone, and what is said of failures."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from listops_runs import tiny

from treelax.analysis import sweep as module
from treelax.analysis.sweep import (
    epochs_of,
    open_or_create,
    refuse_other_settings,
    run_name,
    sweep,
)
from treelax.errors import InputError, RunInUseError, Terminated, TrainingError
from treelax.tasks.listops.config import ListOpsConfig
from treelax.tasks.listops.task import LISTOPS
from treelax.tasks.text.presets import preset
from treelax.tasks.text.task import CLASSIFY
from treelax.training.config import override
from treelax.training.metrics import read_metrics
from treelax.training.run import Run

# stands for a training: rows of metrics, one after the other, then the result
WORKER = """
import json, sys, time
from pathlib import Path
folder, epochs, fail = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
log = folder / "metrics.jsonl"
done = len(log.read_text().splitlines()) if log.exists() else 0
print("going on after", done, flush=True)
for epoch in range(done + 1, epochs + 1):
    time.sleep(0.02)
    with log.open("a") as out:
        out.write(json.dumps({"epoch": epoch, "dev": {}}) + "\\n")
    if folder.name == fail:
        print("treelax: error: a reason\\n", file=sys.stderr)
        sys.exit(2)
test = dict.fromkeys(("sentences tokens operators operator_accuracy token_accuracy attachment "
    "exact_trees soft_operator_accuracy soft_token_accuracy").split(), 1)
test |= {"attachment_by_kind": {}, "by_length": [], "baselines": {}}
keys = dict.fromkeys("seed max_length best_epoch epochs seconds".split(), 1)
keys |= {"preset": "gold", "device": "CPU"}
(folder / "test.json").write_text(json.dumps(keys | {"test": test}))
"""


def folders(place: Path, configs: list[Any]) -> dict[Path, Any]:
    """The folders of runs in a sweep."""
    return {place / run_name(config): config for config in configs}


class Workers:
    """Starts workers instead of trainings and remembers them."""

    def __init__(self, fail: str = "", epochs: int = 3) -> None:
        self.fail, self.epochs = fail, epochs
        self.started: list[str] = []
        self.processes: list[subprocess.Popen[bytes]] = []
        self.at_once = 0

    def start(self, run: Run, device: str, jobs: int) -> subprocess.Popen[bytes]:
        self.started.append(run.path.name)
        with (run.path / module.LOG).open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-I", "-c", WORKER, str(run.path), str(self.epochs), self.fail],
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self.processes.append(process)
        # those that the sweep has not noticed to have ended count too
        self.at_once = max(self.at_once, sum(p.returncode is None for p in self.processes))
        return process


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> Workers:
    given = Workers()
    monkeypatch.setattr(module, "_start", given.start)
    monkeypatch.setattr(module, "POLL", 0.01)
    return given


CONFIGS = [tiny(preset, seed=seed) for preset in ("gold", "paper-mc") for seed in (0, 1)]
NAMES = ["gold-0", "gold-1", "paper-mc-0", "paper-mc-1"]


def test_all_runs_go_to_their_ends(tmp_path: Path, workers: Workers) -> None:
    told: list[tuple[str, int, int]] = []

    def report(run: Run, row: dict[str, Any], epochs: int) -> None:
        told.append((run.path.name, row["epoch"], epochs))

    runs = sweep(LISTOPS, folders(tmp_path, CONFIGS), device="cpu", jobs=3, report=report)
    assert [run.path.name for run in runs] == workers.started == NAMES
    assert all(LISTOPS.result(run) is not None for run in runs)
    assert workers.at_once == 3
    assert [run.config(ListOpsConfig) for run in runs] == CONFIGS
    # epochs may come in one go, but each run's last and the sum of all are told
    assert {run: epoch for run, epoch, _ in told} == dict.fromkeys(NAMES, 3)
    sums = [total for *_, total in told]
    assert sums == sorted(sums)
    assert sums[-1] == 12


def test_a_failure_takes_no_other_run_with_it(tmp_path: Path, workers: Workers) -> None:
    workers.fail = "gold-1"
    with pytest.raises(
        TrainingError,
        match=r"^1 of 4 runs failed: gold-1 \(a reason\); the same command goes on",
    ):
        sweep(LISTOPS, folders(tmp_path, CONFIGS), device="cpu", jobs=2)
    ended = {run.name for run in tmp_path.iterdir() if (run / "test.json").exists()}
    assert ended == set(NAMES) - {"gold-1"}
    before = {run: (tmp_path / run / "test.json").stat().st_mtime_ns for run in ended}
    workers.fail = ""
    workers.started.clear()
    sweep(LISTOPS, folders(tmp_path, CONFIGS), device="cpu", jobs=2)
    assert workers.started == ["gold-1"]
    assert {run: (tmp_path / run / "test.json").stat().st_mtime_ns for run in ended} == before


def test_runs_go_on_with_their_own_settings_only(tmp_path: Path, workers: Workers) -> None:
    run = open_or_create(LISTOPS, tmp_path / "paper-mc-1", tiny("paper-mc", seed=1))
    assert open_or_create(LISTOPS, run.path, CONFIGS[-1]).path == run.path
    # one that never began takes other settings, unless somebody has begun just now
    other = tiny("paper-mc", seed=1, train__epochs=9)
    assert open_or_create(LISTOPS, run.path, other).config(ListOpsConfig) == other
    with run.lock(), pytest.raises(RunInUseError):
        open_or_create(LISTOPS, run.path, CONFIGS[-1])
    run.metrics_file.write_text('{"epoch": 1}\n')
    with pytest.raises(
        InputError,
        match=r"paper-mc-1: was started with other settings \(train.epochs 9 → 4\); give",
    ):
        sweep(LISTOPS, folders(tmp_path, CONFIGS), device="cpu", jobs=2)
    assert workers.started == []
    with pytest.raises(InputError, match=r"is a run of 'listops'; expected one of 'classify'"):
        open_or_create(CLASSIFY, run.path, preset("classify"))


def test_files_may_have_moved_but_not_given_trees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = ["data.path=sst", "data.vectors=a.npz", 'data.more_vectors=["b, c.txt"]']
    config = override(preset("sst-given"), first)
    run = open_or_create(CLASSIFY, tmp_path / "sst-given-0", config)
    run.metrics_file.write_text('{"epoch": 1}\n')
    now = ["data.path=/here", "data.vectors=g", 'data.more_vectors=["d, e.txt", "f"]']
    moved = override(preset("sst-given"), now)
    given: list[str] = []

    def start(run: Run, device: str, jobs: int, *settings: str) -> None:
        given.extend(settings)
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "_start", start)
    with pytest.raises(KeyboardInterrupt):
        sweep(CLASSIFY, folders(tmp_path, [moved]), device="cpu", jobs=1)
    assert override(config, given) == moved
    with pytest.raises(InputError, match=r"other settings \(data.trees none → \{split\}.conllu\)"):
        refuse_other_settings(CLASSIFY, run, override(config, ["data.trees={split}.conllu"]))


def interrupt(run: Run, row: dict[str, Any], epochs: int) -> None:
    raise KeyboardInterrupt


def kill_myself(run: Run, row: dict[str, Any], epochs: int) -> None:
    os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.parametrize(
    ("stop", "error"), [(interrupt, KeyboardInterrupt), (kill_myself, Terminated)]
)
def test_an_interrupted_sweep_goes_on(
    tmp_path: Path, workers: Workers, stop: module.Report, error: type[BaseException]
) -> None:
    before = signal.getsignal(signal.SIGTERM)
    workers.epochs = 1000
    with pytest.raises(error):
        sweep(LISTOPS, folders(tmp_path, CONFIGS), device="cpu", jobs=2, report=stop)
    assert signal.getsignal(signal.SIGTERM) is before
    assert len(workers.processes) == 2
    assert [process.returncode for process in workers.processes] == [-signal.SIGTERM] * 2
    assert not list(tmp_path.glob("*/test.json"))

    done = {run: epochs_of(tmp_path / run) for run in workers.started}
    assert max(done.values()) > 0
    workers.epochs = max(done.values()) + 2
    runs = sweep(LISTOPS, folders(tmp_path, CONFIGS), device="cpu", jobs=4)
    assert all(LISTOPS.result(run) is not None for run in runs)
    for run in runs:
        assert len(read_metrics(run.path)) == workers.epochs
        said = (run.path / module.LOG).read_text()
        assert f"going on after {done.get(run.path.name, 0)}\n" in said


def test_runs_end_with_a_sweep_that_is_killed(tmp_path: Path) -> None:
    """Even by kill -9, which no process can catch: its standard input closes."""
    run = open_or_create(LISTOPS, tmp_path / "chain-0", tiny("chain"))
    with module._start(run, "cpu", 1, "train.epochs=100000") as process:
        assert process.stdin is not None
        while not run.metrics_file.exists():
            assert process.poll() is None
            time.sleep(0.05)
        process.stdin.close()
        process.wait(60)
    assert "ended by SIGTERM" in (run.path / module.LOG).read_text()
