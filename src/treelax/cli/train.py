"""``treelax train``: train a model, or go on with a run that was interrupted."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treelax.cli.commands import command, group
from treelax.cli.console import console, error_console
from treelax.cli.options import Device, Resume, Settings, Show
from treelax.cli.progress import progress
from treelax.cli.runs import find_run, follow, in_processes, in_run, is_done
from treelax.cli.settings import show_settings
from treelax.cli.train_text import register_text

if TYPE_CHECKING:
    from treelax.data.listops import Expression
    from treelax.tasks.listops.config import ListOpsConfig
    from treelax.tasks.listops.experiment import ListOpsExperiment
    from treelax.training.loop import Training
    from treelax.training.run import Run

HELP = """Train a model, or go on with a run that was interrupted.

Every task has its own --help.

Example:
  treelax train listops --preset small --out runs/small
"""
LISTOPS_HELP = """Train a tagger of ListOps valencies with latent trees.

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
DEFAULT = "balanced-mc"
DRAWN = 3  # test expressions, of at most so many tokens
DRAWN_LENGTH = 16


@in_processes
def listops(
    preset: Annotated[
        str | None, typer.Option(help="Where to start from, balanced-mc by default; see --list.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of the run; runs/listops-PRESET-SEED by default."),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Of weights, batches and noise.")] = None,
    settings: Settings = None,
    device: Device = "auto",
    resume: Resume = False,
    show: Show = False,
) -> None:
    """Train on ListOps; see LISTOPS_HELP."""
    from treelax.analysis.listops_results import read_result
    from treelax.analysis.run_folders import configure
    from treelax.tasks.listops.config import PRESETS
    from treelax.training.distributed import current, in_turn
    from treelax.training.run import Run

    changes = [*(settings or []), *([f"seed={seed}"] if seed is not None else [])]
    if show:
        show_settings(PRESETS, configure(preset or DEFAULT, changes))
        return
    if out is None:
        named = configure(preset or DEFAULT, changes)
        out = Path("runs") / f"listops-{named.preset}-{named.seed}"
    if not current().first:  # it trains with the first process, which has the folder
        experiment = in_turn(configure(preset or DEFAULT, changes), _prepare, device)
        train_listops(Run(out, experiment.task), experiment)
        return
    run = find_run(out, resume=resume)
    if run is not None:
        config = _same_settings(run, preset, changes)
        result = read_result(run)
        if result is not None and is_done(run, result, config.train.epochs):
            _show_result(run, result)
            return
    else:
        config = configure(preset or DEFAULT, changes)
    prepare = partial(in_turn, config, _prepare, device)
    with in_run(run, out, config, task="listops", prepare=prepare) as (run, experiment):
        train_listops(run, experiment)


def train_listops(run: Run, experiment: ListOpsExperiment) -> None:
    """Train to the end with a progress bar, evaluate on the test set, show all of it."""
    from treelax.analysis.listops_results import finish
    from treelax.cli.evaluation_tables import print_evaluation
    from treelax.data.text.rows import counted
    from treelax.tasks.listops.experiment import load_splits
    from treelax.training.distributed import current
    from treelax.training.loop import Training

    config = experiment.config
    training = Training(run, experiment)
    error_console.print(
        f"{config.preset}, seed {config.seed}, on {current().on(experiment.device)}: expressions of "
        f"at most {config.data.max_length} tokens, {counted(config.train.epochs, 'epoch')} of "
        f"{counted(config.train.updates, 'update')}"
    )
    if training.epoch:
        error_console.print(f"going on after epoch {training.epoch} of {training.epochs}")
    follow(training, describe)
    if not current().first:
        return
    test = load_splits(config.data).expressions["test"]
    with progress("testing", sum(map(len, test)), unit="token", transient=True) as bar:
        figures = finish(run, training, config, progress=bar.update)
    print_evaluation(figures, _title(config.data.max_length))
    _draw(training, test)
    console.print(f"run: {run.path}")


def describe(dev: dict[str, float]) -> str:
    """A few words on the dev figures of an epoch."""
    return f"acc {dev['operator_accuracy']:.1f} att {dev['attachment']:.1f}"


def _same_settings(run: Run, preset: str | None, changes: Sequence[str]) -> ListOpsConfig:
    """The settings of a run, which those on the command line must not contradict, epochs apart."""
    from treelax.analysis.run_folders import LIST_ALL, check_same, configure, settings_of
    from treelax.training.config import override
    from treelax.training.run import EPOCHS

    wanted = override(settings_of(run), changes, list_all=LIST_ALL)
    # a preset alone does not extend a run
    extended = any(change.partition("=")[0].strip() == EPOCHS for change in changes)
    asked = configure(preset, changes) if preset else wanted
    check_same(run, asked, free=(EPOCHS,) if extended else ())
    return wanted


def _prepare(config: ListOpsConfig, device: str) -> ListOpsExperiment:
    from treelax.tasks.listops.experiment import ListOpsExperiment
    from treelax.training.devices import find_device
    from treelax.training.distributed import current

    current().share(config.train.batch_size)  # refuses batches that are too small for all
    place = find_device(device, threads=config.train.threads)
    with progress("preparing the data", transient=True):
        return ListOpsExperiment(config, place)


def _title(max_length: int) -> str:
    return f"test, at most {max_length} tokens"


def _draw(training: Training, expressions: Sequence[Expression]) -> None:
    """A few short test expressions with the induced tree against the gold one."""
    from treelax.pictures import draw_tree, supports_unicode
    from treelax.tasks.listops.evaluation import parse_all

    short = [e for e in expressions if e.depth > 1 and len(e) <= DRAWN_LENGTH][:DRAWN]
    console.print(
        "learned trees; arcs that are not gold are dotted, the gold ones in their place below:"
    )
    for expression, parsed in zip(short, parse_all(training.experiment.model, short), strict=True):
        picture = draw_tree(
            expression.tokens,
            parsed.heads,
            gold=expression.heads,
            ascii=not supports_unicode(sys.stdout),
        )
        console.print(picture)
        console.print()


def _show_result(run: Run, result: dict[str, Any]) -> None:
    """The figures of a run that has ended, from its file."""
    from treelax.analysis.listops_results import figures_of
    from treelax.cli.evaluation_tables import print_evaluation

    error_console.print(
        f"{run.path}: has ended already, after {result['epochs']} epochs; these are its figures"
    )
    print_evaluation(figures_of(result), _title(result["max_length"]))
    console.print(f"run: {run.path}")


register = group("train", HELP, command("listops", LISTOPS_HELP, listops), register_text)
