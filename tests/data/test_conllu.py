"""CoNLL-U: what is read, what is written, and errors that name the line."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treelax.apps.data.conllu import Sentence, read_conllu, write_conllu
from treelax.errors import DataError, InputError


def row(*cells: str) -> str:
    """A line of the file from ``id form upos head deprel``."""
    number, form, upos, head, deprel = cells
    return "\t".join([number, form, "_", upos, "_", "_", head, deprel, "_", "_"])


TWO = "\n".join(
    [
        "# newdoc",
        "# sent_id = s1",
        "# text = Él vino  = del mar.",
        row("1", "Él", "PRON", "2", "nsubj"),
        row("2", "vino", "VERB", "0", "root"),
        row("3-4", "del", "_", "_", "_"),
        row("3", "de", "ADP", "5", "case"),
        row("4", "el", "DET", "5", "det"),
        row("5", "mar", "NOUN", "2", "obl"),
        row("5.1", "vino", "VERB", "_", "_"),
        row("6", ".", "PUNCT", "2", "punct"),
        "",
        "# just a remark",
        row("1", "de facto", "ADV", "0", "root"),
        "",
        "",
    ]
)
FIRST = Sentence(
    words=("Él", "vino", "de", "el", "mar", "."),
    heads=(2, 0, 5, 5, 2, 2),
    tags=("PRON", "VERB", "ADP", "DET", "NOUN", "PUNCT"),
    labels=("nsubj", "root", "case", "det", "obl", "punct"),
    metadata={"newdoc": "", "sent_id": "s1", "text": "Él vino  = del mar."},
)
SECOND = Sentence(("de facto",), (0,), ("ADV",), ("root",), {"just a remark": ""})

DOG = row("1", "Dogs", "NOUN", "2", "nsubj")
BARK = row("2", "bark", "VERB", "0", "root")


def written(folder: Path, text: str | bytes, name: str = "file.conllu") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    "text",
    [
        TWO,
        TWO.rstrip("\n"),  # no line end at the end
        TWO.replace("\n", "\r\n"),
        "\ufeff" + TWO,  # with a byte order mark
        "\n \n" + TWO.replace("\n\n", "\n\n\n\n"),  # more blank lines than needed
    ],
)
def test_variants_of_the_same_file(tmp_path: Path, text: str) -> None:
    assert list(read_conllu(written(tmp_path, text))) == [FIRST, SECOND]


def test_missing_heads_are_allowed_on_demand(tmp_path: Path) -> None:
    path = written(tmp_path, row("1", "Hi", "_", "_", "_") + "\n")
    assert list(read_conllu(path, require_heads=False)) == [Sentence(("Hi",))]
    path = written(tmp_path, DOG + "\n" + row("2", "bark", "VERB", "_", "_") + "\n")
    [sentence] = read_conllu(path, partial=True)
    assert sentence.heads is not None
    assert sentence.heads[1] == -1
    assert sentence.line_of(2) == 2


cell = st.text(st.characters(exclude_characters="\t\n\r", codec="utf-8"), min_size=1, max_size=5)
value = st.text(st.characters(exclude_characters="\n\r", codec="utf-8")).map(str.strip)


@st.composite
def sentences(draw: st.DrawFn) -> Sentence:
    n = draw(st.integers(1, 5))
    column = st.none() | st.tuples(*[cell] * n).filter(lambda values: set(values) != {"_"})
    heads = (st.integers(0, n).filter(lambda h, m=m: h != m) for m in range(1, n + 1))
    key = value.filter(lambda text: "=" not in text)
    return Sentence(
        words=draw(st.tuples(*[cell] * n)),
        heads=draw(st.none() | st.tuples(*heads)),
        tags=draw(column),
        labels=draw(column),
        metadata=draw(st.dictionaries(key, value, max_size=3)),
        xpos=draw(column),
    )


@settings(max_examples=25)
@given(st.lists(sentences(), max_size=3))
def test_whatever_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, batch: list[Sentence]
) -> None:
    path = tmp_path_factory.mktemp("round-trip") / "out.conllu.gz"
    assert write_conllu(path, batch) == len(batch)
    assert list(read_conllu(path, require_heads=False)) == batch
    assert path.read_bytes().startswith(b"\x1f\x8b")


WHOLE = """\
# newdoc
#  sent_id=a  = b
# twice = 1
# twice = 2
1-2\tdel\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
1\tde\tde\tADP\tIN\t_\t2\tcase\t2:case\t_
# a remark in the middle
2\tel\tel\tDET\tDT\tGender=Masc|Number=Sing\t0\troot\t0:root\tGloss=two  spaces
2.1\tvino\tvenir\tVERB\t_\t_\t_\t_\t0:root\t_

