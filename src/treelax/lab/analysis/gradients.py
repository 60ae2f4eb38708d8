"""Estimators of gradients held against the exact gradient, over short sentences.

Gradients are compared by what changes the distribution, the span of all differences of two structures:
of a word's arcs one is in every tree, so a constant added to all of them changes nothing, and an
estimate is not blamed for one.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby, product
from operator import itemgetter
from statistics import fmean, stdev
from typing import Any, NamedTuple

import torch
from torch import Tensor

import treelax as tx
from treelax.apps.table import Table
from treelax.estimators.base import Estimator, Loss
from treelax.lab.analysis.tables import to_markdown
from treelax.structures import Structure, structure_named

SCORES = ("random", "trained")
LOSSES = ("linear", "quadratic", "network")
MEASURES = ("bias", "deviation", "cosine", "single_cosine", "zeros")
TEMPERATURES = (0.1, 0.2, 0.5, 1.0, 2.0, 3.0)  # and scales of noise
SPIGOT_STEPS = (0.1, 0.3, 1.0, 3.0, 10.0)
IMLE_STEPS = (*SPIGOT_STEPS, 30.0, 100.0)
RATE = 0.5  # of the descent to trained scores
SIZE, CLASSES = 16, 3  # of the network
ROUNDING = 1e-12
SHORT = (
    "Cosine of the mean estimate to the exact gradient / mean cosine of single estimates; one number "
    "if there is no noise. In brackets the setting that is best for single estimates: the step of "
    "SPIGOT and I-MLE, the scale of perturbed (1 or 8 samples), the samples of REINFORCE and RLOO, "
    "else the temperature."
)

Record = dict[str, Any]


class Family(NamedTuple):
    """An estimator over a range of one of its settings; one without noise is measured once."""

    name: str
    setting: str
    values: Sequence[float | None]
    make: Callable[[Any], Estimator]
    noisy: bool = True


def families(structure: Structure) -> list[Family]:
    """All estimators that a structure has."""
    alone = partial(Family, setting="", values=(None,))
    heat = partial(Family, setting="temperature", values=TEMPERATURES)
    step = partial(Family, setting="step", values=SPIGOT_STEPS, noisy=False)
    scale = partial(Family, setting="scale", values=TEMPERATURES)
    relaxations: list[Any] = ["softmax", "entropy"]
    if isinstance(structure, tx.NonProjective):
        relaxations.remove("softmax")
    first = relaxations[0]
    rows = [
        *(heat(f"relaxed {kind}", make=partial(tx.Relaxed, kind)) for kind in relaxations),
        heat("straight-through", make=lambda t: tx.StraightThrough(tx.Relaxed(first, t))),
        alone("straight-through identity", make=lambda _: tx.StraightThrough(gradient="identity")),
        heat("marginals", make=tx.Marginals, noisy=False),
        heat("SparseMAP", make=tx.SparseMAP, noisy=False),
    ]
    if structure.unconstrained is not None:
        rows.append(step("SPIGOT simplex", make=tx.SPIGOT))
    rows += [
        step("SPIGOT polytope", make=lambda s: tx.SPIGOT(s, "polytope")),
        step("SPIGOT-CE", make=lambda s: tx.SPIGOT(s, "polytope", "ce")),
        step("SPIGOT-EG", make=lambda s: tx.SPIGOT(s, form="eg")),
        Family("I-MLE", "step", IMLE_STEPS, tx.IMLE),
    ]
    return [
        *rows,
        *(
            scale(f"perturbed {law.__name__} ({n})", make=partial(_perturbed, n, law))
            for law in (tx.Gumbel, tx.Gaussian)
            for n in (1, 8)
        ),
        Family("REINFORCE", "samples", (1, 4), tx.REINFORCE),
        Family("RLOO", "samples", (2, 4, 8), tx.RLOO),
        alone("exact", make=lambda _: tx.Exact(), noisy=False),
    ]


def _perturbed(samples: int, noise: Callable[[float], Any], scale: float) -> Estimator:
    return tx.Perturbed(samples, noise(scale))


def count(structure: str) -> int:
    """How many records `measured` gives for each seed."""
    settings = sum(len(family.values) for family in families(structure_named(structure)))
    return len(SCORES) * len(LOSSES) * settings


@dataclass(frozen=True)
class Problem:
    """The scores of a sentence, a loss of its structure and the gradient of the expected loss."""

    structure: Structure
    scores: Tensor
    loss: Loss
    changes: Tensor  # projects gradients, as vectors, on what changes the distribution
    gradient: Tensor  # projected

    @classmethod
    def make(cls, structure: Structure, words: int, scores: str, loss: str, seed: int) -> Problem:
        """A problem of some kind of scores and loss."""
        generator = torch.Generator().manual_seed(seed)
        size = words + structure.rooted
        start = torch.randn(size, size, dtype=torch.float64, generator=generator)
        trees = structure.enumerate(words)
        raw = _loss(structure, size, loss, generator)
        scale = raw(trees).std()  # so that steps mean the same for all

        def scaled(tree: Tensor) -> Tensor:
            return raw(tree) / scale

        point = start if scores == "random" else descended(structure, start, scaled)
        values, vectors = torch.linalg.eigh(trees.flatten(1).T.cov())
        basis = vectors[:, values > ROUNDING]
        changes = basis @ basis.T
        exact = gradients(tx.Exact(), structure, point, scaled).flatten() @ changes
        return cls(structure, point, scaled, changes, exact)

    def measure(self, estimator: Estimator, draws: int, seed: int) -> dict[str, float]:
        """The measures of an estimator, over estimates that are drawn as one batch."""
        generator = torch.Generator().manual_seed(seed)
        many = self.scores.expand(draws, *self.scores.shape)
        if isinstance(estimator, tx.REINFORCE):  # a baseline to begin with
            estimator.expect(self.structure(many), self.loss, generator=generator)
        with warnings.catch_warnings():  # of gradients that are all 0: "zeros" says it here
            warnings.simplefilter("ignore", RuntimeWarning)
            estimates = gradients(estimator, self.structure, many, self.loss, generator)
        estimates = estimates.flatten(1) @ self.changes
        size, mean = self.gradient.norm(), estimates.mean(0)
        none = estimates.norm(dim=1) < ROUNDING * size
        return {
            "bias": float((mean - self.gradient).norm() / size),
            "deviation": float((estimates - mean).square().sum(1).mean().sqrt() / size),
            "cosine": float(self._cosines(mean)),
            "single_cosine": float(self._cosines(estimates).mean()),
            "zeros": float(none.double().mean()),
        }

    def _cosines(self, estimates: Tensor) -> Tensor:
        """Cosines of estimates to the exact gradient; 0 for those that are 0."""
        size, norms = self.gradient.norm(), estimates.norm(dim=-1)
        cosines = estimates @ self.gradient / (norms * size)
        return cosines.masked_fill(norms < ROUNDING * size, 0)


def gradients(
    estimator: Estimator,
    structure: Structure,
    scores: Tensor,
    loss: Loss,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Estimates of the gradient of the expected loss, of the shape of the scores."""
    scores = scores.clone().requires_grad_()
    expected = estimator.expect(structure(scores), loss, generator=generator)
    return torch.autograd.grad(expected.sum(), scores)[0]


