"""What every task offers: how its models are trained, tested and loaded.

A task is one folder beside this file, with a `Task` in it, and one line in ``treelax.apps.tasks.TASKS``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from treelax.apps.table import Cell, Table
from treelax.apps.tasks.base import Heads, Progress
from treelax.apps.training.config import override
from treelax.apps.training.results import read_result
from treelax.errors import InputError

if TYPE_CHECKING:
    from treelax.apps.training.experiment import Experiment
    from treelax.apps.training.loop import Training
    from treelax.apps.training.run import Run

LIST_ALL = "--list shows all settings"


class Task(ABC):
    """How models of a task are trained, tested and loaded."""

    name: str  # in ``treelax.apps.tasks.TASKS``; stored in run folders
    title: str  # what it does, in a few words
    config_type: type[
        Any
    ]  # a dataclass with ``preset``, ``seed``, ``data``, ``model`` and ``train``
    files: ClassVar[Collection[str]] = ()  # settings that name files, which may move between runs
    # files whose content a table does not compare, so that they may not move
    unchecked: ClassVar[Collection[str]] = ()
    # settings that name columns of files, which say nothing of the experiment either
    columns: ClassVar[Collection[str]] = ()

    @abstractmethod
    def preset(self, name: str) -> Any:
        """The config of a preset."""

    @abstractmethod
    def presets(self, name: str) -> Mapping[str, str]:
        """The presets with the data of one, and what they are."""

    def configured(self, name: str, settings: Sequence[str]) -> Any:
        """The config of a preset with some settings changed, each ``key=value``."""
        config = override(self.preset(name), settings, list_all=LIST_ALL)
        if config.preset != name:
            raise InputError(
                f"preset: received the setting preset={config.preset}; expected the name of a preset "
                f"as an option, --preset {config.preset}, where the command has it"
            )
        return config

    def check_data(self, configs: Sequence[Any], progress: Callable[[int, str], None]) -> list[str]:
        """Raise what is wrong with the data of some configs; returns their fingerprints, if any."""
        return []

    @abstractmethod
    def experiment(
        self,
        config: Any,
        device: torch.device,
        folder: Path,
        tell: Callable[[str], None],
        progress: Callable[[int, str], None],
    ) -> Experiment:
        """Read the data and build the model of a run, whose folder need not be there yet.

        Args:
            tell: prints a line for the user.
            progress: called with the number of records read, and of what.
        """

    def prepare(self, run: Run, experiment: Experiment) -> None:  # noqa: B027
        """Put into the folder of a run what its model needs, before training reads it."""

    def begin(self, run: Run, training: Training) -> None:  # noqa: B027
        """Write what a run keeps beside its checkpoints, before the first update."""

    def test_size(self, experiment: Experiment) -> int | None:
        """What `finish` counts up to in its progress; None if it does not count."""
        return None

    @abstractmethod
    def headline(self, experiment: Experiment) -> str:
        """The sizes of a training, in a line."""

    @abstractmethod
    def describe(self, dev: Mapping[str, float]) -> str:
        """The dev figures of an epoch, in a few words."""

    @abstractmethod
    def finish(self, training: Training, progress: Progress | None = None) -> dict[str, Any]:
        """Test the model, which is the best one now; what it returns is kept as ``test.json``."""

    def drawn(self, training: Training) -> list[tuple[Sequence[str], Heads, Heads]]:
        """A few examples to draw after training: words, the heads found, the right ones."""
        return []

    @abstractmethod
    def check_result(self, record: dict[str, Any]) -> None:
        """Raise a ValueError, KeyError or TypeError if a ``test.json`` is not one of this task."""

    def result(self, run: Run) -> dict[str, Any] | None:
        """The ``test.json`` of a run, or None if it has not ended."""
        return read_result(run, self.check_result)

    @abstractmethod
    def result_tables(self, record: Mapping[str, Any]) -> list[Table]:
        """What ``test.json`` says, for people."""

    @abstractmethod
    def summary(self, record: Mapping[str, Any]) -> list[dict[str, Cell]]:
        """The main figures of a ``test.json`` by name, a row for each set that was tested on."""
