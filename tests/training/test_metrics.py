"""Metrics: lines that survive a kill, are forgotten on resume, and are shown by TensorBoard."""

from __future__ import annotations

import errno
import json
import os
import sys
import time
from pathlib import Path

import pytest

from treelax.apps.training.metrics import MetricsLog, read_metrics
from treelax.errors import DataError

ROWS: list[dict[str, object]] = [
    {"epoch": epoch, "loss": 1 / epoch, "dev": {"score": epoch}} for epoch in (1, 2, 3)
]


def logged(folder: Path, rows: list[dict[str, object]], keep_until: int = 0) -> Path:
    with MetricsLog(folder, keep_until=keep_until) as log:
        for row in rows:
            log.append(row)
    return folder / "metrics.jsonl"


def shown(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """What TensorBoard shows: the steps and values of each number."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder / "tensorboard"))
    events.Reload()
    return {
        name: [(event.step, event.value) for event in events.Scalars(name)]
        for name in events.Tags()["scalars"]
    }


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_row_is_on_the_disk_when_append_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bytes] = []
    path = logged(tmp_path, ROWS[:1])
    monkeypatch.setattr(os, "fsync", lambda descriptor: seen.append(path.read_bytes()))
    logged(tmp_path, ROWS[1:2], keep_until=1)
    first = b'{"epoch": 1, "loss": 1.0, "dev": {"score": 1}}\n'
    assert seen == [first + b'{"epoch": 2, "loss": 0.5, "dev": {"score": 2}}\n']
    assert len(read_metrics(path)) == len(read_metrics(tmp_path)) == 2


def test_a_last_line_that_was_cut_off(tmp_path: Path) -> None:
    text = "".join(json.dumps(row) + "\n" for row in ROWS)
    path = tmp_path / "metrics.jsonl"
    for cut in (1, 2, 20, len(json.dumps(ROWS[-1]))):
        path.write_text(text[:-cut])
        whole = 3 if cut == 1 else 2  # only the line end is missing
        assert read_metrics(path) == ROWS[:whole]
        logged(tmp_path, ROWS[whole:], keep_until=3)
        assert path.read_text() == text


def test_resuming_forgets_later_rows(tmp_path: Path) -> None:
    path = logged(tmp_path, ROWS)
    with path.open("a") as out:
        out.write('{"epoch": 4, "lo')
    again = [{"epoch": 2, "loss": 7.0}, {"epoch": 3, "loss": 8.0}]
    time.sleep(1)  # TensorBoard reads files by name, and names hold the second
    logged(tmp_path, again, keep_until=1)
    assert read_metrics(path) == [ROWS[0], *again]
    assert shown(tmp_path)["loss"] == [(1, 1.0), (2, 7.0), (3, 8.0)]
    assert sorted(os.listdir(tmp_path)) == ["metrics.jsonl", "tensorboard"]


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with MetricsLog(tmp_path) as log, monkeypatch.context() as patch:
        log.append(ROWS[0])
        patch.setattr(os, "fsync", full)
        with pytest.raises(DataError, match=r"row of epoch 2 was not written: No space left"):
            log.append(ROWS[1])
    assert logged(tmp_path, ROWS[1:], keep_until=1).read_text().count("\n") == 3
    assert read_metrics(tmp_path) == ROWS


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"epoch": 1}\n{"ep\n', "line 2: is not JSON"),  # a line end follows: no kill did that
        (b'{"epoch": 1, "x": "\xff"}\n', "line 1: is not JSON: .*utf-8"),
        (b'{"epoch": 1}\n{"epoch": 3}\n', "line 2: received .*; expected the numbers of epoch 2"),
    ],
)
def test_broken_lines(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(content)
    for call in (read_metrics, MetricsLog):
        with pytest.raises(DataError, match=f"metrics.jsonl, {message}") as caught:
            call(tmp_path)
        assert "\n" not in str(caught.value)
    assert path.read_bytes() == content


def test_problems_of_tensorboard_do_not_stop_a_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torch.utils.tensorboard import SummaryWriter

    with MetricsLog(tmp_path) as log, monkeypatch.context() as patch:
        patch.setattr(SummaryWriter, "flush", full)
        for row in ROWS:
            log.append(row)
    assert read_metrics(tmp_path) == ROWS
    for name in [n for n in sys.modules if n.startswith("torch.utils.tensorboard")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tensorboard", None)  # not installed
    (tmp_path / "bare").mkdir()
    assert read_metrics(logged(tmp_path / "bare", ROWS)) == ROWS
    assert os.listdir(tmp_path / "bare") == ["metrics.jsonl"]
