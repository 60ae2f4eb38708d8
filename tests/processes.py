"""Two processes that train together, started as torchrun starts them, without torchrun's own cost.

Run as a script, this file is one of them: it trains the runs on its command line, ``FOLDER`` or
``FOLDER=EPOCHS``. Then the second dies as if it were killed, while the first waits for it.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import torch

from treelax.apps.tasks.text.config import TextConfig
from treelax.apps.tasks.text.data import load_text
from treelax.apps.tasks.text.task import TextExperiment
from treelax.apps.training.checkpoint import save_checkpoint
from treelax.apps.training.distributed import joined
from treelax.apps.training.loop import Training
from treelax.apps.training.run import Run
from treelax.errors import TrainingError

SECONDS = 600  # more is a hang


def start(
    *commands: Sequence[str], env: dict[str, str] | None = None
) -> list[subprocess.Popen[str]]:
    """A process for each command line of Python, which are to find each other."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    size = str(len(commands))
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": size}
    return [
        subprocess.Popen(
            [sys.executable, *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ
            | quick_threads()
            | place
            | {"RANK": str(rank), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": size}
            | (env or {}),
        )
        for rank, command in enumerate(commands)
    ]


def quick_threads() -> dict[str, str]:
    """As in conftest.py: more threads would only wait for each other."""
    return {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}


def wait(processes: Sequence[subprocess.Popen[str]]) -> list[tuple[int, str, str]]:
    """Status, stdout and stderr of each; a hang ends all and fails."""
    try:
        texts = [process.communicate(timeout=SECONDS) for process in processes]
    finally:
        for process in processes:
            with suppress(ProcessLookupError):
                process.kill()
    return [(process.returncode, *text) for process, text in zip(processes, texts, strict=True)]


def train(folder: Path, epochs: int | None = None) -> Training:
    """Train the run in a folder until so many epochs are done, or to its end."""
    run = Run.open(folder)
    config = run.config(TextConfig)
    experiment = TextExperiment(config, load_text(config.data), torch.device("cpu"))
    training = Training(run, experiment)
    steps = training.steps()
    while training.epoch < (epochs or training.epochs):
        next(steps)
    steps.close()
    return training


if __name__ == "__main__":
    torch.set_num_threads(1)
    with joined() as world:
        world.check_same([1, "a"], "the same is the same")
        try:
            world.check_same(world.rank, "ranks are not the same")
        except TrainingError:
            pass
        else:
            sys.exit("two ranks were taken for the same")
        for job in sys.argv[1:]:
            folder, _, epochs = job.partition("=")
            training = train(Path(folder), int(epochs) if epochs else None)
            save_checkpoint(
                Path(folder, f"rank{world.rank}.safetensors"),
                training.model.state_dict(),
                kind="weights",
                state={"epoch": training.epoch, "best": training.best_epoch},
            )
        if world.rank == 1:
            os._exit(9)
        world.sum_(torch.zeros(1))
