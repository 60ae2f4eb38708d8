"""The BiLSTM against torch's packed sequences; padding; the column that closes the gates."""

import pytest
import torch
from layer_checks import error
from tolerances import EXACT
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from treelax.nn import BiLSTM
from treelax.nn.encoders import CLOSED

LENGTHS = torch.tensor([3, 7, 1, 5])


def make(stacks=2, input_size=4, size=3) -> BiLSTM:
    """A float64 encoder whose learned weights are all away from their initial values."""
    torch.manual_seed(7)
    encoder = BiLSTM(input_size, size, stacks=stacks).double()
    with torch.no_grad():
        for name, weight in encoder.named_parameters():
            learned = weight[:, :-1] if "weight_ih" in name else weight
            learned.copy_(torch.randn_like(learned))
    return encoder


def plain(encoder: BiLSTM) -> nn.ModuleList:
    """Ordinary LSTMs of the same weights, without that column."""
    twins = nn.ModuleList()
    for lstm in encoder.stacks:
        twin = nn.LSTM(lstm.input_size - 1, lstm.hidden_size, bidirectional=True, batch_first=True)
        twin.double()
        with torch.no_grad():
            for name, weight in lstm.named_parameters():
                getattr(twin, name).copy_(weight[:, :-1] if "weight_ih" in name else weight)
        twins.append(twin)
    return twins


def packed(twins: nn.ModuleList, vectors: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    for twin in twins:
        sequence = pack_padded_sequence(vectors, lengths, batch_first=True, enforce_sorted=False)
        output, _ = twin(sequence)
        vectors, _ = pad_packed_sequence(output, batch_first=True, total_length=vectors.shape[1])
    return vectors


@pytest.mark.parametrize("stacks", [1, 3])
def test_as_packed_sequences_in_values_and_all_gradients(stacks):
    encoder = make(stacks)
    twins = plain(encoder)
    vectors = torch.randn(4, 8, 4, dtype=torch.float64)  # padding behind the longest, too
    weight = torch.randn(4, 8, 6, dtype=torch.float64)
    ours, theirs = vectors.clone().requires_grad_(), vectors.clone().requires_grad_()
    got, expected = encoder(ours, LENGTHS), packed(twins, theirs, LENGTHS)
    assert error(got, expected) < EXACT
    (got * weight).sum().backward()
    (expected * weight).sum().backward()
    assert error(ours.grad, theirs.grad) < EXACT
    pairs = zip(encoder.stacks.named_parameters(), twins.named_parameters(), strict=True)
    for (name, own), (same, other) in pairs:
        assert name == same
        grad = own.grad[:, :-1] if "weight_ih" in name else own.grad
        assert other.grad.abs().max() > 0
        assert error(grad, other.grad) < EXACT, name


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_the_closing_column_has_no_gradient_and_never_moves(dtype):
    encoder = make().to(dtype)
    start = [p.detach().clone() for p in encoder.parameters()]
    optimizer = torch.optim.Adam(encoder.parameters(), lr=0.1)
    for _ in range(5):
        optimizer.zero_grad()
        encoder(torch.randn(4, 7, 4, dtype=dtype), LENGTHS).square().sum().backward()
        optimizer.step()
    for (name, weight), old in zip(encoder.named_parameters(), start, strict=True):
        assert not torch.equal(weight, old)
        if "weight_ih" in name:
            assert torch.count_nonzero(weight.grad[:, -1]) == 0
            assert torch.equal(weight[:, -1], old[:, -1])


def test_empty_sentences_and_batches():
    """A sentence of no words is padding alone; the others do not notice. No lengths is no padding."""
    encoder, vectors = make(), torch.randn(2, 4, 4, dtype=torch.float64)
    output = encoder(vectors, torch.tensor([0, 4]))
    assert torch.count_nonzero(output[0]) == 0
    assert error(output[1], encoder(vectors[1:])[0]) < EXACT
    assert encoder(vectors[:0], LENGTHS[:0]).shape == (0, 4, 6)


def test_initial_weights():
    torch.manual_seed(0)
    for name, weight in BiLSTM(60, 100).named_parameters():
        gates = weight.detach().chunk(4)  # input, forget, cell, output
        if "bias" in name:
            assert [float(gate.unique()) for gate in gates] == [0, int("bias_ih" in name), 0, 0]
            continue
        if "weight_ih" in name:
            assert [gate[:, -1].unique().tolist() for gate in gates] == [[CLOSED], [0], [0], [0]]
            gates = [gate[:, :-1] for gate in gates]
        for gate in gates:  # Glorot's bound is by a gate's size, not that of all four
            bound = (6 / sum(gate.shape)) ** 0.5
            assert 0.98 * bound < gate.abs().max() <= bound


def test_dropout_drops_the_same_units_for_all_words_of_a_sentence():
    encoder = BiLSTM(4, 3, stacks=1, dropout=0.5)
    states = encoder(torch.randn(8, 5, 4)) == 0
    assert (states == states[:, :1]).all()
    assert 0 < states.float().mean() < 1
    assert (states[0] != states[1:]).any()
    assert (encoder.eval()(torch.randn(8, 5, 4)) != 0).all()
