"""``treelax data``: make data sets, and say what is in them."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import treelax
from treelax.cli import data_text
from treelax.cli.commands import command, group
from treelax.cli.console import error_console, table
from treelax.cli.data_text import folder_to_write
from treelax.cli.progress import advancing, progress
from treelax.errors import InputError
from treelax.files import atomic_write, sha256

if TYPE_CHECKING:
    from treelax.data.listops import Expression

INFO = "info.json"
ONLY_WRITING = ("out", "variant", "train", "dev", "test", "seed", "force")
NOTE = "attached to ...: the heads that a tree built by this rule alone gets right"
COUNT_EVERY = 500  # expressions; a bar takes longer to draw than one of them to write
HELP = """Make data sets, and say what is in them.

Every kind of data has its own --help.

Example:
  treelax data listops --out data/listops
"""
LISTOPS_HELP = """Write random ListOps data, or describe the data in files.

With --out: writes train.tsv, dev.tsv and test.tsv, a line an expression, no
two alike, and info.json, which says how they were made. The same options give
the same bytes; without options, the expressions that training generates.
With --stats: describes files in that format.

Examples:
  treelax data listops --out data/listops
  treelax data listops --out data/short --variant paulus --train 1000 --seed 1
  treelax data listops --stats data/listops/dev.tsv data/listops/test.tsv
