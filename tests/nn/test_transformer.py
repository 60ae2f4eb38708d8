"""Sub-words put together on the device, held against lists in Python; no library is needed."""

from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from treelax.errors import InputError
from treelax.nn.transformer import SubwordTransformer

PIECES = [[], [], [5], [6, 7], [8, 9, 10], [11] * 6]  # of ids 0 to 5; 1 has none
SIZE = 12


class Bag(nn.Module):
    """A transformer in little: a sub-word's vector knows itself, its place and all the others."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(12, SIZE, dtype=torch.float64)
        self.places = nn.Embedding(64, SIZE, dtype=torch.float64)
        self.dropout = nn.Dropout(0.5)
        self.seen = []

    def forward(self, input_ids, attention_mask):
        self.seen.append((input_ids, attention_mask))
        mask = attention_mask[..., None]
        own = self.table(input_ids) + self.places.weight[: input_ids.shape[1]]
        mean = (own * mask).sum(1, keepdim=True) / mask.sum(1, keepdim=True)
        return SimpleNamespace(last_hidden_state=self.dropout(own * mean))


def layer(pieces=PIECES, **options):
    torch.manual_seed(0)
    settings = {"prefix": [1], "suffix": [2, 3], "padding": 4} | options
    made = SubwordTransformer(Bag(), SIZE, **settings).double()
    nn.init.normal_(made.without)
    made.set_pieces(pieces)
    return made.eval()


def padded(sentences, width=None):
    width = width or max(map(len, sentences))
    ids = torch.tensor([[*words, *[0] * (width - len(words))] for words in sentences])
    return ids, torch.tensor([len(words) for words in sentences])


sentences = st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=6), min_size=1, max_size=4)


@given(sentences)
@settings(max_examples=40, deadline=None)
def test_sequences_are_those_of_lists(batch):
    ids, _ = padded(batch)
    tokens, present, word = layer().sequences(ids)
    rows = [[1, *(p for w in words for p in PIECES[w]), 2, 3] for words in batch]
    width = max(map(len, rows))
    assert tokens.tolist() == [row + [4] * (width - len(row)) for row in rows]
    assert present.tolist() == [[i < len(row) for i in range(width)] for row in rows]
    numbers = [[i for i, w in enumerate(words) for _ in PIECES[w]] for words in batch]
    assert word.tolist() == [[-1, *n, *[-1] * (width - 1 - len(n))] for n in numbers]


@given(sentences, st.sampled_from(["mean", "first"]))
@settings(max_examples=40, deadline=None)
def test_a_words_vector_is_made_of_its_subwords(batch, subwords):
    made = layer(subwords=subwords)
    ids, lengths = padded(batch)
    vectors = made(ids, lengths)
    for row, words in enumerate(batch):
        flat = [1, *(p for w in words for p in PIECES[w]), 2, 3]
        one = torch.tensor([flat])
        hidden = made.model(one, torch.ones_like(one)).last_hidden_state[0]
        start = 1
        for place, word in enumerate(words):
            own = hidden[start : start + len(PIECES[word])]
            start += len(PIECES[word])
            expected = own.mean(0) if subwords == "mean" else own[:1].sum(0)
            if not len(own):
                expected = made.without
            torch.testing.assert_close(vectors[row, place], expected)
        assert not vectors[row, len(words) :].any()


def test_padding_changes_nothing():
    made = layer()
    batch = [[2, 3], [4, 1, 5]]
    tight = made(*padded(batch))
    part = layer(PIECES[:4])
    for rows in (PIECES[4:5], PIECES[5:]):  # words are added behind the others
        part.add_pieces(rows)
    torch.testing.assert_close(part(*padded(batch)), tight)
    wide = made(*padded(batch, 7))
    torch.testing.assert_close(wide[:, :3], tight)
    longer = made(*padded(batch), 30)  # more sub-words than there are
    torch.testing.assert_close(longer, tight)
    assert made.model.seen[-1][0].shape == (2, 30)


def test_nothing_waits_for_the_device_when_the_length_is_given():
    """The meta device has no values, so whoever asks for one fails."""
    ids, lengths = (x.to("meta") for x in padded([[2, 3], [4, 1, 5]]))
    assert layer().to("meta")(ids, lengths, 16).shape == (2, 3, SIZE)


def test_what_is_refused():
    with pytest.raises(InputError, match="subwords is 'last'"):
        layer(subwords="last")
    made = layer(limit=9)
    made(*padded([[5]]))  # six, and three around them
    with pytest.raises(
        InputError, match="has 10 sub-words with special tokens; expected at most 9"
    ):
        made(*padded([[5, 2]]))


def test_a_frozen_transformer_is_no_part_of_what_is_trained_or_saved():
    open_, frozen = layer(), layer(frozen=True)
    assert set(frozen.state_dict()) == {"without"}
    assert [p.shape for p in frozen.parameters()] == [(SIZE,)]
    assert set(open_.state_dict()) > {"without", "model.table.weight"}
    batch = padded([[1, 3]])
    frozen.train()
    first, again = frozen(*batch), frozen(*batch)
    assert torch.equal(first, again)  # no dropout
    first.square().sum().backward()
    assert all(p.grad is None for p in frozen._frozen[0].parameters())
    assert frozen.without.grad.abs().sum() > 0
    open_.without.data.copy_(frozen.without)
    torch.testing.assert_close(open_(*batch), first)
    open_(*batch).square().sum().backward()
    used = open_.model.table.weight.grad.abs().sum(1) > 0
    assert used.nonzero()[:, 0].tolist() == [1, 2, 3, 6, 7]
