"""Model, data and loss of a parser, for the training loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from treelax.apps.data.conllu import Sentence
from treelax.apps.data.tensor_files import fingerprint
from treelax.apps.table import Cell
from treelax.apps.tasks.base import Example, Heads, Progress
from treelax.apps.tasks.parsing.config import FILES, PRESETS, ModelConfig, ParserConfig
from treelax.apps.tasks.parsing.evaluation import HEADINGS, KEYS, ParsingFigures
from treelax.apps.tasks.parsing.lexicon import as_read, encode, encode_read
from treelax.apps.tasks.parsing.model import ParserModel, make_decoder, mixed_loss
from treelax.apps.tasks.parsing.parser import DependencyParser
from treelax.apps.tasks.parsing.treebank import Treebanks, load_treebanks
from treelax.apps.tasks.sentences.origins import TrainingFile, origins_of
from treelax.apps.tasks.sentences.task import SentenceExperiment, SentenceTask, Shape
from treelax.apps.tasks.sentences.transformer import SubwordTable
from treelax.apps.tasks.settings import for_batches
from treelax.apps.training.loop import Training
from treelax.errors import short


class ParserExperiment(SentenceExperiment):
    """Model, data and loss of one run."""

    task = "parser"
    files, counted = FILES, 3

    def __init__(
        self,
        config: ParserConfig,
        data: Treebanks,
        device: torch.device,
        *,
        model: ModelConfig | None = None,
    ) -> None:
        super().__init__(config, data, device)
        self.labels = data.lexicon.labels
        lexicon, words, tags = data.lexicon, data.vocabulary, config.data.tags
        self.model: ParserModel = self.make_model(self._network, model or config.model)
        self.transformer, subwords = self.model.words.transformer, self.model.words.subwords
        if subwords is not None:
            self._check_lengths(subwords)
        self.forms = lexicon.forms(list(words), subwords).to(device)
        self.universal = lexicon.universal.to(device)
        training, unseen = data.splits["train"], data.splits["dev"]
        some = training + data.unlabelled  # the labelled sentences, then the others
        everything = encode(some, lexicon, tags, words.ids(w for s in some for w in s.words))
        dev_forms, dev = encode_read(unseen, lexicon, tags, subwords)
        self.dev_forms = dev_forms.to(device)
        self.labelled, self.dev_data = len(training), dev.to(device)
        self.epoch_size = max(self.labelled, len(data.unlabelled))
        self.everything = everything.to(device)
        self.sizes = self.model.words.sizes(self.everything, self.forms).cpu()
        estimator = config.unlabelled.make_estimator()
        self.estimator = for_batches(
            estimator, round(2 * config.train.batch_size * float(everything.lengths.float().mean()))
        )
        self.mixed = self.begin(1)
        dev_sizes = self.model.words.sizes(self.dev_data, self.dev_forms).cpu()
        self.dev = self.evaluation_batches(dev_sizes, self.model.most_arcs)

    def _network(self, settings: ModelConfig) -> ParserModel:
        lexicon, data = self.data.lexicon, self.data
        model = ParserModel(settings, lexicon)
        if data.unlabelled:
            table = model.words.learned.weight
            sizes = (*table.shape, model.encoder.output_size)
            model.decoder = make_decoder(self.config.unlabelled, *sizes)
            # words that no tree has start from what the encoder sees of dropped ones
            seen = lexicon.forms([word for s in data.splits["train"] for word in s.words])
            table.data[~torch.isin(torch.arange(len(table)), seen.learned)] = 0
        return model

    def _check_lengths(self, subwords: SubwordTable) -> None:
        """Refuse sentences that are too long for a transformer, before training begins."""
        for split, sentences in self.data.splits.items():
            for sentence in sentences:
                read = sentence.words if split == "train" else as_read(sentence, self.data.lexicon)
                file = getattr(self.config.data, split)
                subwords.check_length(read, f"{file}, line {sentence.line}")
        for sentence in self.data.unlabelled:
            subwords.check_length(sentence.words, f"unlabelled: {short(sentence.text)}")

    def groups(self) -> list[dict[str, Any]]:
        """As of all tasks, with Adam's decay rates."""
        betas = (0.9, self.config.train.second_moment)
        return [group | {"betas": betas} for group in super().groups()]

    def begin(self, epoch: int) -> bool:
        """Take unlabelled sentences into batches after the first epochs; returns whether they are."""
        self.mixed = bool(self.data.unlabelled) and epoch > self.config.unlabelled.warm_up
        return self.mixed

    def fingerprint(self) -> str:
        lexicon = self.data.lexicon
        used = self.everything.columns[:, 0].unique()
        words = [self.data.vocabulary.word(number) for number in used.tolist()]
        words += [word for sentence in self.data.splits["dev"] for word in sentence.words]
        facts = [words, lexicon.words, lexicon.characters, lexicon.tags, lexicon.labels]
        tensors = [
            part
            for data in (self.everything, self.dev_data)
            for part in (data.columns, data.offsets)
        ]
        if lexicon.vectors is not None:
            for rows in (self.forms.vectors[used], self.dev_forms.vectors):
                tensors.append(lexicon.vectors.matrix[rows.cpu()])
        return fingerprint(facts, tensors)

    def draw(self, generator: torch.Generator) -> Tensor:
        """Labelled sentences, and as many others beside them, by length, for little padding."""
        drawn = self.draw_some(self.sizes[: self.labelled], generator)
        if not self.mixed:
            return drawn
        both = [drawn, self.labelled + self.draw_some(self.sizes[self.labelled :], generator)]
        both = [rows[self.sizes[rows].amax((1, 2)).argsort(stable=True)] for rows in both]
        return torch.cat(both, 1)[torch.randperm(self.updates, generator=generator)]

    def loss(self, shape: Shape, indices: Tensor, generator: torch.Generator) -> Tensor:
        """The loss of a batch per word."""
        batch = self.everything.batch(indices, *shape)
        if self.model.decoder is None:
            losses = self.model.loss(batch, self.forms)
        else:
            labelled = indices < self.labelled
            settings = (self.config.unlabelled, self.estimator)
            losses = mixed_loss(self.model, *settings, batch, self.forms, labelled, generator)
        return losses.sum() / batch.lengths.sum()

    def loss_weight(self, shape: Shape, indices: Tensor) -> Tensor:
        """The number of words of a batch."""
        return (self.everything.offsets[indices + 1] - self.everything.offsets[indices]).sum()

    def count_batch(self, data: Any, shape: Shape, indices: Tensor, **options: Any) -> list[Tensor]:
        """Right heads, right heads with the universal part of their labels right, and words."""
        batch = data.batch(indices, *shape)
        vertices = self.model.vertices(batch, self.dev_forms)
        heads = self.model.trees(vertices, batch.lengths).mode[..., 1:].argmax(-2)
        labels = self.universal[self.model.label_scores(vertices, heads).argmax(-1)]
        inside = torch.arange(shape[0], device=self.device) < batch.lengths[:, None]
        attached = (heads == batch.heads) & inside
        return [attached.sum(), (attached & (labels == batch.universal)).sum(), inside.sum()]

    @staticmethod
    def summary(counts: Tensor) -> dict[str, float]:
        """UAS and LAS in percent; LAS, as ``score``, chooses the best model."""
        attached, right, words = counts.tolist()
        las = 100 * right / max(words, 1)
        return {"score": las, "uas": 100 * attached / max(words, 1), "las": las}


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

    def figures(self, experiment: ParserExperiment, progress: Progress) -> dict[str, Any]:
        parser, done, splits = _parser(experiment), 0, {}
        for name, sentences in _tested(experiment).items():
            examples = [Example((sentence,)) for sentence in sentences]
            figures = parser.evaluate(
                examples,
                progress=lambda n, done=done: progress(done + n),  # type: ignore[misc]
            )
            splits[name] = figures.record()
            done += figures.words
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
