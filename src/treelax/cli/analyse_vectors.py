"""The word vectors that ``treelax analyse`` gives to each of its runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from treelax.cli.console import error_console
from treelax.tasks.text.new_words import vector_files
from treelax.training.pretrained_files import read_settings

__all__ = ["vectors_of_runs"]


def vectors_of_runs(
    runs: Sequence[str], vectors: Sequence[Path] | None, *, listops: bool
) -> list[Sequence[Path] | None]:
    """The files in which each run looks up words; says which runs have no use for them.

    Where no run has, all get the files: the first one to be loaded refuses them and says why.
    """
    if not vectors or listops:
        return [vectors] * len(runs)
    # all of them before the first one is at work, which may take long
    settings = {run: read_settings(Path(run)) for run in runs}
    takers = [run for run in runs if settings[run].vectors]
    for run in takers:
        vector_files(vectors, settings[run], run)
    if not takers:
        return [vectors] * len(runs)
    for run in runs:
        if run not in takers:
            error_console.print(
                f"{run}: has no word vectors from files, so --vectors are for the other runs alone"
            )
    return [vectors if run in takers else None for run in runs]