def descended(structure: Structure, scores: Tensor, loss: Loss) -> Tensor:
    """Scores after exact gradient descent on the expected loss, until the entropy has halved."""
    half = structure(scores).entropy() / 2
    while structure(scores).entropy() > half:
        scores = scores - RATE * gradients(tx.Exact(), structure, scores, loss)
    return scores


def _loss(structure: Structure, size: int, kind: str, generator: torch.Generator) -> Loss:
    """A loss of structures, of random weights."""
    weights = torch.randn(size, size, dtype=torch.float64, generator=generator)
    if kind == "linear":
        return lambda tree: (tree * weights).sum((-2, -1))
    if kind == "quadratic":
        return lambda tree: (tree * weights).sum((-2, -1)).square()
    vectors = torch.randn(size, SIZE, dtype=torch.float64, generator=generator)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(generator.initial_seed())
        gcn = tx.nn.TreeGCN(SIZE, SIZE, layers=2).double().requires_grad_(False)
        lstm = tx.nn.BinaryTreeLSTM(SIZE, SIZE).double().requires_grad_(False)
        classes = tx.nn.MLP(SIZE, CLASSES).double().requires_grad_(False)

    def network(tree: Tensor) -> Tensor:
        if structure.rooted:
            pooled = gcn(vectors, tree).mean(-2)
        else:
            pooled = lstm.sentence(lstm(vectors.expand(*tree.shape[:-2], -1, -1), tree))
        return -classes(pooled).log_softmax(-1)[..., 0]

    return network


