"""Commands whose output can take nothing but ASCII: no error, and nothing that cannot be read."""

import io
import json
import shutil
import sys
from pathlib import Path

from listops_runs import QUICK, options

from treelax.__main__ import main

SAMPLE = Path(__file__).parent.parent / "data" / "listops_sample.tsv"


class Said:
    """What is said on both streams while they refuse all but ASCII."""

    def __init__(self, monkeypatch):
        self.raw = io.BytesIO()
        for name in ("stdout", "stderr"):
            stream = io.TextIOWrapper(self.raw, encoding="ascii", errors="strict")
            stream.reconfigure(write_through=True)
            monkeypatch.setattr(sys, name, stream)

    def text(self):
        return self.raw.getvalue().decode("ascii")


def test_train_and_eval(tmp_path, monkeypatch):
    said = Said(monkeypatch)
    folder = tmp_path / "run"
    assert main(["train", "listops", "--device", "cpu", "--out", str(folder), *QUICK]) == 0
    assert main(["eval", str(folder), "--data", str(SAMPLE)]) == 0
    assert main(["eval", str(folder), "--data", str(SAMPLE), "--json"]) == 0
    assert main(["parse", str(folder), "[MAX 2 9 ]", "--gold", "--device", "cpu"]) == 0
    text = said.text()
    assert text.count("|  11-20 |") == 2
    assert "of 12 arcs right" in text
    assert "\\" not in text


def test_table(tmp_path, finished, monkeypatch):
    said = Said(monkeypatch)
    for seed in (0, 1):
        run = shutil.copytree(finished[0], tmp_path / "runs" / f"balanced-mc-{seed}")
        config = run / "config.toml"
        config.write_text(config.read_text().replace("\nseed = 5\n", f"\nseed = {seed}\n"))
        record = json.loads((run / "test.json").read_text()) | {"seed": seed}
        (run / "test.json").write_text(json.dumps(record))
    folders = ["--runs", str(tmp_path / "runs"), "--results", str(tmp_path / "results")]
    command = ["table", "listops", "--report", "--rows", "balanced-mc", "--seeds", "2"]
    assert main([*command, *folders, *options()]) == 0
    text = said.text()
    assert " +- 0.00 " in text
    assert "\\" not in text
    assert " ± 0.00 " in (tmp_path / "results" / "table.md").read_text(encoding="utf-8")


def test_an_error_and_a_file_of_any_name(tmp_path, monkeypatch):
    said = Said(monkeypatch)
    file = shutil.copy(SAMPLE, tmp_path / "\u8bcd.tsv")
    assert main(["eval", "listops", "--device", "cpu", "--data", str(file)]) == 0
    assert main(["eval", "listops", "--data", f"{file}x"]) == 2
    text = said.text()
    assert f"{tmp_path}/\\u8bcd.tsv: 12 expressions" in text
    assert f"{tmp_path}/\\u8bcd.tsvx: does not exist" in text
