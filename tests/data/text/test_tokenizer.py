"""Words as nltk's Penn Treebank tokeniser cuts them, mostly without it."""

import sys

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from nltk.tokenize.treebank import TreebankWordTokenizer

from treelax.apps.data.text import tokenizer
from treelax.apps.data.text.records import Record, words_of
from treelax.apps.data.text.tokenizer import tokenize
from treelax.errors import BackendError

LIBRARY = TreebankWordTokenizer()
WHITE = [chr(c) for c in range(sys.maxunicode + 1) if chr(c).isspace()]

# fmt: off
pieces = st.sampled_from([
    "cannot", "CanNot", "g\u0131mme", "gonna", "wannabe", "lemme.", "d'ye", "'tis", "do", "n't",
    "don't", "they'll", "U.S.", "Mr.", "e-mail", "--", "-", "...", "..", ".", "''", "``", '"', "'",
    "`", "(", ")", "[", "<", "{", "$3.88", "1,000", ",", ":", ";", "?", "!", "%", "&", "@", "#",
    "café", "naïve", "\u212aelvin", "日本語", "a", "The", "dog", "x\u200by", "«", "…", "/",
])
# fmt: on
between = st.sampled_from(["", " ", "  ", "\n", *WHITE])
mixed = st.lists(st.tuples(pieces, between)).map(
    lambda parts: "".join(word + space for word, space in parts)
)
plain = st.text(st.sampled_from("abnotcgmewil .-\n\u00a0éı"))
common = st.text(st.sampled_from("ab12\u0663 .,:?!\n\u00a0"))


@settings(max_examples=60)
@given(mixed | plain | common | st.text())
@example("")
@example("a,,b")
@example("1,000: yes,\n")
@example(".")
@example(" . . ")
@example("a..")
@example("a. .")
@example("G\u0130MME")
def test_the_result_is_the_library_s(text):
    typed = text.replace("\u2018", "'").replace("\u2019", "'").replace("\u2026", "...")
    typed = typed.replace("\u201c", '"').replace("\u201d", '"')
    assert tokenize(text) == LIBRARY.tokenize(typed)


def test_tokenised_texts_are_cut_at_spaces_only():
    record = Record(("It can't . -- 1\u00a01/2", " a  Hi. "), None, 1, tokens=True)
    assert words_of(record, 0) == ["It", "can't", ".", "--", "1\u00a01/2"]
    assert words_of(record, 1) == ["a", "Hi."]
    assert words_of(Record(("Hi.", "It can't."), None, 1), 1) == ["It", "ca", "n't", "."]


def test_the_library_is_loaded_only_if_its_rules_are_needed(monkeypatch):
    monkeypatch.setitem(sys.modules, "nltk.tokenize.treebank", None)
    tokenizer._treebank.cache_clear()
    assert tokenize("A well-known man from the U.S. to Rome.")[-3:] == ["to", "Rome", "."]
    with pytest.raises(
        BackendError, match=r'needs the nltk library.*pip install "treelax\[data\]"'
    ):
        tokenize("It can't")
