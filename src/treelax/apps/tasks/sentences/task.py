"""What the tasks on sentences share: presets, transformers, the record of files, the result."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from treelax.apps.data.batching import MOST_ARCS, draw_batches, length_batches
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
from treelax.nn.modes import evaluating
from treelax.nn.transformer import SubwordTransformer
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


ALL = slice(None)
PADDING, SUBWORD_PADDING = 8, 16  # on a GPU sizes are multiples: few shapes have to be captured
MOST_SENTENCES = 512  # of a batch in evaluation
MOST_IN_TRANSFORMER = 64  # which needs much more memory for a sentence
Shape = tuple[int, ...]  # padded words of each text of an example, then padded sub-words
Batches = list[tuple[Shape, Tensor]]  # with the indices of examples


class SentenceExperiment:
    """Model, data and loss of one run.

    A task adds ``draw``, which chooses the examples of an epoch, ``count_batch``, and the rest of
    `treelax.apps.training.experiment.Experiment`.
    """

    model: Any
    count_batch: Any
    num_texts = 1  # of an example
    counted: int  # counts of a batch
    sizes: Tensor  # the shape of every training example alone, on the host
    dev_data: Any
    dev: Batches
    transformer: SubwordTransformer | None
    epoch_size: int  # examples in a pass over the data

    def __init__(self, config: Any, data: Any, device: torch.device) -> None:
        self.config, self.data, self.device = config, data, device

    def make_model(self, make: Callable[..., Any], *given: Any) -> Any:
        """A model whose initial weights follow from the seed."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.config.seed)
            return make(*given).to(self.device)

    @property
    def updates(self) -> int:
        train = self.config.train
        return train.updates or max(1, self.epoch_size // train.batch_size)

    def undecayed(self) -> Collection[nn.Parameter]:
        """Matrices whose weights do not decay."""
        return ()

    def groups(self) -> list[dict[str, Any]]:
        """Parameters by the factor of their learning rate and by their weight decay."""
        decay = getattr(self.config.train, "weight_decay", 0.0)
        pretrained = None if self.transformer is None else self.transformer.model
        slow = set(map(id, () if pretrained is None else pretrained.parameters()))
        undecayed = set(map(id, self.undecayed()))
        groups: dict[tuple[float, float], list[nn.Parameter]] = {(1.0, 0.0): []}
        for parameter in self.model.parameters():
            rate = self.config.model.pretrained_rate if id(parameter) in slow else 1.0
            shrinks = parameter.dim() > 1 and id(parameter) not in undecayed  # no bias does
            groups.setdefault((rate, decay if shrinks else 0.0), []).append(parameter)
        return [
            {"params": parameters, "rate": rate, "weight_decay": shrink}
            for (rate, shrink), parameters in groups.items()
        ]

    def batches(self, seed: int) -> Batches:
        drawn = self.draw(torch.Generator().manual_seed(seed))
        longest = self.sizes[drawn].amax(1)
        if self.device.type == "cuda":
            step = torch.full_like(longest, PADDING)
            step[:, self.num_texts :] = SUBWORD_PADDING
            longest = -(-longest // step) * step
            if self.transformer is not None and self.transformer.limit is not None:
                longest[:, self.num_texts :].clamp_(max=self.transformer.limit)
        return list(zip(map(tuple, longest.tolist()), drawn, strict=True))

    def draw(self, generator: torch.Generator) -> Tensor:
        """The examples of all batches of an epoch, ``(updates, examples)``."""
        return self.draw_some(self.sizes, generator)

    def draw_some(self, sizes: Tensor, generator: torch.Generator) -> Tensor:
        train = self.config.train
        counts = {"batches": self.updates, "pool": train.pool}
        return draw_batches(sizes, train.batch_size, generator=generator, **counts)

    def evaluation_batches(self, sizes: Tensor, most_arcs: int = MOST_ARCS) -> Batches:
        """Batches of all examples, by length, so that they need little padding."""
        most = MOST_SENTENCES if self.transformer is None else MOST_IN_TRANSFORMER
        bounds = {"most_arcs": most_arcs, "most_sentences": most, "texts": self.num_texts}
        return [
            (tuple(sizes[places].amax(0).tolist()), torch.tensor(places, device=self.device))
            for places in length_batches(sizes.amax(1).tolist(), **bounds)
        ]

    def evaluate(self, part: slice = ALL) -> Tensor:
        return self.count(self.dev_data, self.dev[part])

    @torch.no_grad()
    def count(self, data: Any, batches: Batches, **options: Any) -> Tensor:
        """What ``count_batch`` counts, over some batches."""
        counts = torch.zeros(self.counted, dtype=torch.float64, device=self.device)
        with evaluating(self.model):
            for shape, indices in batches:
                counts += torch.stack(self.count_batch(data, shape, indices, **options))
        return counts
