"""Model, data and loss of sentence tasks, for the training loop."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from treelax.apps.data.text.encoding import NO_TAG, EncodedText
from treelax.apps.data.text.vectors import NULL
from treelax.apps.table import Cell, Table
from treelax.apps.tasks.base import Progress
from treelax.apps.tasks.sentences.origins import TrainingFile
from treelax.apps.tasks.sentences.task import SentenceExperiment, SentenceTask, Shape
from treelax.apps.tasks.sentences.transformer import subword_lengths
from treelax.apps.tasks.settings import for_batches
from treelax.apps.tasks.text.config import (
    FILES,
    Kind,
    ModelConfig,
    TextConfig,
    with_learned_words,
)
from treelax.apps.tasks.text.data import TextData, check_files, load_text
from treelax.apps.tasks.text.model import Sentences, TextModel, network_for
from treelax.apps.tasks.text.presets import PRESETS
from treelax.apps.tasks.text.sources import training_files
from treelax.apps.training.results import NUMBER, expect
from treelax.errors import InputError, counted

# what an example of each kind has: texts, and whether labels are of words
TAKES = {"pair": (2, False), "classify": (1, False), "tag": (1, True)}


class TextExperiment(SentenceExperiment):
    """Model, data and loss of one run."""

    files, counted = FILES, 2

    def __init__(
        self,
        config: TextConfig,
        data: TextData,
        device: torch.device,
        *,
        model: ModelConfig | None = None,
    ) -> None:
        _check(config, data)
        super().__init__(config, data, device)
        self.task = config.kind
        self.labels, self.mixed = data.labels, data.mixed
        if self.mixed and not self._share():
            raise InputError(
                f"data.mix_share is {config.data.mix_share}, less than one of the {self.mixed:,} "
                "examples of data.mix; expected more"
            )
        self.null, self.num_texts = int(config.data.null), TAKES[config.kind][0]
        table = data.vectors.matrix
        settings = with_learned_words(replace(config, model=model or config.model), len(table))
        self.model: TextModel = self.make_model(
            network_for(config.kind, settings), settings, table, len(data.labels)
        )
        self.encoder = self.model.encoder
        if self.encoder.tree is not None:
            self.estimator = for_batches(self.encoder.tree.estimator, config.train.batch_size)
            self.encoder.tree.estimator = self.estimator
        self.encoder.read(data.vectors)
        self.transformer = self.encoder.transformer
        # of all splits now: one may have a text that is too long for a transformer
        self.split_sizes = {name: self._sizes(split) for name, split in data.splits.items()}
        self.sizes, self.train = self.split_sizes["train"], data.splits["train"].to(device)
        self.epoch_size = len(self.train) - self.mixed + self._share()
        self.dev_data = data.splits["dev"].to(device)
        self.dev = self.evaluation_batches(self.split_sizes["dev"])
        if device.type == "cuda":
            allowed = config.train.precision != "float32"
            torch.backends.cuda.matmul.allow_tf32 = allowed
            torch.backends.cudnn.allow_tf32 = allowed  # the LSTM's

    def _sizes(self, data: EncodedText) -> Tensor:
        return torch.cat((data.lengths + self.null, subword_lengths(self.transformer, data)), 1)

    def undecayed(self) -> Collection[nn.Parameter]:
        """Vectors of words and positions, and the gates that keep padding out of the LSTM."""
        tables = [m.weight for m in self.model.modules() if isinstance(m, nn.Embedding)]
        gates = () if self.encoder.encoder is None else self.encoder.encoder.gates()
        return [*self.encoder.embedding.parameters(), *tables, *gates]

    def begin(self, epoch: int) -> bool:
        """Make trees discrete and free of noise in the last epochs; returns whether they are."""
        train, tree = self.config.train, self.encoder.tree
        discrete = epoch > train.epochs - train.discrete_epochs
        if tree is not None and train.discrete_epochs:
            discrete_trees = self.config.model.make_estimator(discrete=True)
            tree.estimator = discrete_trees if discrete else self.estimator
        return discrete

    def fingerprint(self) -> str:
        return self.data.fingerprint()

    def draw(self, generator: torch.Generator) -> Tensor:
        """Of the mixed-in examples a share, drawn again for every epoch."""
        chosen = torch.arange(len(self.train) - self.mixed)
        if self.mixed:
            drawn = torch.randperm(self.mixed, generator=generator)[: self._share()]
            chosen = torch.cat((chosen, len(chosen) + drawn))
        return chosen[self.draw_some(self.sizes[chosen], generator)]

    def loss(self, shape: Shape, indices: Tensor, generator: torch.Generator) -> Tensor:
        """The mean loss of all labels of a batch, cross-entropy or by likelihood of chains of tags.

        With ``train.consistency``, also the `divergence` of two runs of each example.
        """
        smoothing, weight = self.config.train.label_smoothing, self.config.train.consistency
        copies, tagged = 2 if weight else 1, self.config.kind == "tag"
        targets = self.train.targets(indices, shape[0] - self.null)

        def losses(logits: Tensor) -> Tensor:
            logits = logits[:, :, self.null :] if tagged else logits
            copied = logits.float().unflatten(1, (copies, -1))  # (samples, copies, examples, ...)
            wanted = targets.expand(copied.shape[:-1])
            loss = self.model.label_losses(copied, wanted, smoothing).mean(1)
            if weight:
                loss = loss + weight * divergence(copied[:, 0], copied[:, 1], targets)
            return loss.flatten(2).sum(-1) if tagged else loss

        with self.precision():
            texts = self.texts(self.train, shape, indices.repeat(copies))
            total = self.model.expect(*texts, losses=losses, generator=generator).sum()
        return total / self.loss_weight(shape, indices)

    def loss_weight(self, shape: Shape, indices: Tensor) -> Tensor:
        """The number of labels of a batch."""
        return (self.train.targets(indices, shape[0] - self.null) >= 0).sum()

    def logits(self, data: EncodedText, shape: Shape, indices: Tensor, **options: Any) -> Tensor:
        """Logits ``(batch, classes)``, or ``(batch, n, tags)`` without NULL."""
        logits = self.model(*self.texts(data, shape, indices), **options)
        return logits[:, self.null :] if self.config.kind == "tag" else logits

    def texts(self, data: EncodedText, shape: Shape, indices: Tensor) -> list[Sentences]:
        """The first texts of examples, then the second ones."""
        lengths, subwords = shape[: data.texts], shape[data.texts :] or (None,) * data.texts
        return [
            replace(self.sentences(data, indices, which, length), subwords=longest)
            for which, (length, longest) in enumerate(zip(lengths, subwords, strict=True))
        ]

    def sentences(self, data: EncodedText, indices: Tensor, which: int, length: int) -> Sentences:
        """A batch of texts, with the NULL token in front if there is one."""
        place = indices * data.texts + which
        lengths = data.offsets[place + 1] - data.offsets[place] + self.null
        ids = data.padded(indices, which, length - self.null)
        heads = data.padded_heads(indices, which, length - self.null)
        if self.null:
            ids = F.pad(ids, (1, 0), value=NULL)
            heads = None if heads is None else F.pad(heads + (heads > 0), (1, 0))
        return Sentences(ids, lengths, heads)

    def precision(self) -> torch.autocast:
        """The context for the layers' arithmetic."""
        half = self.config.train.precision == "bf16"
        return torch.autocast(self.device.type, torch.bfloat16, enabled=half)

    def count_batch(self, data: Any, shape: Shape, indices: Tensor, **options: Any) -> list[Tensor]:
        """Right and all labels."""
        logits = self.logits(data, shape, indices, **options)
        targets = data.targets(indices, shape[0] - self.null)
        best = self.model.best_labels(logits, (targets >= 0).sum(-1))
        right = best == targets  # never in padding, which is -1
        return [right.sum(), (targets >= 0).sum()]

    def figures(self, split: str) -> dict[str, float | int]:
        """Accuracy with discrete and with soft trees."""
        data = self.data.splits[split].to(self.device)
        batches = self.evaluation_batches(self.split_sizes[split])
        discrete, soft = (
            self.summary(self.count(data, batches, soft=which))["accuracy"]
            for which in (False, True)
        )
        return {"examples": len(data), "accuracy": discrete, "soft_accuracy": soft}

    @staticmethod
    def summary(counts: Tensor) -> dict[str, float]:
        """Accuracy in percent, also as ``score``, which chooses the best model."""
        right, all_labels = counts.tolist()
        accuracy = 100 * right / max(all_labels, 1)
        return {"score": accuracy, "accuracy": accuracy}

    def _share(self) -> int:
        """How many of the mixed-in examples an epoch has."""
        return round(self.mixed * self.config.data.mix_share)


