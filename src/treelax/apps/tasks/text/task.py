"""Tasks on sentences: classes of texts, relations of pairs, tags of words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from treelax.apps.table import Cell, Table
from treelax.apps.tasks.base import Progress
from treelax.apps.tasks.task import Task
from treelax.apps.tasks.text.config import FILES, DataConfig, Kind, TextConfig
from treelax.apps.tasks.text.data import TextData, check_files, load_text
from treelax.apps.tasks.text.experiment import TextExperiment, evaluation_batches
from treelax.apps.tasks.text.model_files import WORDS, save_words
from treelax.apps.tasks.text.origins import refuse_other_data, write_origins
from treelax.apps.tasks.text.presets import PRESETS, preset
from treelax.apps.tasks.text.transformer import COPY, check_folder, copy_folder, with_own_copy
from treelax.apps.training.experiment import Experiment
from treelax.apps.training.loop import Training
from treelax.apps.training.results import NUMBER, Kinds, device_name, expect
from treelax.apps.training.run import CONFIG, Run
from treelax.errors import InputError, counted

KINDS: Kinds = {
    **dict.fromkeys(("preset", "kind", "device"), str),
    **dict.fromkeys(("seed", "training_examples", "best_epoch", "epochs", "updates"), int),
    "seconds": NUMBER,
    "labels": list,
    "splits": dict,
}
TITLES = {"classify": "text classification", "pair": "text pairs", "tag": "tagging"}
LATER = ("mixed_examples", "parameters")  # numbers that the first results did not have


class TextTask(Task):
    """A kind of task on sentences."""

    config_type = TextConfig
    files = FILES
    unchecked = ("data.trees",)
    columns = ("data.text", "data.label")

    def __init__(self, kind: Kind) -> None:
        self.name = kind
        self.title = TITLES[kind]

    def preset(self, name: str) -> TextConfig:
        return preset(name)

    def presets(self, name: str) -> Mapping[str, str]:
        """The presets with the same data."""
        given = preset(name)
        return {
            other: text
            for other, (config, text) in PRESETS.items()
            if (config.kind, config.data.format) == (given.kind, given.data.format)
        }

    def check_data(
        self, configs: Sequence[TextConfig], progress: Callable[[int, str], None]
    ) -> list[str]:
        """Find files that are missing first, then read and encode all data once."""
        for config in configs:
            if config.model.trees == "given" and config.data.trees is None:
                others = dict.fromkeys(c.preset for c in configs if c.model.trees != "given")
                raise InputError(
                    f"data.trees is none and {config.preset} takes given trees; expected --set "
                    "data.trees=FILES, such as trees/{split}.conllu, or other rows: --rows "
                    f"{','.join(others)}"
                )
        for data in dict.fromkeys(config.data for config in configs):
            check_files(data)
        for folder in dict.fromkeys(config.model.pretrained for config in configs):
            if folder is not None:
                check_folder(folder)
        wanted = dict.fromkeys((c.data, c.model.pretrained is not None) for c in configs)
        texts = (_texts(data, whole, progress) for data, whole in wanted)
        return [data.fingerprint(tuple(data.splits), trees=False) for data in texts]

    def experiment(
        self,
        config: TextConfig,
        device: torch.device,
        folder: Path,
        tell: Callable[[str], None],
        progress: Callable[[int, str], None],
    ) -> TextExperiment:
        model = with_own_copy(config.model, folder)
        if model.pretrained is not None:  # checked now, not when all texts have been read
            check_folder(model.pretrained)
        if (folder / CONFIG).exists():  # a run to go on with: a new one gets its folder later
            refuse_other_data(folder, config.data)
        data = _texts(config.data, model.pretrained is not None, progress)
        for split, notes in data.notes.items():
            for note in notes:
                tell(f"{split}: {note}")
        if data.coverage is not None:
            found, words = data.coverage
            tell(
                f"word vectors: {found:,} of {words:,} words of the data found "
                f"({100 * found / words:.1f} %), {words - found:,} unknown"
            )
            if 2 * found < words:
                tell(
                    "note: fewer than half of the words have a vector; are the vectors of the language "
                    "of the texts?"
                )
        return TextExperiment(config, data, device, model=model)

    def prepare(self, run: Run, experiment: Experiment) -> None:
        if experiment.config.model.pretrained is not None:
            copy_folder(experiment.config.model.pretrained, run.path / COPY)

    def begin(self, run: Run, training: Training) -> None:
        experiment: TextExperiment = training.experiment  # type: ignore[assignment]
        save_words(run.path / WORDS, experiment.data.vectors, experiment.labels)
        write_origins(run.path, experiment.config.data)

    def headline(self, experiment: TextExperiment) -> str:  # type: ignore[override]
        splits = experiment.data.splits
        sizes = {name: f"{name} {len(split):,}" for name, split in splits.items()}
        if experiment.mixed:
            sizes["train"] += f" ({experiment.mixed:,} of them mixed in)"
        epochs, updates = experiment.config.train.epochs, experiment.updates
        return (
            f"{', '.join(sizes.values())} examples, {counted(len(experiment.labels), 'label')}, "
            f"{counted(epochs, 'epoch')} of {counted(updates, 'update')}"
        )

    def describe(self, dev: Mapping[str, float]) -> str:
        return f"acc {dev['accuracy']:.2f}"

    def finish(self, training: Training, progress: Progress | None = None) -> dict[str, Any]:
        """Test the best model on dev and test, with discrete and with soft trees, once."""
        experiment: TextExperiment = training.experiment  # type: ignore[assignment]
        config = experiment.config
        names = [name for name in experiment.data.splits if name != "train"]
        splits = {name: _figures(experiment, name) for name in names}
        return {
            "preset": config.preset,
            "seed": config.seed,
            "kind": config.kind,
            "labels": list(experiment.labels),
            "training_examples": len(experiment.data.splits["train"]),
            "mixed_examples": experiment.mixed,
            "parameters": sum(p.numel() for p in experiment.model.parameters() if p.requires_grad),
            "best_epoch": training.best_epoch,
            "epochs": training.epochs,
            "updates": training.updates,
            "seconds": training.seconds,
            "device": device_name(experiment.device),
            "data": experiment.data.fingerprint(("train", *splits), trees=False),
            "splits": splits,
        }

    def check_result(self, record: dict[str, Any]) -> None:
        expect(record, KINDS)
        expect(record, {key: int for key in LATER if key in record})
        expect(record["splits"], {"dev": dict})
        for figures in record["splits"].values():
            expect(figures, dict.fromkeys(("examples", "accuracy", "soft_accuracy"), NUMBER))

    def summary(self, record: Mapping[str, Any]) -> list[dict[str, Cell]]:
        return [
            {
                "data": split,
                "examples": figures["examples"],
                "discrete trees": float(figures["accuracy"]),
                "soft trees": float(figures["soft_accuracy"]),
                "gap": float(figures["accuracy"] - figures["soft_accuracy"]),
            }
            for split, figures in record["splits"].items()
        ]

    def result_tables(self, record: Mapping[str, Any]) -> list[Table]:
        rows = [
            [split, row["examples"], f"{row['accuracy']:.2f}", f"{row['soft_accuracy']:.2f}"]
            for split, row in record["splits"].items()
        ]
        return [Table(["accuracy, %", "examples", "discrete trees", "soft trees"], rows)]


def _texts(config: DataConfig, whole: bool, progress: Callable[[int, str], None]) -> TextData:
    return load_text(config, lambda split, done, _: progress(done, split), whole_words=whole)


@torch.no_grad()
def _figures(experiment: TextExperiment, split: str) -> dict[str, float | int]:
    texts, device = experiment.data.splits[split], experiment.device
    data, batches = texts.to(device), evaluation_batches(texts, device, experiment.subwords[split])
    discrete, soft = (
        experiment.summary(experiment.count(data, batches, soft=which))["accuracy"]
        for which in (False, True)
    )
    return {"examples": len(data), "accuracy": discrete, "soft_accuracy": soft}


PAIR = TextTask("pair")
CLASSIFY = TextTask("classify")
TAG = TextTask("tag")
