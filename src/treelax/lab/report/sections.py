"""The sections of a report as tables: overview, results beside the paper's, settings, curves."""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from treelax.apps.table import Cell, Table
from treelax.lab.analysis.tables import headings, table_rows
from treelax.lab.plots import Panel, draw_panels
from treelax.lab.report.run_records import RunRecord
from treelax.lab.tables.by_task import TABLES

# what headings mean that no table of a study explains itself: of sections by their ids, of columns
EXPLAINED = {
    "results": "How well the finished runs do on their dev and test sets.",
    "training": "Loss and dev figures after every epoch.",
    "trees": "What the trees look like, what they agree with, and how sure the runs are of them.",
    "examples": "Sentences with the trees and the predictions of the runs.",
    "settings": "What the runs were trained with.",
}
COLUMNS = {
    "preset": "the settings that the run started from",
    "seed": "of initial weights, batches and noise",
    "best epoch": "the epoch with the best dev figures, whose model is kept",
    "discrete trees": "labels that are right with discrete trees, as in use, %",
    "soft trees": "labels that are right with soft trees, as in training, %",
    "gap": "by how many points discrete trees are better",
    "operators": "operators with the right tag, %",
    "operators, soft trees": "the same with soft trees, as in training",
    "all tokens": "tokens of all kinds with the right tag, %",
    "all tokens, soft trees": "the same with soft trees, as in training",
    "attachment": "tokens with their gold head, %",
    "exact trees": "expressions with their whole gold tree, %",
    "UAS": "words with their gold head, %",
    "LAS": "words with their gold head and label, %",
    "exact LAS": "the same, where subtypes of labels count too",
}
_SIZE = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')
SECTIONS = {"": "Experiment", "data": "Data", "model": "Model", "train": "Training"}
LEARNED = 3  # runs whose dev figures stand on top where there are no trees
CHANGES = 6  # settings other than the preset's that are named


def _name(key: str) -> str:
    return key.upper() if key.upper() in COLUMNS else key.replace("_", " ")  # UAS, LAS


def _dev_name(key: str) -> str:
    return f"dev: {_name(key)}, %"


def dev_figures(runs: Sequence[RunRecord]) -> list[str]:
    """What is known where no trees could be studied: the dev figures of the best epochs."""
    sentences = []
    for run in runs[:LEARNED]:
        figures = ", ".join(f"{_name(key)} {value:.1f} %" for key, value in run.dev.items())
        if figures and run.best_row is not None:
            sentences.append(
                f"On the dev set, after epoch {run.best_row['epoch']}, {run.name} has {figures}."
            )
    return sentences


def overview(runs: Sequence[RunRecord]) -> Table:
    """The runs: what they are, how far they have come, and their best figures on dev."""
    keys = list(dict.fromkeys(key for run in runs for key in run.dev))
    columns = ["run", "task", "preset", "seed", "state", "best epoch", "time", "device"]
    rows: list[list[Cell]] = [
        [
            *(run.name, run.task.title, run.config.preset, str(run.config.seed), run.state),
            "–" if run.best_row is None else str(run.best_row["epoch"]),
            "–" if run.seconds is None else _duration(run.seconds),
            str((run.result or {}).get("device", "–")),
            *(run.dev.get(key) for key in keys),
        ]
        for run in runs
    ]
    note = "dev: of the best epoch, with discrete trees unless marked soft." if keys else None
    return Table([*columns, *map(_dev_name, keys)], rows, f"The {len(runs)} runs", note)


def _duration(seconds: float) -> str:
    """A time in words: ``59 s``, ``1 min 1 s``, ``2 h 2 min``."""
    minutes, rest = divmod(round(seconds), 60)
    if not minutes:
        return f"{rest} s"
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def results(runs: Sequence[RunRecord]) -> dict[str, list[Any]] | None:
    """Figures of the runs that have ended, and beside the paper's; None if none has."""
    ended = [run for run in runs if run.result is not None]
    if not ended:
        return None
    tables, details = [], []
    for task in dict.fromkeys(run.task for run in ended):
        same = [run for run in ended if run.task is task]
        pairs = [(run.name, row) for run in same for row in task.summary(run.result or {})]
        columns = list(dict.fromkeys(name for _, row in pairs for name in row))
        rows = [[name, *(row.get(column) for column in columns)] for name, row in pairs]
        tables.append(
            Table(["run", *columns], rows, f"{task.title[0].upper()}{task.title[1:]}: results, %")
        )
        details += [
            table._replace(title=f"{run.name}: {table.title or 'more'}")
            for run in same
            for table in task.result_tables(run.result or {})[1:]
        ]
    beside = list(_beside_paper(ended))
    changed = [note for run in ended for note in _changed(run)] if beside else []
    return {"tables": [*tables, *beside], "details": details, "changed": changed}


