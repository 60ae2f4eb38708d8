"""``treelax train classify | pair | tag | snli | multinli | sst``: models of sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treelax.cli.console import console, error_console, progress, table
from treelax.cli.runs import find_run, in_run
from treelax.cli.settings import show_settings
from treelax.training.distributed import current, in_turn
from treelax.training.processes import joined

if TYPE_CHECKING:
    from treelax.tasks.text.config import TextConfig
    from treelax.tasks.text.experiment import TextExperiment
    from treelax.training.run import Run

__all__ = ["register_text"]

LIST_ALL = "--list shows all settings"
RUN_HELP = """A run is a folder: config.toml, metrics.jsonl, checkpoint/, best/, words.safetensors,
tensorboard/, and test.json at its end. One that was killed goes on with --resume."""
CLASSIFY_HELP = f"""Train a classifier of texts with latent trees on your own files.

Files are TSV or CSV with a line of column names, or JSON lines, also compressed. Without --vectors
words are learned from random vectors.

{RUN_HELP}

Example:
  treelax train classify --train train.tsv --dev dev.tsv --text review --label stars --out runs/stars
"""
PAIR_HELP = f"""Train a model of the relation of two texts with latent trees on your own files.

{RUN_HELP}

Example:
  treelax train pair --train train.csv --dev dev.csv --text question --text answer --label fits
"""
TAG_HELP = f"""Train a tagger of words with latent trees on your own files.

Files have a word a line with its tag in the last column and a blank line between sentences, or are
CoNLL-U.

{RUN_HELP}

Example:
  treelax train tag --train train.conllu --dev dev.conllu --out runs/tags
"""
CORPUS_HELP = """Train on {name} as the paper does; presets are the rows of its tables.

{run}

Example:
  treelax train {command} --from {archive} --vectors glove.840B.300d.zip --preset {command}-{row}
