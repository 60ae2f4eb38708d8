"""Model, data and loss of sentence tasks, for the training loop."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from treelax.apps.data.batching import draw_batches, length_batches
from treelax.apps.data.text.encoding import EncodedText
from treelax.apps.data.text.vectors import NULL
from treelax.apps.tasks.sentences.subwords import subword_lengths
from treelax.apps.tasks.settings import for_batches
from treelax.apps.tasks.text.config import FILES, ModelConfig, TextConfig, with_learned_words
from treelax.apps.tasks.text.data import TextData, TreedText
from treelax.apps.tasks.text.encoder import Sentences
from treelax.apps.tasks.text.model import NETWORKS, TextModel
from treelax.apps.tasks.text.model_files import save_words
from treelax.errors import InputError, counted
from treelax.nn.modes import evaluating

# On a GPU texts are padded to a multiple of this, so that few shapes have to be captured.
PADDING = 8
SUBWORD_PADDING = 16
EVALUATION_BATCH = 512
TRANSFORMER_BATCH = 64  # which needs much more memory for a sentence
ALL = slice(None)
NO_LABEL = -1  # of padding
# what an example of each kind has: texts, and whether labels are of words
TAKES = {"pair": (2, False), "classify": (1, False), "tag": (1, True)}
Shape = tuple[int, ...]


class TextExperiment:
    """Model, data and loss of one run."""

    files: Collection[str] = FILES

    def __init__(
        self,
        config: TextConfig,
        data: TextData,
        device: torch.device,
        *,
        model: ModelConfig | None = None,
    ) -> None:
        _check(config, data)
        self.config = config
        self.task: str = config.kind
        self.device = device
        self.data = data
        self.labels = data.labels
        self.mixed = data.mixed
        if self.mixed and not self._share():
            raise InputError(
                f"data.mix_share is {config.data.mix_share}, less than one of the {self.mixed:,} "
                "examples of data.mix; expected more"
            )
        self.null = int(config.data.null)
        table = data.vectors.matrix
        settings = with_learned_words(replace(config, model=model or config.model), len(table))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.seed)
            self.model: TextModel = NETWORKS[config.kind](settings, table, len(data.labels))
        self.model.to(device)
        encoder = self.model.encoder
        if encoder.tree is not None:
            self.estimator = for_batches(encoder.tree.estimator, config.train.batch_size)
            encoder.tree.estimator = self.estimator
        encoder.read(data.vectors)
        self.subwords = {
            name: subword_lengths(encoder.transformer, split) for name, split in data.splits.items()
        }
        train, dev = data.splits["train"], data.splits["dev"]
        # on the host, to choose shapes
        self.lengths = torch.cat((train.lengths + self.null, self.subwords["train"]), 1)
        self.train = train.to(device)
        self.dev = evaluation_batches(dev, device, self.subwords["dev"])
        self.dev_data = dev.to(device)
        if device.type == "cuda":
            allowed = config.train.precision != "float32"
            torch.backends.cuda.matmul.allow_tf32 = allowed
            torch.backends.cudnn.allow_tf32 = allowed  # the LSTM's

    def save_words(self, file: Path) -> None:
        """Save the word vectors and the names of labels."""
        save_words(file, self.data.vectors, self.labels)

    @property
    def updates(self) -> int:
        examples = len(self.train) - self.mixed + self._share()
        return self.config.train.updates or max(1, examples // self.config.train.batch_size)

    def groups(self) -> list[dict[str, Any]]:
        """Parameters with the factor of their learning rate, and their weight decay.

        A transformer has another rate. Biases, vectors of words or positions and the LSTM's gates that
        keep padding out do not decay.
        """
        decay = self.config.train.weight_decay
        encoder = self.model.encoder
        slow = set(map(id, encoder.pretrained_parameters()))
        tables = (module for module in self.model.modules() if isinstance(module, nn.Embedding))
        undecayed = set(map(id, (*encoder.embedding.parameters(), *(t.weight for t in tables))))
        if encoder.encoder is not None:
            undecayed |= set(map(id, encoder.encoder.gates()))
        groups: dict[tuple[float, float], list[nn.Parameter]] = {(1.0, 0.0): []}
        for parameter in self.model.parameters():
            rate = self.config.model.pretrained_rate if id(parameter) in slow else 1.0
            shrinks = parameter.dim() > 1 and id(parameter) not in undecayed
            groups.setdefault((rate, decay if shrinks else 0.0), []).append(parameter)
        return [
            {"params": parameters, "rate": rate, "weight_decay": shrink}
            for (rate, shrink), parameters in groups.items()
        ]

    def begin(self, epoch: int) -> bool:
        """Make trees discrete and free of noise in the last epochs; returns whether they are."""
        train, tree = self.config.train, self.model.encoder.tree
        discrete = epoch > train.epochs - train.discrete_epochs
        if tree is not None and train.discrete_epochs:
            discrete_trees = self.config.model.make_estimator(discrete=True)
            tree.estimator = discrete_trees if discrete else self.estimator
        return discrete

    def fingerprint(self) -> str:
        return self.data.fingerprint()

    def batches(self, seed: int) -> list[tuple[Shape, Tensor]]:
        """The batches of one epoch: padded lengths and the indices of the examples."""
        generator = torch.Generator().manual_seed(seed)
        chosen = self._chosen(generator)
        train = self.config.train
        sizes = {"batches": self.updates, "pool": train.pool}
        lengths = self.lengths[chosen]
        indices = chosen[draw_batches(lengths, train.batch_size, generator=generator, **sizes)]
        longest = self.lengths[indices].amax(1)  # (batches, texts)
        if self.device.type == "cuda":
            longest = self._rounded(longest)
        return list(zip(map(tuple, longest.tolist()), indices, strict=True))

    def loss(self, shape: Shape, indices: Tensor, generator: torch.Generator) -> Tensor:
        """The mean cross-entropy of all labels of a batch.

        With ``train.consistency``, also the `divergence` of two runs of each example.
        """
        smoothing, weight = self.config.train.label_smoothing, self.config.train.consistency
        copies = 2 if weight else 1
        targets = self.train.targets(indices, shape[0] - self.null)

        def losses(logits: Tensor) -> Tensor:
            logits = (
                logits.float()[:, :, self.null :] if self.config.kind == "tag" else logits.float()
            )
            copied = logits.unflatten(1, (copies, -1))  # (samples, copies, examples, ...)
            wanted = targets.expand(copied.shape[:-1])
            loss = F.cross_entropy(
                copied.flatten(0, -2),
                wanted.flatten(),
                ignore_index=NO_LABEL,
                label_smoothing=smoothing,
                reduction="none",
            )
            loss = loss.reshape(wanted.shape).mean(1)
            if weight:
                loss = loss + weight * divergence(copied[:, 0], copied[:, 1], targets)
            return loss.flatten(2).sum(-1) if self.config.kind == "tag" else loss

        with self.precision():
            texts = self.texts(self.train, shape, indices.repeat(copies))
            total = self.model.expect(*texts, losses=losses, generator=generator).sum()
        return total / self.loss_weight(shape, indices)

    def loss_weight(self, shape: Shape, indices: Tensor) -> Tensor:
        """The number of labels of a batch."""
        return (self.train.targets(indices, shape[0] - self.null) >= 0).sum()

    def logits(
        self,
        data: EncodedText,
        shape: Shape,
        indices: Tensor,
        *,
        soft: bool = False,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Logits ``(batch, classes)``, or ``(batch, n, tags)`` without NULL."""
        logits = self.model(*self.texts(data, shape, indices), soft=soft, generator=generator)
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
        heads = None
        if isinstance(data, TreedText):
            heads = data.padded_heads(indices, which, length - self.null)
        if self.null:
            ids = F.pad(ids, (1, 0), value=NULL)
            if heads is not None:
                heads = F.pad(heads + (heads > 0), (1, 0))
        return Sentences(ids, lengths, heads)

    def precision(self) -> torch.autocast:
        """The context for the layers' arithmetic."""
        half = self.config.train.precision == "bf16"
        return torch.autocast(self.device.type, torch.bfloat16, enabled=half)

    def evaluate(self, part: slice = ALL) -> Tensor:
        """Right and all labels of the dev set, or of a part of its batches, with discrete trees."""
        return self.count(self.dev_data, self.dev[part])

    @torch.no_grad()
    def count(
        self, data: EncodedText, batches: list[tuple[Shape, Tensor]], *, soft: bool = False
    ) -> Tensor:
        """Right and all labels of some batches."""
        counts = torch.zeros(2, dtype=torch.float64, device=self.device)
        with evaluating(self.model):
            for lengths, indices in batches:
                words, subwords = lengths[: data.texts], lengths[data.texts :]
                shape = (*(length + self.null for length in words), *subwords)
                logits = self.logits(data, shape, indices, soft=soft)
                targets = data.targets(indices, lengths[0])
                right = logits.argmax(-1) == targets  # never in padding, which is -1
                counts += torch.stack((right.sum(), (targets >= 0).sum()))
        return counts

    @staticmethod
    def summary(counts: Tensor) -> dict[str, float]:
        """Accuracy in percent, also as ``score``, which chooses the best model."""
        right, all_labels = counts.tolist()
        accuracy = 100 * right / max(all_labels, 1)
        return {"score": accuracy, "accuracy": accuracy}

    def _rounded(self, longest: Tensor) -> Tensor:
        """Lengths for few shapes; sub-words no longer than the transformer takes."""
        texts, transformer = self.train.texts, self.model.encoder.transformer
        step = torch.full_like(longest, PADDING)
        step[:, texts:] = SUBWORD_PADDING
        longest = -(-longest // step) * step
        if transformer is not None and transformer.limit is not None:
            longest[:, texts:].clamp_(max=transformer.limit)
        return longest

    def _share(self) -> int:
        """How many of the mixed-in examples an epoch has."""
        return round(self.mixed * self.config.data.mix_share)

    def _chosen(self, generator: torch.Generator) -> Tensor:
        """The examples of an epoch: all, but only a share of the mixed-in ones."""
        count = len(self.train) - self.mixed
        if not self.mixed:
            return torch.arange(count)
        drawn = torch.randperm(self.mixed, generator=generator)[: self._share()]
        return torch.cat((torch.arange(count), count + drawn))


def evaluation_batches(
    data: EncodedText, device: torch.device, subwords: Tensor | None = None
) -> list[tuple[Shape, Tensor]]:
    """Batches of all examples, by length, so that they need little padding."""
    lengths, size = data.lengths, EVALUATION_BATCH
    if subwords is not None and subwords.shape[1]:
        lengths, size = torch.cat((lengths, subwords), 1), TRANSFORMER_BATCH
    result = []
    for places in length_batches(lengths.amax(1).tolist(), most_sentences=size, texts=data.texts):
        indices = torch.tensor(places)
        result.append((tuple(lengths[indices].amax(0).tolist()), indices.to(device)))
    return result


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
        if config.model.trees == "given" and not isinstance(split, TreedText):
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
    return apart * (targets != NO_LABEL)
