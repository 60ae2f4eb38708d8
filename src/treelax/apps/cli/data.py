"""``treelax data``: make data sets, fetch corpora, and say what is in them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

import treelax
from treelax.apps.cli.commands import AsJson, command, group, with_options
from treelax.apps.cli.console import table
from treelax.apps.cli.progress import advancing, progress
from treelax.apps.table import Cell
from treelax.errors import InputError
from treelax.files import atomic_write, sha256

if TYPE_CHECKING:
    from treelax.apps.data.text.readers_corpora import Corpus
    from treelax.apps.data.text.records import Records

INFO, MADE_BY = "info.json", "made_by"
MB = 1_000_000
COUNT_EVERY = 500  # records; a bar takes longer to draw than one of them to read or write
HELP = """Generate or download data sets, and describe them.

Every kind of data has its own --help.

Example:
  treelax data listops --out data/listops
"""


LISTOPS_HELP = """Generate ListOps data, or describe files of it.

--out writes train.tsv, dev.tsv and test.tsv, one expression per line without
duplicates, and info.json, which says how they were generated. The same
options give the same bytes; the defaults give the data that training
generates. --stats describes files in this format.

Examples:
  treelax data listops --out data/listops
  treelax data listops --out data/short --variant paulus --train 1000 --seed 1
  treelax data listops --stats data/listops/dev.tsv data/listops/test.tsv
"""
NOTE = "attached to ...: the heads that a tree built by this rule alone gets right"
# what training generates; not taken from the presets, which would load torch for the help
LENGTHS = {
    "original": {"min_length": 1, "max_length": 100},
    "paulus": {"min_length": 10, "max_length": 50},
}
_writing = partial(typer.Option, rich_help_panel="Writing a data set")


def _limits(name: str) -> str:
    """What the help says of a limit of the lengths."""
    of = {variant: lengths[name] for variant, lengths in LENGTHS.items()}
    return f", in tokens; writing: {of['original']} by default, {of['paulus']} for paulus."


def listops(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="FILE", help="Files for --stats.")
    ] = None,
    stats: Annotated[
        bool, typer.Option("--stats", help="Describe FILE... instead of writing data.")
    ] = False,
    as_json: AsJson = False,
    min_length: Annotated[
        int | None, typer.Option(min=1, help=f"Skip shorter expressions{_limits('min_length')}")
    ] = None,
    max_length: Annotated[
        int | None, typer.Option(min=1, help=f"Skip longer expressions{_limits('max_length')}")
    ] = None,
    out: Annotated[
        Path | None, _writing(file_okay=False, help="Output folder; created if needed.")
    ] = None,
    variant: Annotated[
        Literal["original", "paulus"],
        _writing(
            help="original: Nangia & Bowman 2018. paulus: Paulus et al. 2020, no sum, up to 5 deep."
        ),
    ] = "original",
    train: Annotated[int, _writing(min=1, help="Expressions in train.tsv.")] = 90_000,
    dev: Annotated[int, _writing(min=1, help="Expressions in dev.tsv.")] = 1_000,
    test: Annotated[int, _writing(min=1, help="Expressions in test.tsv.")] = 10_000,
    # Python takes -1 for the same seed as 1
    seed: Annotated[int, _writing(min=0, help="Random seed.")] = 0,
    force: Annotated[bool, _writing("--force", help="Replace existing files.")] = False,
) -> None:
    """Write ListOps data or describe it; see LISTOPS_HELP."""
    if stats != bool(files) or stats == (out is not None):
        raise InputError("data listops: expected either --out FOLDER, or --stats FILE...")
    if out is None:
        from treelax.apps.data.listops import listops_statistics, read_listops

        lengths: dict[str, Any] = {"min_length": min_length or 1, "max_length": max_length}
        title, described = "ListOps, lone digits left out", {}
        with progress("reading", len(files or ()), unit="files", transient=True) as bar:
            for file in advancing(files or (), bar, every=1):
                described[str(file)] = listops_statistics(read_listops(file, **lengths))
    else:
        given = {"min_length": min_length, "max_length": max_length}
        lengths = LENGTHS[variant] | {name: n for name, n in given.items() if n is not None}
        settings = {"variant": variant, "seed": seed, **lengths}
        described = _write_splits(out, {"train": train, "dev": dev, "test": test}, settings, force)
        title = f"ListOps, {variant}, seed {seed}, in {out}"
    if as_json:
        typer.echo(json.dumps(described, indent=2))
    else:
        columns = {name: _expression_figures(figures) for name, figures in described.items()}
        _print_columns(columns, title, NOTE)


def _write_splits(
    folder: Path, sizes: dict[str, int], settings: dict[str, Any], force: bool
) -> dict[str, Any]:
    """Draw the data, write it and describe it."""
    from treelax.apps.data.listops import generate_splits, listops_statistics, write_listops

    info = {MADE_BY: f"treelax {treelax.__version__}", "settings": {**sizes, **settings}}
    total = sum(sizes.values())
    with filled_at_once(folder, force) as temporary:
        with progress("drawing", total) as bar:
            splits = generate_splits(sizes, **settings, progress=bar.update)
        with progress("writing", total) as bar:
            for name, split in splits.items():
                write_listops(temporary / f"{name}.tsv", advancing(split, bar, every=COUNT_EVERY))
        sums = {file.name: sha256(file) for file in sorted(temporary.iterdir())}
        with atomic_write(temporary / INFO, "w") as out:
            out.write(json.dumps(info | {"sha256": sums}, indent=2) + "\n")
    with progress("measuring", transient=True):
        return {name: listops_statistics(split) for name, split in splits.items()}


def _expression_figures(statistics: dict[str, Any]) -> dict[str, Cell]:
    return {
        "sentences": statistics["sentences"],
        "tokens": statistics["tokens"],
        "length, mean": statistics["length_mean"],
        "length, median": f"{statistics['length_median']:g}",
        "length, longest": statistics["length_max"],
        "depth, mean": statistics["depth_mean"],
        "depth, deepest": statistics["depth_max"],
        **{f"operator {token}": count for token, count in statistics["operators"].items()},
        "operators, % of tokens": statistics["operator_share"],
        "attached to the token before, %": statistics["attachment_previous"],
        "attached to the operator before, %": statistics["attachment_operator"],
    }


CORPUS_HELP = """Check the files of {corpus}; download them if needed.

