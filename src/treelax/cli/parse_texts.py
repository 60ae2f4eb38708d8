"""Where ``treelax parse`` takes its model and its texts from."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from treelax.cli.parse_models import Given
from treelax.cli.predict_files import input_records, is_treebank, source_of, words
from treelax.data.conllu import Sentence, read_conllu
from treelax.data.listops import Expression, parse_expression
from treelax.data.text.ptb import one_word
from treelax.data.text.readers_plain import read_lines_of_text, read_stream
from treelax.data.text.records import Records
from treelax.errors import DataError, InputError
from treelax.tasks.text.new_words import refuse_vectors
from treelax.training.models import BUILT_IN, TrainedModel, is_listops, load_model
from treelax.tasks.text.pretrained import SentenceModel

STREAM = "-"
DEFAULT = "listops"
CONFIG = "config.toml"  # of a run
WEIGHTS = ".safetensors"


@dataclass
class Source:
    """Where the texts come from: some of these, the first one that there is.

    Attributes:
        texts: arguments of the command line.
        file: a file, or ``-``.
        form: of the file.
        tokens: texts are words with spaces between.
        run: the model was named; else messages say which one reads.
        records: what was read, once it is.
    """

    texts: Sequence[str] = ()
    file: str | None = None
    form: str | None = None
    tokens: bool = False
    run: str | None = None
    records: Records | None = None


def split_arguments(arguments: Sequence[str]) -> tuple[str | None, list[str]]:
    """Tell the model from the texts."""
    if arguments:
        first = arguments[0]
        # not with a Path: a long text is no name of a file, which it takes for an error
        if first in BUILT_IN or os.path.isdir(first) or first.endswith(WEIGHTS):
            return first, list(arguments[1:])
        if _reads_like_a_path(first):
            what = "is a file" if os.path.isfile(first) else "does not exist"
            raise InputError(
                f"RUN: received {first!r}, which {what}; expected the folder of a run or of a saved "
                "model, a file in .safetensors, or listops; if it is a text, name the RUN before it"
            )
    return None, list(arguments)


def _reads_like_a_path(first: str) -> bool:
    """Whether a first argument must be meant as a RUN: one word with a separator.

    Without a RUN the model is that of ListOps, in whose expressions there is none.
    """
    return first.split() == [first] and bool({os.sep, os.altsep or os.sep, "/"} & set(first))


def load(
    name: str | None, device: torch.device, vectors: Sequence[Path] | None = None
) -> TrainedModel | SentenceModel:
    """Load a model of any task."""
    if name is None or is_listops(name):
        refuse_vectors(vectors, name or DEFAULT)
        return load_model(name or DEFAULT, device=device)
    return SentenceModel.from_pretrained(name, device=device, vectors=vectors)


# ------------------------------------------------------------------ ListOps


def listops_examples(source: Source) -> Iterator[tuple[int, Expression]]:
    """The expressions of a source with their lines."""
    if source.texts:
        texts = _arguments(source, 1)
        return iter([(i, _expression(text, "TEXT", source)) for i, (text,) in texts])
    source.records = _lines(source)
    name = source.records.source
    return (
        (record.line, _expression(record.texts[0], f"{name}, line {record.line}", source))
        for record in source.records
    )


def _lines(source: Source) -> Records:
    if source.file == STREAM:
        return read_stream(sys.stdin.buffer)
    return read_lines_of_text(str(source.file))


def _expression(text: str, where: str, source: Source) -> Expression:
    value, tab, expression = text.partition("\t")
    if tab and value.strip().isdigit():
        text = expression
    try:
        return parse_expression(text, where)
    except DataError as error:
        if source.run is not None:
            raise
        raise DataError(
            f"{error} (no RUN was named, so the ListOps model that comes with treelax reads it)"
        ) from error


# ------------------------------------------------------------------ sentences


def sentence_examples(model: SentenceModel, source: Source, *, gold: bool) -> Iterator[Given]:
    """The texts of a source, two for each example of a model of pairs."""
    count = model.settings.texts
    file = source.file
    is_conllu = _is_conllu(source, model)
    if gold and not is_conllu:
        raise InputError(
            "--gold: the right trees of these texts are not known; expected ListOps expressions, "
            "or a CoNLL-U file with heads (--file FILE.conllu)"
        )
    if source.texts:
        return iter([Given(i, texts) for i, texts in _arguments(source, count)])
    file = str(file)
    if is_conllu:
        return map(_given, read_conllu(file, require_heads=gold))
    source.records = input_records(file, model.settings, form=source.form, tokens=source.tokens)
    return (Given(record.line, tuple(words(record, count))) for record in source.records)


def _is_conllu(source: Source, model: SentenceModel) -> bool:
    if source.file in (None, STREAM) or source.form not in (None, "conll"):
        return False
    # the name of an archive does not say what is in it
    return is_treebank(source_of(str(source.file), source.form), model.settings, source.form)


def _given(sentence: Sentence) -> Given:
    forms = list(map(one_word, sentence.words))
    return Given(sentence.line, (forms,), (sentence.heads,), sentence)


def _arguments(source: Source, count: int) -> list[tuple[int, tuple[str, ...]]]:
    """The examples that the arguments make, numbered from 1."""
    texts = list(source.texts)
    for i, text in enumerate(texts, 1):
        if not text.strip():
            raise InputError(f"TEXT {i} is empty; expected words")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InputError(f"TEXT {i} is not UTF-8; expected it to be") from None
    if count == 1 and len(texts) > 1 and not any(len(text.split()) > 1 for text in texts):
        texts = [" ".join(texts)]  # a sentence without quotes around it
    if len(texts) % count:
        raise InputError(
            f"TEXT: received {len(texts)}; expected two for each example, the first text and the "
            "second, each in quotes, for the model is one of pairs"
        )
    return [
        (i, tuple(texts[start : start + count]))
        for i, start in enumerate(range(0, len(texts), count), 1)
    ]
