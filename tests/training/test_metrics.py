"""Metrics: lines that survive a kill, are forgotten on resume, and are shown by TensorBoard."""

from __future__ import annotations

import errno
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from treelax.errors import DataError, InputError
from treelax.training.metrics import MetricsLog, read_metrics

ROWS = [{"epoch": epoch, "loss": 1 / epoch} for epoch in (1, 2, 3)]


def logged(folder: Path, rows: list[dict[str, Any]], keep_until: int | None = None) -> Path:
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


def test_rows_are_appended(tmp_path: Path) -> None:
    path = logged(tmp_path, ROWS[:2])
    assert path.read_text() == '{"epoch": 1, "loss": 1.0}\n{"epoch": 2, "loss": 0.5}\n'
    logged(tmp_path, ROWS[2:])
    assert read_metrics(path) == read_metrics(tmp_path) == ROWS


def test_a_row_is_on_the_disk_when_append_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bytes] = []
    log = MetricsLog(tmp_path, keep_until=None)
    path = tmp_path / "metrics.jsonl"
    monkeypatch.setattr(os, "fsync", lambda descriptor: seen.append(path.read_bytes()))
    log.append({"epoch": 1})
    log.close()
    assert seen == [b'{"epoch": 1}\n']


def test_a_new_log_is_empty(tmp_path: Path) -> None:
    assert read_metrics(logged(tmp_path, [])) == []


def test_closing_twice_does_no_harm(tmp_path: Path) -> None:
    log = MetricsLog(tmp_path, keep_until=None)
    log.close()
    log.close()
    assert not log.tensorboard


# ------------------------------------------------------------------ values


def test_numbers_that_json_does_not_know_become_null(tmp_path: Path) -> None:
    row = {"epoch": 1, "a": math.nan, "b": {"c": [math.inf, 1.5]}, "d": (-math.inf,)}
    path = logged(tmp_path, [row])

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    read = json.loads(path.read_text(), parse_constant=refuse)
    assert read == {"epoch": 1, "a": None, "b": {"c": [None, 1.5]}, "d": [None]}


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(width=32) | st.text(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=4,
)


@given(st.lists(st.dictionaries(st.text().filter(lambda key: key != "epoch"), values), max_size=3))
def test_whatever_is_logged_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, batch: list[dict[str, Any]]
) -> None:
    rows = [{"epoch": epoch} | row for epoch, row in enumerate(batch)]
    path = logged(tmp_path_factory.mktemp("round-trip"), rows)
    assert read_metrics(path) == json.loads(json.dumps(rows), parse_constant=lambda _: None)
    assert len(path.read_bytes().splitlines()) == len(rows)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"loss": 1.0}, "^row: received epoch None; expected a whole number from 0"),
        ({"epoch": 1.0}, "received epoch 1.0"),
        ({"epoch": True}, "received epoch True"),
        ({"epoch": -1}, "received epoch -1"),
        ({"epoch": 1, "loss": torch.ones(())}, "received what is not JSON .*Tensor"),
        ({"epoch": 1, "a": {"b": {1}}}, "received what is not JSON .*set"),
        ({"epoch": 1, "a": "\ud800"}, "received what is not JSON .*surrogates"),
    ],
)
def test_rows_are_checked(tmp_path: Path, row: dict[str, Any], message: str) -> None:
    with MetricsLog(tmp_path, keep_until=None) as log:
        with pytest.raises(InputError, match=message):
            log.append(row)
        log.append(ROWS[0])
    assert read_metrics(tmp_path) == ROWS[:1]


# ------------------------------------------------------------------ kill, resume, full disk