"""

# What training generates by itself, so that a folder of the same data can be had without a thought.
# Not taken from the presets, which load torch: help should not take seconds. Tests hold them equal.
SIZES = {"train": 90_000, "dev": 1_000, "test": 10_000}
SEED = 0
LENGTHS = {
    "original": {"min_length": 1, "max_length": 100},
    "paulus": {"min_length": 10, "max_length": 50},
}

_writing = partial(typer.Option, rich_help_panel="Writing a data set")
Splits = dict[str, list["Expression"]]


def _limits(name: str) -> str:
    """What the help says of a limit of the lengths."""
    of = {variant: lengths[name] for variant, lengths in LENGTHS.items()}
    return f", in tokens; writing: {of['original']} by default, {of['paulus']} for paulus."


def listops(
    context: typer.Context,
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="FILE", help="What --stats describes.")
    ] = None,
    stats: Annotated[bool, typer.Option("--stats", help="Describe FILE...; write none.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the statistics as one JSON object.")
    ] = False,
    min_length: Annotated[
        int | None,
        typer.Option(min=1, help=f"Leave out shorter expressions{_limits('min_length')}"),
    ] = None,
    max_length: Annotated[
        int | None, typer.Option(min=1, help=f"Leave out longer expressions{_limits('max_length')}")
    ] = None,
    out: Annotated[
        Path | None, _writing(file_okay=False, help="Folder to write; made if need be.")
    ] = None,
    variant: Annotated[
        Literal["original", "paulus"],
        _writing(
            help="original: Nangia & Bowman 2018. paulus: Paulus et al. 2020, no sum, up to 5 deep."
        ),
    ] = "original",
    train: Annotated[int, _writing(min=1, help="Expressions in train.tsv.")] = SIZES["train"],
    dev: Annotated[int, _writing(min=1, help="Expressions in dev.tsv.")] = SIZES["dev"],
    test: Annotated[int, _writing(min=1, help="Expressions in test.tsv.")] = SIZES["test"],
    # Python takes -1 for the same seed as 1
    seed: Annotated[int, _writing(min=0, help="Of the random numbers.")] = SEED,
    force: Annotated[bool, _writing("--force", help="Replace files with other content.")] = False,
) -> None:
    """Write ListOps data or describe it; see LISTOPS_HELP."""
    _check_usage(context, files, stats, out)
    if out is None:
        described = _describe_files(files or [], min_length or 1, max_length)
        title = "ListOps, lone digits left out"
    else:
        settings = {
            "variant": variant,
            "train": train,
            "dev": dev,
            "test": test,
            "seed": seed,
            "min_length": min_length or LENGTHS[variant]["min_length"],
            "max_length": max_length or LENGTHS[variant]["max_length"],
        }
        described = _write_splits(out, settings, force)
        title = f"ListOps, {variant}, seed {seed}, in {out}"
    if as_json:
        typer.echo(json.dumps(described, indent=2))
    else:
        _print_statistics(described, title)


def _check_usage(
    context: typer.Context, files: Sequence[Path] | None, stats: bool, out: Path | None
) -> None:
    """Refuse options that contradict each other or would do nothing."""
    if stats:
        if not files:
            raise InputError("--stats: received no file; expected --stats FILE...")
        for name in ONLY_WRITING:
            source = context.get_parameter_source(name)
            if source is not None and source.name == "COMMANDLINE":
                raise InputError(f"--{name}: is for writing; expected it without --stats")
    elif files:
        raise InputError(
            f"{files[0]}: received a file without --stats; expected --stats FILE... to describe "
            "files, or --out FOLDER alone to write them"
        )
    elif out is None:
        raise InputError(
            "--out: received none; expected --out FOLDER to write data, or --stats FILE... to "
            "describe it"
        )


def _describe_files(
    files: Sequence[Path], min_length: int, max_length: int | None
) -> dict[str, Any]:
    from treelax.data.listops import listops_statistics, read_listops

    described = {}
    with progress("reading", len(files), unit="files", transient=True) as bar:
        for file in files:
            expressions = read_listops(file, min_length=min_length, max_length=max_length)
            described[str(file)] = listops_statistics(expressions)
            bar.advance()
    return described


def _write_splits(folder: Path, settings: dict[str, Any], force: bool) -> dict[str, Any]:
    """Draw the data, write it and describe it."""
    from treelax.data.listops import generate_splits, listops_statistics

    if not force:
        _refuse_other_data(folder, settings)
    sizes = {name: settings[name] for name in ("train", "dev", "test")}
    others = {name: settings[name] for name in ("variant", "seed", "min_length", "max_length")}
    with folder_to_write(folder) as temporary:
        with progress("drawing", sum(sizes.values())) as bar:
            splits = generate_splits(sizes, **others, progress=bar.update)
        _write_files(folder, temporary, splits, settings, force)
    described = {}
    with progress("measuring", sum(sizes.values()), transient=True) as bar:
        for name, split in splits.items():
            described[name] = listops_statistics(split)
            bar.advance(len(split))
    return described


def _refuse_other_data(folder: Path, settings: dict[str, Any]) -> None:
    """Refuse a folder whose data was made otherwise; told before the data is drawn."""
    info = folder / INFO
    if not info.exists():
        return
    try:
        there = json.loads(info.read_text(encoding="utf-8"))["settings"]
        differing = [name for name, value in settings.items() if there[name] != value]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InputError(
            f"{info}: was not written by treelax data; give another --out, or --force to replace it"
        ) from None
    if differing:
        raise InputError(
            f"{folder}: holds data made with {_option(differing[0], there)}, received "
            f"{_option(differing[0], settings)}; give another --out, or --force to replace it"
        )


def _write_files(
    folder: Path, temporary: Path, splits: Splits, settings: dict[str, Any], force: bool
) -> None:
    """Write all files aside, then put them in place: an error leaves what was there untouched."""
    from treelax.data.listops import write_listops

    with progress("writing", sum(map(len, splits.values()))) as bar:
        for name, split in splits.items():
            write_listops(temporary / f"{name}.tsv", advancing(split, bar, every=COUNT_EVERY))
    sums = {f"{name}.tsv": sha256(temporary / f"{name}.tsv") for name in splits}
    there = [file for file in sums if (folder / file).exists()]
    changed = [file for file in there if sha256(folder / file) != sums[file]]
    if changed and not force:
        raise InputError(
            f"{folder / changed[0]}: is there already with other content; give another --out, or "
            "--force to replace it"
        )
    info = {
        "made_by": f"treelax {treelax.__version__}",
        "settings": settings,
        "sha256": sums,
    }
    if changed:  # what it says must not stand beside data that is half replaced
        (folder / INFO).unlink(missing_ok=True)
    for file in sums:
        os.replace(temporary / file, folder / file)
    with atomic_write(folder / INFO, "w") as out:
        out.write(json.dumps(info, indent=2) + "\n")
    if len(there) == len(sums) and not changed:
        error_console.print(f"{folder}: the same files were there already")


def _option(name: str, settings: dict[str, Any]) -> str:
    return f"--{name.replace('_', '-')} {settings[name]}"


def _print_statistics(described: dict[str, Any], title: str) -> None:
    rows = zip(*map(_figures, described.values()), strict=True)
    named = [[cells[0][0], *(figure for _, figure in cells)] for cells in rows]
    table(["", *described], named, title=title, note=NOTE)


def _figures(statistics: dict[str, Any]) -> list[tuple[str, str | int | float]]:
    """The rows of the table for one set."""
    return [
        ("sentences", statistics["sentences"]),
        ("tokens", statistics["tokens"]),
        ("length, mean", statistics["length_mean"]),
        ("length, median", f"{statistics['length_median']:g}"),
        ("length, longest", statistics["length_max"]),
        ("depth, mean", statistics["depth_mean"]),
        ("depth, deepest", statistics["depth_max"]),
        *((f"operator {token}", count) for token, count in statistics["operators"].items()),
        ("operators, % of tokens", statistics["operator_share"]),
        ("attached to the token before, %", statistics["attachment_previous"]),
        ("attached to the operator before, %", statistics["attachment_operator"]),
    ]


register = group("data", HELP, command("listops", LISTOPS_HELP, listops), data_text.register)
