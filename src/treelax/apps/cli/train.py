"""``treelax train``: train a model, or go on with a run that was interrupted."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treelax.apps.cli.commands import (
    Device,
    Resume,
    Settings,
    Show,
    command,
    group,
    option_settings,
    with_options,
)
from treelax.apps.cli.console import console, error_console, show, table
from treelax.apps.cli.progress import progress
from treelax.apps.cli.runs import find_run, in_run
from treelax.apps.tasks import command_modules
from treelax.apps.tasks.commands import TrainCommand

if TYPE_CHECKING:
    from treelax.apps.tasks.task import Task
    from treelax.apps.training.experiment import Experiment
    from treelax.apps.training.loop import Training
    from treelax.apps.training.run import Run

HELP = """Train a model, or continue an interrupted run.

Every task has its own --help.

Example:
  treelax train listops --preset small --out runs/small
"""


def train(
    spec: TrainCommand,
    preset: Annotated[str | None, typer.Option(help="Preset to start from; see --list.")] = None,
    out: Annotated[Path | None, typer.Option(help="Run folder; in runs/ by default.")] = None,
    seed: Annotated[int | None, typer.Option(help="Random seed.")] = None,
    settings: Settings = None,
    device: Device = "auto",
    resume: Resume = False,
    show_all: Show = False,
    **options: Any,
) -> None:
    """Train on the data of a command, to the end."""
    from treelax.apps.tasks import task_named
    from treelax.apps.training.distributed import joined, rank0_first
    from treelax.apps.training.run import Run
    from treelax.ops.checks import one_of

    task = task_named(spec.task)
    presets = task.presets(spec.preset)
    changes = [*option_settings(spec.options, options), *(settings or [])]
    changes += [] if seed is None else [f"seed={seed}"]
    with joined() as world:
        if preset is not None:
            one_of("--preset", preset, tuple(presets))
        config = task.configured(preset or spec.preset, changes)
        if show_all:
            show_settings(presets, config)
            return
        named = config.preset
        named = named if named.startswith(spec.name) else f"{spec.name}-{named}"
        folder = out or Path("runs") / f"{named}-{config.seed}"
        if not world.first:  # it trains with the first process, which has the folder
            experiment = rank0_first(config, _prepare, task, device, folder)
            _follow(task, Run(folder, task.name), experiment)
            return
        run = find_run(folder, resume=resume)
        if run is not None:
            config = _resumed(task, run, spec, preset, changes)
            result = task.result(run)
            complete = run.best_model.exists() or not run.last_checkpoint.exists()
            if complete and result is not None and result["epochs"] >= config.train.epochs:
                error_console.print(f"{folder}: has ended already, after {result['epochs']} epochs")
                _show_result(task, run, result)
                return
        prepare = partial(rank0_first, config, _prepare, task, device, folder)
        with in_run(run, folder, config, task=task.name, prepare=prepare) as (run, experiment):
            _follow(task, run, experiment)


def _resumed(
    task: Task, run: Run, spec: TrainCommand, preset: str | None, changes: Sequence[str]
) -> Any:
    """The settings of a run, which those on the command line must not contradict, epochs apart."""
    from treelax.apps.tasks.task import LIST_ALL
    from treelax.apps.training.config import override
    from treelax.apps.training.run import EPOCHS, refuse_changes
    from treelax.errors import InputError

    config: Any = run.config(task.config_type) if run.task == task.name else None
    fits = config is not None and preset in (None, config.preset)
    if spec.has_presets:
        fits = fits and config.preset in task.presets(spec.preset)
    if not fits:
        problem = f"is a run of {run.task if config is None else config.preset}"
        advice = f"resume it with treelax train {run.task}, or give another --out"
        raise InputError(f"{run.path}: {problem}; expected one of {preset or spec.name}: {advice}")
    wanted = override(config, changes, list_all=LIST_ALL)
    # what is in files is compared when they are read
    refuse_changes(run, config, wanted, free={*task.files, EPOCHS})
    return wanted


def _prepare(config: Any, task: Task, device: str, folder: Path) -> Experiment:
    from treelax.apps.training.devices import find_device
    from treelax.apps.training.distributed import current

    current().share(config.train.batch_size)  # refuses batches that are too small for all
    place = find_device(device, threads=config.train.threads)
    with progress("reading the data", unit="records", transient=True) as bar:
        return task.experiment(config, place, folder, error_console.print, bar.update)


def _follow(task: Task, run: Run, experiment: Experiment) -> None:
    """Train to the end, test, show and keep the figures."""
    from treelax.apps.training.distributed import current
    from treelax.apps.training.loop import Training
    from treelax.apps.training.results import FILE, write_result

    world, config = current(), experiment.config
    if world.first:
        task.prepare(run, experiment)
    training = Training(run, experiment)  # which refuses other data than it was started with
    if world.first:
        task.begin(run, training)
        if training.epoch < training.epochs:  # the result is no longer that of the run
            (run.path / FILE).unlink(missing_ok=True)
        run.keep_config(config)
    error_console.print(
        f"{config.preset}, seed {config.seed}, on {world.on(experiment.device)}: "
        f"{task.headline(experiment)}"
    )
    if training.epoch:
        error_console.print(f"going on after epoch {training.epoch} of {training.epochs}")
    total, done = training.epochs * training.updates, training.epoch * training.updates
    with progress("training", total, start=done, unit="updates") as bar:
        for step in training.steps():
            note, row = None, step.metrics
            if row is not None:
                note = f"epoch {row['epoch']}/{training.epochs} loss {row['loss']:.3f}"
                note += f" dev {task.describe(row['dev'])}"
            bar.update((step.epoch - 1) * training.updates + step.update, note)
    if not world.first:
        return
    training.load_best()
    with progress("testing", task.test_size(experiment), unit="tokens", transient=True) as bar:
        result = task.finish(training, bar.update)
    write_result(run, result)
    _show_result(task, run, result, training)


def _show_result(
    task: Task, run: Run, result: dict[str, Any], training: Training | None = None
) -> None:
    from treelax.apps.pictures import draw_tree, supports_unicode

    show(task.result_tables(result))
    pictures = [] if training is None else task.drawn(training)
    if pictures:
        console.print("learned trees; wrong arcs are dotted, the right ones drawn below:")
    for words, heads, gold in pictures:
        ascii_only = not supports_unicode(sys.stdout)
        console.print(draw_tree(words, heads, gold=gold, ascii=ascii_only) + "\n")
    console.print(f"run: {run.path}")


def show_settings(presets: Mapping[str, str], config: Any) -> None:
    """Print what presets there are and all settings of a config, values as ``--set`` takes them."""
    from treelax.apps.training.config import field_kinds, flatten, written
    from treelax.apps.training.settings import descriptions

    table(["preset", "what it is"], list(presets.items()))
    console.print()
    helps, kinds = descriptions(type(config)), field_kinds(type(config))
    table(
        [f"settings of {config.preset}", "value", "what it is"],
        [
            [key, written(kinds[key], value), helps.get(key)]
            for key, value in flatten(config).items()
        ],
    )


register = group(
    "train",
    HELP,
    *(
        command(
            spec.name, spec.help, with_options(train, spec, () if spec.has_presets else ("preset",))
        )
        for module in command_modules()
        for spec in module.TRAIN
    ),
)
