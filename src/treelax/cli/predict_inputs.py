"""The examples that ``treelax predict`` asks a model about, with their labels where a file has them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from treelax.cli.console import error_console
from treelax.cli.predict_files import STREAM, is_treebank, source_of, words
from treelax.data.conllu import COLUMNS, Sentence, blocks_of_lines, read_conllu, treebank
from treelax.data.input_files import Source
from treelax.data.text.ptb import one_word
from treelax.data.text.records import Records
from treelax.data.text.rows import counted, short
from treelax.errors import InputError
from treelax.tasks.text.given_trees import check_tree
from treelax.tasks.text.prediction import (
    SentenceSettings,
    known_spellings,
    words_in,
)
from treelax.tasks.text.prediction import (
    Texts as Example,
)
from treelax.tasks.text.pretrained import SentenceModel

SENT_ID = re.compile(r"#\s*sent_id\s*=\s*(.+?)\s*")
EXPECTED = "a CoNLL-U file with heads"
Label = str | tuple[str, ...]
SHARE = 10  # of the words, one in so many may be unknown before it is told
MOST = 1_000_000  # different words that are counted: texts without end must fit into memory


@dataclass(frozen=True)
class Asked:
    """An example of a file.

    Attributes:
        line: where it stands.
        texts: the words of each text, and for a model that takes given trees their heads.
        label: the right one, or the right tags, if the file has them.
        block: the lines of a CoNLL-U file that it is from; None for other texts.
    """

    line: int
    texts: Example
    label: Label | None = None
    block: Sentence | None = None


def examples_of(
    records: Records, settings: SentenceSettings, *, form: str | None = None
) -> Iterator[Asked]:
    """The examples of a file of texts, also those without words."""
    examples = _read(records, settings)
    # other forms may be one of several files in an archive, of which only their reader knows which
    if records.file is not None and form in (None, "conll"):
        source = source_of(records.file, form)
        if is_treebank(source, settings, form):
            return _with_blocks(source, examples)
    return examples


def _read(records: Records, settings: SentenceSettings) -> Iterator[Asked]:
    for record in records:
        label = record.label
        if settings.kind != "tag":  # of a column that training took for labels, as it took them
            label = record.extra.get(settings.label or "", "").strip()
        yield Asked(record.line, words(record, settings.texts), label or None)


def _with_blocks(source: Source, examples: Iterable[Asked]) -> Iterator[Asked]:
    """The examples of a CoNLL-U file with their lines in it; they stand on the first of these."""
    blocks = blocks_of_lines(source.lines())
    for each in examples:
        found = next(block for block in blocks if block[-1][0] >= each.line)
        line, lines = found[0][0], tuple(text for _, text in found)
        words = each.texts[0]
        assert not isinstance(words, Sentence)  # which only come with given trees
        if _has_columns(lines, len(words)):
            names = [match[1] for text in lines if (match := SENT_ID.fullmatch(text))]
            told = {"sent_id": names[0]} if names else {}
            yield replace(each, line=line, block=Sentence(tuple(words), metadata=told, lines=lines))
        else:
            yield each


def _has_columns(lines: Sequence[str], words: int) -> bool:
    """Whether a tree can be put into the lines of a sentence; those of CoNLL-U Plus are others."""
    rows = [text.split("\t") for text in lines if not text.startswith("#")]
    count = sum(row[0].isdigit() for row in rows)
    return 0 < words == count and all(len(row) == len(COLUMNS) for row in rows)


def examples_with_trees(
    file: str, settings: SentenceSettings, *, form: str | None, columns: Sequence[str]
) -> Iterator[Asked]:
    """The sentences of a CoNLL-U file with their heads, for a model that takes given trees."""
    given = "the model takes given trees with its texts (model.trees is given)"
    if settings.texts != 1:
        raise InputError(
            f"{file}: {given} and is of pairs, which CoNLL-U has not; expected a model of one text, "
            "or one trained with other trees"
        )
    if columns or not _is_conllu(file, form):
        raise InputError(
            f"{file}: {given}; expected a CoNLL-U file with heads, FILE.conllu, without --text: "
            "parse the texts first, or train a model with other trees"
        )
    source = treebank(file)
    for sentence in read_conllu(file):
        check_tree(sentence, f"{source.name}, line {sentence.line}")
        forms = tuple(map(one_word, sentence.words))
        is_tagger = settings.kind == "tag" and settings.label in (None, "UPOS")
        tags = sentence.tags if is_tagger else None
        yield Asked(sentence.line, (replace(sentence, words=forms),), tags, sentence)


def _is_conllu(file: str, form: str | None) -> bool:
    if file == STREAM or form is not None:
        return file != STREAM and form == "conll"
    return source_of(file, None, expected=EXPECTED).suffix == ".conllu"


class Accuracy:
    """How many labels of a file a model has found."""

    def __init__(self, labels: Sequence[str]) -> None:
        self.known = frozenset(labels)
        self.count = self.right = self.unknown = 0
        self.first_unknown = ""

    def add(self, right: Label | None, said: Label | None) -> None:
        """Count the labels of an example."""
        if right is None or said is None:
            return
        pairs = [(right, said)] if isinstance(right, str) else zip(right, said, strict=True)
        for one, other in pairs:
            self.count += 1
            self.right += one == other
            if one not in self.known:
                self.first_unknown = self.first_unknown or one
                self.unknown += 1

    def line(self, noun: str) -> str | None:
        """The accuracy in words, and how many labels the model cannot find."""
        if not self.count:
            return None
        labelled = counted(self.count, f"labelled {noun}")
        if self.unknown == self.count:
            return f"no accuracy: {'all ' if self.count > 1 else ''}{labelled} {self._unknown()}"
        share = f"accuracy: {100 * self.right / self.count:.2f} % of {labelled}"
        if not self.unknown:
            return share
        return f"{share}; {self.unknown:,} of them {self._unknown()}, counted as wrong"

    def _unknown(self) -> str:
        first = short(self.first_unknown)
        if self.unknown == 1:
            return f"has a label that the model does not know ({first})"
        return f"have labels that the model does not know (the first: {first})"


def look_up(model: SentenceModel, asked: Iterable[Asked]) -> None:
    """Look up the words of some examples, with one look into the files, and tell how many are found."""
    words = {word for each in asked for word in _words(each.texts)}
    looked_for, found = model.look_up(words)
    if looked_for:
        error_console.print(
            f"word vectors: {found:,} of {looked_for:,} words that are new to the model found"
        )


class UnknownWords:
    """Counts the different words of texts, and those of them that a model does not know."""

    def __init__(self, model: SentenceModel) -> None:
        self.model = model
        # nothing to be told of a model that has no use for files, or has them
        self.counts = bool(model.settings.vectors) and not model.vector_files
        self.seen: set[str] = set()

    def counted(self, asked: Iterable[Asked]) -> Iterator[Asked]:
        """Count the words of examples as they are read."""
        for each in asked:
            if self.counts and len(self.seen) < MOST:
                self.seen.update(known_spellings(self.model.settings, _words(each.texts)))
            yield each

    def line(self) -> str | None:
        """What there is to tell."""
        unknown = sum(word not in self.model.vectors for word in self.seen)
        if SHARE * unknown <= len(self.seen):
            return None
        names = self.model.settings.vectors
        options = " ".join(f"--vectors {name}" for name in names)
        files = "the file" if len(names) == 1 else "the files"
        return (
            f"note: {unknown:,} of {len(self.seen):,} different words are unknown to the model and "
            f"share a hundred vectors; {options}, {files} of its training, looks them up"
        )


def _words(texts: Example) -> Iterator[str]:
    for text in texts:
        yield from map(one_word, words_in(text))
