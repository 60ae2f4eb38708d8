"""The training data of a run as examples."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from pathlib import Path

from treelax.apps.data.input_files import one_file
from treelax.apps.data.text.readers_tagging import WORD_SUFFIXES
from treelax.apps.tasks.base import Examples, Source
from treelax.apps.tasks.sentences.inputs import CONLLU, as_example, labelled_treebank
from treelax.apps.tasks.sentences.origins import SPLITS, Origin, find_again, trees_of
from treelax.apps.tasks.text.config import SPLIT, SentenceSettings, TextConfig
from treelax.apps.tasks.text.sources import distribution, read_split
from treelax.errors import InputError
from treelax.ops.checks import one_of


def own_examples(
    config: TextConfig,
    settings: SentenceSettings,
    split: str,
    origins: Mapping[str, Origin],
    *,
    limit: int | None = None,
) -> Examples:
    """The examples of a split of the training data, if its file is still the same."""
    data = config.data
    one_of("split", split, SPLITS)
    if config.model.trees == "given" and data.trees is not None:
        trees, name = data.trees.replace(SPLIT, split), trees_of(split)
        file = find_again(trees, origins.get(name), f"file of {name}")
        return labelled_treebank(file, settings, Source(), limit)
    named = getattr(data, split) or distribution(data)
    if named is None and split not in origins:
        there = " or ".join(name for name in SPLITS if getattr(data, name))
        raise InputError(
            f"the run was trained without {split} data; expected --data FILE or, for analyse and "
            f"report, --split {there}"
        )

    def file_of(path: str) -> Path:
        file = read_split(data, split, path).file
        assert file is not None  # all readers of runs read a file
        return file

    path = find_again(named, origins.get(split), f"{split} data", file_of=file_of)
    # as the reader of tagged words finds it in an archive
    if data.format == "tagging" and one_file(path, preferred=WORD_SUFFIXES).suffix == CONLLU:
        return labelled_treebank(path, settings, Source(), limit)
    records = read_split(data, split, path)
    rows = (as_example(record, settings) for record in islice(records, limit))

    return Examples(records.source, rows, lambda: records.report.lines())
