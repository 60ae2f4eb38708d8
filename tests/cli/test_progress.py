"""Progress: a bar on a terminal, plain lines elsewhere."""

import time

import pytest
from commands import bare, terminal_of_80

from treelax.apps.cli.progress import advancing, progress


@pytest.fixture
def clock(monkeypatch):
    """The time in its only place, to be set by the test."""
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_plain_progress_prints_now_and_then(capsys, clock):
    with progress("training", 1000, unit="step") as bar:
        for step in range(1, 1001):
            clock[0] += 0.1
            bar.update(step, note=f"loss {step}" if step % 100 == 0 else None)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 10
    assert lines[0] == "training: 100/1000 (10 %), loss 100, 10 step/s, 0:00:10 gone, 0:01:30 left"
    assert lines[-1] == "training: 1000/1000 (100 %), loss 1000, 10 step/s, 0:01:40 gone"


def test_plain_progress_of_slow_work_prints_every_half_minute(capsys, clock):
    with progress("training", 10_000) as bar:
        for _ in range(12):
            clock[0] += 10
            bar.advance()
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[1] for line in lines] == ["3/10000", "6/10000", "9/10000", "12/10000"]


def test_plain_progress_without_a_total_and_without_work(capsys, clock):
    with progress("reading") as bar:
        clock[0] += 3
        bar.advance(6)
    with progress("nothing", 0):
        pass
    assert capsys.readouterr().err == (
        "reading: 6/?, 2 steps/s, 0:00:03 gone\nnothing: 0/0, 0:00:00 gone\n"
    )


def test_a_bar_fits_into_80_columns(monkeypatch):
    terminal = terminal_of_80(monkeypatch)
    note = "epoch 12/100 loss 0.123 dev accuracy 95.1 attachment 88.2 and much else [beyond it]"
    with progress("training", 200_000, unit="update") as bar:
        bar.update(200_000, note)
    screens = bare(terminal.getvalue()).replace("\r", "\n").splitlines()
    assert max(map(len, screens)) <= 80
    assert any("200000/200000" in line and "gone" in line for line in screens)
    assert any(line.startswith("epoch 12/100 loss 0.123") for line in screens)


@pytest.mark.parametrize(("count", "told"), [(0, []), (3, [3]), (8, [4, 8]), (10, [4, 8, 10])])
def test_all_items_are_counted(monkeypatch, count, told):
    with progress("reading", transient=True) as bar:
        seen: list[int] = []
        update = bar.update
        monkeypatch.setattr(bar, "update", lambda done: (seen.append(done), update(done)))
        assert list(advancing(range(count), bar, every=4)) == list(range(count))
        assert (seen, bar.done) == (told, count)
