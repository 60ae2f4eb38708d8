"""The report of some runs as one HTML file: nothing is fetched, and no other script can run in it."""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import treelax
from treelax.apps.pictures.style import COLOURS
from treelax.apps.pictures.svg import Picture, number, without_control
from treelax.apps.table import Table, cell_text, looks_like_number
from treelax.errors import counted
from treelax.files import atomic_write
from treelax.lab.analysis.study import Study
from treelax.lab.analysis.study_tables import main_tables, more_tables
from treelax.lab.analysis.summary import summary
from treelax.lab.report import sections
from treelax.lab.report.gallery import FIRST, Gallery
from treelax.lab.report.run_records import RunRecord

MARK = "treelax report"  # by which a report is known
NAMED = 5  # runs that lack the same
BEGINNING = 2_000  # bytes of a file that are looked at for it
# attributes that many elements of pictures have alike, and the class that stands for them in the style
FACTORED = {
    **{f' color="{light}" fill="currentColor"': "" for light, _ in COLOURS.values()},
    ' fill="none" stroke="currentColor" stroke-width="1.8"': ' class="arc"',
    ' font-size="16" text-anchor="middle"': ' class="word"',
    ' font-size="12" text-anchor="middle" opacity="0.75"': ' class="tag"',
    ' font-size="11" text-anchor="middle"': ' class="label"',
}
_SPACES = re.compile(r"[\t\n\r\f\v]+")


@dataclass(frozen=True)
class Report:
    """All that a report says of some runs of any tasks."""

    runs: Sequence[RunRecord]
    study: Study | None = None
    gallery: Gallery | None = None
    missing: Sequence[tuple[str, str]] = ()  # besides what folders lack: of which run or file, what

    @property
    def notes(self) -> list[str]:
        """All that is missing, a sentence each; runs that lack the same stand together."""
        lacking: dict[str, list[str]] = {}
        lacked = ((run.name, note) for run in self.runs for note in run.missing)
        for name, what in (*lacked, *self.missing):
            lacking.setdefault(what, []).append(name)
        sentences = []
        for what, names in lacking.items():
            more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
            sentences.append(f"{', '.join(names[:NAMED])}{more}: {what}")
        return sentences

    def html(self) -> str:
        """The whole file; equal runs give equal text."""
        style, script, n = _static("report.css"), _static("report.js"), len(self.runs)
        overview = sections.overview(self.runs)
        facts = zip(overview.columns[1:], map(cell_text, overview.rows[0][1:]), strict=True)
        template = _environment().get_template("report.html")
        page: str = template.render(
            mark=f"{MARK} {treelax.__version__}",
            version=treelax.__version__,
            policy=(
                f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
                "img-src data:; base-uri 'none'; form-action 'none'"
            ),
            style=style,
            script=script,
            title=f"Report of {f'{n} runs' if n > 1 else self.runs[0].name}",
            about=self._about(),
            data=None if self.study is None else self.study.corpus.name,
            several=n > 1,
            facts=list(facts) if n == 1 else None,
            overview=overview,
            notes=self.notes,
            results=sections.results(self.runs),
            training=sections.training(self.runs),
            settings=sections.settings(self.runs),
            learned=sections.dev_figures(self.runs) if self.study is None else summary(self.study),
            trees=None if self.study is None else list(main_tables(self.study)),
            more_trees=None if self.study is None else list(more_tables(self.study)),
            gallery=self.gallery,
            first=FIRST,
            explained=sections.EXPLAINED,
        )
        return page

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the report to a file, whole or not at all."""
        with atomic_write(path, "w") as out:
            out.write(self.html())
        return Path(path)

    def _about(self) -> str:
        tasks = ", ".join(dict.fromkeys(run.task.title for run in self.runs))
        text = f"{tasks[0].upper()}{tasks[1:]}."
        if self.study is None:
            return text
        corpus = self.study.corpus
        words = sum(map(len, corpus.sentences))
        return (
            f"{text} The trees below are those of {counted(len(corpus.sentences), 'sentence')}, "
            f"{counted(words, 'word')}: {corpus.name}."
        )


def is_report(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a report, which a new one may replace."""
    with open(path, "rb") as file:
        return f'<meta name="generator" content="{MARK} '.encode() in file.read(BEGINNING)


@cache
def _environment() -> Any:
    """Templates in which all that is inserted is escaped, and holds nothing that XML cannot."""
    from jinja2 import Environment, PackageLoader
    from markupsafe import Markup

    def plain(value: Any) -> Any:
        if isinstance(value, Markup) or not isinstance(value, str):
            return value
        return without_control(_SPACES.sub(" ", value))

    def cells(content: Table) -> tuple[list[list[str]], list[bool]]:
        """The rows as text, and which columns but the first are numbers."""
        texts = [[cell_text(cell) for cell in row] for row in content.rows]
        columns = zip(*texts, strict=True) if texts else [() for _ in content.columns]
        return texts, [bool(i) and all(map(looks_like_number, c)) for i, c in enumerate(columns)]

    def what(name: str, content: Table | None = None) -> str | None:
        """What a column is."""
        return ((content and content.headings) or {}).get(name) or sections.COLUMNS.get(name)

    def svg(drawn: Picture) -> Markup:
        body = drawn.body
        # texts have no quotation marks, so that nothing else can look like this
        for attributes, short in FACTORED.items():
            body = body.replace(attributes, short)
        return Markup(body)  # made by `treelax.apps.pictures`, which escapes

    loader = PackageLoader("treelax.lab.report")
    made = Environment(loader=loader, autoescape=True, finalize=plain, trim_blocks=True)
    made.filters |= {"cells": cells, "px": number, "svg": svg, "what": what}
    made.filters["numbered"] = lambda names: [(str(i), name) for i, name in enumerate(names)]
    return made


@cache
def _static(name: str) -> str:
    return (files("treelax.lab.report") / "static" / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