@pytest.mark.parametrize("cut", range(1, len('{"epoch": 3, "loss": 0.3333333333333333}\n')))
def test_a_last_line_that_was_cut_off(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "metrics.jsonl"
    text = "".join(json.dumps(row) + "\n" for row in ROWS)
    path.write_text(text[:-cut])
    whole = 3 if cut == 1 else 2  # only the line end is missing
    assert read_metrics(path) == ROWS[:whole]
    if cut in (1, 2, 20):
        logged(tmp_path, ROWS[whole:])
        assert path.read_text() == text


def test_a_last_line_of_zeros_or_half_a_letter(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    for end in (b"\0" * 9, '{"epoch": 2, "ä'.encode()[:-1]):
        path.write_bytes(b'{"epoch": 1}\n' + end)
        assert read_metrics(path) == [{"epoch": 1}]


def test_resuming_forgets_later_rows(tmp_path: Path) -> None:
    path = logged(tmp_path, ROWS)
    with path.open("a") as out:
        out.write('{"epoch": 4, "lo')
    again = {"epoch": 3, "loss": 7.0}
    logged(tmp_path, [again], keep_until=2)
    assert read_metrics(path) == [*ROWS[:2], again]
    assert sorted(os.listdir(tmp_path)) == ["metrics.jsonl", "tensorboard"]
    logged(tmp_path, [], keep_until=0)
    assert path.read_bytes() == b""


def test_a_failed_rewrite_leaves_the_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = logged(tmp_path, ROWS)

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DataError, match=r"metrics.jsonl: was not written: .*No space left"):
        MetricsLog(tmp_path, keep_until=1)
    assert read_metrics(path) == ROWS
    assert sorted(os.listdir(tmp_path)) == ["metrics.jsonl", "tensorboard"]


def test_a_full_disk_leaves_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with MetricsLog(tmp_path, keep_until=None) as log:
        log.append(ROWS[0])
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            with pytest.raises(DataError) as caught:
                log.append(ROWS[1])
        assert str(caught.value) == (
            f"{tmp_path}/metrics.jsonl: the row of epoch 2 was not written: No space left on "
            "device; the rows before it are intact, mend that and use --resume"
        )
        log.append(ROWS[1])
    assert read_metrics(tmp_path) == ROWS[:2]
    assert shown(tmp_path)["loss"] == [(1, 1.0), (2, 0.5)]


@pytest.mark.skipif(sys.platform == "win32", reason="limits on file sizes are of POSIX")
def test_a_write_that_the_system_cuts_off(tmp_path: Path) -> None:
    code = (
        "import resource, sys\n"
        "from treelax.errors import DataError\n"
        "from treelax.training.metrics import MetricsLog\n"
        "sys.modules['tensorboard'] = None\n"
        "log = MetricsLog(sys.argv[1], keep_until=None)\n"
        "log.append({'epoch': 1})\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (30, 30))\n"
        "try:\n"
        "    log.append({'epoch': 2, 'text': 'x' * 100})\n"
        "except DataError as error:\n"
        "    print(error)\n"
        "log.append({'epoch': 3})\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert "the row of epoch 2 was not written: File too large" in done.stdout
    assert (tmp_path / "metrics.jsonl").read_text() == '{"epoch": 1}\n{"epoch": 3}\n'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"epoch": 1}\n{"ep\n{"epoch": 2}\n', "line 2: is not JSON"),
        (b'{"epoch": 1}\n{"ep\n', "line 2: is not JSON"),  # a line end follows: no kill did that
        (b'\n{"epoch": 1}\n', "line 1: is not JSON"),
        (b'{"epoch": 1, "x": "\xff"}\n', "line 1: is not JSON: .*utf-8"),
        (b'{"epoch": 1}\n[1]\n', "line 2: expected an object with a whole number epoch"),
        (b'{"epoch": 1}\n{"loss": 1}\n', "line 2: expected an object with a whole number epoch"),
        (b'{"epoch": "1"}\n', "line 1: expected an object with a whole number epoch"),
        (b"\0" * 40 + b'\n{"epoch": 2}\n', "line 1: is not JSON: .*; restore the file, or train"),
        (b"[" * 100_000 + b"\n", "line 1: is not JSON: .*; restore the file"),
    ],
)
def test_broken_lines(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(content)
    for call in (read_metrics, lambda _: MetricsLog(tmp_path, keep_until=0)):
        with pytest.raises(DataError, match=f"metrics.jsonl, {message}") as caught:
            call(path)
        assert "\n" not in str(caught.value)
    assert path.read_bytes() == content


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"/metrics.jsonl: does not exist; expected the metrics of"):
        read_metrics(tmp_path)
    with pytest.raises(DataError, match=r"metrics.jsonl: cannot be written: .*No such file"):
        MetricsLog(tmp_path / "nowhere", keep_until=None)


