"""``treelax train listops`` and ``treelax table listops``: what their help says."""

from __future__ import annotations

from treelax.tasks.commands import TableCommand, TrainCommand

TRAIN_HELP = """Train a tagger of ListOps argument counts with latent trees.

A run is a folder: config.toml, metrics.jsonl, checkpoint/, best/,
tensorboard/, and test.json when it has finished. A checkpoint is written
after every epoch; a killed run continues with --resume and ends with the
figures it would have had; a finished run trains further with --resume and
more epochs. --list shows the presets and all settings.

Examples:
  treelax train listops --preset small --out runs/small
  treelax train listops --out runs/small --resume
  treelax train listops --out runs/small --resume --set train.epochs=60
  treelax train listops --device cuda --seed 1 --set train.epochs=50
"""
TABLE_HELP = """Train all rows of the paper's table 1 over several seeds.

Writes table.md with the paper's figures beside ours, runs.csv, curves.csv,
and appendix C's plots.

Examples:
  treelax table listops --seeds 10 --device cuda
  treelax table listops --rows balanced-mc,gold --seeds 2 --results /tmp/try
  treelax table listops --report
"""
TRAIN = (TrainCommand("listops", "listops", TRAIN_HELP, "balanced-mc", has_presets=True),)
TABLES = (TableCommand("listops", "listops", TABLE_HELP, seeds=5, runs="table-listops"),)
