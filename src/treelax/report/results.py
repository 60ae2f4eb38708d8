"""Figures of the test set, with discrete and with soft trees, and beside those of the paper."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from treelax.analysis import listops_table
from treelax.analysis.cells import Cell
from treelax.analysis.grammar_tables import StudyTable
from treelax.analysis.text_table import TABLES, amount, text_record, text_rows
from treelax.report.markup import Html, join, table, tag
from treelax.report.runs import RunRecord
from treelax.report.settings import written
from treelax.tasks.listops.evaluation import LENGTHS
from treelax.tasks.text.config import TextConfig

__all__ = ["results_section"]

EVERY_SEED, SEEDS = "every seed", "seeds"
CHANGES = 6  # that are named


def results_section(runs: Sequence[RunRecord]) -> Html | None:
    """The figures of the runs that have ended.

    Args:
        runs: all of ListOps, or all of sentences.

    Returns:
        Tables; None if no run has ended.
    """
    ended = [run for run in runs if run.result is not None]
    if not ended:
        return None
    if ended[0].task.name == "listops":
        lengths = tag("details", tag("summary", "By length"), table(_by_length(ended)))
        return join([table(_listops(ended)), *_beside(_paper_listops(ended)), lengths])
    return join([table(_texts(ended)), *_beside(_paper_texts(ended))])


def _beside(paper: Iterable[tuple[StudyTable, Sequence[RunRecord]]]) -> Iterator[Html]:
    """Tables with the paper's figures, and which of their runs are not what their presets are."""
    runs: dict[str, RunRecord] = {}
    for content, own in paper:
        yield table(content)
        runs |= {run.name: run for run in own}
    yield from _caution(list(runs.values()))


# ------------------------------------------------------------------ our own figures


def _listops(runs: Sequence[RunRecord]) -> StudyTable:
    rows: list[list[Cell]] = []
    for run in runs:
        assert run.result is not None
        test = run.result["test"]
        rows.append(
            [
                run.name,
                test["sentences"],
                *(float(test[f"{soft}operator_accuracy"]) for soft in ("", "soft_")),
                *(float(test[f"{soft}token_accuracy"]) for soft in ("", "soft_")),
                float(test["attachment"]),
                float(test["exact_trees"]),
            ]
        )
    columns = ["run", "expressions", "operators", "… soft", "all tokens", "… soft"]
    return StudyTable(
        "Test set, %",
        [*columns, "attachment", "exact trees"],
        rows,
        "operators, all tokens: tags that are right, with discrete trees and with soft ones; "
        "attachment: tokens with the right head; exact trees: expressions with all heads right.",
    )


def _texts(runs: Sequence[RunRecord]) -> StudyTable:
    rows: list[list[Cell]] = []
    for run in runs:
        assert run.result is not None
        for split, figures in run.result["splits"].items():
            discrete, soft = float(figures["accuracy"]), float(figures["soft_accuracy"])
            rows.append([run.name, split, figures["examples"], discrete, soft, discrete - soft])
    return StudyTable(
        "Accuracy, %",
        ["run", "data", "examples", "discrete", "soft", "gap"],
        rows,
        "discrete, soft: labels that are right with discrete and with soft trees; gap: by how "
        "much discrete trees are better.",
    )


def _by_length(runs: Sequence[RunRecord]) -> StudyTable:
    starts = dict(zip((*LENGTHS, None), (1, *(longest + 1 for longest in LENGTHS)), strict=True))
    rows: list[list[Cell]] = []
    for run in runs:
        assert run.result is not None
        for row in run.result["test"]["by_length"]:
            longest = row["longest"]
            figures = ("operator_accuracy", "attachment", "exact_trees", "attachment_operator")
            tokens = f"{starts[longest]}–{longest}" if longest else f"{starts[None]} and more"
            values = [float(row[key]) for key in figures]
            rows.append([run.name, tokens, row["sentences"], *values])
    return StudyTable(
        "Test set by length, %",
        *(
            ["run", "tokens", "expressions", "operators", "attachment", "exact trees", "baseline"],
            rows,
            "baseline: attachment if every token hung off the last operator to its left.",
        ),
    )


# ------------------------------------------------------------------ beside the paper


def _paper_listops(
    runs: Sequence[RunRecord],
) -> Iterator[tuple[StudyTable, Sequence[RunRecord]]]:
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
) -> Iterator[tuple[StudyTable, Sequence[RunRecord]]]:
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
) -> StudyTable:
    """A table without what says nothing of rows that are one run each."""
    seeds = columns.index(SEEDS)
    alone = all(row[seeds] == "1" for row in rows)
    kept = [
        i
        for i, name in enumerate(columns)
        if not (alone and (name == SEEDS or name.startswith(EVERY_SEED)))
    ]
    shown = [[row[i] for i in kept] for row in rows]
    return StudyTable(title, [columns[i] for i in kept], shown, note)


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
