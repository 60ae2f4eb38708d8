"""Readers of SNLI and MultiNLI: pairs of a premise and a hypothesis.

Both corpora come as JSON lines and as tables with the same fields. Besides these a plain table is
read, ``label premise hypothesis`` and perhaps ``genre`` with tabs between, with or without a first
line that says so; its texts are tokens of the Penn Treebank.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Unpack

from treelax.data.sources import PathLike, Source, find_split
from treelax.data.text.delimited import column_places, missing_column, note_ragged, short, tab_rows
from treelax.data.text.json_lines import json_objects
from treelax.data.text.ptb import binary_parse_words, single_spaces, unescape
from treelax.data.text.records import CheckOptions, Checks, Record, Records, Report
from treelax.errors import DataError
from treelax.files import Line
from treelax.ops.checks import one_of

__all__ = ["NLI_CLASSES", "read_multinli", "read_snli"]

NLI_CLASSES = ("entailment", "neutral", "contradiction")
NO_GOLD = "no gold label"
SNLI_SPLITS = ("train", "dev", "test")
MULTINLI_SPLITS = ("train", "dev_matched", "dev_mismatched", "test_matched", "test_mismatched")
GOLD, GENRE = "gold_label", "genre"
SENTENCES = ("sentence1", "sentence2")
PARSES = ("sentence1_binary_parse", "sentence2_binary_parse")
PLAIN = ["label", "premise", "hypothesis", "genre"]
# what each annotator said; rows may end before
ANNOTATORS = {f"label{i}" for i in range(1, 6)}


def read_snli(
    path: PathLike,
    split: str | None = None,
    *,
    raw: bool = False,
    **checks: Unpack[CheckOptions],
) -> Records:
    """Read the Stanford Natural Language Inference corpus.

    The words are those of the binary parses, which is how the corpus was tokenised. Pairs without
    a gold label (``-``: the annotators did not agree) are left out and counted.

    Args:
        path: ``snli_1.0.zip``, its folder, or a file: JSON lines or a table as in the archive, or
            ``label premise hypothesis`` with tabs between. A file may be compressed.
        split: ``"train"``, ``"dev"`` or ``"test"``; a file is read whatever the split.
        raw: give the sentences as they were written, not their tokens.
        checks: see `treelax.data.text.records.Checks`.

    Returns:
        The pairs, read as they are asked for.

    Raises:
        DataError: there is no such file, or, as it is read, a line is not what it should be.
        InputError: there is no such split, or none is given and ``path`` is no file.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     count = Path(folder, "dev.tsv").write_text("neutral\\tA dog barks .\\tIt is big .")
        ...     [(r.label, r.texts) for r in read_snli(folder, "dev")]
        [('neutral', ('A dog barks .', 'It is big .'))]

    Reference: Bowman et al. 2015, A large annotated corpus for learning natural language inference.
    """
    if split is not None:
        one_of("split", split, SNLI_SPLITS)
    names = [rf"snli_1\.0_{split}\.jsonl", rf"snli_1\.0_{split}\.txt", *_plain_names(split)]
    source = find_split(
        path,
        names,
        split=split,
        archive="snli_1.0.zip",
        expected=f"snli_1.0_{split}.jsonl",
    )
    return _records(source, raw, True, Checks(**checks))


def read_multinli(
    path: PathLike,
    split: str | None = None,
    *,
    raw: bool = False,
    **checks: Unpack[CheckOptions],
) -> Records:
    """Read the Multi-Genre Natural Language Inference corpus.

    As `read_snli`; the genre is in ``record.extra["genre"]`` where it is known. The test sets,
    which came out for a contest, have no labels.

    Args:
        path: ``multinli_1.0.zip``, its folder, or a file: JSON lines or a table as in the archive,
            or ``label premise hypothesis genre`` with tabs between. A file may be compressed.
        split: ``"train"``, ``"dev_matched"`` or ``"dev_mismatched"``; ``"test_matched"`` and
            ``"test_mismatched"`` where they are; a file is read whatever the split.
        raw: give the sentences as they were written, not their tokens.
        checks: see `treelax.data.text.records.Checks`.

    Returns:
        The pairs, read as they are asked for.

    Raises:
        DataError: there is no such file, or, as it is read, a line is not what it should be.
        InputError: there is no such split, or none is given and ``path`` is no file.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder, "pairs.tsv")
        ...     count = file.write_text("neutral\\tHe runs .\\tHe is late .\\tfiction")
        ...     [r.extra["genre"] for r in read_multinli(file)]
        ['fiction']

    Reference: Williams, Nangia and Bowman 2018, A broad-coverage challenge corpus for sentence
    understanding through inference.
    """
    if split is not None:
        one_of("split", split, MULTINLI_SPLITS)
    stem = rf"multinli_[0-9.]+_{split}(?:_unlabell?ed)?"
    source = find_split(
        path,
        [rf"{stem}\.jsonl", rf"{stem}\.txt", *_plain_names(split)],
        split=split,
        archive="multinli_1.0.zip",
        expected=f"multinli_1.0_{split}.jsonl",
    )
    unlabelled = (split or "").startswith("test") or "_unlabel" in source.base
    return _records(source, raw, not unlabelled, Checks(**checks))


@dataclass(frozen=True, slots=True)
class _Pairs:
    """What the readers of all formats share."""

    where: str
    raw: bool
    labelled: bool
    checks: Checks
    report: Report

    def record(
        self, line: int, label: str | None, texts: tuple[str, str], genre: str, tokens: bool
    ) -> Record | None:
        """A record, or None if it is left out."""
        if label not in NLI_CLASSES:
            if not self.labelled:
                label = None
            elif label == "-":
                self.report.drop(NO_GOLD, line)
                return None
            else:
                raise DataError(
                    f"{self.where}, line {line}: received the label {short(label)}; expected "
                    f"{', '.join(NLI_CLASSES)}, or - for none"
                )
        extra = {} if genre in ("", "-") else {GENRE: genre}
        return Record(texts, label, line, tokens, extra)


def _plain_names(split: str | None) -> list[str]:
    # train_116k.tsv is a part of a split
    return [rf"{split}\.(?:tsv|jsonl|txt)", rf"{split}_[0-9]+k?\.tsv"]


def _records(source: Source, raw: bool, labelled: bool, checks: Checks) -> Records:
    def reader(report: Report) -> Iterator[Record]:
        return _any_format(source, _Pairs(source.name, raw, labelled, checks, report))

    return Records(
        source.name, reader, checks=checks, expected="at least one pair", file=source.file
    )


def _any_format(source: Source, pairs: _Pairs) -> Iterator[Record]:
    """The records of a file in whatever format; its first line tells which."""
    lines = source.lines()
    first = next(lines, None)
    if first is None:
        return
    number, text = first
    columns = text.split("\t")
    if source.suffix in (".jsonl", ".json") or text.startswith("{"):
        yield from _json_records(chain([first], lines), pairs)
    elif GOLD in columns or PARSES[0] in columns:
        yield from _table_records(columns, number, lines, pairs)
    else:
        with_header = columns[:3] == PLAIN[:3]
        yield from _plain_records(lines if with_header else chain([first], lines), pairs)


def _json_records(lines: Iterator[Line], pairs: _Pairs) -> Iterator[Record]:
    names = SENTENCES if pairs.raw else PARSES
    for number, fields in json_objects(lines, pairs.where):
        if fields is None:
            yield Record(("",), None, number)
            continue
        texts = []
        for name in names:
            text = fields.get(name)
            if not isinstance(text, str):
                raise _wrong_field(fields, name, f"{pairs.where}, line {number}")
            texts.append(text.strip() if pairs.raw else binary_parse_words(text))
        label = fields.get(GOLD)
        if label is None and pairs.labelled:
            raise _wrong_field(fields, GOLD, f"{pairs.where}, line {number}")
        genre = fields.get(GENRE)
        record = pairs.record(
            number,
            label if label is None else str(label),
            (texts[0], texts[1]),
            genre if isinstance(genre, str) else "",
            not pairs.raw,
        )
        if record is not None:
            yield record


def _wrong_field(fields: dict[str, object], name: str, where: str) -> DataError:
    if name in fields:
        return DataError(f"{where}: received {short(fields[name])} as {name}; expected text")
    return missing_column(fields, name, where)


def _table_records(
    columns: Sequence[str], header: int, lines: Iterator[Line], pairs: _Pairs
) -> Iterator[Record]:
    where, width = pairs.where, len(columns)
    names = SENTENCES if pairs.raw else PARSES
    places = column_places(columns, names, f"{where}, line {header}")
    if GOLD not in columns:  # a test set
        pairs = replace(pairs, labelled=False)
    gold, genre = (columns.index(name) if name in columns else None for name in (GOLD, GENRE))
    least = 1 + max(i for i, name in enumerate(columns) if name not in ANNOTATORS)
    prepare: Callable[[str], str] = str.strip if pairs.raw else binary_parse_words
    for number, cells in tab_rows(lines):
        if cells == [""]:
            yield Record(("",), None, number)
        elif not least <= len(cells) <= width:
            note_ragged(pairs.checks, pairs.report, where, number, len(cells), width)
        else:
            first, second = (prepare(cells[place]) for place in places)
            label = None if gold is None else cells[gold]
            kind = "" if genre is None else cells[genre]
            if record := pairs.record(number, label, (first, second), kind, not pairs.raw):
                yield record


def _plain_records(lines: Iterator[Line], pairs: _Pairs) -> Iterator[Record]:
    if pairs.raw:
        raise DataError(
            f"{pairs.where}: holds tokens only; expected sentences as they were written, as in the "
            "official files: leave out raw"
        )
    for number, cells in tab_rows(lines):
        if cells == [""]:
            yield Record(("",), None, number)
        elif not 3 <= len(cells) <= 4:
            expected = f"3 or 4 ({', '.join(PLAIN)})"
            note_ragged(pairs.checks, pairs.report, pairs.where, number, len(cells), expected)
        else:
            premise, hypothesis = (unescape(single_spaces(text)) for text in cells[1:3])
            genre = cells[3] if len(cells) == 4 else ""
            if record := pairs.record(number, cells[0], (premise, hypothesis), genre, True):
                yield record
