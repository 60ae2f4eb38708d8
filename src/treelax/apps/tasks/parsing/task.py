"""Dependency parsing as a task: its training, its test, its models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from treelax.apps.data.conllu import Sentence
from treelax.apps.data.tensor_files import fingerprint
from treelax.apps.table import Cell, Table
from treelax.apps.tasks.base import Example, Heads, Progress
from treelax.apps.tasks.parsing.config import FILES, ParserConfig
from treelax.apps.tasks.parsing.evaluation import HEADINGS, KEYS, ParsingFigures
from treelax.apps.tasks.parsing.experiment import ParserExperiment, load_treebanks
from treelax.apps.tasks.parsing.parser import WORDS, DependencyParser
from treelax.apps.tasks.parsing.presets import ALL_PRESETS
from treelax.apps.tasks.task import Task
from treelax.apps.tasks.text.origins import (
    origins_of,
    refuse_other_data,
    write_origins,
)
from treelax.apps.tasks.text.transformer import COPY, check_folder, copy_folder, own_copy
from treelax.apps.training.experiment import Experiment
from treelax.apps.training.loop import Training
from treelax.apps.training.results import NUMBER, Kinds, device_name, expect
from treelax.apps.training.run import CONFIG, Run
from treelax.errors import counted
from treelax.ops.checks import one_of

KINDS: Kinds = {
    **dict.fromkeys(("preset", "device"), str),
    **dict.fromkeys(("seed", "training_sentences", "parameters", "best_epoch", "epochs"), int),
    "seconds": NUMBER,
    "splits": dict,
}
DRAWN, DRAWN_LENGTHS = 2, range(5, 13)  # sentences to draw, and their words


class Parsing(Task):
    """Dependency parsing."""

    name = "parser"
    title = "dependency parsing"
    config_type = ParserConfig
    files = FILES
    unchecked = tuple(FILES - {f"data.{split}" for split in ("train", "dev", "test")})

    def preset(self, name: str) -> ParserConfig:
        one_of("preset", name, tuple(ALL_PRESETS))
        return ALL_PRESETS[name][0]

    def presets(self, name: str) -> Mapping[str, str]:
        return {preset: text for preset, (_, text) in ALL_PRESETS.items()}

    def check_data(
        self, configs: Sequence[ParserConfig], progress: Callable[[int, str], None]
    ) -> list[str]:
        for folder in dict.fromkeys(config.model.pretrained for config in configs):
            if folder is not None:
                check_folder(folder)
        distinct = {config.data.files: config for config in configs}.values()
        for config in distinct:
            load_treebanks(config, progress)
        return [data_sum(config) for config in distinct]

    def experiment(
        self,
        config: ParserConfig,
        device: torch.device,
        folder: Path,
        tell: Callable[[str], None],
        progress: Callable[[int, str], None],
    ) -> ParserExperiment:
        model = replace(config.model, pretrained=own_copy(config.model.pretrained, folder))
        if model.pretrained is not None:  # checked now, not when all sentences have been read
            check_folder(model.pretrained)
        if (folder / CONFIG).exists():  # a run to go on with: a new one gets its folder later
            refuse_other_data(folder, config.data.files)
        data = load_treebanks(config, progress)
        for note in data.notes:
            tell(note)
        return ParserExperiment(config, data, device, model=model)

    def prepare(self, run: Run, experiment: Experiment) -> None:
        if experiment.config.model.pretrained is not None:
            copy_folder(experiment.config.model.pretrained, run.path / COPY)

    def begin(self, run: Run, training: Training) -> None:
        experiment: ParserExperiment = training.experiment  # type: ignore[assignment]
        experiment.data.lexicon.save(run.path / WORDS)
        write_origins(run.path, experiment.config.data.files)

    def headline(self, experiment: ParserExperiment) -> str:  # type: ignore[override]
        data = experiment.data
        sizes = ", ".join(f"{name} {len(split):,}" for name, split in data.splits.items())
        return (
            f"{sizes} sentences, {counted(len(data.lexicon.labels), 'label')}, "
            f"{counted(experiment.config.train.epochs, 'epoch')} of "
            f"{counted(experiment.updates, 'update')}"
        )

    def describe(self, dev: Mapping[str, float]) -> str:
        return f"UAS {dev['uas']:.2f} LAS {dev['las']:.2f}"

    def test_size(self, experiment: ParserExperiment) -> int:  # type: ignore[override]
        return sum(len(s) for split in _tested(experiment).values() for s in split)

    def finish(self, training: Training, progress: Progress | None = None) -> dict[str, Any]:
        experiment: ParserExperiment = training.experiment  # type: ignore[assignment]
        parser, done, splits = _parser(experiment), 0, {}
        for name, sentences in _tested(experiment).items():

            def tell(words: int, before: int = done) -> None:
                if progress is not None:
                    progress(before + words)

            examples = [Example((sentence,)) for sentence in sentences]
            splits[name] = parser.evaluate(examples, progress=tell).record()
            done += splits[name]["words"]
        return {
            "preset": experiment.config.preset,
            "seed": experiment.config.seed,
            "training_sentences": experiment.labelled,
            "parameters": sum(p.numel() for p in experiment.model.parameters()),
            "best_epoch": training.best_epoch,
            "epochs": training.epochs,
            "seconds": training.seconds,
            "device": device_name(experiment.device),
            "data": data_sum(experiment.config),
            "splits": splits,
        }

    def drawn(self, training: Training) -> list[tuple[Sequence[str], Heads, Heads]]:
        experiment: ParserExperiment = training.experiment  # type: ignore[assignment]
        *_, split = _tested(experiment).values()
        chosen = [sentence for sentence in split if len(sentence) in DRAWN_LENGTHS][:DRAWN]
        predictions = zip(chosen, _parser(experiment).predict(chosen), strict=True)
        return [(s.words, p.heads[0], s.heads) for s, p in predictions if p.heads and s.heads]

    def check_result(self, record: dict[str, Any]) -> None:
        expect(record, KINDS)
        expect(record["splits"], {"dev": dict})
        for figures in record["splits"].values():
            ParsingFigures(**figures).tables("")

    def summary(self, record: Mapping[str, Any]) -> list[dict[str, Cell]]:
        return [
            {
                "data": split,
                "sentences": figures["sentences"],
                "words": figures["words"],
                **{name: float(figures[key]) for name, key in zip(HEADINGS, KEYS, strict=True)},
                "LAS without punctuation": float(figures["without_punctuation"]["las"]),
            }
            for split, figures in record["splits"].items()
        ]

    def result_tables(self, record: Mapping[str, Any]) -> list[Table]:
        rows = self.summary(record)
        return [Table(list(rows[0]), [list(row.values()) for row in rows])]


def _tested(experiment: ParserExperiment) -> dict[str, list[Sentence]]:
    return {name: split for name, split in experiment.data.splits.items() if name != "train"}


def _parser(experiment: ParserExperiment) -> DependencyParser:
    lexicon = experiment.data.lexicon
    return DependencyParser(experiment.model, lexicon, experiment.config, "the parser")


def data_sum(config: ParserConfig) -> str:
    """Hash of the content of the treebanks of a config."""
    origins = origins_of(config.data.files)
    return fingerprint({name: origin.sha256 for name, origin in origins.items()}, ())


PARSER = Parsing()
