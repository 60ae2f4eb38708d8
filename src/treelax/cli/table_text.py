"""``treelax table snli | multinli | ablation | sst``: the paper's tables 2 and 3."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from treelax.cli.commands import command
from treelax.cli.console import table
from treelax.cli.options import Device
from treelax.cli.sweeps import (
    Jobs,
    Report,
    Rows,
    Settings,
    every_seed,
    finished,
    named_rows,
    refuse_other_data,
    write_results,
)
from treelax.cli.table_settings import (
    command_line,
    common_settings,
    differing,
    refuse_settings,
)
from treelax.cli.text_runs import read_texts
from treelax.cli.train_text import MIXED, UNMIXED, Vectors, vector_files

if TYPE_CHECKING:
    from treelax.analysis.text_table import TextTable
    from treelax.tasks.text.config import TextConfig
    from treelax.training.run import Run

TEXT_HELP = """{first}

The paper's recipe takes days of a GPU for the tables of inference; --recipe
tuned takes minutes, with settings that dev chose.{mixture}

Writes table.md with the paper's figures beside ours and the amount of data,
and runs.csv. Settings of treelax train {command}, but those that rows are
named after, can be changed for all rows with --set. All rows have the same
data; the same command goes on with what was interrupted.

Example:
  treelax table {name} --recipe tuned --from {archive} \\
      --vectors glove.zip{mix}
