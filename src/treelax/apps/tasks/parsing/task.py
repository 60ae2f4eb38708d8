"""Dependency parsing as a task: its training, its test, its models."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from treelax.apps.data.conllu import Sentence
from treelax.apps.data.tensor_files import fingerprint
from treelax.apps.table import Cell
from treelax.apps.tasks.base import Example, Heads, Progress
from treelax.apps.tasks.parsing.config import FILES, ParserConfig
from treelax.apps.tasks.parsing.evaluation import HEADINGS, KEYS, ParsingFigures
from treelax.apps.tasks.parsing.experiment import ParserExperiment, Treebanks, load_treebanks
from treelax.apps.tasks.parsing.parser import DependencyParser
from treelax.apps.tasks.parsing.presets import PRESETS
from treelax.apps.tasks.sentences.origins import TrainingFile, origins_of
from treelax.apps.tasks.sentences.task import SentenceTask
from treelax.apps.training.loop import Training

DRAWN, DRAWN_LENGTHS = 2, range(5, 13)  # sentences to draw, and their words


class Parsing(SentenceTask):
    """Dependency parsing."""

    name = "parser"
    title = "dependency parsing"
    config_type = ParserConfig
    experiment_type = ParserExperiment
    presets_by_name = PRESETS
    files = FILES
    unchecked = tuple(FILES - {f"data.{split}" for split in ("train", "dev", "test")})
    unit = "sentences"
    kinds = {"training_sentences": int}  # noqa: RUF012

    def check_data(
        self, configs: Sequence[ParserConfig], progress: Callable[[int, str], None]
    ) -> list[str]:
        self.check_transformers(configs)
        distinct = {tuple(self.training_files(config)): config for config in configs}.values()
        for config in distinct:
            load_treebanks(config, progress)
        return [data_sum(config) for config in distinct]

    def load(self, config: ParserConfig, progress: Callable[[int, str], None]) -> Treebanks:
        return load_treebanks(config, progress)

    def training_files(self, config: ParserConfig) -> Iterable[TrainingFile]:
        return config.data.training_files

    def describe(self, dev: Mapping[str, float]) -> str:
        return f"UAS {dev['uas']:.2f} LAS {dev['las']:.2f}"

    def test_size(self, experiment: ParserExperiment) -> int:  # type: ignore[override]
        return sum(len(s) for split in _tested(experiment).values() for s in split)

    def figures(self, experiment: ParserExperiment, progress: Progress | None) -> dict[str, Any]:
        parser, done, splits = _parser(experiment), 0, {}
        for name, sentences in _tested(experiment).items():
            advance = None if progress is None else partial(_advance, progress, done)
            examples = [Example((sentence,)) for sentence in sentences]
            splits[name] = parser.evaluate(examples, progress=advance).record()
            done += splits[name]["words"]
        return {
            "training_sentences": experiment.labelled,
            "data": data_sum(experiment.config),
            "splits": splits,
        }

    def drawn(self, training: Training) -> list[tuple[Sequence[str], Heads, Heads]]:
        experiment: ParserExperiment = training.experiment  # type: ignore[assignment]
        *_, split = _tested(experiment).values()
        chosen = [sentence for sentence in split if len(sentence) in DRAWN_LENGTHS][:DRAWN]
        predictions = zip(chosen, _parser(experiment).predict(chosen), strict=True)
        return [(s.words, p.heads[0], s.heads) for s, p in predictions if p.heads and s.heads]

    def check_figures(self, figures: dict[str, Any]) -> None:
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


def _advance(progress: Progress, done: int, words: int) -> None:
    progress(done + words)


def _tested(experiment: ParserExperiment) -> dict[str, list[Sentence]]:
    return {name: split for name, split in experiment.data.splits.items() if name != "train"}


def _parser(experiment: ParserExperiment) -> DependencyParser:
    lexicon = experiment.data.lexicon
    return DependencyParser(experiment.model, lexicon, experiment.config, "the parser")


def data_sum(config: ParserConfig) -> str:
    """Hash of the content of the treebanks of a config."""
    origins = origins_of(config.data.training_files)
    return fingerprint({name: origin.sha256 for name, origin in origins.items()}, ())


PARSER = Parsing()
