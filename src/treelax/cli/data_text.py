"""``treelax data snli``, ``multinli`` and ``sst``: check the files of a corpus, fetch them first."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from treelax.cli.commands import command
from treelax.cli.console import table
from treelax.cli.progress import advancing, progress
from treelax.errors import InputError
from treelax.files import sha256

if TYPE_CHECKING:
    from treelax.data.text.readers_corpora import Corpus
    from treelax.data.text.records import Records

COUNT_EVERY = 1000  # records; a bar takes longer to draw than one of them to read
HELP = """Check the files of {corpus}; fetch them if need be.

Reads every split and says what is in it, what is left out and why.

With --from it reads {archive}, its folder, or one file;
also what --out wrote.
Without, it fetches that archive once and keeps it.
With --out it also writes what was read, SPLIT.tsv.gz, with the columns
{columns}.

Examples:
  treelax data {name}
  treelax data {name} --from {archive} --out data/{name}
"""


From = Annotated[
    Path | None,
    typer.Option("--from", metavar="PATH", help="The archive, its folder, or a file; no network."),
]
Out = Annotated[
    Path | None, typer.Option(file_okay=False, help="Folder to write; made if need be.")
]
Cache = Annotated[
    Path | None,
    typer.Option(help="Where the archive is kept; the user's folder for caches by default."),
]
Force = Annotated[bool, typer.Option("--force", help="Replace files with other content.")]
Unusable = Annotated[
    Literal["error", "drop"],
    typer.Option(help="drop: leave out lines with too few or too many columns or words."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the figures as one JSON object.")]


def register(group: typer.Typer) -> None:
    """Add the commands for text to the group ``data``."""
    pairs = "label, premise, hypothesis"
    for name, corpus, archive, columns, function in (
        ("snli", "SNLI", "snli_1.0.zip", pairs, _pairs("snli")),
        ("multinli", "MultiNLI", "multinli_1.0.zip", f"{pairs}, genre", _pairs("multinli")),
        (
            "sst",
            "the Stanford Sentiment Treebank",
            "trainDevTestTrees_PTB.zip",
            "label, sentence",
            sst,
        ),
    ):
        text = HELP.format(name=name, corpus=corpus, archive=archive, columns=columns)
        command(name, text, function)(group)


def _pairs(name: str) -> Callable[..., None]:
    def check(
        source: From = None,
        out: Out = None,
        cache: Cache = None,
        unusable: Unusable = "error",
        force: Force = False,
        as_json: AsJson = False,
    ) -> None:
        _check_corpus(name, source, out, cache, unusable, force, as_json)

    return check


def sst(
    source: From = None,
    out: Out = None,
    cache: Cache = None,
    classes: Annotated[
        Literal["binary", "five"],
        typer.Option(help="binary: negative and positive, neutral left out. five: all five."),
    ] = "binary",
    unusable: Unusable = "error",
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Check SST; see HELP."""
    _check_corpus(f"sst-{classes}", source, out, cache, unusable, force, as_json)


def _check_corpus(
    name: str,
    source: Path | None,
    out: Path | None,
    cache: Path | None,
    unusable: Literal["error", "drop"],
    force: bool,
    as_json: bool,
) -> None:
    from treelax.data.text.readers_corpora import CORPORA

    if source is not None and cache is not None:
        raise InputError("--cache: is for fetching; expected it without --from")
    if force and out is None:
        raise InputError("--force: is for writing; expected it with --out FOLDER")
    corpus = CORPORA[name]
    path = _fetch(corpus, cache) if source is None else source
    if path.is_file() and path.suffix.lower() != ".zip" and out is not None:
        raise InputError(
            f"{path}: is one file; expected an archive or a folder to write with --out"
        )
    found = corpus.splits(path, unusable)
    if out is None:
        described = _describe(corpus, found, None)
    else:
        with folder_to_write(out) as temporary:
            described = _describe(corpus, found, temporary)
            _put_in_place(temporary, out, force)
    missing = [] if path.name in found else [s for s in corpus.official if s not in found]
    if as_json:
        typer.echo(json.dumps({"splits": described, "missing": missing}, indent=2))
    else:
        _print(corpus, described, missing, path)


def _fetch(corpus: Corpus, cache: Path | None) -> Path:
    from treelax.data.text.download import ARCHIVES, cache_folder, download

    folder = cache_folder() if cache is None else cache
    archive = ARCHIVES[corpus.archive]
    if (folder / archive.name).exists():
        return download(archive, folder)
    with progress(f"fetching {archive.name}", _megabytes(archive.size), unit="MB") as bar:
        return download(archive, folder, progress=lambda done: bar.update(_megabytes(done)))


def _megabytes(count: int) -> int:
    return -(-count // 1_000_000)


def _describe(
    corpus: Corpus, found: dict[str, Records], folder: Path | None
) -> dict[str, dict[str, Any]]:
    """Read every split; write it into a folder if there is one."""
    from treelax.data.text.readers_table import write_table
    from treelax.data.text.records import TextStatistics

    extra = ["genre"] if corpus.archive == "multinli" else []
    described = {}
    for split, records in found.items():
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


@contextmanager
def folder_to_write(folder: Path) -> Iterator[Path]:
    """Make a folder and one in it for unfinished files; a new one goes again after an error."""
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with TemporaryDirectory(prefix=".treelax-", dir=folder) as temporary:
            yield Path(temporary)
    except BaseException:
        if is_new:
            with suppress(OSError):  # not empty
                folder.rmdir()
        raise


def _put_in_place(temporary: Path, folder: Path, force: bool) -> None:
    files = sorted(temporary.iterdir())
    for file in files:
        there = folder / file.name
        if there.exists() and not force and sha256(there) != sha256(file):
            raise InputError(
                f"{there}: is there already with other content; give another --out, or --force to "
                "replace it"
            )
    for file in files:
        os.replace(file, folder / file.name)


def _print(
    corpus: Corpus, described: dict[str, dict[str, Any]], missing: list[str], path: Path
) -> None:
    columns = [_figures(corpus, figures) for figures in described.values()]
    rows = [[cells[0][0], *(figure for _, figure in cells)] for cells in zip(*columns, strict=True)]
    notes = [
        f"{split}: {line}"
        for split, figures in described.items()
        for line in figures["dropped_summary"]
    ]
    notes += [f"{split}: is not there" for split in missing]
    table(
        ["", *described], rows, title=f"{corpus.title}, from {path}", note="\n".join(notes) or None
    )


def _figures(corpus: Corpus, figures: dict[str, Any]) -> list[tuple[str, str | int | float]]:
    """The rows of the table for one split."""
    count, official = figures["records"], figures["official"]
    if official is None:
        share = "–"
    else:
        share = "100 %" if count == official else f"{100 * count / official:.1f} % of {official:,}"
    rows: list[tuple[str, str | int | float]] = [
        ("sentences" if len(corpus.texts) == 1 else "pairs", count),
        ("of the official split", share),
        *((label, figures["labels"].get(label, 0)) for label in corpus.classes),
    ]
    for what, key in (("words, mean", "length_mean"), ("words, most", "length_max")):
        for name, value in zip(corpus.texts, figures[key], strict=True):
            rows.append((what if len(corpus.texts) == 1 else f"{name}: {what}", value))
    rows.append(("dropped", sum(map(len, figures["dropped"].values()))))
    return rows
