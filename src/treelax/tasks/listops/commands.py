"""``treelax train listops`` and ``treelax table listops``: what their help says."""

from __future__ import annotations

from treelax.tasks.commands import TableCommand, TrainCommand

TRAIN_HELP = """Train a tagger of ListOps valencies with latent trees.

A run is a folder: config.toml, metrics.jsonl, checkpoint/, best/,
tensorboard/, and test.json at its end. A checkpoint is written after every
epoch; a run that was killed goes on with --resume and ends with the numbers
it would have had; one that has ended trains on with --resume and more epochs.
--list shows the presets and all settings.

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
  treelax table listops --seeds 5 --device cuda
  treelax table listops --rows balanced-mc,gold --seeds 2 --results /tmp/try
  treelax table listops --report
"""
TRAIN = (TrainCommand("listops", "listops", TRAIN_HELP, "balanced-mc", has_presets=True),)
TABLES = (TableCommand("listops", "listops", TABLE_HELP, seeds=5, runs="table-listops"),)
