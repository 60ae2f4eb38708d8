"""Files that a reader refuses: one line, which names the file and the line in it."""

from __future__ import annotations

import io
import json
import lzma
import re
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from treelax.apps.data.conllu import read_conllu
from treelax.apps.data.text.readers_corpora import read_snli, read_sst
from treelax.apps.data.text.readers_table import read_table
from treelax.apps.data.text.readers_tagging import read_tagging
from treelax.apps.data.text.vectors import load_vectors
from treelax.errors import DataError

Read = Callable[[Path], Iterable[object]]


def read_vectors(path: Path) -> Iterable[object]:
    return [load_vectors(path, ["the", "dog"])]


def row(number: str, form: str, head: str) -> str:
    """A line of CoNLL-U."""
    return "\t".join([number, form, "_", "X", "_", "_", head, "_", "_", "_"]) + "\n"


def pair(**fields: object) -> str:
    """A line of SNLI in JSON."""
    texts = dict.fromkeys(("sentence1_binary_parse", "sentence2_binary_parse"), "( A dog )")
    return json.dumps({"gold_label": "neutral", **texts, **fields}) + "\n"


def array_file() -> bytes:
    """A file of NumPy that is no archive."""
    file = io.BytesIO()
    np.save(file, np.ones(1))
    return file.getvalue()


TREE = row("1", "Dogs", "0") + row("2", "bark", "1") + "\n"
DOG = row("1", "Dogs", "2")
TSV, CSV = "sentence\tlabel\nfine\tyes\n", 'sentence,label\n"fine, really",yes\n'
JSONL = '{"sentence": "fine", "label": "yes"}\n'
NOT_TREES = ["(3 (2 It) (4 fun)", "(3 It) (4 fun)", "(3 It fun)", "(3 It (4 fun))", "((3 It))"]
NOT_TREES += ["(3 ( It) (4 fun))", "(3 (2 It) (4 ))", ")", "x" * 99, "(3 " * 20_000]
GLOVE = "the 3 4\ndog -0.5 1e-1\n"

