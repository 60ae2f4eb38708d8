"""Runs of the experiments as the sections of the pages read them; see `benchmarks.figures`."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import treelax
from benchmarks.records import ROOT, Row, Rows, numbers, row, rows
from treelax.apps.tasks.listops.config import TrainConfig
from treelax.apps.tasks.listops.config import preset as listops_preset
from treelax.apps.tasks.text.presets import preset
from treelax.apps.training.config import override
from treelax.lab.analysis.estimators import COMPARISONS, Study
from treelax.lab.analysis.gradients import MEASURES, SCORES, SHORT, short_table
from treelax.lab.analysis.tables import spread
from treelax.lab.listops.table import KINDS, LABELS, PAPER, TURN, as_trained, turns
from treelax.lab.tables.text import TABLES, label


def spread_of(runs: Rows, column: str) -> str:
    """Mean and spread of a column, or a dash where it is empty."""
    return spread(numbers(runs, column))


def listops(folder: str = "", name: str = "runs.csv") -> Rows:
    """Runs on ListOps."""
    return rows(f"results/listops/{folder}/{name}")


def turns_of(runs: Rows) -> str:
    """When runs made their turn."""
    return turns([int(run["turn"]) if run["turn"] else None for run in runs])


def by_length(runs: Rows) -> list[list[dict[str, Any]]]:
    """Figures by the length of expressions, of runs of the preset for any length."""
    files = [ROOT / "results" / "listops" / "long" / f"test-{run['seed']}.json" for run in runs]
    return [json.loads(file.read_text(encoding="utf-8"))["test"]["by_length"] for file in files]


def reading(trials: Rows, name: str, longest: int, presets: list[str]) -> str:
    """A line with the trials of a reading of the appendix; those that stopped early have a dagger."""

    def cell(preset: str) -> str:
        return ", ".join(
            f"{float(t['operator_accuracy']):.0f}/{float(t['attachment']):.0f}"
            + (f" ({float(t['soft_operator_accuracy']):.0f})" if preset == "paper-zero" else "")
            + ("" if t["epochs"] == "100" else "†")
            for t in trials
            if (t["reading"], t["max_length"], t["preset"]) == (name, str(longest), preset)
        )

    return row(name, longest, *(cell(preset) or "–" for preset in presets))


def about(folder: str) -> str:
    """What a table of sentences says of itself: data, vectors, command, machine."""
    lines = (ROOT / "results" / folder / "table.md").read_text(encoding="utf-8").splitlines()
    return f"{lines[2]} [Every run](results/{folder}/runs.csv)."


def study(name: str) -> Study:
    """A comparison of estimators on a task."""
    return Study(name, Path("runs"), ROOT / "results" / "estimators")


def study_table(comparison: Study) -> str:
    """Its table, without the columns that would make a page too wide."""
    headings, lines = comparison.table_rows(seeds=5)
    wide = ("trials, dev", "seeds", "every seed")
    shown = [i for i, heading in enumerate(headings) if not heading.endswith(wide)]
    return _table(*([line[i] for i in shown] for line in (headings, *lines)))


def gradient_table(measures: list[dict[str, Any]], scores: str) -> str:
    """The best settings of the estimators for one kind of scores."""
    headings, lines, *_ = short_table(measures, scores)
    return _table(headings, *lines)


def _table(headings: list[str], *lines: list[str]) -> str:
    rule = f"|---|{'--:|' * (len(headings) - 1)}"
    return "\n".join((row(*headings), rule, *(row(*line) for line in lines)))


def gradients() -> list[dict[str, Any]]:
    """Estimators held against the exact gradient, with numbers where they were measured."""
    measures: list[dict[str, Any]] = [*rows("results/gradients/gradients.csv")]
    for one in measures:
        one |= {name: float(one[name]) for name in MEASURES}
        one |= {"value": float(one["value"]) if one["value"] else None, "draws": int(one["draws"])}
    return measures


def bias_over_chance(measures: list[dict[str, Any]]) -> list[float]:
    """The bias of unbiased estimators, in units of what chance gives them."""
    unbiased = [one for one in measures if one["estimator"] in ("RLOO", "REINFORCE")]
    return [one["bias"] * math.sqrt(one["draws"]) / one["deviation"] for one in unbiased]


# ------------------------------------------------------------------ trials behind the tuned recipes

ROUND = {
    2: "train.learning_rate=0.001",
    3: "train.learning_rate=0.001 model.word_scale=3 model.dropout=0",
}
LEFT = "model.left_head_bias=2"  # which trees start with


def trial(preset: str, number: int, changes: str) -> list[str]:
    """Dev accuracies with discrete and soft trees of the trial on SNLI that changes its round so."""
    trials = rows("results/tuning/snli.csv")
    third = [set(one["settings"].split()) for one in trials if one["round"] == "3"]
    common = set.intersection(*third)
    wanted = {*ROUND[number].split(), *changes.split()}
    if preset != "snli-none" and "left_head_bias" not in changes:
        wanted.add(LEFT)
    for one in trials:
        same = set(one["settings"].split()) - common == wanted - common
        if same and (one["preset"], one["round"]) == (preset, str(number)):
            return [one["best_dev_accuracy"], one["soft_dev_accuracy"]]
    return ["–", "–"]


def sst_noise() -> tuple[list[float], list[float]]:
    """Dev accuracies on SST with half the noise, and of what differs in nothing but the noise."""
    trials = [one for one in rows("results/tuning/sst.csv") if one["preset"] == "sst-tree"]

    def key(one: Row) -> tuple[frozenset[str], str, str]:
        settings = frozenset(one["settings"].split())
        return settings - {"model.noise_scale=0.5"}, one["vectors"], one["seed"]

    halved = [one for one in trials if "model.noise_scale=0.5" in one["settings"].split()]
    keys = set(map(key, halved))
    whole = [one for one in trials if one not in halved and key(one) in keys]
    return numbers(halved, "best_dev_accuracy"), numbers(whole, "best_dev_accuracy")


ARITHMETIC = {"train.precision=tf32"}  # not told apart: arithmetics agree within the seeds
# runs of several seeds: what they change in the recipe, and where they are in results/
SEVERAL_SEEDS = {
    "snli": {"": "snli-tuned", "train.epochs=20": "snli-tuned/shorter"},
    "sst": {"": "sst-tuned"},
}


def recorded(name: str, changes: str) -> set[str]:
    """Settings of a tuned preset with changes that the paper's has not, as the records have them."""
    ours = override(preset(name), changes.split(), list_all="")
    paper = preset(name.replace("-tuned", ""))
    return {
        f"{part}.{key}={value:g}" if isinstance(value, float) else f"{part}.{key}={value}"
        for part in ("model", "train")
        for key, value in asdict(getattr(ours, part)).items()
        if asdict(getattr(paper, part))[key] != value
    } - ARITHMETIC