def measured(structure: str, words: int, draws: int, seeds: int) -> Iterator[Record]:
    """A record for each setting of each estimator, each kind of scores and loss, and each seed."""
    trees = structure_named(structure)
    settings = [(family, value) for family in families(trees) for value in family.values]
    for scores, loss in product(SCORES, LOSSES):
        problems = [Problem.make(trees, words, scores, loss, seed) for seed in range(seeds)]
        for (family, value), seed in product(settings, range(seeds)):
            used = draws if family.noisy else 1
            yield {
                **{"structure": structure, "words": words, "scores": scores, "loss": loss},
                **{"estimator": family.name, "setting": family.setting, "value": value},
                "draws": used,
                **problems[seed].measure(family.make(value), used, seed),
            }


def averaged(records: Iterable[Record]) -> list[Record]:
    """Means of the measures over seeds, and their standard deviations where there are several."""
    rows = []
    about = itemgetter("scores", "loss", "estimator", "value")
    for _, same in groupby(records, about):
        group = list(same)
        row = {key: value for key, value in group[0].items() if key not in MEASURES}
        for name in MEASURES:
            values = [record[name] for record in group]
            row[name] = fmean(values)
            row[f"{name}_sd"] = stdev(values) if len(values) > 1 else None
        rows.append(row | {"seeds": len(group), "device": "CPU", "torch": torch.__version__})
    return rows


def best(rows: Iterable[Record]) -> list[Record]:
    """Of each estimator, for each kind of scores and loss, the setting of the best single estimates.

    Of those that are equal to two digits it is the one of the best mean.
    """
    about = itemgetter("scores", "loss", "estimator")
    return [
        max(group, key=lambda row: (round(row["single_cosine"], 2), row["cosine"]))
        for _, group in groupby(rows, about)
    ]


def short_table(rows: Sequence[Record], scores: str) -> Table:
    """The best settings for a kind of scores, a column for each loss; `SHORT` says what they are."""
    cells: dict[str, list[str]] = {}
    for row in best(row for row in rows if row["scores"] == scores):
        single = "" if row["draws"] == 1 else f"/{row['single_cosine']:.2f}"
        value = "" if row["value"] is None else f" ({row['value']:g})"
        cells.setdefault(row["estimator"], []).append(f"{row['cosine']:.2f}{single}{value}")
    columns = [f"{scores} scores", *LOSSES]
    return Table(columns, [[name, *row] for name, row in cells.items()])


def report(rows: Sequence[Record], command: str) -> str:
    """The best settings with all measures, in Markdown, a table for each kind of scores and loss."""
    first = rows[0]
    parts = [
        "# Estimators held against the exact gradient",
        f"Structure {first['structure']}, {first['words']} words; mean ± standard deviation over "
        f"{first['seeds']} draws of scores and loss, the setting of the best single cosine. `{command}` "
        f"on {first['device']}, torch {first['torch']}.",
        "Bias and deviation are relative to the norm of the exact gradient. Bias by chance is what an "
        "unbiased estimator of this deviation shows with so many estimates; zeros is the share of "
        "estimates that are 0.",
        "![Cosine of the mean estimate over the deviation of estimates](gradients.svg)",
    ]
    headings = ["estimator", "setting", "bias", "bias by chance", "deviation", "cosine"]
    headings += ["single cosine", "zeros"]
    for (scores, loss), same in groupby(best(rows), itemgetter("scores", "loss")):
        lines = []
        for row in same:
            value = "" if row["value"] is None else f"{row['setting']} {row['value']:g}"
            chance = f"{row['deviation'] / math.sqrt(row['draws']):.2f}"
            bias, *others = (_with_spread(row, name) for name in MEASURES)
            lines.append([row["estimator"], value, bias, chance, *others])
        parts += [f"## {scores.title()} scores, {loss} loss", to_markdown(headings, lines)]
    return "\n\n".join([*parts, ""])


def _with_spread(row: Record, name: str) -> str:
    spread = row[f"{name}_sd"]
    return f"{row[name]:.2f}" if spread is None else f"{row[name]:.2f} ± {spread:.2f}"
