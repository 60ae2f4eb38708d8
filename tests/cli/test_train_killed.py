"""A run that is killed, however often, goes on and ends with the numbers it would have had."""

import random
import signal
import subprocess
import sys

import pytest
from listops_runs import metrics, options, result

from treelax.__main__ import main
from treelax.apps.training.checkpoint import load_checkpoint

EPOCHS = 8
SETTINGS = ["--preset", "paper-mc", *options(train__epochs=EPOCHS, train__patience=1)]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kill -9 is of POSIX")


# ends itself like kill -9, between two operations on the files of the run: at a count of them that comes
# when there are so many rows of metrics, or settings alone
KILLED = """
import os, signal, sys
folder, least, more = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
looking = False

def count(event, arguments):
    global looking, more
    if looking or event not in ("open", "os.rename") or folder not in str(arguments[0]):
        return
    if not os.path.exists(os.path.join(folder, "config.toml")):
        return
    looking = True
    file = os.path.join(folder, "metrics.jsonl")
    rows = open(file, "rb").read().count(b"\\n") if os.path.exists(file) else 0
    more -= rows >= least
    if more < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    looking = False

sys.addaudithook(count)
from treelax.__main__ import main
sys.exit(main(sys.argv[4:]))
"""


def command(folder, *arguments):
    return ["train", "listops", "--device", "cpu", "--out", str(folder), "--resume", *arguments]


def rows(folder):
    file = folder / "metrics.jsonl"
    return file.read_bytes().count(b"\n") if file.exists() else 0


def test_kill_9_at_random_moments(tmp_path, capsys):
    folder, chance = tmp_path / "killed", random.Random(20190601)
    killed_after = []
    # soon after the settings are there; some epochs later; some epochs after that
    for kill in range(3):
        least = rows(folder) + chance.randint(1, 2) if kill else 0
        killed = [sys.executable, "-c", KILLED, str(folder), str(least), str(chance.randint(1, 6))]
        arguments = SETTINGS if kill == 0 else []
        done = subprocess.run(
            [*killed, *command(folder, *arguments)], capture_output=True, text=True
        )
        assert done.returncode == -signal.SIGKILL, done.stderr
        assert not (folder / "test.json").exists()
        killed_after.append(rows(folder))
    assert 0 < killed_after[1] < killed_after[2] < EPOCHS
    last = load_checkpoint(folder / "checkpoint" / "last.safetensors").state["epoch"]
    assert killed_after[2] - 1 <= last <= killed_after[2]

    assert main(command(folder)) == 0
    assert f"going on after epoch {last} of {EPOCHS}" in "".join(capsys.readouterr())

    straight = tmp_path / "straight"
    assert main(command(straight, *SETTINGS)) == 0
    assert metrics(folder) == metrics(straight)
    assert result(folder) == result(straight)
