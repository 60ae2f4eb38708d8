"""One optimisation step, run as it is or replayed as a CUDA graph, by one process or several."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from treelax.training.average import RunningMean
from treelax.training.distributed import World
from treelax.training.draws import WholeBatchDraws
from treelax.training.optimizer_state import flatten_optimizer, restore_optimizer

Loss = Callable[[Any, Tensor, torch.Generator], Tensor]
Weight = Callable[[Any, Tensor], Tensor]


class Stepper:
    """Takes optimisation steps and adds up their losses on the device.

    On a GPU the many small kernels of a step would wait for Python, so a step is captured once for
    each shape and replayed. The learning rate is a tensor there, and the data are gathered inside
    the graph from indices, so nothing has to be captured again.

    Several processes take each step together: each takes its share of the batch, and losses and
    gradients are added up before the gradient is clipped, so that the step is the one that a
    process alone would take. Nothing is captured then.
    """

    def __init__(
        self,
        model: nn.Module,
        loss: Loss,
        groups: list[dict[str, Any]],
        generator: torch.Generator,
        clip: float,
        device: torch.device,
        *,
        world: World | None = None,
        weight: Weight | None = None,
        average: float = 0.0,
    ) -> None:
        self.model, self.loss, self.generator, self.clip = model, loss, generator, clip
        self.device = device
        self.world, self.weight = world or World(), weight
        self.captured = device.type == "cuda" and self.world.size == 1
        # copies: the optimiser keeps and changes the dictionaries it is given
        groups = [dict(group, lr=self._rate(0.0)) for group in groups]
        self.optimizer = torch.optim.AdamW(
            groups, fused=True, capturable=self.captured, weight_decay=0.0
        )
        self.parameters = [p for group in groups for p in group["params"]]
        self.average = RunningMean(self.parameters, average)
        self.total = torch.zeros((), dtype=torch.float64, device=device)
        self.phase: Hashable = None
        self.graphs: dict[Hashable, tuple[torch.cuda.CUDAGraph, Tensor]] = {}
        self.stream = torch.cuda.Stream(device) if self.captured else None
        self.pool = torch.cuda.graph_pool_handle() if self.captured else None

    def begin(self, phase: Hashable) -> None:
        """Enter a phase of training; in a new one the loss is another, and captured anew."""
        if phase != self.phase:
            self.phase = phase
            self.graphs.clear()

    def set_rate(self, rate: float) -> None:
        """Set the learning rate; each group has its factor of it."""
        with self._in_order():
            for group in self.optimizer.param_groups:
                if isinstance(group["lr"], Tensor):
                    group["lr"].fill_(rate * group["rate"])
                else:
                    group["lr"] = rate * group["rate"]

    def prepare(self, shapes: dict[Hashable, Tensor]) -> None:
        """Capture the steps of new shapes, each with a batch to try it on; changes nothing else."""
        new = {shape: batch for shape, batch in shapes.items() if shape not in self.graphs}
        if not self.captured or not new:
            return
        torch.cuda.synchronize(self.device)
        weights = {name: value.clone() for name, value in self.model.state_dict().items()}
        optimizer, total = flatten_optimizer(self.optimizer), self.total.clone()
        sums = [value.clone() for value in self.average.sums]
        for shape, batch in new.items():
            self._capture(shape, batch.to(self.device))
        # in place: the graphs hold the addresses
        for name, value in self.model.state_dict().items():
            value.copy_(weights[name])
        restore_optimizer(self.optimizer, *optimizer)
        self.total.copy_(total)
        self.average.restore(sums)
        torch.cuda.synchronize(self.device)

    def step(self, shape: Hashable, batch: Tensor) -> None:
        """Take one step; on a GPU without waiting for it."""
        if self.stream is None:
            self._step(shape, batch)
            return
        with self._in_order():
            graph, indices = self.graphs[shape]
            indices.copy_(batch, non_blocking=True)
            graph.replay()

    def mean_loss(self, steps: int) -> float:
        """The mean loss since the last call; waits for the steps."""
        with self._in_order():
            mean = float(self.total) / steps
            self.total.zero_()
        if self.stream is not None:
            self.stream.synchronize()
        return mean

    def _step(self, shape: Hashable, batch: Tensor) -> None:
        if self.world.size == 1:
            loss = self.loss(shape, batch, self.generator)
        else:
            loss, share = self._share_of_loss(shape, batch.to(self.device, non_blocking=True))
        # dropped, not zeroed: a graph makes them in its own memory, and nothing is added to zeros
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        if self.world.size > 1:
            loss = self._add_up(loss, share)
        nn.utils.clip_grad_norm_(self.parameters, self.clip)
        self.optimizer.step()
        self.average.add()
        self.total += loss.detach()

    def _share_of_loss(self, shape: Hashable, batch: Tensor) -> tuple[Tensor, Tensor]:
        """What this process contributes to the loss of a batch, and its share of the weight."""
        assert self.weight is not None
        own = batch[self.world.share(len(batch))]
        with WholeBatchDraws(self.world, len(batch)):
            loss = self.loss(shape, own, self.generator)
        share = self.weight(shape, own) / self.weight(shape, batch)
        return loss * share, share

    def _add_up(self, loss: Tensor, share: Tensor) -> Tensor:
        """Add up gradients and loss over all processes, all in one message."""
        gradients = [p.grad for p in self.parameters if p.grad is not None]
        flat = torch.cat([part.reshape(-1) for part in (*gradients, loss.detach())])
        # a mean over no labels is no number, but what it contributes is 0
        flat = self.world.sum_(torch.where(share > 0, flat, share))
        *parts, total = flat.split([*(gradient.numel() for gradient in gradients), 1])
        for gradient, part in zip(gradients, parts, strict=True):
            gradient.copy_(part.view_as(gradient))
        return total[0]

    def _capture(self, shape: Hashable, batch: Tensor) -> None:
        assert self.stream is not None
        with torch.cuda.stream(self.stream):
            for _ in range(2):  # libraries set themselves up in the first runs
                self._step(shape, batch)
        torch.cuda.synchronize(self.device)
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self.generator)
        # one after the other, the graphs can share their memory
        with torch.cuda.graph(graph, stream=self.stream, pool=self.pool):
            self._step(shape, batch)
        self.graphs[shape] = (graph, batch)

    def _in_order(self) -> AbstractContextManager[Any]:
        """Work in here comes after all steps so far and before those to come."""
        return nullcontext() if self.stream is None else torch.cuda.stream(self.stream)

    def _rate(self, rate: float) -> Any:
        return torch.tensor(rate, device=self.device) if self.captured else rate
