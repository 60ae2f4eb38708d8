"""Batches of sentences of similar length."""

import pytest
import torch

from treelax.apps.data.batching import draw_batches, length_batches
from treelax.errors import InputError


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


LENGTHS = torch.randint(1, 60, (1000,), generator=generator(1))


def test_one_pass_has_every_example_once_and_the_seed_decides():
    batches = draw_batches(LENGTHS, 10, generator=generator())
    assert batches.shape == (100, 10)
    assert batches.flatten().sort().values.tolist() == list(range(1000))
    first, again, other = (draw_batches(LENGTHS, 8, generator=generator(s)) for s in (3, 3, 4))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_lengths_in_a_batch_are_alike_but_pools_are_mixed():
    spread = {}
    for pool in (1, 20):
        batches = draw_batches(LENGTHS, 10, generator=generator(), pool=pool)
        of = LENGTHS[batches]
        spread[pool] = float((of.amax(1) - of.amin(1)).float().mean())
    assert spread[20] < spread[1] / 4
    # neighbours in time are not neighbours in length
    means = of.float().mean(1)
    assert float(torch.corrcoef(torch.stack((means[1:], means[:-1])))[0, 1].abs()) < 0.3


def test_more_batches_than_a_pass_start_again_and_none_is_refused():
    with pytest.raises(InputError, match="no examples"):
        draw_batches(LENGTHS[:0], 4, generator=generator())
    batches = draw_batches(LENGTHS[:30], 10, generator=generator(), batches=7)
    counts = batches.flatten().bincount(minlength=30)
    assert batches.shape == (7, 10)
    assert set(counts.tolist()) <= {2, 3}


def test_pairs_are_sorted_by_the_longer_sentence():
    lengths = torch.tensor([[1, 9], [2, 2], [9, 1], [3, 1]])
    batches = draw_batches(lengths, 2, generator=generator())
    assert sorted(sorted(b) for b in batches.tolist()) == [[0, 2], [1, 3]]


def test_batches_by_length_stay_within_their_limits():
    lengths = LENGTHS.tolist()
    batches = list(length_batches(lengths, most_arcs=10_000, most_sentences=30, texts=2))
    assert sorted(place for batch in batches for place in batch) == list(range(1000))
    for batch in batches:
        longest = max(lengths[place] for place in batch)
        assert len(batch) <= 30
        assert len(batch) == 1 or 2 * len(batch) * (longest + 1) ** 2 <= 10_000
    assert list(length_batches({7: 3, 9: 1})) == [[9, 7]]