def choice(data: str, variant: str, changes: str) -> str:
    """Dev accuracy of a row of a table with changes to its recipe, by runs or else by trials."""
    tuned = f"{data}-tuned-{variant}"
    wanted = recorded(tuned, changes)
    figures = [
        float(run["dev_accuracy"])
        for its_changes, folder in SEVERAL_SEEDS[data].items()
        if wanted == recorded(tuned, its_changes)
        for run in rows(f"results/{folder}/runs.csv")
        if run["preset"] == tuned
    ]
    stopped = False
    for one in rows(f"results/tuning/{data}.csv") if not figures else ():
        settings = set(one["settings"].split()) - ARITHMETIC
        if (one["preset"], settings) == (f"{data}-{variant}", wanted) and " " in one["vectors"]:
            figures.append(float(one["best_dev_accuracy"]))
            stopped |= one["epochs_run"] != one["epochs_planned"]
    if not figures:
        return "–"
    figure = spread(figures) if len(figures) > 1 else f"{figures[0]:.2f}"
    return f"{figure} ({len(figures)}{', stopped' if stopped else ''})"


def about_model(name: str) -> dict[str, Any]:
    """What a model that comes with treelax says of itself."""
    return treelax.load(name).about


FUNCTIONS: dict[str, Any] = {
    function.__name__: function
    for function in (
        *(spread, spread_of, listops, turns_of, by_length, reading, about, study, study_table),
        *(trial, gradients, gradient_table, bias_over_chance, sst_noise, choice, about_model),
        *(listops_preset, TrainConfig, as_trained, label),
    )
} | {
    **{"COMPARISONS": COMPARISONS, "TEXT_TABLES": TABLES, "TURN": TURN},
    **{"SCORES": SCORES, "SHORT": SHORT, "LABELS": LABELS, "PAPER": PAPER, "KINDS": KINDS},
}
