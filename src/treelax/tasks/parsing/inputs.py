"""Sentences that a user gives a parser: CoNLL-U, texts in any other form, or its own data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice

import torch

from treelax.data.conllu import Sentence, read_conllu
from treelax.data.input_files import one_file
from treelax.errors import DataError, InputError, NoTreeError
from treelax.ops.checks import one_of
from treelax.structures import Structure
from treelax.tasks.base import Example, Examples, Source
from treelax.tasks.parsing.config import ParserConfig
from treelax.tasks.parsing.treebank import CONLLU, check_length, read_treebank
from treelax.tasks.text.inputs import SPLITS, STREAM
from treelax.tasks.text.inputs import read_examples as read_texts
from treelax.tasks.text.origins import Origin, find_again
from treelax.trees import constrain


def read_examples(config: ParserConfig, structure: Structure, source: Source) -> Examples:
    """The sentences that a user names, read as they are asked for."""
    file = source.file
    is_treebank = file is not None and source.form == "conllu"
    if file not in (None, STREAM) and source.form is None:
        is_treebank = one_file(str(file), preferred=(CONLLU,)).suffix == CONLLU
    if not is_treebank:
        if source.keep:
            raise InputError(f"--keep: {file or 'TEXT'} has no heads; expected a CoNLL-U file")
        return read_texts(config.data.sentences, source)
    file = str(file)
    name = one_file(file, preferred=(CONLLU,)).name

    def sentences() -> Iterator[Sentence]:
        empty = True
        for sentence in read_conllu(file, require_heads=source.gold, partial=not source.gold):
            check_length(sentence, name)
            if source.keep:
                check_known(sentence, structure, name)
            elif sentence.heads is not None and -1 in sentence.heads:
                sentence = replace(sentence, heads=None)
            empty = False
            yield sentence
        if empty:
            raise DataError(f"{name}: received nothing; expected at least one sentence")

    return Examples(file, map(_example, sentences()))


def check_known(sentence: Sentence, structure: Structure, file: str) -> None:
    """Refuse known heads that are in no tree."""
    if sentence.heads is None:
        return
    try:
        structure.argmax(constrain(heads=torch.tensor(sentence.heads)))
    except NoTreeError:
        known = [m for m, head in enumerate(sentence.heads, 1) if head >= 0]
        raise DataError(
            f"{file}, line {sentence.line_of(known[0])}: the heads given from here on leave "
            f"{structure.none_left}; expected heads of one tree, and _ where they are not known"
        ) from None


def own_examples(
    config: ParserConfig, origins: Mapping[str, Origin], split: str, *, limit: int | None = None
) -> Examples:
    """The sentences of a split of a run, if its file is still the same."""
    one_of("split", split, SPLITS)
    named = getattr(config.data, split)
    if named is None and split not in origins:
        raise InputError(
            f"data.{split} is none; expected a split that the run has: give --split dev, or --data "
            "FILE"
        )
    path = find_again(named, origins.get(split), f"{split} data")
    sentences = read_treebank(path, single_root=config.model.single_root)
    return Examples(path, map(_example, islice(sentences, limit)))


def _example(sentence: Sentence) -> Example:
    return Example((sentence,), sentence.line, None, sentence)