def _beside_paper(runs: Sequence[RunRecord]) -> Iterator[Table]:
    papers = {id(t): (run.task, t) for run in runs for t in TABLES.get(run.task.name, {}).values()}
    for task, paper in papers.values():
        same = [run for run in runs if run.task is task and run.config.preset in paper.figures]
        if not same or not any(paper.figures[run.config.preset] for run in same):
            continue
        rows = []
        for group in _alike(same):
            records = [paper.record(run.result or {}, run.rows) for run in group]
            names = ", ".join(run.name for run in group)
            rows += [[*cells, names] for cells in table_rows(paper, records)]
        about = paper.about([(run.config, run.result or {}) for run in same])
        columns = [*headings(paper), "runs"]
        shown = list(range(len(columns)))
        if len(rows) == len(same):  # one run each: columns on seeds say nothing
            shown = [i for i in shown if "seed" not in columns[i]]
        rows = [[row[i] for i in shown] for row in rows]
        yield Table([columns[i] for i in shown], rows, f"Beside the paper: {paper.title}", about)


def _alike(runs: Sequence[RunRecord]) -> list[list[RunRecord]]:
    """Runs whose settings are the same but for the seed and where files are."""
    groups: dict[str, list[RunRecord]] = {}
    for run in runs:
        shared = {key: value for key, value in run.settings.items() if key not in run.places}
        groups.setdefault(json.dumps(shared, sort_keys=True), []).append(run)
    return list(groups.values())


def _changed(run: RunRecord) -> list[str]:
    """That a run is not what its preset is."""
    settings, usual = run.settings, run.changed
    named = [f"{key} {written(settings[key])} (preset: {written(usual[key])})" for key in usual]
    more = f" and {len(named) - CHANGES} more" if len(named) > CHANGES else ""
    return [f"{run.name}: {', '.join(named[:CHANGES])}{more}"] if named else []


def written(value: Any) -> str:
    """A value as people write it: ``none``, ``true``, ``64, 32``."""
    if isinstance(value, tuple):
        return ", ".join(map(written, value)) or "(empty)"
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def settings(runs: Sequence[RunRecord]) -> dict[str, Any]:
    """Settings that differ, side by side; those that all runs share, section by section."""
    by_run = {run.name: run.settings for run in runs}
    keys = list(dict.fromkeys(key for row in by_run.values() for key in row))
    # runs of different tasks do not have the same settings
    values = {
        key: [written(row[key]) if key in row else "–" for row in by_run.values()] for key in keys
    }
    differing = [key for key in keys if len(set(values[key])) > 1]
    rows = [[key, *values[key]] for key in differing]
    columns, title = ["setting", *by_run], "Settings that differ"
    if len(runs) == 1:
        [run] = runs
        rows = [
            [key, written(run.settings[key]), written(usual)] for key, usual in run.changed.items()
        ]
        columns, title = ["setting", "value", "preset has"], "Settings that differ from the preset"
    groups: dict[str, list[str]] = {}
    for key in keys:
        if key not in differing:
            groups.setdefault(key.rpartition(".")[0], []).append(key)
    return {
        "differing": Table(columns, rows, title) if rows else None,
        "shared": len(keys) - len(differing),
        "groups": [_group(name, group, runs) for name, group in groups.items()],
    }


def _group(name: str, keys: Sequence[str], runs: Sequence[RunRecord]) -> tuple[Table, list[str]]:
    """The settings of one section, which all runs share, with the preset's value where it differs."""
    settings, usual = runs[0].settings, runs[0].changed
    one_preset = len({run.config.preset for run in runs}) == 1
    shown = {key: written(usual[key]) for key in keys if key in usual and one_preset}
    rows = [
        [key.rpartition(".")[2], written(settings[key]), *([shown.get(key, "")] if shown else [])]
        for key in keys
    ]
    columns = ["setting", "value", *(["preset has"] if shown else [])]
    markers = ["changed" if key in shown else "" for key in keys]
    return Table(columns, rows, SECTIONS.get(name, name)), markers


def training(runs: Sequence[RunRecord]) -> dict[str, Any] | None:
    """A picture of the loss and all dev figures by epoch; None if no run has ended an epoch."""
    begun = [run for run in runs if run.rows]
    keys = dict.fromkeys(
        key for run in begun for row in run.rows for key in row.get("dev", {}) if key != "score"
    )
    figures = [("training loss", "loss"), *((_dev_name(key), key) for key in keys)]
    panels = []
    for title, key in figures:
        curves = [run.curve(key, look) for look, run in enumerate(begun)]
        curves = [curve for curve in curves if any(map(math.isfinite, curve.mean))]
        if curves:
            panels.append(Panel(curves, "epoch", title))
    if not panels:
        return None
    drawn = draw_panels(panels, columns=3)
    # as an image: its style counts in it, and none of its names meets one of the page
    svg = drawn.svg()
    data = base64.b64encode(svg.encode()).decode()
    width, height = _SIZE.search(svg).groups()  # type: ignore[union-attr]  # matplotlib writes it
    return {
        **{"data": data, "description": drawn.description},
        **{"width": round(float(width)), "height": round(float(height))},
    }
