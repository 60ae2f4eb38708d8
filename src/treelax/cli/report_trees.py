"""The trees of a report: each run parses the sentences, and what it cannot do is noted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from treelax.analysis.corpora import Corpus
from treelax.analysis.parses import Parses
from treelax.analysis.study import Study, study
from treelax.analysis.subjects import SentenceSubject, load_subject
from treelax.cli.analyse_data import Wanted, parsed, shared_corpus
from treelax.cli.progress import progress
from treelax.errors import DataError, InputError
from treelax.report import RunRecord, Said, Selection, ask
from treelax.report.gallery import Gallery
from treelax.tasks.text.config import TextConfig
from treelax.training.run import Run

WITHOUT_TREES = ("none", "intra")
ONE_TEXT = ("text",)


@dataclass
class Trees:
    """What runs say of some sentences, as far as they can.

    Attributes:
        study: of the trees; None if there are none.
        gallery: of examples; None if there are none, or none are wanted.
        missing: what could not be had: of which run or file, and why.
    """

    study: Study | None = None
    gallery: Gallery | None = None
    missing: list[tuple[str, str]] = field(default_factory=list)


def study_runs(
    runs: Sequence[RunRecord], wanted: Wanted, device: torch.device, *, gallery: int
) -> Trees:
    """Parse the sentences with all runs that can; one model is in memory at a time."""
    found = Trees()
    corpus: Corpus | None = None
    selection: Selection | None = None
    parses: list[Parses] = []
    said: dict[str, dict[int, Said]] = {}
    texts: tuple[str, ...] = ONE_TEXT
    for run in runs:
        reason = _no_trees(run)
        if reason is not None:
            found.missing.append((run.name, f"{reason}."))
            continue
        subject = load_subject(run.path, name=run.name, device=device)
        try:
            corpus = shared_corpus(subject, wanted, corpus)
            own = parsed(subject, corpus)
        except (InputError, DataError) as error:
            if _is_asked_for(wanted):
                raise
            # of any number of runs, for those that lack the same are named together
            found.missing.append((run.name, f"the trees are missing: {error}."))
            continue
        parses.append(own)
        if selection is None:
            selection = Selection.of(corpus, gallery, runs=len(runs))
        if isinstance(subject, SentenceSubject) and subject.model.settings.texts == corpus.texts:
            texts = subject.model.settings.text
        said[run.name] = ask(subject, corpus, own, selection.asked, mapped=selection.mapped)
    if corpus is None or selection is None:
        return found
    with progress("comparing", transient=True):
        found.study = study(corpus, parses)
    if gallery and selection.asked:
        kind = _kind(runs, corpus, said)
        found.gallery = Gallery(corpus, selection, said, texts, kind)
    elif gallery:
        found.missing.append((corpus.name, "all sentences are too long to draw."))
    return found


def _is_asked_for(wanted: Wanted) -> bool:
    """Whether sentences were asked for by an option, which must not go unheard."""
    return wanted.data is not None or wanted.max_length is not None or wanted.split != "dev"


def _no_trees(run: RunRecord) -> str | None:
    """Why a run has no trees to show."""
    if not Run.open(run.path).best_model.exists():
        return "there is no model, so the trees are missing"
    if run.config.model.trees in WITHOUT_TREES:
        return f"there are no trees (model.trees is {run.config.model.trees!r})"
    return None


def _kind(runs: Sequence[RunRecord], corpus: Corpus, said: dict[str, dict[int, Said]]) -> str:
    """What the labels of the examples are."""
    if corpus.listops:
        return "listops"
    kinds = {
        run.config.kind for run in runs if isinstance(run.config, TextConfig) and run.name in said
    }
    return kinds.pop() if len(kinds) == 1 else "classify"