# ------------------------------------------------------------------ TensorBoard


def test_numbers_go_to_tensorboard(tmp_path: Path) -> None:
    with MetricsLog(tmp_path, keep_until=None) as log:
        assert log.tensorboard
        log.append({"epoch": 1, "loss": 0.5, "valid": {"f1": 2}, "best": True, "note": "x"})
        log.append({"epoch": 2, "loss": math.nan, "valid": {"f1": None}, "list": [1.0]})
        numbers = shown(tmp_path)  # on the disk while the log is open
    assert numbers.keys() == {"loss", "valid/f1"}
    assert numbers["valid/f1"] == [(1, 2.0)]
    assert numbers["loss"][0] == (1, 0.5)
    assert numbers["loss"][1][0] == 2
    assert math.isnan(numbers["loss"][1][1])


def test_tensorboard_forgets_what_resuming_forgets(tmp_path: Path) -> None:
    logged(tmp_path, ROWS)
    again = [{"epoch": 2, "loss": 7.0}, {"epoch": 3, "loss": 8.0}]
    logged(tmp_path, again, keep_until=1)
    assert shown(tmp_path)["loss"] == [(1, 1.0), (2, 7.0), (3, 8.0)]


def test_without_tensorboard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [n for n in sys.modules if n.startswith("torch.utils.tensorboard")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with MetricsLog(tmp_path, keep_until=None) as log:
        assert not log.tensorboard
        log.append(ROWS[0])
    assert read_metrics(tmp_path) == ROWS[:1]
    assert os.listdir(tmp_path) == ["metrics.jsonl"]


def test_where_tensorboard_cannot_write_the_rows_are_written_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "tensorboard").write_text("a file in its place")
    with MetricsLog(tmp_path, keep_until=None) as log:
        assert not log.tensorboard
        log.append(ROWS[0])
    assert read_metrics(tmp_path) == ROWS[:1]


def test_trouble_of_tensorboard_does_not_stop_a_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torch.utils.tensorboard import SummaryWriter

    def full(self: SummaryWriter) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with MetricsLog(tmp_path, keep_until=None) as log:
        log.append(ROWS[0])
        with monkeypatch.context() as patch:
            patch.setattr(SummaryWriter, "flush", full)
            log.append(ROWS[1])
        assert not log.tensorboard
        log.append(ROWS[2])
    assert read_metrics(tmp_path) == ROWS


KNOWN = [
    "UserWarning('pkg_resources is deprecated as an API. See the documentation')",
    "DeprecationWarning('Type google._upb._message.ScalarMapContainer uses PyType_Spec')",
    "DeprecationWarning('datetime.datetime.utcfromtimestamp() is deprecated and scheduled')",
]


@pytest.mark.parametrize("unknown", [[], ["UserWarning('something to worry about')"]])
def test_only_known_warnings_of_the_import_are_silent(tmp_path: Path, unknown: list[str]) -> None:
    """A stand-in that warns when imported, and is too old, in a process where warnings are errors."""
    (tmp_path / "tensorboard.py").write_text(
        "import warnings\n__version__ = '0.1'\n"
        + "".join(f"warnings.warn({warning})\n" for warning in KNOWN + unknown)
    )
    code = (
        "import sys, warnings\n"
        "from treelax.training.metrics import MetricsLog\n"
        "warnings.simplefilter('error')\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "with MetricsLog(sys.argv[1], keep_until=None) as log:\n"
        "    print('silent', log.tensorboard)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False
    )
    if unknown:
        assert "UserWarning: something to worry about" in done.stderr
    else:
        assert (done.stdout, done.stderr) == ("silent False\n", "")


def test_importing_the_module_does_not_load_tensorboard() -> None:
    code = "import sys, treelax.training.metrics; print('tensorboard' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
