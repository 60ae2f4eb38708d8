"""``treelax train parser``: what its help says, and options for its settings."""

from __future__ import annotations

from pathlib import Path

from treelax.apps.tasks.commands import (
    FILE_OPTIONS,
    RUN_HELP,
    VECTORS,
    Option,
    TrainCommand,
)

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
