"""``treelax train``: train a model, or go on with a run that was interrupted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treelax.cli.console import console, error_console, progress

if TYPE_CHECKING:
    from treelax.tasks.listops.config import ListOpsConfig
    from treelax.training.loop import Training
    from treelax.training.run import Run

HELP = "Train a model; --resume goes on with a run that was interrupted."
LISTOPS_HELP = """Train a tagger of ListOps valencies with latent trees.

A run is a folder: config.toml, metrics.jsonl, checkpoint/, best/, tensorboard/, test.json. A
checkpoint is written after every epoch; a run that was killed goes on with --resume and ends with
the numbers it would have had. treelax train listops --list shows presets and settings.

Example:
  treelax train listops --preset small --out runs/small
  treelax train listops --preset balanced-mc --device cuda --seed 1 --set train.epochs=50
"""
DEFAULT = "balanced-mc"
DRAWN = 3  # test expressions, of at most so many tokens
DRAWN_LENGTH = 16


def register(app: typer.Typer) -> None:
    """Add the command."""
    group = typer.Typer(help=HELP, no_args_is_help=True, rich_markup_mode=None)
    group.command("listops", help=LISTOPS_HELP)(listops)
    app.add_typer(group, name="train")


def listops(
    preset: Annotated[
        str | None, typer.Option(help="Where to start from, balanced-mc by default; see --list.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of the run; runs/listops-PRESET-SEED by default."),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Of weights, batches and noise.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Change a setting: KEY=VALUE; repeatable.")
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1 or auto.")] = "auto",
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run in --out, or start it.")
    ] = False,
    show: Annotated[
        bool, typer.Option("--list", help="Show presets and all settings, and stop.")
    ] = False,
) -> None:
    """Train on ListOps."""
    from treelax.analysis.sweep import check_same
    from treelax.tasks.listops.config import ListOpsConfig
    from treelax.tasks.listops.config import preset as find
    from treelax.training.config import override
    from treelax.training.run import Run

    changes = [*(settings or []), *([f"seed={seed}"] if seed is not None else [])]
    config = override(
        find(preset or DEFAULT), changes, list_all="treelax train listops --list shows all settings"
    )
    if show:
        _show(config)
        return
    place = out or Path("runs") / f"listops-{config.preset}-{config.seed}"
    if not resume or not (place / "config.toml").exists():
        run = Run.create(place, config, task="listops")
    else:
        run = Run.open(place)
        if preset is None and not changes:
            config = run.config(ListOpsConfig)
        check_same(run, config)
    with run.lock():
        train_listops(run, config, device)


def train_listops(run: Run, config: ListOpsConfig, device: str) -> None:
    """Train to the end with a progress bar, evaluate on the test set, show all of it."""
    from treelax.analysis.results import finish
    from treelax.cli.figures import print_evaluation
    from treelax.tasks.listops.experiment import ListOpsExperiment, load_splits
    from treelax.training.devices import find_device
    from treelax.training.loop import Training

    place = find_device(device, threads=config.train.threads)
    error_console.print(
        f"{config.preset}, seed {config.seed}, on {place}: expressions of at most "
        f"{config.data.max_length} tokens, {config.train.epochs} epochs of "
        f"{config.train.updates} updates"
    )
    training = Training(run, ListOpsExperiment(config, place))
    if training.epoch:
        error_console.print(f"going on after epoch {training.epoch} of {training.epochs}")
    _follow(training)
    figures = finish(run, training, config)
    print_evaluation(figures, f"test, at most {config.data.max_length} tokens")
    _draw(training, load_splits(config.data).expressions["test"])
    console.print(f"run: {run.path}")


def _follow(training: Training) -> None:
    total = training.epochs * training.updates
    done = training.epoch * training.updates
    with progress("training", total, start=done, unit="update") as bar:
        for step in training.steps():
            note = None if step.metrics is None else describe(step.metrics, training.epochs)
            bar.update((step.epoch - 1) * training.updates + step.update, note)


def describe(row: dict[str, Any], epochs: int) -> str:
    """An epoch's figures in a few words."""
    dev = row["dev"]
    return (
        f"epoch {row['epoch']}/{epochs} loss {row['loss']:.3f} "
        f"dev acc {dev['operator_accuracy']:.1f} att {dev['attachment']:.1f}"
    )


def _draw(training: Training, expressions: list[Any]) -> None:
    """A few short test expressions with the induced tree against the gold one."""
    import sys

    from treelax.pictures import draw_tree, supports_unicode
    from treelax.tasks.listops.evaluation import parse_all

    short = [e for e in expressions if e.depth > 1 and len(e) <= DRAWN_LENGTH][:DRAWN]
    for expression, parsed in zip(short, parse_all(training.experiment.model, short), strict=True):
        picture = draw_tree(
            expression.tokens,
            parsed.heads,
            gold=expression.heads,
            ascii=not supports_unicode(sys.stdout),
        )
        console.print(picture)
        console.print()


def _show(config: ListOpsConfig) -> None:
    from treelax.cli.console import table
    from treelax.tasks.listops.config import PRESETS
    from treelax.training.config import flatten

    table(["preset", "what it is"], [[name, text] for name, (_, text) in PRESETS.items()])
    console.print()
    table(
        [f"settings of {config.preset}", "value"],
        [[key, "none" if value is None else str(value)] for key, value in flatten(config).items()],
    )
