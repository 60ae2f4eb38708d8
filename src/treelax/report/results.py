"""Figures of the test set, with discrete and with soft trees, and beside those of the paper."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from treelax.analysis import listops_table
from treelax.analysis.text_table import TABLES, amount, text_record, text_rows
from treelax.report.markup import Html, join, table, tag
from treelax.report.runs import RunRecord
from treelax.report.settings import written
from treelax.table import Table
from treelax.tasks.text.config import TextConfig

__all__ = ["results_section"]

EVERY_SEED, SEEDS = "every seed", "seeds"
CHANGES = 6  # that are named


def results_section(runs: Sequence[RunRecord]) -> Html | None:
    """The figures of the runs that have ended."""
    ended = [run for run in runs if run.result is not None]
    if not ended:
        return None
    parts: list[Html] = []
    for task in dict.fromkeys(run.task for run in ended):
        own = [run for run in ended if run.task is task]
        found = [(run.name, row) for run in own for row in task.summary(run.result or {})]
        columns = list(dict.fromkeys(name for _, row in found for name in row))
        rows = [[name, *(row.get(column) for column in columns)] for name, row in found]
        parts.append(table(Table(["run", *columns], rows, f"{task.title}, results, %")))
        details = [
            table(each._replace(title=f"{run.name}: {each.title or 'more'}"))
            for run in own
            for each in task.result_tables(run.result or {})[1:]
        ]
        if details:
            parts.append(tag("details", tag("summary", "More figures of each run"), *details))
    return join([*parts, *_beside(_paper_listops(ended)), *_beside(_paper_texts(ended))])


def _beside(paper: Iterable[tuple[Table, Sequence[RunRecord]]]) -> Iterator[Html]:
    """Tables with the paper's figures, and which of their runs are not what their presets are."""
    runs: dict[str, RunRecord] = {}
    for content, own in paper:
        yield table(content)
        runs |= {run.name: run for run in own}
    yield from _caution(list(runs.values()))


# ------------------------------------------------------------------ beside the paper


def _paper_listops(
    runs: Sequence[RunRecord],
) -> Iterator[tuple[Table, Sequence[RunRecord]]]:
    known = {row.preset for row in listops_table.ROWS if row.paper is not None}
    chosen = [run for run in runs if run.config.preset in known]
    if not chosen:
        return
    rows = [
        [*cells, _names(group)]
        for group in _alike(chosen)
        for cells in listops_table.table_rows(
            [listops_table.record(dict(run.result)) for run in group if run.result is not None]
        )
    ]
    note = "paper acc / att: accuracy of operators and attachment in table 1 of the paper."
    headings = [*listops_table.HEADINGS, "runs"]
    yield _shortened("Beside the paper's table 1, %", headings, rows, note), chosen


def _paper_texts(
    runs: Sequence[RunRecord],
) -> Iterator[tuple[Table, Sequence[RunRecord]]]:
    for each in [form for own in TABLES.values() for form in (own, own.tuned)]:
        chosen = [run for run in runs if run.config.preset in each.presets]
        if not chosen:
            continue
        rows, data = [], dict[str, None]()
        for group in _alike(chosen):
            records = []
            for run in group:
                assert run.result is not None
                assert isinstance(run.config, TextConfig)
                records.append(text_record(dict(run.result)))
                data[amount(run.config, dict(run.result))] = None
            rows += [[*cells, _names(group)] for cells in text_rows(each, records)]
        note = f"Accuracy in percent, trained on {'; '.join(data)}."
        title = f"Beside the paper: {each.title}"
        yield _shortened(title, [*each.headings, "runs"], rows, note), chosen


def _alike(runs: Sequence[RunRecord]) -> list[list[RunRecord]]:
    """Runs whose settings are the same but for the seed and where files are."""
    groups: dict[str, list[RunRecord]] = {}
    for run in runs:
        own = {key: value for key, value in run.settings.items() if key not in run.places}
        groups.setdefault(json.dumps(own, sort_keys=True), []).append(run)
    return list(groups.values())


def _names(runs: Sequence[RunRecord]) -> str:
    return ", ".join(run.name for run in runs)


def _shortened(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], note: str
) -> Table:
    """A table without what says nothing of rows that are one run each."""
    seeds = columns.index(SEEDS)
    alone = all(row[seeds] == "1" for row in rows)
    kept = [
        i
        for i, name in enumerate(columns)
        if not (alone and (name == SEEDS or name.startswith(EVERY_SEED)))
    ]
    shown = [[row[i] for i in kept] for row in rows]
    return Table([columns[i] for i in kept], shown, title, note)


def _caution(runs: Sequence[RunRecord]) -> list[Html]:
    """That a run is not what its preset is, where it stands beside the paper."""
    notes = []
    for run in runs:
        own, changed = run.settings, run.changed
        named = [f"{key} {written(own[key])} (preset: {written(changed[key])})" for key in changed]
        if named:
            more = f" and {len(named) - CHANGES} more" if len(named) > CHANGES else ""
            notes.append(f"{run.name}: {', '.join(named[:CHANGES])}{more}")
    if not notes:
        return []
    first = "Not the settings of their presets, so not quite the paper's experiment: "
    return [tag("p", tag("strong", first), "; ".join(notes), ".", class_="note caution")]
