"""Commands whose output can take nothing but ASCII: no error, and nothing that cannot be read."""

import io
import json
import shutil
import sys
from pathlib import Path

from listops_runs import options

from treelax.__main__ import main

SAMPLE = Path(__file__).parent.parent / "data" / "listops_sample.tsv"


def test_streams_that_take_ascii_alone(tmp_path, finished, monkeypatch):
    raw = io.BytesIO()
    for name in ("stdout", "stderr"):
        stream = io.TextIOWrapper(raw, encoding="ascii", errors="strict", write_through=True)
        monkeypatch.setattr(sys, name, stream)

    def output(*arguments, status=0):
        raw.seek(0)
        raw.truncate()
        assert main([*map(str, arguments)]) == status
        return raw.getvalue().decode("ascii")

    for seed in (0, 1):
        run = shutil.copytree(finished[0], tmp_path / "runs" / f"balanced-mc-{seed}")
        config = run / "config.toml"
        config.write_text(config.read_text().replace("\nseed = 5\n", f"\nseed = {seed}\n"))
        record = json.loads((run / "test.json").read_text()) | {"seed": seed}
        (run / "test.json").write_text(json.dumps(record))
    folders = ["--runs", tmp_path / "runs", "--results", tmp_path / "results"]
    table = ["table", "listops", "--report", "--rows", "balanced-mc", "--seeds", 2]
    for arguments, expected in (
        (["train", "listops", "--resume", "--device", "cpu", "--out", run], "|  11-20 |"),
        (["eval", run, "--data", SAMPLE], "|  11-20 |"),
        (["parse", run, "[MAX 2 9 ]", "--gold", "--device", "cpu"], "of 4 arcs right"),
        ([*table, *folders, *options()], " +- 0.00 "),
    ):
        text = output(*arguments)
        assert expected in text
        assert "\\" not in text
    assert " ± 0.00 " in (tmp_path / "results" / "table.md").read_text(encoding="utf-8")
    file = shutil.copy(SAMPLE, tmp_path / "\u8bcd.tsv")
    assert f"{tmp_path}/\\u8bcd.tsv: 12 expressions" in output("eval", run, "--data", file)
    line = output("eval", run, "--data", f"{file}x", status=2)
    assert f"{tmp_path}/\\u8bcd.tsvx: does not exist" in line
