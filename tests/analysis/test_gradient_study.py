"""Estimators held against the exact gradient: what is measured, by hand where it can be."""

from __future__ import annotations

import math

import pytest
import torch

import treelax as tx
from treelax.lab.analysis import gradients
from treelax.lab.analysis.gradient_plots import LOOKS
from treelax.lab.analysis.gradients import LOSSES, SCORES, Problem
from treelax.structures import structure_named

STRUCTURES = ["projective", "nonprojective", "heads", "binary"]


@pytest.mark.parametrize(("name", "loss"), [*zip(STRUCTURES, (*LOSSES, LOSSES[-1]), strict=True)])
def test_the_exact_gradient_has_no_bias_and_rloo_none_beyond_chance(name: str, loss: str) -> None:
    problem = Problem.make(structure_named(name), 4, "trained", loss, seed=0)
    exact = problem.measure(tx.Exact(), 1, 0)
    assert exact["bias"] < 1e-10
    assert exact["deviation"] == exact["zeros"] == 0
    assert exact["cosine"] == pytest.approx(1)
    for draws in (100, 4_000):
        rloo = problem.measure(tx.RLOO(4), draws, seed=1)
        assert rloo["bias"] < 2 * rloo["deviation"] / math.sqrt(draws)


@pytest.mark.parametrize("name", STRUCTURES[:3])
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
    start, end = (float(structure(one.scores).entropy()) for one in (random, trained))
    assert 0.4 * start < end <= start / 2
    start, end = (
        float(tx.Exact().expect(structure(one.scores), one.loss)) for one in (random, trained)
    )
    assert end < start


def test_marginals_are_exact_for_a_linear_loss_and_short_steps_give_zeros() -> None:
    problem = Problem.make(tx.Projective(), 4, "trained", "linear", seed=0)
    assert problem.measure(tx.Marginals(), 1, 0)["bias"] < 1e-10
    short, long = (problem.measure(tx.IMLE(step), 200, 0)["zeros"] for step in (0.01, 10.0))
    assert short > 0.9 > long


@pytest.mark.parametrize("name", STRUCTURES)
def test_every_estimator_has_its_place_in_the_picture(name: str) -> None:
    names = {family.name for family in gradients.families(structure_named(name))}
    assert names <= {*LOOKS, "exact"}
    assert ("relaxed softmax" in names) == (name != "nonprojective")
    assert ("SPIGOT simplex" in names) == (name != "binary")
