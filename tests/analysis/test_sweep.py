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

from treelax.apps.tasks.listops.config import ListOpsConfig
from treelax.apps.tasks.text.presets import preset
from treelax.apps.tasks.text.task import CLASSIFY
from treelax.apps.training.config import override
from treelax.apps.training.metrics import read_metrics
from treelax.apps.training.run import Run
from treelax.errors import InputError, RunInUseError, Terminated, TrainingError
from treelax.lab.analysis import sweep as module
from treelax.lab.analysis.sweep import (
    epochs_of,
    open_or_create,
    refuse_other_settings,
    run_name,
    sweep,
)
from treelax.lab.listops.task import LISTOPS

# stands for a process of trainings: rows of metrics, one after the other, then the result
WORKER = """
import json, sys, time
from pathlib import Path
epochs, fail = int(sys.argv[1]), sys.argv[2]
for line in sys.stdin:
    log, arguments = json.loads(line)
    folder, said = Path(arguments[arguments.index("--out") + 1]), open(log, "a")
    log = folder / "metrics.jsonl"
    done = len(log.read_text().splitlines()) if log.exists() else 0
    print("going on after", done, file=said, flush=True)
    for epoch in range(done + 1, epochs + 1):
        time.sleep(0.02)
        with log.open("a") as out:
            out.write(json.dumps({"epoch": epoch, "dev": {}}) + "\\n")
        if folder.name == fail:
            print("treelax: error: a reason\\n", file=said, flush=True)
            sys.exit(2)
    test = dict.fromkeys(("sentences tokens operators operator_accuracy token_accuracy attachment "
        "exact_trees soft_operator_accuracy soft_token_accuracy").split(), 1)
    test |= {"attachment_by_kind": {}, "by_length": [], "baselines": {}}
    keys = dict.fromkeys("seed max_length best_epoch epochs seconds".split(), 1)
    keys |= {"preset": "gold", "device": "CPU"}
    (folder / "test.json").write_text(json.dumps(keys | {"test": test}))
    print(flush=True)
"""


def folders(place: Path, configs: list[Any]) -> dict[Path, Any]:
    """The folders of runs in a sweep."""
    return {place / run_name(config): config for config in configs}


class Workers:
    """Starts processes that train nothing, and remembers what they were given."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fail, self.epochs = "", 3
        self.given: list[str] = []
        self.processes: list[subprocess.Popen[bytes]] = []
        popen, train = subprocess.Popen, module.Worker.train

        def start(command: list[str], **options: Any) -> subprocess.Popen[bytes]:
            instead = [sys.executable, "-I", "-c", WORKER, str(self.epochs), self.fail]
            self.processes.append(popen(instead, **options))
            return self.processes[-1]

        def remember(worker: Any, run: Run, device: str, *settings: str) -> None:
            self.given.append(run.path.name)
            train(worker, run, device, *settings)

        monkeypatch.setattr(subprocess, "Popen", start)
        monkeypatch.setattr(module.Worker, "train", remember)


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> Workers:
    monkeypatch.setattr(module, "POLL", 0.01)
    return Workers(monkeypatch)


CONFIGS = [tiny(preset, seed=seed) for preset in ("gold", "paper-mc") for seed in (0, 1)]
NAMES = ["gold-0", "gold-1", "paper-mc-0", "paper-mc-1"]


def test_all_runs_go_to_their_ends(tmp_path: Path, workers: Workers) -> None:
    reports: list[tuple[str, int, int]] = []

    def report(run: Run, row: dict[str, Any], epochs: int) -> None:
        reports.append((run.path.name, row["epoch"], epochs))

    runs = sweep(LISTOPS, folders(tmp_path, CONFIGS), device="cpu", jobs=3, report=report)
    assert [run.path.name for run in runs] == workers.given == NAMES
    assert all(LISTOPS.result(run) is not None for run in runs)
    assert len(workers.processes) == 3  # one of which has had two runs
    assert [run.config(ListOpsConfig) for run in runs] == CONFIGS
    # epochs may come in one go, but each run's last and the sum of all are reported
    assert {run: epoch for run, epoch, _ in reports} == dict.fromkeys(NAMES, 3)
    sums = [total for *_, total in reports]
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
    workers.fail = ""
    workers.given.clear()
    sweep(LISTOPS, folders(tmp_path, CONFIGS), device="cpu", jobs=2)
    assert workers.given == ["gold-1"]


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
    assert workers.given == []
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

    def train(worker: Any, run: Run, device: str, *settings: str) -> None:
        given.extend(settings)
        raise KeyboardInterrupt

    monkeypatch.setattr(module.Worker, "train", train)
    with pytest.raises(KeyboardInterrupt):
        sweep(CLASSIFY, folders(tmp_path, [moved]), device="cpu", jobs=1)
    assert override(config, given) == moved
    with pytest.raises(InputError, match=r"other settings \(data.trees none → \{split\}.conllu\)"):
        refuse_other_settings(CLASSIFY, run, override(config, ["data.trees={split}.conllu"]))


@pytest.mark.parametrize(
    ("number", "error"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated)]
)
def test_an_interrupted_sweep_goes_on(
    tmp_path: Path, workers: Workers, number: int, error: type[BaseException]
) -> None:
    def stop(run: Run, row: dict[str, Any], epochs: int) -> None:
        os.kill(os.getpid(), number)

    handler = signal.getsignal(signal.SIGTERM)
    workers.epochs = 1000
    with pytest.raises(error):
        sweep(LISTOPS, folders(tmp_path, CONFIGS), device="cpu", jobs=2, report=stop)
    assert signal.getsignal(signal.SIGTERM) is handler
    assert len(workers.processes) == 2
    assert [process.returncode for process in workers.processes] == [-signal.SIGTERM] * 2
    assert not list(tmp_path.glob("*/test.json"))

    done = {run: epochs_of(tmp_path / run) for run in workers.given}
    assert max(done.values()) > 0
    workers.epochs = max(done.values()) + 2
    runs = sweep(LISTOPS, folders(tmp_path, CONFIGS), device="cpu", jobs=4)
    assert all(LISTOPS.result(run) is not None for run in runs)
    for run in runs:
        assert len(read_metrics(run.path)) == workers.epochs
        log = (run.path / module.LOG).read_text()
        assert f"going on after {done.get(run.path.name, 0)}\n" in log


def test_runs_end_with_a_sweep_that_is_killed(tmp_path: Path) -> None:
    """Even by kill -9, which no process can catch: its standard input closes."""
    run = open_or_create(LISTOPS, tmp_path / "chain-0", tiny("chain"))
    worker = module.Worker(run, 1)
    worker.train(run, "cpu", "train.epochs=100000")
    while not run.metrics_file.exists():
        assert worker.answer() is None
        time.sleep(0.05)
    worker.stdin.close()
    worker.process.wait(600)
    assert worker.answer() is False
    worker.close()
    assert "ended by SIGTERM" in (run.path / module.LOG).read_text()
