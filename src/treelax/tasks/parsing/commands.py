"""``treelax train parser``: what its help says, and options for its settings."""

from __future__ import annotations

from pathlib import Path

from treelax.tasks.commands import Option, TableCommand, TrainCommand
from treelax.tasks.text.commands import FILE_OPTIONS, RUN_HELP, VECTORS

HELP = f"""Train a dependency parser on treebanks in CoNLL-U.

Files may be compressed. The preset small takes minutes on two CPU cores, full
is for a GPU. --vectors makes a parser better; --set data.tags=upos reads tags
too, which the files to be parsed must then have.

{RUN_HELP}

Examples:
  treelax train parser --train train.conllu --dev dev.conllu --out runs/parser
  treelax train parser --train train.conllu --dev dev.conllu \\
      --vectors glove.zip --preset full --device cuda
"""
TABLE_HELP = """Train parsers with three kinds of trees over several seeds.

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
UNLABELLED = Option(
    "--unlabelled",
    "data.unlabelled",
    list[Path],
    "Sentences to learn from without trees: CoNLL-U, or a sentence per line; several are joined.",
    rest="data.more_unlabelled",
)
OPTIONS = (*FILE_OPTIONS, VECTORS)
SIZES = ("full", "small")
TRAIN = (TrainCommand("parser", "parser", HELP, "small", True, (*OPTIONS, UNLABELLED)),)
TABLES = (
    TableCommand("parser", "parser", TABLE_HELP, 5, "table-parser", SIZES, OPTIONS),
    TableCommand("labels", "parser", LABELS_HELP, 3, "table-labels", SIZES, OPTIONS),
)
