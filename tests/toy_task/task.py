"""Settings, model, loss and metrics of the toy task, and what its trained models can do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from treelax.apps.data.conllu import Sentence
from treelax.apps.data.tensor_files import fingerprint
from treelax.apps.table import Table
from treelax.apps.tasks.base import (
    Answer,
    Example,
    Examples,
    LabelFigures,
    Prediction,
    Source,
    TrainedParser,
)
from treelax.apps.tasks.settings import TrainSettings, TreeSettings
from treelax.apps.tasks.task import Task
from treelax.apps.training.checkpoint import load_checkpoint
from treelax.apps.training.config import from_table
from treelax.apps.training.run import best_model
from treelax.errors import InputError
from treelax.nn import Root

WORDS = ("a", "b", "c")
LENGTH = 6


@dataclass(frozen=True)
class Data:
    """Which sentences: random ones, a number of them."""

    train: int = 256
    seed: int = 0


@dataclass(frozen=True)
class Config:
    """All settings of a run."""

    preset: str = "toy"
    seed: int = 0
    data: Data = field(default_factory=Data)
    model: TreeSettings = field(default_factory=lambda: TreeSettings(scorer_size=16))
    train: TrainSettings = field(
        default_factory=lambda: TrainSettings(
            epochs=4, updates=20, batch_size=32, learning_rate=0.05
        )
    )


class Model(nn.Module):
    """A word's tag from the vector of its head; the root's vector stands for no word before."""

    def __init__(self, config: TreeSettings) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(WORDS), 16)
        self.root = Root(16)
        self.tree = config.latent_tree(16)
        self.output = nn.Linear(16, len(WORDS) + 1)

    def scores(self, ids: Tensor) -> Tensor:
        return self.tree.scorer(self.root(self.embedding(ids)))

    def tags(self, ids: Tensor, tree: Tensor) -> Tensor:
        heads = tree.transpose(-1, -2) @ self.root(self.embedding(ids))
        return self.output(heads[..., 1:, :])


def generated(count: int, seed: int) -> Tensor:
    return torch.randint(len(WORDS), (count, LENGTH), generator=torch.Generator().manual_seed(seed))


def targets(ids: Tensor) -> Tensor:
    return F.pad(ids + 1, (1, -1))


class Experiment:
    """Data, model, loss and dev figures."""

    task, files = "toy", ()

    def __init__(self, config: Config, device: torch.device) -> None:
        self.config, self.device = config, device
        self.data = generated(config.data.train, config.data.seed).to(device)
        self.dev = generated(64, config.data.seed + 1).to(device)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.seed)
            self.model = Model(config.model).to(device)

    @property
    def updates(self) -> int:
        return self.config.train.updates

    def groups(self) -> list[dict[str, Any]]:
        return [{"params": list(self.model.parameters()), "rate": 1.0}]

    def fingerprint(self) -> str:
        return fingerprint("toy", [self.data, self.dev])

    def begin(self, epoch: int) -> None:
        pass

    def batches(self, seed: int) -> list[tuple[int, Tensor]]:
        generator = torch.Generator().manual_seed(seed)
        size = self.config.train.batch_size
        shape = (self.updates, size)
        drawn = torch.randint(len(self.data), shape, generator=generator)
        return [(LENGTH, own) for own in drawn]

    def loss(self, length: int, batch: Tensor, generator: torch.Generator) -> Tensor:
        ids = self.data[batch]
        tree = self.model.tree.sample(self.model.scores(ids), generator=generator)
        return F.cross_entropy(self.model.tags(ids, tree).flatten(0, 1), targets(ids).flatten())

    def loss_weight(self, length: int, batch: Tensor) -> Tensor:
        return torch.tensor(float(batch.numel() * LENGTH))

    @torch.no_grad()
    def evaluate(self, part: slice = slice(None)) -> Tensor:
        tree = self.model.tree.discrete(self.model.scores(self.dev[part]))
        right = self.model.tags(self.dev[part], tree).argmax(-1) == targets(self.dev[part])
        return torch.stack([right.sum(), torch.tensor(right.numel())]).double()

    def summary(self, counts: Tensor) -> dict[str, float]:
        right, total = counts.tolist()
        return {"score": 100 * right / total, "accuracy": 100 * right / total}


class Parser(TrainedParser):
    """A trained model of the toy task."""

    task, is_tagger, trees, sample = "toy", True, "latent", ("a b c a",)
    labels = ("start", *WORDS)

    def __init__(self, model: Model, config: Config, name: str) -> None:
        self.model, self.config, self.name, self.tree = model, config, name, model.tree

    def words(self, text: str) -> tuple[str, ...]:
        return tuple(text.split())

    def ids(self, words: Sequence[str]) -> Tensor:
        if unknown := set(words) - set(WORDS):
            raise InputError(f"{min(unknown)!r} is no word; expected some of {', '.join(WORDS)}")
        return torch.tensor([[WORDS.index(word) for word in words]])

    @torch.no_grad()
    def arc_scores(self, text: Sequence[str] | Sentence) -> Tensor:
        words = text.words if isinstance(text, Sentence) else text
        return self.model.scores(self.ids(words))[0]

    @torch.no_grad()
    def stream(self, texts: Iterable[Any], **options: Any) -> Iterator[Prediction]:
        for text in texts:
            words = self.words(text) if isinstance(text, str) else getattr(text, "words", text)
            scores = self.arc_scores(words)[None]
            hard = self.tree.discrete(scores)
            used = self.tree.soft(scores) if options.get("soft") else hard
            tags = self.model.tags(self.ids(words), used)[0].argmax(-1).tolist()
            heads = tuple(hard[0].argmax(0)[1:].tolist())
            own = (scores[0],) if options.get("scores") else None
            yield Prediction((words,), tuple(self.labels[tag] for tag in tags), None, (heads,), own)

    def examples(self, texts: Iterable[Sequence[str]], name: str) -> Examples:
        rows = (
            Example((Sentence(tuple(t), tuple(range(len(t)))),), i, ("start", *t[:-1]))
            for i, t in enumerate(texts, 1)
        )
        return Examples(name, rows)

    def read(self, source: Source) -> Examples:
        texts = source.texts or Path(str(source.file)).read_text().splitlines()
        return self.examples([self.words(text) for text in texts], source.file or "TEXT")

    def own_examples(self, split: str, *, limit: int | None = None) -> Examples:
        ids = generated(20, 5).tolist()
        texts = [[WORDS[i] for i in row] for row in islice(ids, limit)]
        return self.examples(texts, f"{split} set of {self.name}")

    def evaluate(self, examples: Sequence[Example], *, progress: Any = None) -> LabelFigures:
        texts = [each.texts[0] for each in examples]
        said = zip(self.predict(texts), self.predict(texts, soft=True), examples, strict=True)
        return LabelFigures.of(tuple(each.label for each in own) for own in said)

    @torch.no_grad()
    def answer(self, texts: Sequence[Sequence[str]], trees: Sequence[Tensor]) -> Answer:
        tags = self.model.tags(self.ids(texts[0]), trees[0][None])[0].argmax(-1).tolist()
        return Answer("Each tag is the word before.", [self.labels[tag] for tag in tags])


class Toy(Task):
    """The task itself."""

    name, title, config_type = "toy", "the word before", Config

    def preset(self, name: str) -> Config:
        return Config()

    def presets(self, name: str) -> dict[str, str]:
        return {"toy": "the only one"}

    def experiment(self, config: Config, device: torch.device, *others: Any) -> Experiment:
        return Experiment(config, device)

    def headline(self, experiment: Any) -> str:
        return f"{len(experiment.data)} sentences"

    def describe(self, dev: Any) -> str:
        return f"acc {dev['accuracy']:.1f}"

    def finish(self, training: Any, progress: Any = None) -> dict[str, Any]:
        own = training.experiment
        run = {"preset": own.config.preset, "seed": own.config.seed, "device": "CPU"}
        done = {"best_epoch": training.best_epoch, "epochs": training.epochs}
        return run | done | {"seconds": training.seconds} | own.summary(own.evaluate())

    def check_result(self, record: dict[str, Any]) -> None:
        float(record["accuracy"])

    def result_tables(self, record: Any) -> list[Table]:
        return [Table(["accuracy, %"], [[record["accuracy"]]], "dev")]

    def summary(self, record: Any) -> list[dict[str, Any]]:
        return [{"accuracy": record["accuracy"]}]


def load(path: Path, *, name: str, device: Any = "cpu", vectors: Any = None) -> Parser:
    saved = load_checkpoint(best_model(path), kind="toy", device=device)
    config = from_table(Config, saved.state["config"], "config")
    model = Model(config.model)
    model.load_state_dict(saved.tensors)
    return Parser(model.eval(), config, name)


TOY = Toy()
