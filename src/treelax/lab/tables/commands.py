"""The commands ``treelax table NAME``: what their help says; torch is not imported."""

from __future__ import annotations

from typing import NamedTuple

from treelax.apps.tasks.commands import VECTORS, Option
from treelax.apps.tasks.parsing.commands import OPTIONS, SIZES
from treelax.apps.tasks.text.commands import CORPUS, corpus_help


class TableCommand(NamedTuple):
    """A command ``treelax table NAME``, for a table of the paper."""

    name: str  # also that of the table
    task: str
    help: str
    seeds: int  # by default
    runs: str  # folder of the runs; tables may share it
    recipes: tuple[str, ...] = ()  # of an option --recipe; the first is the default
    options: tuple[Option, ...] = ()  # beside --set, --rows, --runs, --results and the like


LISTOPS_HELP = """Train all rows of the paper's table 1 over several seeds.

Writes table.md with the paper's figures beside ours, runs.csv, curves.csv,
and appendix C's plots.

Examples:
  treelax table listops --seeds 10 --device cuda
  treelax table listops --rows balanced-mc,gold --seeds 2 --results /tmp/try
  treelax table listops --report
"""
PAPER_HELP = """Train the rows of the paper's table {number} over several seeds.

On SNLI and MultiNLI the paper's recipe takes days on a GPU; --recipe tuned,
with settings selected on dev, takes minutes.{mixture}

Writes table.md, with the paper's figures beside ours and the amount of data,
and runs.csv. --set changes a setting of treelax train {corpus} for all rows,
except those that distinguish the rows. All rows use the same data. The same
command continues an interrupted sweep.

Example:
  treelax table {name} --recipe tuned --from {archive} \\
      --vectors glove.zip{mix}
"""
PARSER_HELP = """Train parsers with three kinds of trees over several seeds.

The rows have the same encoder: the head of each word on its own, projective
trees, non-projective trees. --recipe small starts from the preset small, not
full. Writes table.md, with the share of outputs that are no trees, and
runs.csv. --set changes a setting of treelax train parser for all rows. The
same command continues an interrupted sweep.

Example:
  treelax table parser --train train.conllu --dev dev.conllu \\
      --test test.conllu --vectors glove.zip --seeds 5 --device cuda
"""
LABELS_HELP = """Train parsers on 1, 5, 10 and 100 % of the trees over several seeds.

The other training sentences are left out, or learned from without their
trees. --recipe, --set and what is written are as in treelax table parser. An
epoch is a pass over the sentences of a row; the setting train.updates gives
all rows the same number of updates.

Example:
  treelax table labels --train train.conllu --dev dev.conllu \\
      --test test.conllu --set train.updates=200 --device cuda
"""
RECIPES = ("paper", "tuned")


def _table(name: str, task: str, number: str, corpus: str) -> TableCommand:
    help = corpus_help(PAPER_HELP, corpus, name=name, number=number)
    return TableCommand(name, task, help, 3, f"table-{corpus}", RECIPES, (CORPUS, VECTORS))


TABLES = (
    TableCommand("listops", "listops", LISTOPS_HELP, seeds=5, runs="table-listops"),
    _table("snli", "pair", "2 (SNLI)", "snli"),
    _table("multinli", "pair", "3b (MultiNLI)", "multinli"),
    _table("ablation", "pair", "3c (kinds of trees)", "multinli"),
    _table("sst", "classify", "3a (SST)", "sst"),
    TableCommand("parser", "parser", PARSER_HELP, 5, "table-parser", SIZES, OPTIONS),
    TableCommand("labels", "parser", LABELS_HELP, 3, "table-labels", SIZES, OPTIONS),
)
