"""What the tasks on sentences share: presets, transformers, the record of files, the result."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch

from treelax.apps.table import Table
from treelax.apps.tasks.base import Progress
from treelax.apps.tasks.sentences.origins import TrainingFile, refuse_other_data, write_origins
from treelax.apps.tasks.sentences.transformer import COPY, check_folder, copy_folder, with_own_copy
from treelax.apps.tasks.task import Task
from treelax.apps.training.experiment import Experiment
from treelax.apps.training.loop import Training
from treelax.apps.training.results import KINDS, Kinds, expect, run_facts
from treelax.apps.training.run import CONFIG, Run
from treelax.errors import counted
from treelax.ops.checks import one_of

WORDS = "words.safetensors"  # in the folder of a run


class SentenceTask(Task):
    """A task on sentences."""

    experiment_type: Callable[..., Any]  # of config, data, device and the settings of the ``model``
    presets_by_name: Mapping[str, tuple[Any, str]]  # all configs, and what they are
    kinds: ClassVar[Kinds] = {}  # of what ``test.json`` has beyond `KINDS`
    unit: str  # what training counts

    @abstractmethod
    def load(self, config: Any, progress: Callable[[int, str], None]) -> Any:
        """The data of a config, with ``splits``, ``messages`` for people and ``save_words``."""

    @abstractmethod
    def training_files(self, config: Any) -> Iterable[TrainingFile]:
        """The files that a config names."""

    @abstractmethod
    def figures(self, experiment: Any, progress: Progress) -> dict[str, Any]:
        """What a result has beyond the facts of `finish`: ``splits`` with the figures of each."""

    @abstractmethod
    def check_figures(self, figures: dict[str, Any]) -> None:
        """Raise if the figures of a split are not of this task."""

    def preset(self, name: str) -> Any:
        one_of("preset", name, tuple(self.presets_by_name))
        return self.presets_by_name[name][0]

    def presets(self, name: str) -> Mapping[str, str]:
        return {preset: text for preset, (_, text) in self.presets_by_name.items()}

    def check_transformers(self, configs: Sequence[Any]) -> None:
        """Refuse folders of transformers that hold none, before data are read."""
        for folder in dict.fromkeys(config.model.pretrained for config in configs):
            if folder is not None:
                check_folder(folder)

    def experiment(
        self,
        config: Any,
        device: torch.device,
        folder: Path,
        tell: Callable[[str], None],
        progress: Callable[[int, str], None],
    ) -> Any:
        model = with_own_copy(config.model, folder)
        if model.pretrained is not None:  # checked now, not when all sentences have been read
            check_folder(model.pretrained)
        if (folder / CONFIG).exists():  # a run to resume: a new one gets its folder later
            refuse_other_data(folder, self.training_files(config))
        data = self.load(config, progress)
        for message in data.messages:
            tell(message)
        return self.experiment_type(config, data, device, model=model)

    def prepare(self, run: Run, experiment: Experiment) -> None:
        if experiment.config.model.pretrained is not None:
            copy_folder(experiment.config.model.pretrained, run.path / COPY)

    def begin(self, run: Run, training: Training) -> None:
        experiment: Any = training.experiment
        experiment.data.save_words(run.path / WORDS)
        write_origins(run.path, self.training_files(experiment.config))

    def headline(self, experiment: Any) -> str:
        sizes = {name: f"{name} {len(data):,}" for name, data in experiment.data.splits.items()}
        if mixed := getattr(experiment.data, "mixed", 0):
            sizes["train"] += f" ({mixed:,} of them mixed in)"
        return (
            f"{', '.join(sizes.values())} {self.unit}, {counted(len(experiment.labels), 'label')}, "
            f"{counted(experiment.config.train.epochs, 'epoch')} of "
            f"{counted(experiment.updates, 'update')}"
        )

    def finish(self, training: Training, progress: Progress | None = None) -> dict[str, Any]:
        """Test the best model on all splits but training, once."""
        weights = (p.numel() for p in training.model.parameters() if p.requires_grad)
        figures = self.figures(training.experiment, progress or (lambda words: None))
        return {**run_facts(training), "parameters": sum(weights), **figures}

    def check_result(self, record: dict[str, Any]) -> None:
        expect(record, {**KINDS, "parameters": int, "splits": dict, **self.kinds})
        expect(record["splits"], {"dev": dict})
        for figures in record["splits"].values():
            self.check_figures(figures)

    def result_tables(self, record: Mapping[str, Any]) -> list[Table]:
        rows = self.summary(record)
        return [Table(list(rows[0]), [list(row.values()) for row in rows])]
