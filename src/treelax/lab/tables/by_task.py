"""The tables of each task, by the names of their commands; ``NAME-RECIPE`` of other recipes."""

from __future__ import annotations

from collections.abc import Mapping

from treelax.apps.tasks.text.presets import TUNED
from treelax.lab.listops.table import TABLE as LISTOPS
from treelax.lab.tables.paper import PaperTable
from treelax.lab.tables.parsing import TABLES as PARSER
from treelax.lab.tables.text import TABLES as TEXT


def _with_tuned(*names: str) -> dict[str, PaperTable]:
    paper = {name: TEXT[name] for name in names}
    return {**paper, **{f"{name}-{TUNED}": table.tuned for name, table in paper.items()}}


TABLES: Mapping[str, Mapping[str, PaperTable]] = {
    "listops": {"listops": LISTOPS},
    "pair": _with_tuned("snli", "multinli", "ablation"),
    "classify": _with_tuned("sst"),
    "parser": PARSER,
}
