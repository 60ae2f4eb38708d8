"""The report of some runs as one HTML file: nothing is fetched, and no other script can run in it."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

import treelax
from treelax.analysis.study import Study
from treelax.analysis.study_tables import study_tables
from treelax.files import atomic_write
from treelax.report.gallery import Gallery
from treelax.report.markup import Html, join, table, tag
from treelax.report.overview import missing_notes, overview
from treelax.report.results import results_section
from treelax.report.runs import RunRecord
from treelax.report.settings import settings_section
from treelax.report.training import training_section

__all__ = ["MARK", "Report", "is_report"]

MARK = "treelax report"  # by which a report is known
NAMED = 5  # runs that lack the same
BEGINNING = 2_000  # bytes of a file that are looked at for it


@dataclass(frozen=True)
class Report:
    """All that a report says.

    Attributes:
        runs: all of ListOps, or all of sentences.
        study: of their trees; None if there are none.
        gallery: of examples; None if there is none.
        missing: what the report lacks besides what the folders lack: of which run or file, and what.
    """

    runs: Sequence[RunRecord]
    study: Study | None = None
    gallery: Gallery | None = None
    missing: Sequence[tuple[str, str]] = ()

    @property
    def title(self) -> str:
        """What the page is called."""
        if len(self.runs) == 1:
            return f"Report of {self.runs[0].name}"
        return f"Report of {len(self.runs)} runs"

    @property
    def notes(self) -> list[str]:
        """All that is missing, a sentence each; runs that lack the same stand together."""
        lacking: dict[str, list[str]] = {}
        for name, what in (
            *((run.name, note) for run in self.runs for note in run.missing),
            *self.missing,
        ):
            lacking.setdefault(what, []).append(name)
        found = []
        for what, names in lacking.items():
            more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
            found.append(f"{', '.join(names[:NAMED])}{more}: {what}")
        return found

    def html(self) -> str:
        """The whole file; equal runs give equal text."""
        sections = [(name, title, body) for name, title, body in self._sections() if body]
        links = [tag("li", tag("a", title, href=f"#{name}")) for name, title, _ in sections]
        body = [
            tag("a", "Skip to the report", href="#report", class_="skip"),
            tag(
                "header",
                tag("h1", self.title),
                tag("p", self._about(), class_="note"),
                tag("nav", tag("ul", *links), aria_label="Sections"),
            ),
            tag(
                "main",
                overview(self.runs),
                missing_notes(self.notes),
                *(
                    tag("section", tag("h2", title, id=name), content)
                    for name, title, content in sections
                ),
                id="report",
            ),
            tag("footer", f"Made by treelax {treelax.__version__}."),
            Html(f"<script>{_static('report.js')}</script>"),
        ]
        return f"<!DOCTYPE html>\n{tag('html', self._head(), tag('body', *body), lang='en')}\n"

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the report to a file, whole or not at all."""
        with atomic_write(path, "w") as out:
            out.write(self.html())
        return Path(path)

    def _about(self) -> str:
        kinds = ", ".join(dict.fromkeys(run.task.title for run in self.runs))
        if self.study is None:
            return f"Latent trees, {kinds}."
        corpus = self.study.corpus
        words = sum(map(len, corpus.sentences))
        return (
            f"Latent trees, {kinds}. The trees below are those of {len(corpus.sentences):,} sentences, "
            f"{words:,} words: {corpus.name}."
        )

    def _sections(self) -> Iterator[tuple[str, str, Html | None]]:
        yield "results", "Results", results_section(self.runs)
        yield "training", "Training", training_section(self.runs)
        yield "settings", "Settings", settings_section(self.runs)
        if self.study is not None:
            tables = map(table, study_tables(self.study))
            yield "grammar", "Grammar and agreement", tag("div", *tables, class_="grid tables")
        if self.gallery is not None:
            yield "gallery", "Gallery", self.gallery.html()

    def _head(self) -> Html:
        style, script = _static("report.css"), _static("report.js")
        policy = (
            f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
            "img-src data:; base-uri 'none'; form-action 'none'"
        )
        # a policy is no text of a user: escaped, its quotation marks would be none
        return join(
            [
                Html("<head>"),
                tag("meta", charset="utf-8"),
                tag("meta", name_="generator", content=f"{MARK} {treelax.__version__}"),
                Html(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
                tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
                tag("meta", name_="color-scheme", content="light dark"),
                tag("meta", name_="referrer", content="no-referrer"),
                tag("title", self.title),
                tag("link", rel="icon", href="data:,"),
                Html(f"<style>{style}</style>"),
                Html("</head>"),
            ]
        )


def is_report(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a report, which a new one may replace."""
    with open(path, "rb") as file:
        return f'<meta name="generator" content="{MARK} '.encode() in file.read(BEGINNING)


@cache
def _static(name: str) -> str:
    return (files("treelax.report") / "static" / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
