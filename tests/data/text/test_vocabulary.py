"""Words and their numbers."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treelax.apps.data.text.vocabulary import Vocabulary
from treelax.errors import InputError


@settings(max_examples=30)
@given(st.lists(st.text()), st.booleans())
def test_words_and_ids_answer_each_other(words, lower):
    vocabulary = Vocabulary(lower=lower)
    numbers = vocabulary.ids(words)
    assert [vocabulary.word(number) for number in numbers] == [
        word.lower() if lower else word for word in words
    ]
    assert sorted(set(numbers)) == list(range(1, len(vocabulary) + 1))
    assert [vocabulary.get(word) for word in words] == numbers
    assert Vocabulary(list(vocabulary), lower=lower).ids(words) == numbers


def test_new_words_get_the_next_id():
    vocabulary = Vocabulary(["b"])
    assert vocabulary.ids(["a", "b", "c", "a"]) == [2, 1, 3, 2]
    assert vocabulary.get("d") is None
    assert list(vocabulary) == ["b", "a", "c"]
    with pytest.raises(InputError, match="received the string 'dog'; expected several"):
        vocabulary.ids("dog")
