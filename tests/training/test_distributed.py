"""Two processes give what one gives: the same batches, noise, gradients, figures and weights."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from line_runs import CPU
from listops_runs import metrics, tiny
from processes import start, train, wait
from torch import Tensor, nn
from torch.nn import functional as F

from treelax.apps.tasks.text import data
from treelax.apps.tasks.text.config import DataConfig, ModelConfig, TextConfig, TrainConfig
from treelax.apps.tasks.text.task import TextExperiment
from treelax.apps.training.checkpoint import load_checkpoint
from treelax.apps.training.distributed import WholeBatchDraws, World, current, launched
from treelax.apps.training.run import Run
from treelax.apps.training.steps import Stepper
from treelax.errors import InputError
from treelax.lab.listops.experiment import ListOpsExperiment
from treelax.noise import gumbel

WORKER = Path(__file__).parents[1] / "processes.py"
SMALL = {"projection_size": 8, "encoder_size": 4, "scorer_size": 6, "gcn_size": 6, "output_size": 8}
SENTENCES = [
    *("dogs bark", "the dog barks loudly at a cat", "cats sleep", "birds", "birds sing a song"),
    *("a very old cat sleeps here today", "a fish swims", "hi", "songs end", "a bird swims"),
    "the old dog sleeps and the cat barks",
]


def text_config(folder: Path, kind: str, **model: Any) -> TextConfig:
    """A small model on eleven examples; five in a batch, so that shares are not alike."""
    if kind == "pair":
        rows = [
            f"{s}\t{SENTENCES[-i]}\t{'yes' if 'a' in s.split() else 'no'}"
            for i, s in enumerate(SENTENCES)
        ]
        lines = ["first\tsecond\tlabel", *rows]
    else:
        lines = ["\n".join(f"{w} {w[-1].upper()}" for w in s.split()) + "\n" for s in SENTENCES]
    file = folder / f"{kind}.tsv"
    file.write_text("\n".join([*lines, ""]))
    return TextConfig(
        kind=kind,
        seed=3,
        data=DataConfig(
            format="tagging" if kind == "tag" else "table",
            train=str(file),
            dev=str(file),
            text=("first", "second") if kind == "pair" else ("text",),
            tokens=True,
            vector_size=6,
        ),
        model=ModelConfig(**SMALL | model),
        train=TrainConfig(epochs=2, batch_size=5, learning_rate=1e-3, clip=0.5, pool=1, patience=1),
    )


CONFIGS = {
    "pair": {"noise": "gumbel", "dropout": 0.3},
    "tag": {"noise": "sum-of-gamma", "encoder": "bilstm", "input_dropout": 0.2, "trees": "heads"},
}


@dataclass(frozen=True)
class Both:
    """The folders of the same runs, made by one process and by two, and the last error of the two."""

    one: Path
    two: Path
    error: str = ""


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """All runs that two processes make here, since starting processes is slow.

    ``pair`` is begun by one process and ended by two, ``tag`` the other way round.
    """
    place = tmp_path_factory.mktemp("distributed")
    one, two = place / "one", place / "two"
    configs = {kind: text_config(place, kind, **model) for kind, model in CONFIGS.items()}
    # two passes over each example, and weights that shrink
    more = {"consistency": 1.0, "weight_decay": 0.1, "label_smoothing": 0.1}
    configs["pair"] = replace(configs["pair"], train=replace(configs["pair"].train, **more))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TREELAX_CACHE", str(place / "cache"))
        for kind, config in configs.items():
            for folder in (one, two):
                Run.create(folder / kind, config, task=kind)
            train(one / kind)
        train(two / "pair", 1)
        jobs = [str(WORKER), str(two / "pair"), f"{two / 'tag'}=1"]
        first, second = wait(start(jobs, jobs))
        assert second == (9, "", "")
        assert first[:2] == (1, "")
        assert len(metrics(two / "tag")) == 1
        train(two / "tag")
        yield Both(one, two, first[2])


@pytest.mark.parametrize("name", CONFIGS)
def test_two_processes_give_what_one_gives(both: Both, name: str) -> None:
    one, two = metrics(both.one / name), metrics(both.two / name)
    assert [row["epoch"] for row in two] == [row["epoch"] for row in one] == [1, 2]
    for expected, received in zip(one, two, strict=True):
        assert received["loss"] == pytest.approx(expected["loss"], rel=1e-5)
        assert received["dev"] == expected["dev"]
        assert received["learning_rate"] == expected["learning_rate"]
    first, second = (
        load_checkpoint(Run.open(folder / name).last_checkpoint) for folder in (both.one, both.two)
    )
    assert first.tensors.keys() == second.tensors.keys()
    assert {k: v for k, v in first.state.items() if k != "seconds"} == {
        k: v for k, v in second.state.items() if k != "seconds"
    }
    for key, value in first.tensors.items():
        assert torch.allclose(second.tensors[key], value, rtol=1e-3, atol=1e-5), key
    ranks = [load_checkpoint(both.two / name / f"rank{rank}.safetensors") for rank in (0, 1)]
    assert ranks[0].state == ranks[1].state
    for key, value in ranks[0].tensors.items():
        assert torch.equal(ranks[1].tensors[key], value), key


def test_a_process_that_dies_does_not_let_the_other_wait(both: Both) -> None:
    last = both.error.splitlines()[-1].removeprefix("[rank0]: ")
    assert re.search(
        r"LostProcessError: another process .* has ended .* all 2 to stay: .*--resume", last
    )


def test_shares_are_the_batch_in_its_order() -> None:
    for size, count in product(range(1, 6), range(1, 20)):
        if count < size:
            with pytest.raises(InputError, match=r"train.batch_size is .* share every"):
                World(0, size).share(count)
            continue
        shares = [list(range(count))[World(rank, size).share(count)] for rank in range(size)]
        assert [i for share in shares for i in share] == list(range(count))
        assert {len(share) for share in shares} <= {count // size, -(-count // size)}


class Deaf(World):
    """A process that hears nothing of the others."""

    def sum_(self, tensor: Tensor) -> Tensor:
        return tensor


def points(batch: Tensor) -> Tensor:
    return torch.linspace(-1, 1, 40).reshape(10, 4)[batch]


@pytest.mark.parametrize("labels", [[1, 1, 1, 1, 1], [0, 0, 2, 1, 0]])
def test_losses_and_gradients_of_shares_add_up(labels: list[int]) -> None:
    """The loss is a mean over labels; a share without any has no mean."""
    counts = torch.tensor(labels * 2)
    model = nn.Linear(4, 1)
    group = {"params": list(model.parameters()), "rate": 1.0}
    batch = torch.arange(5)

    def loss(shape: Any, batch: Tensor, generator: torch.Generator) -> Tensor:
        noise = gumbel((len(batch),), generator=generator)
        dropped = F.dropout(model(points(batch))[:, 0] - noise, 0.25)
        return (dropped.square() * counts[batch]).sum() / counts[batch].sum()

    def weight(shape: Any, batch: Tensor) -> Tensor:
        return counts[batch].sum()

    def result(world: World) -> list[Tensor]:
        torch.manual_seed(1)
        generator = torch.Generator().manual_seed(2)
        stepper = Stepper(model, loss, [group], generator, 1e9, CPU, world=world, weight=weight)
        stepper.step(None, batch)
        return [stepper.total.float(), *(p.grad for p in model.parameters() if p.grad is not None)]

    whole = result(World())
    for size in (2, 3, 5):
        shares = [result(Deaf(rank, size)) for rank in range(size)]
        for expected, *received in zip(whole, *shares, strict=True):
            assert torch.allclose(sum(received), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("what", ["gumbel", "normal", "dropout", "half", "bool"])
def test_an_example_has_the_noise_of_the_whole_batch(what: str) -> None:
    values = torch.randn(7, 4, 6, generator=torch.Generator().manual_seed(0))
    mask = torch.rand(7, 1, 4, 4, generator=torch.Generator().manual_seed(0)) > 0.2
    mask[..., 0] = True

    def attention(part: slice, mask: Tensor) -> Tensor:
        query = values[part][:, None]
        return F.scaled_dot_product_attention(query, query, query, mask, dropout_p=0.5)

    draw: Callable[[slice], Tensor] = {
        "gumbel": lambda part: gumbel(values[part].shape),
        "normal": lambda part: torch.empty_like(values[part]).normal_(1, 2),
        "dropout": lambda part: nn.Dropout(0.4)(values[part]),
        "half": lambda part: nn.Dropout(0.1)(values[part].bfloat16()),
        "bool": lambda part: attention(part, mask[part]),
    }[what]

    def drawn(world: World) -> Tensor:
        torch.manual_seed(5)
        with WholeBatchDraws(world, 7) if world.size > 1 else nullcontext():
            part = world.share(7)
            return torch.cat((draw(part), draw(part)), 1)  # so the state matters too

    twice = drawn(World())
    shares = torch.cat([drawn(World(rank, 3)) for rank in range(3)])
    assert torch.allclose(shares, twice, rtol=1e-6, atol=1e-6)
    assert not torch.equal(*twice.chunk(2, 1))


def test_who_a_launcher_says_we_are(monkeypatch: pytest.MonkeyPatch) -> None:
    assert current() == launched() == World()
    monkeypatch.setenv("WORLD_SIZE", "4")  # as some clusters set it for every program
    assert launched() == World()
    monkeypatch.setenv("RANK", "2")
    assert launched() == World(2, 4, 2, 4)
    monkeypatch.setenv("RANK", "two")
    with pytest.raises(
        InputError, match="RANK is 'two' in the environment; expected a whole number"
    ):
        launched()


def test_counts_of_parts_add_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREELAX_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("treelax.apps.tasks.sentences.task.MOST_SENTENCES", 3)
    monkeypatch.setattr("treelax.lab.listops.experiment.DEV_BATCH", 20)
    config = text_config(tmp_path, "tag")
    for experiment in (
        TextExperiment(config, data.load_text(config.data), CPU),
        ListOpsExperiment(tiny(), CPU),
    ):
        parts = [experiment.evaluate(World(rank, 3).part) for rank in range(3)]
        assert len(experiment.dev) > 2
        assert torch.equal(torch.stack(parts).sum(0), experiment.evaluate())
        assert experiment.evaluate()[-1] > 0