"""
# what each is, and an archive for the example
COMMANDS = {
    "snli": ("Train the rows of the paper's table 2 (SNLI) over several seeds.", "snli_1.0.zip"),
    "multinli": (
        "Train the rows of the paper's table 3b (MultiNLI) over several seeds.",
        "multinli_1.0.zip",
    ),
    "ablation": (
        "Train the rows of the paper's table 3c (kinds of trees) over several seeds.",
        "multinli_1.0.zip",
    ),
    "sst": (
        "Train the rows of the paper's table 3a (SST) over several seeds.",
        "trainDevTestTrees_PTB.zip",
    ),
}
ROWS_ARE = ("model.trees", "model.gcn_layers")  # what rows are labelled by, where they differ in it
TABLE_IS = ("kind", "data.format")
LIST_ALL = "treelax train {} --list shows all settings"
Results = Annotated[
    Path | None,
    typer.Option(help="Where the table goes; results/TABLE or results/TABLE-tuned by default."),
]


def register_text_tables(group: typer.Typer) -> None:
    """Add the tables to ``treelax table``."""
    for name, (first, archive) in COMMANDS.items():
        family = "multinli" if name == "ablation" else name
        more = MIXED if family == "multinli" else UNMIXED
        text = TEXT_HELP.format(first=first, name=name, command=family, archive=archive, **more)
        command(name, text, _command(name, family))(group)


def _command(name: str, family: str) -> Callable[..., None]:
    runs_folder = Path(f"runs/table-{family}")

    def command(
        seeds: Annotated[int, typer.Option(min=1, help="Number of seeds: 0 to N-1.")] = 3,
        source: Annotated[
            Path | None, typer.Option("--from", help="Folder or archive of the corpus.")
        ] = None,
        vectors: Vectors = None,
        recipe: Annotated[
            Literal["paper", "tuned"], typer.Option(help="Settings of training.")
        ] = "paper",
        rows: Rows = None,
        # the two tables of MultiNLI share their runs
        runs: Annotated[Path, typer.Option(help="Folder of the runs.")] = runs_folder,
        results: Results = None,
        settings: Settings = None,
        device: Device = "auto",
        jobs: Jobs = None,
        report: Report = False,
    ) -> None:
        from treelax.analysis.run_folders import changed
        from treelax.analysis.run_folders import name as folder
        from treelax.analysis.text_table import TABLES
        from treelax.ops.checks import one_of
        from treelax.tasks.text.config import FILES
        from treelax.tasks.text.presets import preset as find
        from treelax.training.config import value_to_toml

        changes = list(settings or [])
        given = vector_files(vectors)
        if source is not None:
            given["path"] = value_to_toml("--from", str(source))
        paths = [f"data.{key}={path}" for key, path in given.items()]
        chosen = TABLES[name].tuned if recipe == "tuned" else TABLES[name]
        presets = chosen.presets if rows is None else named_rows(rows)
        for row in presets:
            one_of("--rows", row, chosen.presets)
        fixed = differing([find(row) for row in chosen.presets], ROWS_ARE)
        refuse_settings(changes, fixed, family)
        refuse_settings(changes, TABLE_IS, family, why="which makes it another table")

        def configure(preset: str, more: list[str]) -> TextConfig:
            config = changed(find(preset), [*paths, *more], LIST_ALL.format(family))
            if config.model.trees == "given" or config.data.trees is None:
                return config
            # so that rows without given trees are the same runs whether there are such or not
            return replace(config, data=replace(config.data, trees=None))

        usual = Path(f"results/{name}" if recipe == "paper" else f"results/{name}-{recipe}")
        place = results or usual
        configs = every_seed(presets, seeds, changes, configure)
        if not report:
            _check_data(configs)
            _read_data(configs, runs)
        ended, failure = finished(
            configs,
            runs,
            place,
            device=device,
            jobs=jobs,
            report=report,
            describe=_describe,
            said=[s for s in (*paths, *changes) if not s.startswith("data.trees")],
        )
        shown = common_settings(ended, find, files=FILES, fixed=fixed)
        folders = {"runs": (runs, runs_folder), "results": (place, usual)}
        named = name if recipe == "paper" else f"{name} --recipe {recipe}"
        there = {(result["preset"], result["seed"]) for _, result in ended}
        missing = [folder(c) for c in configs if (c.preset, c.seed) not in there]
        command = command_line(named, seeds, rows, shown, folders)
        _publish(chosen, ended, place, command, missing)
        if failure is not None:
            raise failure

    return command


def _check_data(configs: Sequence[TextConfig]) -> None:
    """Tell now what every run would tell in its turn: files that are not there, no given trees."""
    from treelax.errors import InputError
    from treelax.tasks.text.data import check_files

    for config in configs:
        if config.model.trees == "given" and config.data.trees is None:
            others = dict.fromkeys(c.preset for c in configs if c.model.trees != "given")
            raise InputError(
                f"data.trees is none and {config.preset} takes given trees; expected CoNLL-U files of "
                "them: give --set data.trees=FILES, such as trees/{split}.conllu, or leave that row "
                f"out: --rows {','.join(others)}"
            )
    for data in dict.fromkeys(config.data for config in configs):
        check_files(data)


def _read_data(configs: Sequence[TextConfig], runs: Path) -> None:
    """Read and encode the data once, not in every run, and see that they are those of earlier runs."""
    from treelax.analysis.run_folders import name, result_of
    from treelax.tasks.text.transformer import check_folder
    from treelax.training.run import Run

    paths = [runs / name(config) for config in configs]
    there = [Run.open(path) for path in paths if (path / "config.toml").exists()]
    ended = [(run, result) for run in there if (result := result_of(run)) is not None]
    if len(ended) == len(configs):
        return
    folders = dict.fromkeys(config.model.pretrained for config in configs)
    for folder in filter(None, folders):
        check_folder(folder)
    wanted = dict.fromkeys((config.data, config.model.pretrained is not None) for config in configs)
    for data, whole in wanted:
        read = read_texts(data, whole_words=whole)
        refuse_other_data(ended, read.fingerprint(tuple(read.splits), trees=False))


def _describe(row: dict[str, Any]) -> str:
    return f"dev acc {row['dev']['accuracy']:.2f}"


def _publish(
    chosen: TextTable,
    ended: Sequence[tuple[Run, dict[str, Any]]],
    results: Path,
    command: str,
    missing: Sequence[str],
) -> None:
    """Print the table and write it and the runs."""
    from treelax.analysis.tables import RUNS, TABLE, to_csv, to_markdown, where
    from treelax.analysis.text_table import (
        COLUMNS,
        ON_SCREEN,
        amount,
        sizes_of,
        text_record,
        text_rows,
        trees_of,
        vectors_of,
    )
    from treelax.tasks.text.config import TextConfig

    records = [text_record(result) for _, result in ended]
    configs = [run.config(TextConfig) for run, _ in ended]
    chosen = chosen.adapted(configs[0])
    rows = text_rows(chosen, records)
    headings = chosen.headings
    found = zip(configs, ended, strict=True)
    data = "; ".join(dict.fromkeys(amount(config, result) for config, (_, result) in found))
    vectors = vectors_of(configs[0])
    sizes = "; ".join(dict.fromkeys(sizes_of(chosen, result) for _, result in ended))
    trees = dict.fromkeys(map(trees_of, configs))
    given = "".join(f" Given trees are those of {name}." for name in trees if name)
    paths = [getattr(c.data, key) for c in configs for key in ("train", "dev", "test", "mix")]
    if names := dict.fromkeys(PurePath(path).name for path in paths if path is not None):
        given += f" Files: {', '.join(names)}."
    table(
        [headings[i] for i in ON_SCREEN],
        [[row[i] for i in ON_SCREEN] for row in rows],
        title=f"{chosen.title}, accuracy in percent, trained on {data}",
        note=f"every seed and more columns in {results / TABLE}",
    )
    lines = [
        f"# {chosen.title}",
        "",
        f"Trained on {data}, with {vectors}; {sizes}. Accuracy in percent, with discrete trees and "
        f"with soft ones; the best epoch is chosen by {chosen.dev} with discrete trees. Mean ± "
        f"standard deviation over seeds.{given} `{command}` on "
        f"{where(result for _, result in ended)}.",
        "",
        to_markdown(headings, rows),
        "",
        *([f"Runs that have not ended: {', '.join(missing)}.", ""] if missing else []),
    ]
    write_results(results, {RUNS: to_csv(COLUMNS, records), TABLE: "\n".join(lines)})