Reads every split and prints what it contains, and what is skipped and why.

--from reads {archive}, its folder, a single file,
or what --out wrote. Without it, the archive is downloaded once and kept.
--out also writes the data as SPLIT.tsv.gz, with the columns
{columns}.

Examples:
  treelax data {name}
  treelax data {name} --from {archive} --out data/{name}
"""
PAIRS = "label, premise, hypothesis"


class CorpusCommand(NamedTuple):
    """A corpus as the help has it."""

    name: str
    corpus: str
    archive: str
    columns: str
    options: tuple[()] = ()
    task: None = None


CORPUS_COMMANDS = (
    CorpusCommand("snli", "SNLI", "snli_1.0.zip", PAIRS),
    CorpusCommand("multinli", "MultiNLI", "multinli_1.0.zip", f"{PAIRS}, genre"),
    CorpusCommand(
        "sst", "the Stanford Sentiment Treebank", "trainDevTestTrees_PTB.zip", "label, sentence"
    ),
)


def check_corpus(
    spec: CorpusCommand,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from", metavar="PATH", help="Archive, its folder, or a file; nothing is downloaded."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(file_okay=False, help="Output folder; created if needed.")
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option(help="Where to keep the archive; default: the user's cache folder."),
    ] = None,
    classes: Annotated[
        Literal["binary", "five"],
        typer.Option(help="binary: negative and positive, without neutral. five: all five."),
    ] = "binary",
    unusable: Annotated[
        Literal["error", "drop"],
        typer.Option(help="drop: skip lines with too few or too many columns or words."),
    ] = "error",
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check a corpus; see CORPUS_HELP."""
    from treelax.apps.data.text.readers_corpora import CORPORA

    corpus = CORPORA[f"sst-{classes}" if spec.name == "sst" else spec.name]
    path = _fetch(corpus, cache) if source is None else source
    if path.is_file() and path.suffix.lower() != ".zip" and out is not None:
        raise InputError(f"{path}: is one file; expected an archive or a folder with --out")
    splits = corpus.splits(path, unusable)
    with nullcontext() if out is None else filled_at_once(out, force) as temporary:
        described = _describe(corpus, splits, temporary)
    missing = [] if path.name in splits else [s for s in corpus.official if s not in splits]
    if as_json:
        typer.echo(json.dumps({"splits": described, "missing": missing}, indent=2))
        return
    notes = [
        f"{split}: {line}" for split, row in described.items() for line in row["dropped_summary"]
    ]
    notes += [f"{split}: is not there" for split in missing]
    columns = {split: _corpus_figures(corpus, figures) for split, figures in described.items()}
    _print_columns(columns, f"{corpus.title}, from {path}", "\n".join(notes) or None)


