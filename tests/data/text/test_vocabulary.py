"""Words and their numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treelax.data.text.vocabulary import PADDING, Vocabulary
from treelax.errors import InputError


@given(st.lists(st.text()), st.booleans())
def test_words_and_ids_answer_each_other(words, lower):
    vocabulary = Vocabulary(lower=lower)
    numbers = vocabulary.ids(words)
    assert [vocabulary.word(number) for number in numbers] == [
        word.lower() if lower else word for word in words
    ]
    assert sorted(set(numbers)) == list(range(1, len(vocabulary) + 1))
    assert PADDING not in numbers
    assert vocabulary.ids(words) == numbers
    assert [vocabulary.get(word) for word in words] == numbers


@given(st.lists(st.text()), st.booleans())
def test_a_vocabulary_is_restored_from_its_words(words, lower):
    old = Vocabulary(lower=lower)
    numbers = old.ids(words)
    new = Vocabulary(list(old), lower=old.lower)
    assert new.ids(words) == numbers
    assert len(new) == len(old)


def test_new_words_get_the_next_id():
    vocabulary = Vocabulary(["b"])
    assert vocabulary.word(1) == "b"
    assert vocabulary.ids(["a", "b", "c", "a"]) == [2, 1, 3, 2]
    assert vocabulary.word(3) == "c"
    assert list(vocabulary) == ["b", "a", "c"]
    assert vocabulary.get("d") is None
    assert "d" not in vocabulary


def test_what_is_asked_is_checked():
    with pytest.raises(InputError, match="received 2; expected the id of a word, 1 to 1"):
        Vocabulary(["a"]).word(2)
    with pytest.raises(InputError, match="received the string 'dog'; expected several"):
        Vocabulary().ids("dog")
    with pytest.raises(InputError, match="received 'A' twice"):
        Vocabulary(["a", "A"], lower=True)
