"""``treelax train listops``: what its help says."""

from __future__ import annotations

from treelax.apps.tasks.commands import TrainCommand

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
TRAIN = (TrainCommand("listops", "listops", TRAIN_HELP, "balanced-mc", has_presets=True),)
