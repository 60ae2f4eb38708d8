"""The runs of a report in a table, and what is missing of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from treelax.report.markup import Html, join, table, tag
from treelax.report.runs import RunRecord
from treelax.table import Cell, Table, cell_text

__all__ = ["figure_name", "missing_notes", "overview"]

NAMES = {
    "operator_accuracy": "operators",
    "token_accuracy": "all tokens",
    "attachment": "attachment",
    "accuracy": "accuracy",
}


def figure_name(key: str) -> str:
    """What a figure of the metrics is called."""
    return NAMES.get(key, key.replace("_", " "))


def overview(runs: Sequence[RunRecord]) -> Html:
    """The runs: what they are, how far they have come, and their best figures on dev."""
    keys = list(dict.fromkeys(key for run in runs for key in _dev(run)))
    columns = ["run", "task", "preset", "seed", "state", "best epoch", "time", "device"]
    rows: list[list[Cell]] = []
    for run in runs:
        best, dev = run.best_row, _dev(run)
        seconds = run.result["seconds"] if run.result else _seconds(run)
        rows.append(
            [
                run.name,
                run.task.title,
                run.config.preset,
                str(run.config.seed),
                run.state,
                "–" if best is None else str(best["epoch"]),
                "–" if seconds is None else duration(seconds),
                "–" if run.result is None else str(run.result["device"]),
                *(dev.get(key) for key in keys),
            ]
        )
    columns += [f"dev: {figure_name(key)}, %" for key in keys]
    if len(runs) == 1:
        facts = zip(columns[1:], map(cell_text, rows[0][1:]), strict=True)
        pairs = [tag("div", tag("dt", name), tag("dd", text)) for name, text in facts]
        return tag("dl", *pairs, class_="facts")
    note = "dev: figures of the best epoch, with discrete trees." if keys else None
    return table(Table(columns, rows, f"The {len(runs)} runs", note))


def missing_notes(notes: Sequence[str]) -> Html | None:
    """A box that says what a report lacks."""
    if not notes:
        return None
    items = join(tag("li", note) for note in notes)
    return tag("aside", tag("h2", "What is missing"), tag("ul", items), class_="missing")


def duration(seconds: float) -> str:
    """A time in words."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes = whole // 60
    return (
        f"{minutes} min {whole % 60} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
    )


def _dev(run: RunRecord) -> Mapping[str, float]:
    row: Mapping[str, Any] | None = run.best_row
    dev = {} if row is None else row["dev"]
    numbers = {key: value for key, value in dev.items() if isinstance(value, int | float)}
    return {key: float(value) for key, value in numbers.items() if key != "score"}


def _seconds(run: RunRecord) -> float | None:
    value = run.rows[-1].get("seconds") if run.rows else None
    return float(value) if isinstance(value, int | float) else None
