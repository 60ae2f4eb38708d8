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


def test_looking_does_not_add():
    vocabulary = Vocabulary(["a"])
    assert vocabulary.get("b") is None
    assert "b" not in vocabulary
    assert len(vocabulary) == 1


def test_case():
    assert Vocabulary().ids(["The", "the"]) == [1, 2]
    lowered = Vocabulary(lower=True)
    assert lowered.ids(["The", "the"]) == [1, 1]
    assert "THE" in lowered
    assert repr(lowered) == "Vocabulary(1 words, lower=True)"


@pytest.mark.parametrize("number", [-1, 0, 2])
def test_an_id_that_is_no_word_s(number):
    with pytest.raises(InputError, match=f"received {number}; expected the id of a word, 1 to 1"):
        Vocabulary(["a"]).word(number)


def test_one_string_is_not_taken_for_its_letters():
    with pytest.raises(InputError, match="received the string 'dog'; expected several"):
        Vocabulary().ids("dog")
    with pytest.raises(InputError, match="received the string 'dog'"):
        Vocabulary("dog")


@pytest.mark.parametrize(
    ("words", "lower", "message"),
    [
        (["a", "b", "a"], False, "received 'a' twice"),
        (["a", "A"], True, "received 'A' twice"),
        (["a", 1], False, "received 1; expected strings"),
    ],
)
def test_words_to_start_with_are_checked(words, lower, message):
    with pytest.raises(InputError, match=message):
        Vocabulary(words, lower=lower)
