"""Readers of the corpora of the paper: SNLI, MultiNLI and the Stanford Sentiment Treebank."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Literal, Unpack

from treelax.data.input_files import NoSuchSplitError, PathLike, Source, find_split
from treelax.data.text.ptb import binary_parse_words, labelled_tree, single_spaces, unescape
from treelax.data.text.records import CheckOptions, Checks, Found, Record, Records, Report
from treelax.data.text.rows import (
    column_places,
    json_objects,
    missing_column,
    note_ragged,
    short,
    split_rows,
)
from treelax.errors import DataError
from treelax.files import Line
from treelax.ops.checks import one_of

__all__ = ["NLI_CLASSES", "SST_CLASSES", "read_multinli", "read_snli", "read_sst"]

NLI_CLASSES = ("entailment", "neutral", "contradiction")
SNLI_SPLITS = SST_SPLITS = ("train", "dev", "test")
MULTINLI_SPLITS = ("train", "dev_matched", "dev_mismatched", "test_matched", "test_mismatched")
GOLD, GENRE = "gold_label", "genre"
PARSES = ("sentence1_binary_parse", "sentence2_binary_parse")
PLAIN = ["label", "premise", "hypothesis", "genre"]
# what each annotator said; rows may end before
ANNOTATORS = {f"label{i}" for i in range(1, 6)}
NEUTRAL = "neutral"
# the label at the root of a tree to the class
FIVE = {"0": "very negative", "1": "negative", "2": NEUTRAL, "3": "positive", "4": "very positive"}
# one of five classes to one of two
BINARY = {
    "very negative": "negative",
    "negative": "negative",
    "positive": "positive",
    "very positive": "positive",
}
SST_CLASSES = {"binary": ("negative", "positive"), "five": tuple(FIVE.values())}
SST_TABLE = ["label", "sentence"]  # the first line of a table

Pair = tuple[int, str | None, tuple[str, ...], str]  # line, label, texts, genre
BLANK = ("",)  # the texts of a blank line
Sentence = tuple[int, str, str]  # line, class among five, words; both empty for a blank line


def read_snli(path: PathLike, split: str | None = None, **checks: Unpack[CheckOptions]) -> Records:
    """Read the Stanford Natural Language Inference corpus: pairs of a premise and a hypothesis.

    The words are those of the binary parses, which is how the corpus was tokenised. Pairs without
    a gold label (``-``: the annotators did not agree) are skipped and counted.

    Args:
        path: ``snli_1.0.zip``, its folder, or a file: JSON lines or a table as in the archive, or
            ``label premise hypothesis`` with tabs between. A file may be compressed.
        split: ``"train"``, ``"dev"`` or ``"test"``; a file is read whatever the split.
        checks: see `treelax.data.text.records.Checks`.

    Returns:
        The pairs, read lazily.

    Raises:
        DataError: there is no such file, or, as it is read, a line is not what it should be.
        InputError: there is no such split, or none is given and ``path`` is no file.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     count = Path(folder, "dev.tsv").write_text("neutral\\tA dog barks .\\tIt is big .")
        ...     [(r.label, r.texts) for r in read_snli(folder, "dev")]
        [('neutral', ('A dog barks .', 'It is big .'))]

    Reference: Bowman et al. 2015, A large annotated corpus for learning natural language inference.
    """
    source = _nli_split(path, split, SNLI_SPLITS, "snli_1.0", rf"snli_1\.0_{split}")
    return _pair_records(source, True, Checks(**checks))


def read_multinli(
    path: PathLike, split: str | None = None, **checks: Unpack[CheckOptions]
) -> Records:
    """Read the Multi-Genre Natural Language Inference corpus, as `read_snli` reads SNLI.

    The splits are ``"train"``, ``"dev_matched"``, ``"dev_mismatched"`` and, without labels,
    ``"test_matched"`` and ``"test_mismatched"``. A table may have the genre in a fourth column; where
    it is known it is in ``record.extra["genre"]``.

    Reference: Williams, Nangia and Bowman 2018, A broad-coverage challenge corpus for sentence
    understanding through inference.
    """
    stem = rf"multinli_[0-9.]+_{split}(?:_unlabell?ed)?"
    source = _nli_split(path, split, MULTINLI_SPLITS, "multinli_1.0", stem)
    unlabelled = (split or "").startswith("test") or "_unlabel" in source.base
    return _pair_records(source, not unlabelled, Checks(**checks))


def _nli_split(
    path: PathLike, split: str | None, splits: Sequence[str], name: str, stem: str
) -> Source:
    if split is not None:
        one_of("split", split, splits)
    patterns = [
        rf"{stem}\.jsonl",
        rf"{stem}\.txt",
        rf"{split}\.(?:tsv|jsonl|txt)",
        rf"{split}_[0-9]+k?\.tsv",  # train_116k.tsv is a part of a split
    ]
    expected = f"{name}_{split}.jsonl"
    return find_split(path, patterns, split=split, archive=f"{name}.zip", expected=expected)


def _pair_records(source: Source, labelled: bool, checks: Checks) -> Records:
    def read(report: Report) -> Iterator[Record]:
        for line, label, texts, genre in _pairs(source, labelled, checks, report):
            if label is not None and label not in NLI_CLASSES:
                if labelled and label == "-":
                    report.drop("no gold label", line)
                    continue
                if labelled:
                    raise DataError(
                        f"{source.name}, line {line}: received the label {short(label)}; expected "
                        f"{', '.join(NLI_CLASSES)}, or - for none"
                    )
                label = None
            extra = {} if genre in ("", "-") else {GENRE: genre}
            yield Record(texts, label, line, tokens=True, extra=extra)

    return Records(source.name, read, checks=checks, expected="at least one pair", file=source.file)


def _pairs(source: Source, labelled: bool, checks: Checks, report: Report) -> Iterator[Pair]:
    """The pairs of a file in any of the formats; its first line tells which."""
    lines = source.lines()
    first = next(lines, None)
    if first is None:
        return
    columns = first[1].split("\t")
    if source.suffix in (".jsonl", ".json") or first[1].startswith("{"):
        yield from _json_pairs(chain([first], lines), source.name, labelled)
    elif GOLD in columns or PARSES[0] in columns:
        texts = column_places(columns, PARSES, f"{source.name}, line {first[0]}")
        label, genre = (columns.index(name) if name in columns else None for name in (GOLD, GENRE))
        least = 1 + max(i for i, name in enumerate(columns) if name not in ANNOTATORS)
        for number, cells in split_rows(lines):
            if cells == [""]:
                yield number, None, BLANK, ""
            elif not least <= len(cells) <= len(columns):
                note_ragged(checks, report, source.name, number, len(cells), len(columns))
            else:
                yield (
                    number,
                    None if label is None else cells[label],  # a test set has none
                    tuple([binary_parse_words(cells[place]) for place in texts]),
                    "" if genre is None else cells[genre],
                )
    else:
        has_header = columns[:3] == PLAIN[:3]
        for number, cells in split_rows(lines if has_header else chain([first], lines)):
            if cells == [""]:
                yield number, None, BLANK, ""
            elif not 3 <= len(cells) <= 4:
                expected = f"3 or 4 ({', '.join(PLAIN)})"
                note_ragged(checks, report, source.name, number, len(cells), expected)
            else:
                pair = tuple([unescape(single_spaces(text)) for text in cells[1:3]])
                yield number, cells[0], pair, "".join(cells[3:])


def _json_pairs(lines: Iterator[Line], name: str, labelled: bool) -> Iterator[Pair]:
    for number, fields in json_objects(lines, name):
        if fields is None:
            yield number, None, BLANK, ""
            continue
        for field in (*PARSES, *([GOLD] if labelled else [])):
            if field not in fields:
                raise missing_column(fields, field, f"{name}, line {number}")
            if not isinstance(fields[field], str):
                raise DataError(
                    f"{name}, line {number}: received {short(fields[field])} as {field}; expected "
                    "text"
                )
        first, second = (binary_parse_words(fields[parse]) for parse in PARSES)
        yield number, fields.get(GOLD), (first, second), str(fields.get(GENRE, ""))


def read_sst(
    path: PathLike,
    split: str | None = None,
    classes: Literal["binary", "five"] = "binary",
    **checks: Unpack[CheckOptions],
) -> Records:
    """Read the sentences of the Stanford Sentiment Treebank with the labels of whole sentences.

    Args:
        path: ``trainDevTestTrees_PTB.zip``, its folder, or a file with a tree in each line; or what
            ``treelax data sst --out`` writes, where two classes cannot be read as five. A file may
            be compressed.
        split: ``"train"``, ``"dev"`` or ``"test"``; a file is read whatever the split.
        classes: ``"binary"``: labels 0 and 1 are negative, 3 and 4 positive, and 2, neutral, is
            skipped and counted; ``"five"``: very negative, negative, neutral, positive and very
            positive.
        checks: see `treelax.data.text.records.Checks`.

    Returns:
        The sentences in words, read lazily.

    Raises:
        DataError: there is no such file, or, as it is read, a line is not a tree, or a table has
            other classes; the message names file and line.
        InputError: there is no such split or no such set of classes, or no split is given and
            ``path`` is no file.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     count = Path(folder, "dev.txt").write_text("(3 (2 Not) (3 bad))\\n(2 (2 Hm) (2 .))")
        ...     records = read_sst(folder, "dev")
        ...     [(r.label, r.texts) for r in records], records.report.lines()
        ([('positive', ('Not bad',))], ['1 line dropped: neutral (2)'])

    Reference: Socher et al. 2013, Recursive deep models for semantic compositionality over a
    sentiment treebank.
    """
    one_of("classes", classes, SST_CLASSES)
    if split is not None:
        one_of("split", split, SST_SPLITS)
    source = find_split(
        path,
        [rf"{split}\.txt", rf"{split}\.(?:trees|ptb)", rf"{split}\.tsv"],
        split=split,
        archive="trainDevTestTrees_PTB.zip",
        expected=f"{split}.txt",
    )
    made = Checks(**checks)

    def read(report: Report) -> Iterator[Record]:
        lines = source.lines()
        first = next(lines, (0, ""))
        if first[1].split("\t") == SST_TABLE:
            sentences = _sst_table(lines, source.name, classes, made, report)
        else:
            sentences = _sst_trees(chain([first] if first[0] else [], lines), source.name)
        for number, label, words in sentences:
            if label == NEUTRAL and classes == "binary":
                report.drop(NEUTRAL, number)
            else:
                name = BINARY.get(label) if classes == "binary" else label
                yield Record((words,), name, number, tokens=True)

    return Records(source.name, read, checks=made, expected="at least one tree", file=source.file)


def _sst_trees(lines: Iterator[Line], name: str) -> Iterator[Sentence]:
    for number, text in lines:
        if not text.strip():
            yield number, "", ""
            continue
        root, words = labelled_tree(text, f"{name}, line {number}")
        if root not in FIVE:
            raise DataError(
                f"{name}, line {number}: received the label {root} at the root; expected 0 to 4"
            )
        yield number, FIVE[root], words


def _sst_table(
    lines: Iterator[Line], name: str, classes: str, checks: Checks, report: Report
) -> Iterator[Sentence]:
    """Sentences of a table as ``treelax data sst --out`` writes it, with two classes or five."""
    found: set[str] = set()
    for number, cells in split_rows(lines):
        if cells == [""]:
            yield number, "", ""
        elif len(cells) != len(SST_TABLE):
            note_ragged(checks, report, name, number, len(cells), len(SST_TABLE))
        elif cells[0] not in SST_CLASSES["five"]:
            raise DataError(
                f"{name}, line {number}: received the label {short(cells[0])}; expected "
                f"{', '.join(SST_CLASSES['five'])}, as treelax data sst writes them: treelax train "
                "classify reads other tables"
            )
        else:
            found.add(cells[0])
            yield number, cells[0], single_spaces(cells[1])
    if classes == "five" and found and found <= {*SST_CLASSES["binary"]}:
        raise DataError(
            f"{name}: received negative and positive only; expected five classes: write it anew "
            "with treelax data sst --classes five, or ask for two, binary"
        )


@dataclass(frozen=True, slots=True)
class Corpus:
    """A published corpus: the sizes of its splits, its columns and classes, and its reader."""

    title: str
    archive: str
    read: Callable[..., Records]
    official: Mapping[str, int]
    texts: tuple[str, ...]
    classes: tuple[str, ...]
    optional: tuple[str, ...] = ()

    def splits(self, path: Path, unusable: Found = "error") -> dict[str, Records]:
        """The splits that exist."""
        checks: CheckOptions = {
            "unusable": unusable,
            "advice": 'treelax data --unusable drop, in Python unusable="drop"',
        }
        if path.is_file() and path.suffix.lower() != ".zip":
            return {path.name: self.read(path, None, **checks)}
        found: dict[str, Records] = {}
        for split in (*self.official, *self.optional):
            with suppress(NoSuchSplitError):
                found[split] = self.read(path, split, **checks)
        return found or {"train": self.read(path, "train", **checks)}  # which raises


def _sst(title: str, classes: Literal["binary", "five"], sizes: Mapping[str, int]) -> Corpus:
    read = partial(read_sst, classes=classes)
    return Corpus(title, "sst", read, sizes, ("sentence",), SST_CLASSES[classes])


_PAIR = ("premise", "hypothesis")
CORPORA: Mapping[str, Corpus] = MappingProxyType(
    {
        "snli": Corpus(
            title="SNLI",
            archive="snli",
            read=read_snli,
            official={"train": 549_367, "dev": 9_842, "test": 9_824},
            texts=_PAIR,
            classes=NLI_CLASSES,
        ),
        "multinli": Corpus(
            title="MultiNLI",
            archive="multinli",
            read=read_multinli,
            official={"train": 392_702, "dev_matched": 9_815, "dev_mismatched": 9_832},
            texts=_PAIR,
            classes=NLI_CLASSES,
            optional=("test_matched", "test_mismatched"),
        ),
        "sst-binary": _sst(
            "SST, two classes", "binary", {"train": 6_920, "dev": 872, "test": 1_821}
        ),
        "sst-five": _sst(
            "SST, five classes", "five", {"train": 8_544, "dev": 1_101, "test": 2_210}
        ),
    }
)