REFUSED: dict[Read, list[tuple[str, str | bytes, str]]] = {
    read_conllu: [
        ("a", TREE + DOG + row("2", "a", "0")[:-3], "5: received 9 columns; expected 10 with"),
        ("a", TREE + DOG + row("2", "", "0"), r"5: received '2\\t\\t_.*'; .* _ for what is"),
        ("a", DOG + row("2", "a", "9" * 5000), "2: received head 9{40}; expected 0 to 2"),
        ("a", DOG + row("2", "a", "3"), "2: received head 3; expected 0 to 2"),
        ("a", DOG + row("2", "a", "2"), "2: received head 2; expected 0 to 2, not 2 itself"),
        ("a", DOG + row("3", "a", "0"), "2: received word id 3; expected 2"),
        ("a", DOG + row("two", "a", "0"), "2: received 'two.*'; expected an id such as 3"),
        ("a", row("1", "Hi", "_"), r"1: received no head \(_\); expected 0 to 1"),
        ("a", TREE + "# text = nothing", "4: received no word; expected at least one"),
    ],
    partial(read_conllu, require_heads=False): [
        ("a", DOG + row("2", "a", "_"), r"2: received no head \(_\); expected 0 to 2"),
    ],
    read_tagging: [
        ("a", "a X\nb\n", "2: received 1 column; expected 2: fix it"),
        ("a", "a\tX\nb\t\n", "2: received no tag; expected one"),
        ("a", "a\tX\n\tY\n", "2: received no word; expected one"),
        ("a", "a\nb\n", "1: received one column for words and tags; expected two"),
        ("a", DOG + row("x", "b", "0"), "2: received id 'x'"),
    ],
    partial(read_tagging, tag=2): [("a", "a X", "1: received 2 columns; .* at least 3")],
    partial(read_tagging, tag="pos"): [("a", "a X", "1: no column 'pos'; expected a number")],
    partial(read_tagging, tag="UPS"): [("a", DOG, r"1: no column 'UPS'; did you mean 'UPOS'\?")],
    read_table: [
        ("a.tsv", "label\tlabel\tsentence\n", "1: received several columns 'label'"),
        ("a.tsv", TSV + "a\n", "3: received 1 column; expected 2: fix it"),
        ("a.csv", CSV + '"a"\n', "3: received 1 column; expected 2: fix it"),
        ("a.csv", CSV + '"b,x\nc,x\n', "3: .*; expected cells separated by commas"),
        ("a.jsonl", JSONL + '{"label": ' + "9" * 5000 + "}", "2: is no JSON"),
        ("a.jsonl", JSONL + "7", "2: received 7; expected an object"),
        ("a.jsonl", '{"sentence": 7, "label": 1}', "1: received 7 as 'sentence'; expected"),
        ("a.jsonl", '{"sentence": [3], "label": 1}', r"1: received \[3\] as 'sentence'"),
        ("a.jsonl", '{"sentence": "a", "label": []}', r"1: received \[\] as 'label'"),
        ("a.jsonl", '{"sentence": "a"}', "1: no column 'label'; it has: sentence"),
        ("a.tsv", TSV.encode() + b"na\xefve", "3: is not UTF-8"),
        ("a.csv", "", ": received nothing; expected at least one record"),
    ],
    # columns that look otherwise
    partial(read_table, text="review", label=None): [
        (
            "a.csv",
            "review;stars\n",
            ".*; it has: review;stars; the columns look separated by semic",
        ),
        ("a.tsv", "review,id\n", ".*; it has: 'review,id'; the columns look separated by commas"),
        ("a.tsv", "reviews, b\tid\n", ".*; did you mean 'reviews, b'. It has: 'reviews, b', id"),
        ("a.tsv", '"review"\tid\n', '.* It has: "review", id; for cells in quotes use --set'),
    ],
    read_snli: [
        ("a.tsv", "neutral\ta\tb\nneutral\ta\n", "2: received 2 columns; expected 3 to 4: fix"),
        ("a.tsv", "maybe\ta\tb\n", "1: received the label 'maybe'; expected entailment, neutr"),
        ("a.jsonl", pair(sentence2_binary_parse=None), "1: received None as sentence2_binary"),
        ("a.jsonl", pair() + '{"gold_label": "-"}', "2: no column 'sentence1_binary_parse'; it"),
        ("a.tsv", "", ": received nothing; expected at least one pair"),
    ],
    read_sst: [
        *(
            ("a", f"(4 Superb)\n{line}", "2: received .*; expected one tree, as in .3 .2 It")
            for line in NOT_TREES
        ),
        ("a", "label\tsentence\n1\tgood", "2: received the label '1'; expected very negative"),
        ("a", "(5 (9 It) (4 fun))", "1: received the label '5'; expected 0, 1, 2, 3, 4"),
    ],
    read_vectors: [
        ("v.txt", "the 1 2\na 1 2\ndog 3\n", "3: received 1 number after a word; expected 2"),
        ("v.txt", "the 1 2\ndog 3 x4\n", "2: .*'x4'; expected 2 numbers after the word 'dog'"),
        ("v.txt", "2 3\nthe 1 2\n", "2: received 2 numbers after a word; expected 3"),
        ("v.txt", "the\n", "1: received no number; expected a word and numbers"),
        ("v.txt", "\n", ": is empty"),
        ("v.txt", "bird 1 2\n", ": has none of the 2 words, such as 'the'"),
        ("v.txt", "the 1 2\ndog 3 1e39\n", ": the vector of 'dog' is not finite in single"),
        ("v.txt.gz", GLOVE, ", after line 0: cannot be read"),
        ("v.txt.xz", lzma.compress(GLOVE.encode())[:-9], r", after line \d: cannot be read"),
        ("V.BIN.gz", "", ": is in word2vec's binary format; expected text"),
        ("v.npz", "the 0.5 1\n", ": cannot be read as .npz"),
        ("v.npz", array_file(), ": cannot be read as .npz"),
    ],
}


@pytest.mark.parametrize(
    ("read", "name", "content", "message"),
    [pytest.param(read, *case, id=case[2]) for read, cases in REFUSED.items() for case in cases],
)
def test_the_message_names_file_and_line(
    tmp_path: Path, read: Read, name: str, content: str | bytes, message: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataError) as caught:
        list(read(path))
    start = f"{path}, line " if message[0].isdigit() else str(path)
    assert re.match(re.escape(start) + message, str(caught.value)), caught.value
    assert "\n" not in str(caught.value)
    assert "pickle" not in str(caught.value)
