"""Tasks on sentences: classes of texts, relations of pairs, tags of words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from treelax.apps.table import Cell, Table
from treelax.apps.tasks.base import Progress
from treelax.apps.tasks.sentences.origins import TrainingFile
from treelax.apps.tasks.sentences.task import SentenceTask
from treelax.apps.tasks.text.config import FILES, DataConfig, Kind, TextConfig
from treelax.apps.tasks.text.data import TextData, check_files, load_text
from treelax.apps.tasks.text.experiment import TextExperiment
from treelax.apps.tasks.text.presets import PRESETS
from treelax.apps.tasks.text.sources import training_files
from treelax.apps.training.results import NUMBER, expect
from treelax.errors import InputError

TITLES = {"classify": "text classification", "pair": "text pairs", "tag": "tagging"}


class TextTask(SentenceTask):
    """A kind of task on sentences."""

    config_type = TextConfig
    experiment_type = TextExperiment
    presets_by_name = PRESETS
    files = FILES
    unchecked = ("data.trees",)
    columns = ("data.text", "data.label")
    unit = "examples"
    kinds = dict.fromkeys(("training_examples", "mixed_examples", "updates"), int) | {
        "kind": str,
        "labels": list,
    }

    def __init__(self, kind: Kind) -> None:
        self.name = kind
        self.title = TITLES[kind]

    def presets(self, name: str) -> Mapping[str, str]:
        """The presets with the same data."""
        given = self.preset(name)
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
        self.check_transformers(configs)
        wanted = dict.fromkeys((c.data, c.model.pretrained is not None) for c in configs)
        texts = (_texts(data, whole, progress) for data, whole in wanted)
        return [data.fingerprint(tuple(data.splits), trees=False) for data in texts]

    def load(self, config: TextConfig, progress: Callable[[int, str], None]) -> TextData:
        return _texts(config.data, config.model.pretrained is not None, progress)

    def training_files(self, config: TextConfig) -> Iterable[TrainingFile]:
        return training_files(config.data)

    def describe(self, dev: Mapping[str, float]) -> str:
        return f"acc {dev['accuracy']:.2f}"

    def figures(self, experiment: TextExperiment, progress: Progress | None) -> dict[str, Any]:
        data = experiment.data
        splits = {name: experiment.figures(name) for name in data.splits if name != "train"}
        return {
            "kind": experiment.config.kind,
            "labels": list(experiment.labels),
            "training_examples": len(data.splits["train"]),
            "mixed_examples": data.mixed,
            "updates": experiment.updates,
            "data": data.fingerprint(("train", *splits), trees=False),
            "splits": splits,
        }

    def check_figures(self, figures: dict[str, Any]) -> None:
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


PAIR = TextTask("pair")
CLASSIFY = TextTask("classify")
TAG = TextTask("tag")
