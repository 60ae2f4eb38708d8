"""``treelax train`` in two processes: one speaks and writes, both end, whatever happens."""

import os
import subprocess
import sys

import pytest
from listops_runs import metrics, options, result
from processes import SECONDS, quick_threads, start, wait

from treelax.__main__ import main

SMALL = ["data.vector_size=6", "model.gcn_size=6", "model.scorer_size=6", "model.output_size=6"]
SMALL += ["train.epochs=2", "train.batch_size=5", "train.updates=4", "train.threads=1"]


def listops(folder, *more):
    return ["train", "listops", "--out", str(folder), "--device", "cpu", *more]


def classify(folder, file):
    settings = [word for setting in SMALL for word in ("--set", setting)]
    files = ["--train", str(file), "--dev", str(file), "--test", str(file), "--tokens"]
    return ["train", "classify", *files, "--out", str(folder), "--device", "cpu", *settings]


def test_torchrun_gives_what_one_process_gives(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("TREELAX_CACHE", str(tmp_path / "cache"))
    file, alone, folder = tmp_path / "data.tsv", tmp_path / "alone", tmp_path / "run"
    texts = ["a dog barks\tyes", "cats\tno", "birds sing here\tno", "the old dog\tyes", "hi\tno"]
    file.write_text("\n".join(["text\tlabel", *texts, *texts, ""]))
    assert main(classify(alone, file)) == 0
    program = ["torch.distributed.run", "--nproc-per-node", "2", "--standalone", "-m", "treelax"]
    done = subprocess.run(
        [sys.executable, "-m", *program, *classify(folder, file)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env=os.environ | quick_threads(),
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == capsys.readouterr().out.replace(str(alone), str(folder))
    assert done.stderr.count("on cpu in 2 processes: train 10") == 1
    assert result(folder) == result(alone)
    for received, expected in zip(metrics(folder), metrics(alone), strict=True):
        assert received.pop("loss") == pytest.approx(expected.pop("loss"), rel=1e-5)
        assert received == expected
    assert not list(folder.rglob("*.tmp"))


def test_trouble_in_one_process_ends_both(tmp_path):
    """The second has no GPU; that is known before there is a folder."""
    folder = tmp_path / "run"
    program = ["-m", "treelax", *listops(folder, *options())]
    other = ["cuda:7" if word == "cpu" else word for word in program]
    first, second = wait(start(program, other))
    assert first[0] == second[0] == 2
    [line] = second[2].splitlines()
    assert line.startswith("treelax: error: process 1 on ")
    assert "device is 'cuda:7'" in line
    [line] = first[2].splitlines()
    assert line.startswith("treelax: error: another process of this training has ended or cannot")
    assert not folder.exists()
