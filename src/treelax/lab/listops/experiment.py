"""What the training loop asks of ListOps: batches, a loss, dev figures."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from treelax.apps.data.batching import length_batches
from treelax.apps.data.listops import EncodedListOps, encode_listops
from treelax.apps.data.tensor_files import fingerprint
from treelax.apps.tasks.listops.config import FILES, DataConfig, ListOpsConfig
from treelax.apps.tasks.listops.data import load_splits
from treelax.apps.tasks.listops.model import ListOpsTagger
from treelax.apps.tasks.settings import for_batches
from treelax.errors import InputError
from treelax.nn.modes import evaluating

# on a GPU batches are padded to a multiple of this, so that few shapes have to be captured
PADDING = 20
DEV_BATCH, DEV_ARCS = 512, 60_000_000
SHORT = 100  # tokens
ALL = slice(None)


@lru_cache(maxsize=1)
def encoded(config: DataConfig) -> tuple[EncodedListOps, EncodedListOps]:
    """The expressions of "train" and "dev", on the CPU."""
    splits = load_splits(config)
    return encode_listops(splits["train"]), encode_listops(splits["dev"])


class ListOpsExperiment:
    """Model, data and loss of one run."""

    task = "listops"
    files: Collection[str] = FILES

    def __init__(self, config: ListOpsConfig, device: torch.device) -> None:
        self.config = config
        self.device = device
        train, dev = encoded(config.data)
        largest = int(train.tags.max())
        if largest > config.model.max_valency:
            raise InputError(
                f"model.max_valency is {config.model.max_valency}; expected at least {largest}, the "
                "most arguments that an operator has in the training data"
            )
        if config.train.short_epochs and int(train.lengths.min()) > SHORT:
            raise InputError(
                f"train.short_epochs is {config.train.short_epochs}; expected 0, since no expression "
                f"of the training data has at most {SHORT} tokens"
            )
        self.epoch = 0
        self.lengths = train.lengths  # on the host, to choose shapes without waiting
        self.train = train.to(device)
        # sorted, so that the batches of the dev set need little padding
        bounds = {"most_arcs": DEV_ARCS, "most_sentences": DEV_BATCH}
        parts = map(torch.tensor, length_batches(dev.lengths.tolist(), **bounds))
        self.dev = [dev.select(part).to(device) for part in parts]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.seed)
            self.model = ListOpsTagger(config.model).to(device)
        if self.model.parser is not None:
            tree = self.model.parser.tree
            tree.estimator = for_batches(tree.estimator, config.train.batch_size)
        self.weight = self._weight(train.tags).to(device)

    @property
    def updates(self) -> int:
        return self.config.train.updates

    def groups(self) -> list[dict[str, Any]]:
        rates = {self.model.parser: 1.0, self.model.composer: self.config.train.composer_rate}
        return [
            {"params": list(part.parameters()), "rate": rate}
            for part, rate in rates.items()
            if part is not None
        ]

    def begin(self, epoch: int) -> None:
        self.epoch = epoch

    def fingerprint(self) -> str:
        sets = (self.train, *self.dev)
        return fingerprint("listops", (t for data in sets for t in (data.tokens, data.lengths)))

    def batches(self, seed: int) -> list[tuple[int, Tensor]]:
        """Padded lengths and indices; no expression is drawn again before all have been, unless
        `TrainConfig.short_epochs` have passed."""
        generator = torch.Generator().manual_seed(seed)
        result = []
        for indices in self._drawn(generator):
            length = int(self.lengths[indices].max())
            if self.device.type == "cuda":
                length = min(-(-length // PADDING) * PADDING, self.train.tokens.shape[1])
            result.append((length, indices))
        return result

    def _drawn(self, generator: torch.Generator) -> Tensor:
        """Batches of an epoch, ``(updates, batch size)``."""
        train, lengths = self.config.train, self.lengths
        wanted = train.updates * train.batch_size
        chosen = torch.arange(len(lengths))
        if train.short_epochs:
            doublings = max(0, self.epoch - 1) // train.short_epochs
            chosen = chosen[lengths <= min(SHORT << doublings, int(lengths.max()))]
            if doublings:
                weight = lengths[chosen].double()
                drawn = torch.multinomial(weight, wanted, replacement=True, generator=generator)
                drawn = chosen[drawn]
                batches = drawn[lengths[drawn].argsort(stable=True)].view(train.updates, -1)
                return batches[torch.randperm(train.updates, generator=generator)]
        rounds = range(-(-wanted // len(chosen)))
        order = [torch.randperm(len(chosen), generator=generator) for _ in rounds]
        return chosen[torch.cat(order)[:wanted]].view(train.updates, -1)

    def loss(self, length: int, indices: Tensor, generator: torch.Generator) -> Tensor:
        """The loss of one batch: the mean cross-entropy of the tags that carry loss, weighted."""
        train = self.train
        parts = (train.tokens, train.heads, train.tags)
        tokens, heads, tags = (part[indices, :length] for part in parts)
        batch = EncodedListOps(tokens, train.lengths[indices], heads, tags)
        wanted = self._with_loss(tags)

        def losses(logits: Tensor) -> Tensor:
            flat = wanted.expand(logits.shape[:-1]).flatten()
            per_token = F.cross_entropy(
                logits.flatten(0, -2), flat, self.weight, ignore_index=-1, reduction="none"
            )
            return per_token.reshape(logits.shape[:-1]).sum(-1)

        total = self.model.expect(batch, losses, generator=generator).sum()
        return total / self.loss_weight(length, indices)

    def loss_weight(self, length: int, indices: Tensor) -> Tensor:
        """What the loss of a batch is divided by: the weights of the tags that carry loss, summed."""
        tags = self._with_loss(self.train.tags[indices, :length])
        return self.weight[tags.clamp(min=0)].masked_fill(tags < 0, 0).sum()

    @torch.no_grad()
    def evaluate(self, part: slice = ALL) -> Tensor:
        counts = torch.zeros(7, dtype=torch.float64, device=self.device)
        with evaluating(self.model):
            for batch in self.dev[part]:
                trees = self.model.both_trees(batch)
                right, soft = (self.model.composer(t).argmax(-1) == batch.tags for t in trees)
                attached = trees[0].argmax(-2)[:, 1:] == batch.heads
                token, operator = batch.tags >= 0, batch.tags > 0
                arc = token if self.config.model.root_arcs else batch.heads > 0
                operators = (right & operator, operator)
                arcs = (attached & arc, arc)
                flags = (*operators, right & token, token, *arcs, soft & operator)
                counts += torch.stack([flag.sum() for flag in flags])
        return counts

    def summary(self, counts: Tensor) -> dict[str, float]:
        """Percentages of the counts; ``score`` chooses the best model, without gold trees."""
        operators, all_operators, tokens, all_tokens, arcs, all_arcs, soft = counts.tolist()
        accuracy, soft_accuracy = (100 * n / max(all_operators, 1) for n in (operators, soft))
        as_trained = self.config.train.dev_trees == "training"
        by_soft = as_trained and not self.config.model.make_estimator().discrete
        return {
            "score": soft_accuracy if by_soft else accuracy,
            "operator_accuracy": accuracy,
            "soft_operator_accuracy": soft_accuracy,
            "token_accuracy": 100 * tokens / all_tokens,
            "attachment": 100 * arcs / max(all_arcs, 1),
        }

    def _with_loss(self, tags: Tensor) -> Tensor:
        """Tags with -1 for those that carry no loss."""
        return tags.masked_fill(tags == 0, -1) if self.config.train.loss == "operators" else tags

    def _weight(self, tags: Tensor) -> Tensor:
        """The weight of each tag in the loss, of mean 1 over the tags that carry loss."""
        classes = self.config.model.max_valency + 1
        if not self.config.train.balance:
            return torch.ones(classes)
        tags = self._with_loss(tags)
        counts = tags[tags >= 0].bincount(minlength=classes).double()
        present = counts > 0
        weight = torch.where(present, 1 / counts.clamp(min=1), 0)
        return (weight / weight.sum() * present.sum()).float()
