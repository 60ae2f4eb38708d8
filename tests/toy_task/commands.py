"""``treelax train toy``."""

from treelax.apps.tasks.commands import TrainCommand

TRAIN = (
    TrainCommand(
        "toy", "toy", "Tag words with the word before.\n\nExample:\n  treelax train toy\n", "toy"
    ),
)
