"""One of two processes that train the runs named on the command line: ``FOLDER`` or ``FOLDER=EPOCHS``.

At last the second dies without a word, as if it were killed, while the first waits for it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import torch

from treelax.errors import TrainingError
from treelax.tasks.listops.config import ListOpsConfig
from treelax.tasks.listops.experiment import ListOpsExperiment
from treelax.tasks.text.config import TextConfig
from treelax.tasks.text.data import load_text
from treelax.tasks.text.experiment import TextExperiment
from treelax.training.checkpoint import save_checkpoint
from treelax.training.loop import Training
from treelax.training.processes import joined
from treelax.training.run import Run


def train(folder: Path, epochs: int | None = None) -> Training:
    """Train the run in a folder until so many epochs are done, or to its end."""
    run = Run.open(folder)
    cpu = torch.device("cpu")
    if run.task == "listops":
        training = Training(run, ListOpsExperiment(run.config(ListOpsConfig), cpu))
    else:
        config = run.config(TextConfig)
        training = Training(run, TextExperiment(config, load_text(config.data), cpu))
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