def _check(config: TextConfig, data: TextData) -> None:
    """Refuse data of another kind than the config's."""
    for split in data.splits.values():
        if (split.texts, split.tagged) != TAKES[config.kind]:
            received, expected = (
                f"{counted(texts, 'text')} and {'tags' if tagged else 'a class'} per example"
                for texts, tagged in ((split.texts, split.tagged), TAKES[config.kind])
            )
            raise InputError(
                f"kind is {config.kind} and {split.source} has {received}; expected {expected} (--text "
                "names the columns)"
            )
        if config.model.trees == "given" and split.heads is None:
            raise InputError(
                "model.trees is given and the data have no trees; expected --set data.trees=FILES, "
                "such as trees/{split}.conllu"
            )


def divergence(first: Tensor, second: Tensor, targets: Tensor) -> Tensor:
    r"""Symmetric KL divergence of two predictions of the same labels; 0 where there is no label.

    .. math:: \tfrac12 \big(\mathrm{KL}(p \,\|\, q) + \mathrm{KL}(q \,\|\, p)\big)
              = \tfrac12 \sum_c (p_c - q_c)(\log p_c - \log q_c)
    """
    log_p, log_q = first.log_softmax(-1), second.log_softmax(-1)
    apart = ((log_p.exp() - log_q.exp()) * (log_p - log_q)).sum(-1) / 2
    return apart * (targets != NO_TAG)


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
        texts = (load_text(data, progress, whole_words=whole) for data, whole in wanted)
        return [data.fingerprint(tuple(data.splits), trees=False) for data in texts]

    def load(self, config: TextConfig, progress: Callable[[int, str], None]) -> TextData:
        return load_text(config.data, progress, whole_words=config.model.pretrained is not None)

    def training_files(self, config: TextConfig) -> Iterable[TrainingFile]:
        return training_files(config.data)

    def describe(self, dev: Mapping[str, float]) -> str:
        return f"acc {dev['accuracy']:.2f}"

    def figures(self, experiment: TextExperiment, progress: Progress) -> dict[str, Any]:
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
        rows = [list(row.values())[:4] for row in self.summary(record)]
        return [Table(["accuracy, %", "examples", "discrete trees", "soft trees"], rows)]


PAIR = TextTask("pair")
CLASSIFY = TextTask("classify")
TAG = TextTask("tag")
