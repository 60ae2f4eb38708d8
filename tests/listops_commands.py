"""``treelax train listops`` in this process: to its end, refused, or interrupted."""

from __future__ import annotations

from pathlib import Path

import pytest
from listops_runs import options
from typer.testing import CliRunner, Result

from treelax.cli.main import app, main
from treelax.training import loop

# a chain needs no parser, so its epochs are over in no time
QUICK = ["--preset", "chain", *options()]


def train(*arguments: object) -> Result:
    """Train in this process, to the end."""
    done = CliRunner().invoke(app, ["train", "listops", "--device", "cpu", *map(str, arguments)])
    assert done.exit_code == 0, (done.output, done.exception)
    return done


def fail(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The one line that the program says as it refuses."""
    capsys.readouterr()
    device = [] if "--device" in arguments else ["--device", "cpu"]
    assert main(["train", "listops", *device, *map(str, arguments)]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("treelax: error: ")
    assert output.err.count("\n") == 1
    return output.err.removeprefix("treelax: error: ").rstrip("\n")


def content(folder: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file()
    }


def interrupt(folder: Path, epoch: int, *arguments: object) -> None:
    """Press Ctrl-C before the checkpoint of an epoch."""
    original = loop.Training._save

    def save(self: loop.Training) -> None:
        if self.epoch == epoch:
            raise KeyboardInterrupt
        original(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop.Training, "_save", save)
        assert (
            main(
                ["train", "listops", "--device", "cpu", "--out", str(folder), *map(str, arguments)]
            )
            == 130
        )
