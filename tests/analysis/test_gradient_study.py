"""Estimators held against the exact gradient: what is measured, by hand where it can be."""

from __future__ import annotations

import math

import pytest
import torch

import treelax as tx
from treelax.lab.analysis import gradients
from treelax.lab.analysis.gradient_plots import LOOKS, draw_gradients
from treelax.lab.analysis.gradients import LOSSES, MEASURES, SCORES, Problem
from treelax.structures import structure_named

STRUCTURES = ["projective", "nonprojective", "heads", "binary"]
every_structure = pytest.mark.parametrize("name", STRUCTURES)


@every_structure
@pytest.mark.parametrize("loss", LOSSES)
def test_the_exact_gradient_has_no_bias_and_rloo_none_beyond_chance(name: str, loss: str) -> None:
    problem = Problem.make(structure_named(name), 4, "trained", loss, seed=0)
    exact = problem.measure(tx.Exact(), 1, 0)
    assert exact["bias"] < 1e-10
    assert exact["deviation"] == exact["zeros"] == 0
    assert exact["cosine"] == pytest.approx(1)
    for draws in (100, 10_000):
        rloo = problem.measure(tx.RLOO(4), draws, seed=1)
        assert rloo["bias"] < 2 * rloo["deviation"] / math.sqrt(draws)


def test_marginals_are_exact_for_a_linear_loss() -> None:
    problem = Problem.make(tx.Projective(), 4, "random", "linear", seed=0)
    assert problem.measure(tx.Marginals(), 1, 0)["bias"] < 1e-10


@pytest.mark.parametrize("name", ["projective", "nonprojective", "heads"])
def test_a_constant_for_all_heads_of_a_word_counts_for_nothing(name: str) -> None:
    structure = structure_named(name)
    problem = Problem.make(structure, 4, "random", "linear", seed=0)
    parts = structure.part_mask(torch.tensor(4), 5).double()
    gradient = torch.randn(5, 5, dtype=torch.float64) * parts
    centred = (gradient - gradient.sum(0) / parts.sum(0).clamp(min=1)) * parts
    assert (gradient.flatten() @ problem.changes - centred.flatten()).abs().max() < 1e-12


def test_training_halves_the_entropy_and_lowers_the_loss() -> None:
    structure = tx.Projective()
    random, trained = (Problem.make(structure, 4, kind, "network", seed=0) for kind in SCORES)
    before, after = (float(structure(own.scores).entropy()) for own in (random, trained))
    assert 0.4 * before < after <= before / 2
    before, after = (
        float(tx.Exact().expect(structure(own.scores), own.loss)) for own in (random, trained)
    )
    assert after < before


def test_a_step_that_is_too_short_gives_zeros() -> None:
    problem = Problem.make(tx.Projective(), 4, "trained", "linear", seed=0)
    short, long = (problem.measure(tx.IMLE(step), 200, 0)["zeros"] for step in (0.01, 10.0))
    assert short > 0.9 > long


@every_structure
def test_rows_and_plot(name: str) -> None:
    records = list(gradients.measured(name, 3, draws=5, seeds=2))
    assert len(records) == 2 * gradients.count(name)
    rows = gradients.averaged(records)
    assert len(rows) == gradients.count(name)
    assert all(math.isfinite(row[key]) for row in rows for key in MEASURES)
    names = {row["estimator"] for row in rows}
    assert names <= {*LOOKS, "exact"}
    assert ("relaxed softmax" in names) == (name != "nonprojective")
    assert ("SPIGOT simplex" in names) == (name != "binary")
    assert records == list(gradients.measured(name, 3, draws=5, seeds=2))
    assert "quadratic loss" in draw_gradients(rows).svg()
