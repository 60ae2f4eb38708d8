"""What experiments on sentences share: batches, groups of parameters, counts over the dev set."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import torch
from torch import Tensor, nn

from treelax.apps.data.batching import MOST_ARCS, draw_batches, length_batches
from treelax.nn.modes import evaluating
from treelax.nn.transformer import SubwordTransformer

ALL = slice(None)
PADDING, SUBWORD_PADDING = 8, 16  # on a GPU sizes are multiples: few shapes have to be captured
MOST_SENTENCES = 512  # of a batch in evaluation
MOST_IN_TRANSFORMER = 64  # which needs much more memory for a sentence
Shape = tuple[int, ...]  # padded words of each text of an example, then padded sub-words
Batches = list[tuple[Shape, Tensor]]  # with the indices of examples


class SentenceExperiment:
    """Model, data and loss of one run.

    A task adds ``draw``, which chooses the examples of an epoch, ``count_batch``, and the rest of
    `treelax.apps.training.experiment.Experiment`.
    """

    model: Any
    count_batch: Any
    num_texts = 1  # of an example
    counted: int  # counts of a batch
    sizes: Tensor  # the shape of every training example alone, on the host
    dev_data: Any
    dev: Batches
    transformer: SubwordTransformer | None
    epoch_size: int  # examples in a pass over the data

    def __init__(self, config: Any, data: Any, device: torch.device) -> None:
        self.config, self.data, self.device = config, data, device

    def make_model(self, make: Callable[..., Any], *given: Any) -> Any:
        """A model whose initial weights follow from the seed."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.config.seed)
            return make(*given).to(self.device)

    @property
    def updates(self) -> int:
        train = self.config.train
        return train.updates or max(1, self.epoch_size // train.batch_size)

    def undecayed(self) -> Collection[nn.Parameter]:
        """Matrices whose weights do not decay."""
        return ()

    def groups(self) -> list[dict[str, Any]]:
        """Parameters by the factor of their learning rate and by their weight decay."""
        decay = getattr(self.config.train, "weight_decay", 0.0)
        pretrained = None if self.transformer is None else self.transformer.model
        slow = set(map(id, () if pretrained is None else pretrained.parameters()))
        undecayed = set(map(id, self.undecayed()))
        groups: dict[tuple[float, float], list[nn.Parameter]] = {(1.0, 0.0): []}
        for parameter in self.model.parameters():
            rate = self.config.model.pretrained_rate if id(parameter) in slow else 1.0
            shrinks = parameter.dim() > 1 and id(parameter) not in undecayed  # no bias does
            groups.setdefault((rate, decay if shrinks else 0.0), []).append(parameter)
        return [
            {"params": parameters, "rate": rate, "weight_decay": shrink}
            for (rate, shrink), parameters in groups.items()
        ]

    def batches(self, seed: int) -> Batches:
        drawn = self.draw(torch.Generator().manual_seed(seed))
        longest = self.sizes[drawn].amax(1)
        if self.device.type == "cuda":
            step = torch.full_like(longest, PADDING)
            step[:, self.num_texts :] = SUBWORD_PADDING
            longest = -(-longest // step) * step
            if self.transformer is not None and self.transformer.limit is not None:
                longest[:, self.num_texts :].clamp_(max=self.transformer.limit)
        return list(zip(map(tuple, longest.tolist()), drawn, strict=True))

    def draw(self, generator: torch.Generator) -> Tensor:
        """The examples of all batches of an epoch, ``(updates, examples)``."""
        return self.draw_some(self.sizes, generator)

    def draw_some(self, sizes: Tensor, generator: torch.Generator) -> Tensor:
        train = self.config.train
        counts = {"batches": self.updates, "pool": train.pool}
        return draw_batches(sizes, train.batch_size, generator=generator, **counts)

    def evaluation_batches(self, sizes: Tensor, most_arcs: int = MOST_ARCS) -> Batches:
        """Batches of all examples, by length, so that they need little padding."""
        most = MOST_SENTENCES if self.transformer is None else MOST_IN_TRANSFORMER
        bounds = {"most_arcs": most_arcs, "most_sentences": most, "texts": self.num_texts}
        return [
            (tuple(sizes[places].amax(0).tolist()), torch.tensor(places, device=self.device))
            for places in length_batches(sizes.amax(1).tolist(), **bounds)
        ]

    def evaluate(self, part: slice = ALL) -> Tensor:
        return self.count(self.dev_data, self.dev[part])

    @torch.no_grad()
    def count(self, data: Any, batches: Batches, **options: Any) -> Tensor:
        """What ``count_batch`` counts, over some batches."""
        counts = torch.zeros(self.counted, dtype=torch.float64, device=self.device)
        with evaluating(self.model):
            for shape, indices in batches:
                counts += torch.stack(self.count_batch(data, shape, indices, **options))
        return counts
