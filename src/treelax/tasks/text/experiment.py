"""What the training loop asks of tasks on sentences."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from treelax.data.batching import draw_batches
from treelax.data.text.encoded import EncodedText
from treelax.data.text.vectors import NULL
from treelax.tasks.text.config import TextConfig
from treelax.tasks.text.data import TextData
from treelax.tasks.text.model import ClassModel, PairModel, Sentences, TagModel

# On a GPU texts are padded to a multiple of this, so that few shapes have to be captured.
PADDING = 8
EVALUATION_BATCH = 512
Shape = tuple[int, ...]
TextModel = PairModel | ClassModel | TagModel


def build_model(config: TextConfig, table: Tensor, classes: int) -> TextModel:
    """The model of a config over a table of word vectors."""
    kinds: dict[str, type[TextModel]] = {"pair": PairModel, "classify": ClassModel, "tag": TagModel}
    return kinds[config.kind](config.model, table, classes)


class TextExperiment:
    """Model, data and loss of one run.

    Args:
        config: all settings.
        data: the encoded texts.
        device: where to train; the whole data set lives there.
    """

    def __init__(self, config: TextConfig, data: TextData, device: torch.device) -> None:
        self.config = config
        self.task: str = config.kind
        self.device = device
        self.labels = data.labels
        self.mixed = data.mixed
        self.null = int(config.data.null)
        self.lengths = data.splits["train"].lengths + self.null  # on the host, to choose shapes
        self.train = data.splits["train"].to(device)
        self.dev = evaluation_batches(data.splits["dev"], device)
        self.dev_data = data.splits["dev"].to(device)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.seed)
            self.model = build_model(config, data.vectors.matrix, len(data.labels)).to(device)
        if device.type == "cuda":
            torch.backends.cuda.matmul.allow_tf32 = config.train.precision != "float32"

    @property
    def updates(self) -> int:
        """Updates per epoch."""
        size = self.config.train.batch_size
        return self.config.train.updates or max(1, self._per_epoch() // size)

    def groups(self) -> list[dict[str, Any]]:
        """Parameters with the factor of their learning rate."""
        return [{"params": list(self.model.parameters()), "rate": 1.0}]

    def batches(self, seed: int) -> list[tuple[Shape, Tensor]]:
        """The batches of one epoch: padded lengths and the indices of the examples."""
        generator = torch.Generator().manual_seed(seed)
        chosen = self._chosen(generator)
        train = self.config.train
        drawn = draw_batches(
            self.lengths[chosen],
            train.batch_size,
            generator=generator,
            batches=self.updates,
            pool=train.pool,
        )
        indices = chosen[drawn]
        longest = self.lengths[indices].amax(1)  # (batches, texts)
        if self.device.type == "cuda":
            longest = -(-longest // PADDING) * PADDING
        return [
            (tuple(shape), batch) for shape, batch in zip(longest.tolist(), indices, strict=True)
        ]

    def loss(self, shape: Shape, indices: Tensor, generator: torch.Generator) -> Tensor:
        """The loss of one batch."""
        with self.precision():
            logits = self.logits(self.train, shape, indices, generator=generator)
        targets = self.train.targets(indices, shape[0] - self.null)
        classes = logits.shape[-1]
        return F.cross_entropy(
            logits.float().reshape(-1, classes), targets.reshape(-1), ignore_index=-1
        )

    def logits(
        self,
        data: EncodedText,
        shape: Shape,
        indices: Tensor,
        *,
        soft: bool = False,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Logits ``(batch, classes)``, or ``(batch, n, tags)``."""
        texts = [self.sentences(data, indices, i, length) for i, length in enumerate(shape)]
        logits: Tensor = self.model(*texts, soft=soft, generator=generator)
        return logits[:, self.null :] if self.config.kind == "tag" else logits

    def sentences(self, data: EncodedText, indices: Tensor, which: int, length: int) -> Sentences:
        """A batch of texts, with the NULL token in front if there is one."""
        place = indices * data.texts + which
        lengths = data.offsets[place + 1] - data.offsets[place] + self.null
        ids = data.padded(indices, which, length - self.null)
        if self.null:
            ids = F.pad(ids, (1, 0), value=NULL)
        return Sentences(ids, lengths)

    def precision(self) -> Any:
        """The context for the layers' arithmetic."""
        half = self.config.train.precision == "bf16"
        return torch.autocast(self.device.type, torch.bfloat16, enabled=half)

    @torch.no_grad()
    def evaluate(self) -> Tensor:
        """Right and all labels of the dev set, with discrete trees."""
        return self.count(self.dev_data, self.dev)

    def count(
        self, data: EncodedText, batches: list[tuple[Shape, Tensor]], *, soft: bool = False
    ) -> Tensor:
        """Right and all labels of some batches; on the device."""
        self.model.eval()
        counts = torch.zeros(2, dtype=torch.float64, device=self.device)
        for lengths, indices in batches:
            shape = tuple(length + self.null for length in lengths)
            logits = self.logits(data, shape, indices, soft=soft)
            targets = data.targets(indices, lengths[0])
            labelled = targets >= 0
            right = (logits.argmax(-1) == targets) & labelled
            counts += torch.stack((right.sum(), labelled.sum()))
        self.model.train()
        return counts

    @staticmethod
    def summary(counts: Tensor) -> dict[str, float]:
        """Accuracy in percent."""
        right, all_labels = counts.tolist()
        accuracy = 100 * right / max(all_labels, 1)
        return {"score": accuracy, "accuracy": accuracy}

    def _per_epoch(self) -> int:
        share = round(self.mixed * self.config.data.mix_share)
        return len(self.train) - self.mixed + share

    def _chosen(self, generator: torch.Generator) -> Tensor:
        """The examples of an epoch: all, but only a share of the mixed-in ones."""
        own = len(self.train) - self.mixed
        if not self.mixed:
            return torch.arange(own)
        share = round(self.mixed * self.config.data.mix_share)
        drawn = torch.randperm(self.mixed, generator=generator)[:share]
        return torch.cat((torch.arange(own), own + drawn))


def evaluation_batches(data: EncodedText, device: torch.device) -> list[tuple[Shape, Tensor]]:
    """All examples, by length: the longest of each batch, and indices on the device."""
    longest = data.lengths.amax(1)
    result = []
    for indices in longest.argsort(stable=True).split(EVALUATION_BATCH):
        result.append((tuple(data.lengths[indices].amax(0).tolist()), indices.to(device)))
    return result
