"""How the commands of sentence models train: from settings to the figures of a run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treelax.cli.console import console, error_console, table
from treelax.cli.progress import progress
from treelax.cli.runs import find_run, follow, in_processes, in_run, is_done
from treelax.cli.settings import show_settings

if TYPE_CHECKING:
    from treelax.tasks.text.config import DataConfig, TextConfig
    from treelax.tasks.text.data import TextData
    from treelax.tasks.text.experiment import TextExperiment
    from treelax.training.loop import Training
    from treelax.training.run import Run

LIST_ALL = "--list shows all settings"


@in_processes
def train_sentences(
    preset: str,
    data: dict[str, str],
    settings: Sequence[str] | None,
    seed: int | None,
    out: Path | None,
    device: str,
    resume: bool,
    show: bool,
    chosen: str | None = None,
) -> None:
    """Train a sentence model, or go on with its run, and print its figures."""
    from treelax.analysis.run_folders import changed
    from treelax.analysis.text_results import read_text_result
    from treelax.ops.checks import one_of
    from treelax.tasks.text.origins import CORPUS
    from treelax.tasks.text.presets import fitting_presets
    from treelax.tasks.text.presets import preset as find
    from treelax.training.distributed import current, in_turn
    from treelax.training.run import Run

    changes = [f"data.{key}={value}" for key, value in data.items()]
    changes += [*(settings or []), *([f"seed={seed}"] if seed is not None else [])]
    if chosen is not None:
        one_of("--preset", chosen, tuple(fitting_presets(preset)))
    config = changed(find(chosen or preset), changes, LIST_ALL)
    if show:
        show_settings(fitting_presets(preset), config)
        return
    corpus = CORPUS if preset == config.kind else "--from PATH"  # as the commands have it
    place = out or Path("runs") / f"{config.preset}-{config.seed}"
    if not current().first:  # it trains with the first process, which has the folder
        experiment = in_turn(config, _prepare, device, place, corpus)
        _follow(Run(place, experiment.task), experiment)
        return
    run = find_run(place, resume=resume)
    if run is not None:
        config = _same_settings(run, changes, preset, chosen)
        result = read_text_result(run)
        if result is not None and is_done(run, result, config.train.epochs):
            error_console.print(f"{run.path}: has ended already; these are its figures")
            _print(result)
            return
    prepare = partial(in_turn, config, _prepare, device, place, corpus)
    with in_run(run, place, config, task=config.kind, prepare=prepare) as (run, experiment):
        _follow(run, experiment)


def _same_settings(run: Run, changes: Sequence[str], preset: str, chosen: str | None) -> TextConfig:
    """The settings of a run, which the command and what is on its line must not contradict."""
    from treelax.errors import InputError
    from treelax.tasks.text.config import FILES, TextConfig
    from treelax.tasks.text.presets import preset as find
    from treelax.training.config import override
    from treelax.training.run import EPOCHS, refuse_changes

    own, asked = run.config(TextConfig), find(preset)
    # treelax train pair goes on with any pairs, so also with those of SNLI
    same_data = preset == asked.kind or own.data.format == asked.data.format
    if own.kind != asked.kind or not same_data or chosen not in (None, own.preset):
        raise InputError(
            f"{run.path}: is a run of {own.preset}; expected one of {chosen or preset}: resume it with "
            f"treelax train {own.kind}, or give another --out"
        )
    wanted = override(own, changes, list_all=LIST_ALL)
    refuse_changes(
        run, own, wanted, free=FILES | {EPOCHS}
    )  # what is in them is compared when they are read
    return wanted


def _prepare(config: TextConfig, device: str, out: Path, corpus: str) -> TextExperiment:
    from treelax.tasks.text.experiment import TextExperiment
    from treelax.tasks.text.origins import refuse_missing, refuse_other_test
    from treelax.tasks.text.transformer import check_folder, with_own_copy
    from treelax.training.devices import find_device
    from treelax.training.distributed import current
    from treelax.training.run import CONFIG

    current().share(config.train.batch_size)  # refuses batches that are too small for all
    place = find_device(device, threads=config.train.threads)
    model = with_own_copy(config.model, out)
    if model.pretrained is not None:  # told now, not when all texts have been read
        check_folder(model.pretrained)
    if (out / CONFIG).exists():  # a run to go on with: a new one gets its folder later
        refuse_missing(out, config.data, corpus=corpus)
        refuse_other_test(out, config.data, corpus=corpus)
    data = read_texts(config.data, whole_words=model.pretrained is not None)
    for split, notes in data.notes.items():
        for note in notes:
            error_console.print(f"{split}: {note}")
    if data.coverage is not None:
        _print_coverage(*data.coverage)
    return TextExperiment(config, data, place, model=model)


def read_texts(config: DataConfig, *, whole_words: bool) -> TextData:
    """Read the texts of a config with a progress bar."""
    from treelax.tasks.text.data import load_text

    with progress("reading texts", unit="record", transient=True) as bar:
        return load_text(
            config, lambda split, done, total: bar.update(done, split), whole_words=whole_words
        )


def _print_coverage(found: int, words: int) -> None:
    error_console.print(
        f"word vectors: {found:,} of {words:,} words of the data found ({100 * found / words:.1f} %), "
        f"{words - found:,} unknown"
    )
    if 2 * found < words:
        error_console.print(
            "note: fewer than half of the words have a vector; expected most of them: are the vectors "
            "of the language of the texts?"
        )


def _follow(run: Run, experiment: TextExperiment) -> None:
    from treelax.analysis.text_results import finish_text
    from treelax.data.text.rows import counted
    from treelax.tasks.text.model_files import WORDS as FILE
    from treelax.tasks.text.model_files import save_words
    from treelax.tasks.text.origins import write_origins
    from treelax.tasks.text.transformer import COPY, copy_folder
    from treelax.training.distributed import current
    from treelax.training.loop import Training

    config = experiment.config
    if current().first and config.model.pretrained is not None:
        copy_folder(config.model.pretrained, run.path / COPY)
    training = Training(run, experiment)  # which refuses other data than it was started with
    if current().first:
        _refuse_other_words(run, training, experiment)
        vectors, lower = experiment.data.vectors, config.data.lower
        save_words(run.path / FILE, vectors, experiment.labels, lower=lower)
        write_origins(run.path, config.data)
    sizes = {name: f"{name} {len(split):,}" for name, split in experiment.data.splits.items()}
    if experiment.mixed:
        sizes["train"] += f" ({experiment.mixed:,} of them mixed in)"
    counts = ", ".join(sizes.values())
    epochs, updates = counted(training.epochs, "epoch"), counted(training.updates, "update")
    labels = counted(len(experiment.labels), "label")
    error_console.print(
        f"{config.preset}, seed {config.seed}, on {current().on(experiment.device)}: {counts} examples, "
        f"{labels}, {epochs} of {updates}"
    )
    follow(training, lambda dev: f"acc {dev['accuracy']:.2f}")
    if not current().first:
        return
    _print(finish_text(run, training, experiment))
    console.print(f"run: {run.path}")


def _refuse_other_words(run: Run, training: Training, experiment: TextExperiment) -> None:
    """Refuse other words than an older run was started with, whose checkpoint does not tell data."""
    from treelax.errors import CheckpointError
    from treelax.tasks.text.model_files import WORDS as FILE
    from treelax.tasks.text.model_files import load_words

    if not training.knows_data and (run.path / FILE).exists():
        vectors, labels, _ = load_words(run.path / FILE)
        if (vectors.known, labels) != (experiment.data.vectors.known, experiment.labels):
            raise CheckpointError(
                f"{run.path}: its words or labels are not those it was started with; restore the "
                "files, or train anew with another --out"
            )


def _print(result: dict[str, Any]) -> None:
    rows = [
        [
            split,
            figures["examples"],
            f"{figures['accuracy']:.2f}",
            f"{figures['soft_accuracy']:.2f}",
        ]
        for split, figures in result["splits"].items()
    ]
    table(["accuracy, %", "examples", "discrete trees", "soft trees"], rows)