"""
CORPORA = {
    "snli": ("SNLI", "snli_1.0.zip", "tree-2"),
    "multinli": ("MultiNLI", "multinli_1.0.zip", "tree-2"),
    "sst": ("the Stanford Sentiment Treebank", "trainDevTestTrees_PTB.zip", "tree"),
}

Out = Annotated[Path | None, typer.Option(help="Folder of the run; runs/PRESET-SEED by default.")]
Seed = Annotated[int | None, typer.Option(help="Of weights, batches, noise and dropout.")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", help="Change a setting: KEY=VALUE; repeatable.")
]
Device = Annotated[str, typer.Option(help="cpu, cuda, cuda:1 or auto.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the run in --out, or start it.")]
Show = Annotated[bool, typer.Option("--list", help="Show presets and all settings, and stop.")]
Vectors = Annotated[
    list[Path] | None,
    typer.Option(
        help="Word vectors: GloVe or word2vec text, zipped or not, or npz; several are joined."
    ),
]
TextColumns = Annotated[
    list[str] | None,
    typer.Option(
        help="Column of a text: one for classify, two for pair; text, or first and second."
    ),
]
Preset = Annotated[str | None, typer.Option(help="A row of the paper's tables; see --list.")]
TrainFile = Annotated[Path | None, typer.Option("--train", help="Training data.")]
DevFile = Annotated[Path | None, typer.Option("--dev", help="Data to choose the best model by.")]
TestFile = Annotated[Path | None, typer.Option("--test", help="Data for the figures at the end.")]


def register_text(group: typer.Typer) -> None:
    """Add the commands to ``treelax train``."""
    group.command("classify", help=CLASSIFY_HELP)(_own("classify"))
    group.command("pair", help=PAIR_HELP)(_own("pair"))
    group.command("tag", help=TAG_HELP)(_tag())
    for command, (name, archive, row) in CORPORA.items():
        text = CORPUS_HELP.format(
            name=name, run=RUN_HELP, command=command, archive=archive, row=row
        )
        group.command(command, help=text)(_corpus(command, row))


def _own(kind: str) -> Callable[..., None]:
    def command(
        train: TrainFile = None,
        dev: DevFile = None,
        test: TestFile = None,
        text: TextColumns = None,
        label: Annotated[
            str | None, typer.Option(help="Column of the label; label by default.")
        ] = None,
        tokens: Annotated[
            bool, typer.Option("--tokens", help="Texts are words with spaces between.")
        ] = False,
        vectors: Vectors = None,
        out: Out = None,
        seed: Seed = None,
        settings: Settings = None,
        device: Device = "auto",
        resume: Resume = False,
        show: Show = False,
    ) -> None:
        data = _files(train, dev, test, vectors)
        if text:
            data["text"] = ",".join(text)
        if label is not None:
            data["label"] = label
        if tokens:
            data["tokens"] = "true"
        _train(kind, data, settings, seed, out, device, resume, show)

    return command


def _tag() -> Callable[..., None]:
    def command(
        train: TrainFile = None,
        dev: DevFile = None,
        test: TestFile = None,
        vectors: Vectors = None,
        out: Out = None,
        seed: Seed = None,
        settings: Settings = None,
        device: Device = "auto",
        resume: Resume = False,
        show: Show = False,
    ) -> None:
        _train("tag", _files(train, dev, test, vectors), settings, seed, out, device, resume, show)

    return command


def _corpus(name: str, row: str) -> Callable[..., None]:
    def command(
        preset: Preset = None,
        source: Annotated[
            Path | None, typer.Option("--from", help="Folder or archive of the corpus.")
        ] = None,
        train: TrainFile = None,
        dev: DevFile = None,
        test: TestFile = None,
        vectors: Vectors = None,
        out: Out = None,
        seed: Seed = None,
        settings: Settings = None,
        device: Device = "auto",
        resume: Resume = False,
        show: Show = False,
    ) -> None:
        data = _files(train, dev, test, vectors)
        if source is not None:
            data["path"] = str(source)
        _train(preset or f"{name}-{row}", data, settings, seed, out, device, resume, show)

    return command


def _files(
    train: Path | None, dev: Path | None, test: Path | None, vectors: list[Path] | None
) -> dict[str, str]:
    given = {"train": train, "dev": dev, "test": test}
    return {key: str(path) for key, path in given.items() if path is not None} | vector_files(
        vectors
    )


def vector_files(paths: Sequence[Path] | None) -> dict[str, str]:
    """Settings of the word vectors in some files.

    Args:
        paths: the files.

    Returns:
        The settings, without their section.

    Example:
        >>> vector_files([Path("glove.zip"), Path("more.npz")])
        {'vectors': 'glove.zip', 'more_vectors': 'more.npz'}
    """
    first, more = (paths or [])[:1], (paths or [])[1:]
    named = {"vectors": first, "more_vectors": more}
    return {key: ",".join(map(str, files)) for key, files in named.items() if files}


@joined()
def _train(
    preset: str,
    data: dict[str, str],
    settings: Sequence[str] | None,
    seed: int | None,
    out: Path | None,
    device: str,
    resume: bool,
    show: bool,
) -> None:
    from treelax.analysis.text_results import read_text_result
    from treelax.tasks.text.config import PRESETS
    from treelax.tasks.text.config import preset as find
    from treelax.training.config import override
    from treelax.training.run import Run

    changes = [f"data.{key}={value}" for key, value in data.items()]
    changes += [*(settings or []), *([f"seed={seed}"] if seed is not None else [])]
    config = override(find(preset), changes, list_all=LIST_ALL)
    if show:
        show_settings(PRESETS, config)
        return
    place = out or Path("runs") / f"{config.preset}-{config.seed}"
    if not current().first:  # it trains with the first process, which has the folder
        experiment = in_turn(config, _prepare, device, place)
        _follow(Run(place, experiment.task), experiment)
        return
    run = find_run(place, resume=resume)
    if run is not None:
        config = _same_settings(run, changes)
        if (result := read_text_result(run)) is not None:
            error_console.print(f"{run.path}: has ended already; these are its figures")
            _print(result)
            return
    prepare = partial(in_turn, config, _prepare, device, place)
    with in_run(run, place, config, task=config.kind, prepare=prepare) as (run, experiment):
        _follow(run, experiment)


def _same_settings(run: Run, changes: Sequence[str]) -> TextConfig:
    """The settings of a run, which those on the command line must not contradict."""
    from treelax.tasks.text.config import TextConfig
    from treelax.training.config import override
    from treelax.training.run import refuse_changes

    own = run.config(TextConfig)
    refuse_changes(run, own, override(own, changes, list_all=LIST_ALL))
    return own


def _prepare(config: TextConfig, device: str, out: Path) -> TextExperiment:
    from treelax.tasks.text.data import load_text
    from treelax.tasks.text.experiment import TextExperiment
    from treelax.tasks.text.transformer import check_folder, with_own_copy
    from treelax.training.devices import find_device

    place = find_device(device, threads=config.train.threads)
    model = with_own_copy(config.model, out)
    if model.pretrained is not None:  # told now, not when all texts have been read
        check_folder(model.pretrained)
    with progress("reading texts", unit="record", transient=True) as bar:
        data = load_text(
            config.data,
            lambda split, done, total: bar.update(done, split),
            whole_words=model.pretrained is not None,
        )
    for split, notes in data.notes.items():
        for note in notes:
            error_console.print(f"{split}: {note}")
    return TextExperiment(config, data, place, model=model)


def _follow(run: Run, experiment: TextExperiment) -> None:
    from treelax.analysis.text_results import finish_text
    from treelax.tasks.text.transformer import COPY, copy_folder
    from treelax.training.loop import Training
    from treelax.training.words import FILE, save_words

    config = experiment.config
    if current().first and config.model.pretrained is not None:
        copy_folder(config.model.pretrained, run.path / COPY)
    if current().first and not (run.path / FILE).exists():
        save_words(
            run.path / FILE, experiment.data.vectors, experiment.labels, lower=config.data.lower
        )
    training = Training(run, experiment)
    counts = ", ".join(f"{name} {len(split):,}" for name, split in experiment.data.splits.items())
    error_console.print(
        f"{config.preset}, seed {config.seed}, on {current().on(experiment.device)}: {counts} examples, "
        f"{len(experiment.labels)} labels, {training.epochs} epochs of {training.updates} updates"
    )
    total, done = training.epochs * training.updates, training.epoch * training.updates
    with progress("training", total, start=done, unit="update") as bar:
        for step in training.steps():
            note = None
            if step.metrics is not None:
                row = step.metrics
                note = (
                    f"epoch {row['epoch']}/{training.epochs} loss {row['loss']:.3f} "
                    f"dev acc {row['dev']['accuracy']:.2f}"
                )
            bar.update((step.epoch - 1) * training.updates + step.update, note)
    if not current().first:
        return
    _print(finish_text(run, training, experiment))
    console.print(f"run: {run.path}")


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
