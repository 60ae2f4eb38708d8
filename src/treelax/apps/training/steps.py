"""Optimisation steps, run as they are or replayed as CUDA graphs, by one process or several."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from treelax.apps.training.distributed import WholeBatchDraws, World

Loss = Callable[[Any, Tensor, torch.Generator], Tensor]
Weight = Callable[[Any, Tensor], Tensor]


class Stepper:
    """Takes optimisation steps and adds up their losses on the device.

    On a GPU the many small kernels of a step would wait for Python, so a step is captured once for
    each shape and replayed. The learning rate is a tensor there, and the data are gathered inside
    the graph from indices, so nothing has to be captured again.

    Several processes take each step together: each takes its share of the batch, and losses and
    gradients are added up before the gradient is clipped, so that the step is the one that a
    single process would take. Nothing is captured then.
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
        # copies: the optimiser changes the dictionaries it is given
        groups = [
            dict(group, lr=torch.zeros((), device=device) if self.captured else 0.0)
            for group in groups
        ]
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
                if self.captured:
                    group["lr"].fill_(rate * group["rate"])
                else:
                    group["lr"] = rate * group["rate"]

    def prepare(self, shapes: dict[Hashable, Tensor]) -> None:
        """Capture the steps of new shapes, each with a batch to try it on; changes nothing else."""
        new = {shape: batch for shape, batch in shapes.items() if shape not in self.graphs}
        if not self.captured or not new:
            return
        torch.cuda.synchronize(self.device)
        changing = [*self.model.state_dict().values(), *self.average.sums, self.total]
        saved = [value.clone() for value in changing]
        moments = {name: value.clone() for name, value in self._moments().items()}
        for shape, batch in new.items():
            self._capture(shape, batch.to(self.device))
        # in place: the graphs hold the addresses
        for value, old in zip(changing, saved, strict=True):
            value.copy_(old)
        for name, value in self._moments().items():
            value.copy_(moments.get(name, torch.zeros_like(value)))
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

    def state(self) -> dict[str, Tensor]:
        """What to continue from beside the weights: Adam's moments and the running mean."""
        return self._moments() | {f"average.{i}": sums for i, sums in enumerate(self.average.sums)}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Continue from `state`, before anything is captured; other tensors are ignored."""
        moments: dict[int, dict[str, Tensor]] = {}
        for name, value in tensors.items():
            match name.split("."):
                case ["optimizer", parameter, key]:
                    moments.setdefault(int(parameter), {})[key] = value
        self.optimizer.load_state_dict(self.optimizer.state_dict() | {"state": moments})
        for i, sums in enumerate(self.average.sums):
            sums.copy_(tensors[f"average.{i}"])

    def _moments(self) -> dict[str, Tensor]:
        return {
            f"optimizer.{i}.{key}": value
            for i, values in self.optimizer.state_dict()["state"].items()
            for key, value in values.items()
        }

    def _step(self, shape: Hashable, batch: Tensor) -> None:
        if self.world.size == 1:
            loss = self.loss(shape, batch, self.generator)
        else:
            loss, share = self._share_of_loss(shape, batch.to(self.device, non_blocking=True))
        # dropped, not zeroed: a graph makes them in its memory, and nothing is added to zeros
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        if self.world.size > 1:
            loss = self._add_up(loss, share)
        self._clip()
        self.optimizer.step()
        self.average.add()
        self.total += loss.detach()

    def _clip(self) -> None:
        """Shorten the gradient to the largest norm; on the CPU it is left alone if it is short."""
        norm = nn.utils.get_total_norm([p.grad for p in self.parameters if p.grad is not None])
        if self.device.type != "cpu" or not norm <= self.clip:
            nn.utils.clip_grads_with_norm_(self.parameters, self.clip, norm)

    def _share_of_loss(self, shape: Hashable, batch: Tensor) -> tuple[Tensor, Tensor]:
        """What this process contributes to the loss of a batch, and its share of the weight."""
        assert self.weight is not None
        part = batch[self.world.share(len(batch))]
        with WholeBatchDraws(self.world, len(batch)):
            loss = self.loss(shape, part, self.generator)
        share = self.weight(shape, part) / self.weight(shape, batch)
        return loss * share, share

    def _add_up(self, loss: Tensor, share: Tensor) -> Tensor:
        """Add up gradients and loss over all processes, all in one message."""
        gradients = [p.grad for p in self.parameters if p.grad is not None]
        flat = torch.cat([part.reshape(-1) for part in (*gradients, loss.detach())])
        # a mean over no labels is NaN, but contributes 0
        flat = self.world.sum_(torch.where(share > 0, flat, share))
        *parts, total = flat.split([*(gradient.numel() for gradient in gradients), 1])
        for gradient, part in zip(gradients, parts, strict=True):
            gradient.copy_(part.view_as(gradient))
        return total[0]

    def _capture(self, shape: Hashable, batch: Tensor) -> None:
        with self._in_order():
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
        """Run what is inside after all steps so far and before those to come."""
        return nullcontext() if self.stream is None else torch.cuda.stream(self.stream)


class RunningMean:
    r"""The mean of some parameters over steps; with a decay of 0, the parameters themselves.

    .. math:: s_t = d \, s_{t-1} + (1 - d) \, \theta_t, \qquad \bar\theta_t = s_t / (1 - d^t)

    from :math:`s_0 = 0`: each step's weights count :math:`d` times as much as the next step's. The
    divisor is known without the device, so steps can be captured as a CUDA graph.
    """

    def __init__(self, parameters: Sequence[nn.Parameter], decay: float) -> None:
        self.parameters: list[Tensor] = list(parameters)
        self.decay = decay
        self.sums = [torch.zeros_like(p) for p in self.parameters] if decay else []

    @torch.no_grad()
    def add(self) -> None:
        """Count the weights as they are now; without waiting for the device."""
        if self.decay:
            torch._foreach_lerp_(self.sums, self.parameters, 1 - self.decay)

    @contextmanager
    def in_place(self, steps: int) -> Iterator[None]:
        """Replace the parameters by their mean over so many steps, as a context manager."""
        if not self.decay:
            yield
            return
        current = [p.detach().clone() for p in self.parameters]
        self._set([value / (1 - self.decay**steps) for value in self.sums])
        try:
            yield
        finally:
            self._set(current)

    @torch.no_grad()
    def restart(self, steps: int) -> None:
        """Forget the weights so far and take the present ones for the mean over so many steps."""
        for value, parameter in zip(self.sums, self.parameters, strict=False):
            value.copy_(parameter * (1 - self.decay**steps))

    @torch.no_grad()
    def _set(self, values: Sequence[Tensor]) -> None:
        for parameter, value in zip(self.parameters, values, strict=True):
            parameter.copy_(value)
        if values and values[0].is_cuda:
            torch.cuda.synchronize(values[0].device)  # steps and evaluation run on other streams
