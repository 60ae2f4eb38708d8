"""Sentences that a user gives a parser: CoNLL-U, texts in any other form, or its training data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import islice

import torch

from treelax.apps.data.conllu import Sentence
from treelax.apps.data.text.records import CheckOptions
from treelax.apps.data.text.tokenizer import written_words
from treelax.apps.tasks.base import Example, Examples, Source
from treelax.apps.tasks.parsing.config import ParserConfig
from treelax.apps.tasks.parsing.evaluation import characters, surface_tokens
from treelax.apps.tasks.parsing.treebank import check_tree, read_treebank
from treelax.apps.tasks.sentences.inputs import ReadOptions, is_treebank, treebank_examples
from treelax.apps.tasks.sentences.inputs import read_examples as read_texts
from treelax.apps.tasks.sentences.origins import Origin, find_split
from treelax.errors import DataError, InputError, NoTreeError, short
from treelax.structures import Structure
from treelax.trees import constrain


def read_examples(config: ParserConfig, structure: Structure, source: Source) -> Examples:
    """The sentences that a user names, read as they are asked for."""
    if not is_treebank(source):
        if source.keep or source.scored:
            problem = (
                f"{'--keep' if source.keep else '--data'}: {source.file or 'TEXT'} has no heads"
            )
            raise InputError(f"{problem}; expected a CoNLL-U file")
        return read_texts(ReadOptions(), source, written_words)

    def example(sentence: Sentence, name: str) -> Example:
        if source.scored:
            check_tree(sentence, name, single_root=config.model.single_root)
        if source.keep:
            check_known(sentence, structure, name)
        elif sentence.heads is not None and -1 in sentence.heads:
            sentence = replace(sentence, heads=None)
        return _retokenised(sentence, name) if source.raw else _example(sentence)

    advice = "--max-length N" if source.scored else "--unusable drop" * source.keep_empty
    checks: CheckOptions = {"unusable": source.unusable or "error", "advice": advice}  # type: ignore[typeddict-item]
    whole = source.gold or source.scored
    file = str(source.file)
    return treebank_examples(file, example, checks, require_heads=whole, partial=not whole)


def _retokenised(sentence: Sentence, file: str) -> Example:
    """The text of a sentence in words of our tokenizer, with the sentence next to it."""
    text, tokens = sentence.metadata.get("text", ""), surface_tokens(sentence)
    if characters(text) != characters("".join(form for form, _ in tokens)):
        received = f"received {f'the text {short(text)}' if text else 'no text'}"
        raise DataError(
            f"{file}, line {sentence.line}: {received}; expected a comment # text = ... with all words "
            "below it for --raw"
        )
    return Example((tuple(written_words(text)),), sentence.line, None, sentence)


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
    path = find_split(config.data, split, origins)
    sentences = read_treebank(path, single_root=config.model.single_root)
    return Examples(path, map(_example, islice(sentences, limit)))


def _example(sentence: Sentence) -> Example:
    return Example((sentence,), sentence.line, None, sentence)
