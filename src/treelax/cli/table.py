"""``treelax table``: the paper's tables with our runs beside them."""

from __future__ import annotations

from treelax.cli.commands import command, group
from treelax.cli.table_listops import LISTOPS_HELP, listops
from treelax.cli.table_text import register_text_tables

__all__ = ["register"]

HELP = """Repeat a table of the paper: many runs, then the table.

Every table has its own --help. Runs that have ended are not repeated and one
that was interrupted goes on, so the same command continues a sweep. On a GPU
runs overlap if NVIDIA's multi-process service is on
(nvidia-cuda-mps-control -d).

Examples:
  treelax table listops --seeds 5 --device cuda
  treelax table sst --from trainDevTestTrees_PTB.zip \\
      --vectors glove.840B.300d.zip
"""


register = group("table", HELP, command("listops", LISTOPS_HELP, listops), register_text_tables)