1\t_\t_\t_\t_\t_\t_\t_\t_\t_

"""


def test_a_file_is_rewritten_but_for_what_was_changed(tmp_path: Path) -> None:
    path = written(tmp_path, WHOLE)
    assert write_conllu(path, read_conllu(path, require_heads=False)) == 2  # from itself
    assert path.read_text() == WHOLE
    first, second = read_conllu(path, require_heads=False)
    assert (first.line, second.line) == (1, 11)
    comments = {"sent_id": "c", "twice": "3", "a remark in the middle": "", "more": ""}
    first = replace(first, heads=(0, 1), labels=None, metadata=comments)
    write_conllu(path, [first, replace(second, words=("x",))])
    expected = WHOLE.replace("# newdoc\n", "").replace("#  sent_id=a  = b", "# sent_id = c")
    expected = expected.replace("# twice = 1\n# twice = 2", "# twice = 3\n# more")
    expected = expected.replace("2\tcase", "0\t_").replace("0\troot", "1\t_")
    assert path.read_text() == expected.replace("1\t_\t_", "1\tx\t_")


def test_a_tree_put_into_the_lines(tmp_path: Path) -> None:
    first = next(read_conllu(written(tmp_path, WHOLE)))
    lines = first.with_tree(
        [0, 1], misc={"Tag": ["a", "b"]}, comments={"newdoc": "x", "label": "y"}
    )
    assert lines[:5] == ["# newdoc = x", *WHOLE.splitlines()[1:4], "# label = y"]
    assert [lines[i].split("\t")[6:] for i in (6, 8)] == [
        ["0", "_", "2:case", "Tag=a"],
        ["1", "_", "0:root", "Gloss=two  spaces|Tag=b"],
    ]
    tagged = [text.split("\t") for text in first.with_tree(None, columns={"UPOS": ["A", "B"]})]
    assert [tagged[i][3:8] for i in (5, 7)] == [
        ["A", "IN", "_", "2", "case"],
        ["B", "DT", "Gender=Masc|Number=Sing", "0", "root"],
    ]
    with pytest.raises(InputError, match="Tag: received 3; expected one for each of the 2 words"):
        first.with_tree([0, 1], misc={"Tag": ["a", "b", "c"]})


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (Sentence(("a", "")), "FORM of word 2 is ''; expected text without tabs"),
        (Sentence(("a",), labels=("x\t",)), r"DEPREL of word 1 is 'x\\t'"),
        (Sentence(("a",), (2,)), "received head 2; expected 0 to 1"),
        (Sentence(("a",), metadata={"text": "a\nb"}), r"comment 'text' = 'a\\nb'"),
        (Sentence(("\ud800",)), "cannot be written: .*surrogates"),
        (Sentence(("a",), lines=(DOG, BARK)), r"lines \(.*\): received 2; .* the 1 words"),
    ],
)
def test_what_cannot_be_written(tmp_path: Path, bad: Sentence, message: str) -> None:
    path = written(tmp_path, "the older file")
    with pytest.raises(DataError, match=message) as caught:
        write_conllu(path, [FIRST, bad])
    assert "file.conllu, sentence 2: " in str(caught.value)
    assert path.read_text() == "the older file"
    assert os.listdir(tmp_path) == [path.name]
