"""Vectors of several files behind each other."""

import pytest
import torch

from treelax.data.text.joined_vectors import join_vectors
from treelax.data.text.vectors import FIRST_UNKNOWN, Vectors, random_vectors
from treelax.errors import InputError


def part(known, dim, unknown=2, seed=0):
    """Vectors with a row for each word, or the row that is named."""
    rows = FIRST_UNKNOWN + unknown + 1 + max(known.values(), default=-1)
    matrix = torch.randn(rows, dim, generator=torch.Generator().manual_seed(seed))
    matrix[:FIRST_UNKNOWN] = 0
    first = FIRST_UNKNOWN + unknown
    return Vectors(matrix, {word: first + row for word, row in known.items()}, unknown=unknown)


def test_every_word_has_what_the_parts_know_of_it():
    one = part({"dog": 0, "the": 1}, 3)
    two = part({"cat": 0, "the": 1}, 2, seed=1)
    both = join_vectors([one, two], normalise=False)
    assert both.dim == 5
    for word in ("dog", "cat", "the"):
        row = both.matrix[both.id(word)]
        for vectors, own in ((one, row[:3]), (two, row[3:])):
            expected = vectors.matrix[vectors.id(word)] if word in vectors else torch.zeros(())
            assert torch.equal(own, expected.expand_as(own))


def test_padding_null_and_unknown_words_stay_in_front():
    one, two = part({"dog": 0}, 3), part({"cat": 0}, 2, seed=1)
    both = join_vectors([one, two], normalise=False)
    assert not both.matrix[:FIRST_UNKNOWN].any()
    assert torch.equal(both.matrix[2:4], torch.cat((one.matrix[2:4], two.matrix[2:4]), 1))
    assert both.id("bird") == one.id("bird")


def test_other_spellings_are_found_in_each_part():
    one, two = part({"The": 0}, 1), part({"the": 0}, 1, seed=1)
    both = join_vectors([one, two], normalise=False)
    assert float(both.matrix[both.id("The")][1]) == float(two.matrix[two.id("the")])


def test_words_that_share_all_rows_share_one():
    one = part({"dog": 0, "hound": 0, "cat": 1}, 2)
    two = part({"dog": 0, "hound": 0, "cat": 0}, 2)
    both = join_vectors([one, two])
    assert both.id("dog") == both.id("hound") != both.id("cat")
    assert len(both.matrix) == 2 + 2 + 2


def test_normalised():
    both = join_vectors([random_vectors(["a"], 3), random_vectors(["b"], 2)])
    lengths = both.matrix.norm(dim=1)
    assert torch.allclose(lengths[2:], torch.ones(len(lengths) - 2))
    assert not lengths[:2].any()


def test_one_part_stays_as_it_is():
    one = part({"dog": 0, "cat": 1}, 3)
    alone = join_vectors([one], normalise=False)
    assert torch.equal(alone.matrix, one.matrix)
    assert alone.known == one.known


@pytest.mark.parametrize("parts", [[], [part({}, 1, unknown=2), part({}, 1, unknown=3)]])
def test_bad_input(parts):
    with pytest.raises(InputError, match=r"parts: received .*expected the same number"):
        join_vectors(parts)