def _fetch(corpus: Corpus, cache: Path | None) -> Path:
    from treelax.apps.data.text.download import ARCHIVES, cache_folder, download

    folder = cache_folder() if cache is None else cache
    archive = ARCHIVES[corpus.archive]
    if (folder / archive.name).exists():
        return download(archive, folder)
    with progress(f"fetching {archive.name}", archive.size // MB + 1, unit="MB") as bar:
        return download(archive, folder, progress=lambda done: bar.update(done // MB + 1))


def _describe(
    corpus: Corpus, splits: dict[str, Records], folder: Path | None
) -> dict[str, dict[str, Any]]:
    """Read every split; write it into a folder if there is one."""
    from treelax.apps.data.text.readers_table import write_table
    from treelax.apps.data.text.records import TextStatistics

    extra = ["genre"] if corpus.archive == "multinli" else []
    described = {}
    for split, records in splits.items():
        statistics = TextStatistics()
        with progress(f"reading {split}", unit="lines", transient=True) as bar:
            watched = statistics.watch(advancing(records, bar, every=COUNT_EVERY))
            if folder is None:
                for _ in watched:
                    pass
            else:
                write_table(folder / f"{split}.tsv.gz", watched, corpus.texts, extra=extra)
        described[split] = {
            "source": records.source,
            **statistics.summary(),
            "official": corpus.official.get(split),
            "dropped": records.report.dropped,
            "dropped_summary": records.report.lines(),
        }
    return described


def _corpus_figures(corpus: Corpus, figures: dict[str, Any]) -> dict[str, Cell]:
    count, official = figures["records"], figures["official"]
    share = "–"
    if official is not None:
        share = "100 %" if count == official else f"{100 * count / official:.1f} % of {official:,}"
    rows: dict[str, Cell] = {
        "sentences" if len(corpus.texts) == 1 else "pairs": count,
        "of the official split": share,
        **{label: figures["labels"].get(label, 0) for label in corpus.classes},
    }
    for what, key in (("words, mean", "length_mean"), ("words, most", "length_max")):
        for name, value in zip(corpus.texts, figures[key], strict=True):
            rows[what if len(corpus.texts) == 1 else f"{name}: {what}"] = value
    rows["dropped"] = sum(map(len, figures["dropped"].values()))
    return rows


@contextmanager
def filled_at_once(folder: Path, force: bool) -> Iterator[Path]:
    """Make a folder whose files are put in place together; a new one goes again after an error."""
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with TemporaryDirectory(prefix=".treelax-", dir=folder) as temporary:
            yield Path(temporary)
            _put_in_place(Path(temporary), folder, force)
    except BaseException:
        if is_new:
            with suppress(OSError):  # not empty
                folder.rmdir()
        raise


def _put_in_place(temporary: Path, folder: Path, force: bool) -> None:
    """Move finished files into the folder, unless others would be replaced; INFO comes last."""

    def is_other(there: Path) -> bool:
        if there.name == INFO:  # tells of the other files, or is not of this program
            return MADE_BY not in there.read_text(encoding="utf-8", errors="replace")
        return sha256(there) != sha256(temporary / there.name)

    files = sorted(temporary.iterdir(), key=lambda file: (file.name == INFO, file.name))
    there = [folder / file.name for file in files]
    others = [file for file in there if file.exists() and is_other(file)]
    if others and not force:
        advice = "give another --out, or --force to replace it"
        raise InputError(f"{others[0]}: is there already with other content; {advice}")
    if others:  # what INFO says must not stand beside data that is half replaced
        (folder / INFO).unlink(missing_ok=True)
    for file in files:
        os.replace(file, folder / file.name)


def _print_columns(columns: dict[str, dict[str, Cell]], title: str, note: str | None) -> None:
    """A table with a column for each set and a row for each figure."""
    names = list(next(iter(columns.values())))
    rows = [[name, *(figures[name] for figures in columns.values())] for name in names]
    table(["", *columns], rows, title, note)


register = group(
    "data",
    HELP,
    command("listops", LISTOPS_HELP, listops),
    *(
        command(
            spec.name,
            CORPUS_HELP.format(**spec._asdict()),
            with_options(check_corpus, spec, () if spec.name == "sst" else ("classes",)),
        )
        for spec in CORPUS_COMMANDS
    ),
)
