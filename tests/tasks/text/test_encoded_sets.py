"""Sets made of others: what is left of a set without its long texts, and two sets as one."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from treelax.apps.data.text.encoding import encode_records
from treelax.apps.data.text.records import Record
from treelax.apps.data.text.vocabulary import Vocabulary
from treelax.apps.tasks.text.data import joined, without_long
from treelax.errors import InputError

sentences = st.lists(
    st.tuples(st.integers(1, 5), st.integers(1, 5)).map(
        lambda sizes: tuple(" ".join("abcde"[:n]) for n in sizes)
    ),
    min_size=1,
    max_size=6,
)


@given(sentences, st.integers(1, 5))
def test_without_long_keeps_what_a_filter_of_records_keeps(texts, longest):
    records = [Record(pair, str(i), i) for i, pair in enumerate(texts)]
    short = [r for r in records if all(len(t.split()) <= longest for t in r.texts)]
    data = encode_records(records, Vocabulary(list("abcde")))
    if not short:
        with pytest.raises(InputError):
            without_long(data, longest)
        return
    kept, left_out = without_long(data, longest)
    expected = encode_records(short, Vocabulary(list("abcde"))).with_labels(data.label_names)
    for name in ("ids", "offsets", "labels", "lines"):
        assert torch.equal(getattr(kept, name), getattr(expected, name))
    assert left_out == len(records) - len(short)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=5))
def test_without_long_keeps_tags_with_their_words(sizes):
    records = [
        Record((" ".join("abcd"[:n]),), tuple("ABCD"[:n]), i, tokens=True)
        for i, n in enumerate([*sizes, 1])
    ]
    kept, _ = without_long(encode_records(records, Vocabulary()), 2)
    for i in range(len(kept)):
        tags = [kept.label_names[t] for t in kept.targets(torch.tensor([i]), 2)[0] if t >= 0]
        assert [tag.lower() for tag in tags] == kept.words(i)


def test_joined_sets_are_gathered_as_each_alone():
    vocabulary = Vocabulary()
    sets = [
        encode_records(
            [Record((f"{name} {'x ' * i}", f"{name} y"), "l", i) for i in range(3)], vocabulary
        )
        for name in ("a", "b")
    ]
    both = joined(*sets)
    for which in (0, 1):
        expected = torch.cat([data.padded(torch.arange(3), which, 4) for data in sets])
        assert torch.equal(both.padded(torch.arange(6), which, 4), expected)
