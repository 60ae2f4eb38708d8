"""Readers of the corpora of the paper: SNLI, MultiNLI and the Stanford Sentiment Treebank."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Literal, Unpack

from treelax.apps.data.input_files import NoSuchSplitError, PathLike, Source, find_split
from treelax.apps.data.text.ptb import labelled_tree, single_spaces, unescape
from treelax.apps.data.text.readers_table import (
    Fields,
    MissingColumnError,
    check_columns,
    fields_of,
    json_objects,
    split_rows,
)
from treelax.apps.data.text.records import CheckOptions, Record, Records, Report, Unusable
from treelax.errors import DataError, short
from treelax.files import Line
from treelax.ops.checks import one_of

__all__ = ["NLI_CLASSES", "SST_CLASSES", "read_multinli", "read_snli", "read_sst"]

NLI_CLASSES = ("entailment", "neutral", "contradiction")
SNLI_SPLITS = SST_SPLITS = ("train", "dev", "test")
MULTINLI_SPLITS = ("train", "dev_matched", "dev_mismatched", "test_matched", "test_mismatched")
GOLD, GENRE = "gold_label", "genre"
PARSES = ("sentence1_binary_parse", "sentence2_binary_parse")
PLAIN = ["label", "premise", "hypothesis", "genre"]
ANNOTATORS = {f"label{i}" for i in range(1, 6)}  # one annotator's each; rows may end before
NEUTRAL = "neutral"
# from the label at the root of a tree to one of five classes, and from that to one of two
FIVE = {"0": "very negative", "1": "negative", "2": NEUTRAL, "3": "positive", "4": "very positive"}
BINARY = {name: name.removeprefix("very ") for name in FIVE.values()}
SST_CLASSES = {"binary": ("negative", "positive"), "five": tuple(FIVE.values())}
SST_TABLE = ["label", "sentence"]  # the first line of a table


def read_snli(path: PathLike, split: str | None = None, **checks: Unpack[CheckOptions]) -> Records:
    """Read the Stanford Natural Language Inference corpus: pairs of a premise and a hypothesis.

    The words are those of the binary parses, which is how the corpus was tokenised. Pairs without
    a gold label (``-``: the annotators did not agree) are skipped and counted.

    Args:
        path: ``snli_1.0.zip``, its folder, or a file: JSON lines or a table as in the archive, or
            ``label premise hypothesis`` with tabs between. A file may be compressed.
        split: ``"train"``, ``"dev"`` or ``"test"``; a file is read whatever the split.
        checks: see `treelax.apps.data.text.records.CheckOptions`.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     count = Path(folder, "dev.tsv").write_text("neutral\\tA dog barks .\\tIt is big .")
        ...     [(r.label, r.texts) for r in read_snli(folder, "dev")]
        [('neutral', ('A dog barks .', 'It is big .'))]

    Reference: Bowman et al. 2015, A large annotated corpus for learning natural language inference.
    """
    source = _nli_split(path, split, SNLI_SPLITS, "snli_1.0", rf"snli_1\.0_{split}")
    return _pair_records(source, True, checks)


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
    return _pair_records(source, not unlabelled, checks)


def _nli_split(
    path: PathLike, split: str | None, splits: Sequence[str], name: str, stem: str
) -> Source:
    formats = [rf"{name}_{split}\.jsonl", rf"{stem}\.jsonl", rf"{stem}\.txt"]
    # train_116k.tsv is a part of a split
    plain = [rf"{split}\.(?:tsv|jsonl|txt)", rf"{split}_[0-9]+k?\.tsv"]
    return find_split(path, split, splits, f"{name}.zip", formats + plain)


def _pair_records(source: Source, labelled: bool, checks: CheckOptions) -> Records:
    """The pairs of a file in any of the formats; its first line tells which."""
    name = source.name

    def read(report: Report) -> Iterator[Record]:
        lines = source.lines()
        first = next(lines, (0, ""))
        columns = first[1].split("\t")
        needed: Sequence[str] = (*PARSES, GOLD) if labelled else PARSES
        skipped: tuple[str, ...] = ("(", ")", "")  # in a binary parse
        if source.suffix in (".jsonl", ".json") or first[1].startswith("{"):
            rows = json_objects(chain([first], lines), name)
        elif GOLD in columns or PARSES[0] in columns:
            check_columns(columns, PARSES, f"{name}, line {first[0]}")
            needed = [field for field in needed if field in columns]  # a test set has no labels
            least = 1 + max(i for i, field in enumerate(columns) if field not in ANNOTATORS)
            rows = fields_of(split_rows(lines), columns, least, report)
        else:
            skipped = ("",)
            if first[0] and columns[:3] != PLAIN[:3]:
                lines = chain([first], lines)
            rows = fields_of(split_rows(lines), (GOLD, *PARSES, GENRE), 3, report)
        for number, fields in rows:
            if fields is None:
                yield Record(("",), None, number)
                continue
            where = f"{name}, line {number}"
            for field in needed:
                if field not in fields:
                    raise MissingColumnError(fields, field, where)
                if not isinstance(fields[field], str):
                    received = f"received {short(fields[field])} as {field}"
                    raise DataError(f"{where}: {received}; expected text")
            label = fields.get(GOLD)
            if label == "-" and labelled:
                report.drop("no gold label", number)
                continue
            if label not in NLI_CLASSES:
                if GOLD in needed:
                    expected = f"{', '.join(NLI_CLASSES)}, or - for none"
                    raise DataError(
                        f"{where}: received the label {short(label)}; expected {expected}"
                    )
                label = None
            texts = tuple([unescape(single_spaces(fields[parse], skipped)) for parse in PARSES])
            genre = fields.get(GENRE, "-")
            extra = {} if genre in ("", "-") else {GENRE: str(genre)}
            yield Record(texts, label, number, tokens=True, extra=extra)

    return Records(name, read, expected="at least one pair", file=source.file, **checks)


def read_sst(
    path: PathLike,
    split: str | None = None,
    classes: Literal["binary", "five"] = "binary",
    **checks: Unpack[CheckOptions],
) -> Records:
    """Read the sentences of the Stanford Sentiment Treebank with the labels of whole sentences.

    Args:
        path: ``trainDevTestTrees_PTB.zip``, its folder, or a file with a tree in each line; or what
            ``treelax data sst --out`` writes, where two classes cannot be read as five.
        split: ``"train"``, ``"dev"`` or ``"test"``; a file is read whatever the split.
        classes: ``"binary"``: labels 0 and 1 are negative, 3 and 4 positive, and 2, neutral, is
            skipped and counted; ``"five"``: very negative to very positive.
        checks: see `treelax.apps.data.text.records.CheckOptions`.

    Reference: Socher et al. 2013, Recursive deep models for semantic compositionality over a
    sentiment treebank.
    """
    one_of("classes", classes, SST_CLASSES)
    patterns = [rf"{split}\.txt", rf"{split}\.(?:trees|ptb)", rf"{split}\.tsv"]
    source = find_split(path, split, SST_SPLITS, "trainDevTestTrees_PTB.zip", patterns)

    def read(report: Report) -> Iterator[Record]:
        lines = source.lines()
        first = next(lines, (0, ""))
        labels: set[str] = set()
        if is_table := first[1].split("\t") == SST_TABLE:
            rows = fields_of(split_rows(lines), SST_TABLE, 2, report)
        else:
            rows = _sst_trees(chain([first] if first[0] else [], lines), source.name)
        for number, fields in rows:
            if fields is None:
                yield Record(("",), None, number)
                continue
            label, words = fields.values()
            if label not in BINARY:
                expected = ", ".join(BINARY if is_table else FIVE)
                received = f"received the label {short(label)}"
                raise DataError(f"{source.name}, line {number}: {received}; expected {expected}")
            labels.add(label)
            if label == NEUTRAL and classes == "binary":
                report.drop(NEUTRAL, number)
                continue
            name = label if classes == "five" else BINARY[label]
            yield Record((single_spaces(words),), name, number, tokens=True)
        if is_table and classes == "five" and labels and labels <= {*SST_CLASSES["binary"]}:
            raise DataError(
                f"{source.name}: received negative and positive only; expected five classes: write it "
                "again with treelax data sst --classes five, or ask for binary"
            )

    return Records(source.name, read, expected="at least one tree", file=source.file, **checks)


def _sst_trees(lines: Iterator[Line], name: str) -> Iterator[Fields]:
    for number, text in lines:
        if text.strip():
            root, words = labelled_tree(text, f"{name}, line {number}")
            yield number, {"label": FIVE.get(root, root), "sentence": words}
        else:
            yield number, None


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

    def splits(self, path: Path, unusable: Unusable = "error") -> dict[str, Records]:
        """The splits that exist."""
        advice = 'treelax data --unusable drop, in Python unusable="drop"'
        checks: CheckOptions = {"unusable": unusable, "advice": advice}
        if path.is_file() and path.suffix.lower() != ".zip":
            return {path.name: self.read(path, None, **checks)}
        splits: dict[str, Records] = {}
        for split in (*self.official, *self.optional):
            with suppress(NoSuchSplitError):
                splits[split] = self.read(path, split, **checks)
        return splits or {"train": self.read(path, "train", **checks)}  # which raises


def _sst(classes: Literal["binary", "five"], title: str, *sizes: int) -> Corpus:
    read, official = partial(read_sst, classes=classes), dict(zip(SST_SPLITS, sizes, strict=True))
    return Corpus(title, "sst", read, official, ("sentence",), SST_CLASSES[classes])


_NLI: Any = {"texts": ("premise", "hypothesis"), "classes": NLI_CLASSES}
_SNLI = {"train": 549_367, "dev": 9_842, "test": 9_824}
_MULTINLI = {"train": 392_702, "dev_matched": 9_815, "dev_mismatched": 9_832}
CORPORA: Mapping[str, Corpus] = {
    "snli": Corpus("SNLI", "snli", read_snli, _SNLI, **_NLI),
    "multinli": Corpus(
        "MultiNLI", "multinli", read_multinli, _MULTINLI, **_NLI, optional=MULTINLI_SPLITS[3:]
    ),
    "sst-binary": _sst("binary", "SST, two classes", 6_920, 872, 1_821),
    "sst-five": _sst("five", "SST, five classes", 8_544, 1_101, 2_210),
}
