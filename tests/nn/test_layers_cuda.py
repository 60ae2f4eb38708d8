"""The layers on a GPU: the same numbers, no waiting, one graph for a whole step.

Skipped without a CUDA device. Where there is one but no pytest, the file runs as a script:
``PYTHONPATH=src:tests python tests/nn/test_layers_cuda.py``.
"""

import copy

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from treelax.nn import ArcScorer, BiLSTM, LatentTree, Root, TreeGCN

try:
    import pytest
except ModuleNotFoundError:
    pass
else:
    pytestmark = [
        pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
        pytest.mark.filterwarnings("ignore:Synchronization debug mode:UserWarning"),
    ]

LENGTHS = [9, 3, 1, 6]


class Model(nn.Module):
    """Word vectors to word vectors by way of a tree."""

    def __init__(self, **options):
        super().__init__()
        self.encoder = BiLSTM(8, 6)
        self.root = Root(12)
        self.tree = LatentTree(ArcScorer(12, 16), **options)
        self.gcn = TreeGCN(12, 8, layers=2, dense=True)

    def forward(self, words, lengths):
        vectors = self.root(self.encoder(words, lengths))
        return self.gcn(vectors, self.tree(vectors, lengths))


def make(**options):
    torch.manual_seed(0)
    words = torch.randn(4, 9, 8)
    return Model(**options).cuda(), words.cuda(), torch.tensor(LENGTHS).cuda()


def close(got, expected, tolerance):
    scale = max(1.0, float(expected.detach().abs().max()))
    error = float((got.detach().cpu() - expected.detach().cpu()).abs().max()) / scale
    assert error < tolerance, (error, tolerance)


def test_as_on_the_cpu():
    """No noise, so the two devices compute the same; values and every gradient."""
    model, words, lengths = make(noise="none")
    model.double()
    twin = copy.deepcopy(model).cpu()
    output = model(words.double(), lengths)
    expected = twin(words.double().cpu(), lengths.cpu())
    close(output, expected, 1e-11)
    output.square().sum().backward()
    expected.square().sum().backward()
    for own, other in zip(model.parameters(), twin.parameters(), strict=True):
        close(own.grad, other.grad, 1e-11)


def test_bilstm_as_packed_sequences():
    torch.manual_seed(0)
    encoder = BiLSTM(8, 6, stacks=1).double().cuda()
    (lstm,) = encoder.stacks
    twin = nn.LSTM(8, 6, bidirectional=True, batch_first=True).double().cuda()
    with torch.no_grad():
        for name, weight in lstm.named_parameters():
            getattr(twin, name).copy_(weight[:, :-1] if "weight_ih" in name else weight)
    words = torch.randn(4, 9, 8, dtype=torch.float64, device="cuda")
    packed = pack_padded_sequence(words, torch.tensor(LENGTHS), True, enforce_sorted=False)
    expected, _ = pad_packed_sequence(twin(packed)[0], batch_first=True)
    output = encoder(words, torch.tensor(LENGTHS).cuda())
    close(output, expected, 1e-11)
    output.square().sum().backward()
    expected.square().sum().backward()
    for name, weight in lstm.named_parameters():
        grad = weight.grad[:, :-1] if "weight_ih" in name else weight.grad
        close(grad, getattr(twin, name).grad, 1e-11)


def closing_columns(encoder):
    return [w[:, -1].detach() for name, w in encoder.named_parameters() if "weight_ih" in name]


def test_the_closing_column_never_moves():
    """Nor does padding count, in half types by autocast either."""
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        torch.manual_seed(0)
        encoder = BiLSTM(8, 6).cuda()
        lengths = torch.tensor(LENGTHS).cuda()
        optimizer = torch.optim.Adam(encoder.parameters(), lr=0.01)
        before = [column.clone() for column in closing_columns(encoder)]
        for _ in range(5):
            words = torch.randn(4, 9, 8, device="cuda")
            words[1, 3:] = float("nan")
            with torch.autocast("cuda", dtype, enabled=dtype != torch.float32):
                output = encoder(words, lengths).float()
            close(output[1, :3], encoder(words[1:2, :3])[0], 1e-5 if dtype.itemsize == 4 else 0.05)
            optimizer.zero_grad()
            output.square().sum().backward()
            optimizer.step()
        for column, was in zip(closing_columns(encoder), before, strict=True):
            assert torch.equal(column, was)


def test_nothing_waits_for_the_gpu():
    for options in (
        {},
        {"noise": "sum-of-gamma", "relaxation": "entropy", "single_root": True},
        {"straight_through": True},
        {"structure": "heads", "straight_through": True},
    ):
        model, words, lengths = make(**options)
        model(words, lengths).sum().backward()  # first calls set things up
        model.zero_grad()
        model.eval()(words, lengths)
        model.train()
        torch.cuda.synchronize()
        torch.cuda.set_sync_debug_mode("error")
        try:
            model(words, lengths).sum().backward()
            model.eval()(words, lengths)
        finally:
            torch.cuda.set_sync_debug_mode("default")


def test_a_whole_step_in_a_cuda_graph():
    model, words, lengths = make(noise="none", straight_through=True)

    def step():
        output = model(words, lengths)
        return output, *torch.autograd.grad(output.square().sum(), list(model.parameters()))

    expected = [x.detach().clone() for x in step()]
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = step()
    graph.replay()
    torch.cuda.synchronize()
    for got, wanted in zip(captured, expected, strict=True):
        close(got, wanted, 1e-5)


def test_noise_is_new_in_every_replay():
    model, words, lengths = make()
    with torch.no_grad():
        model(words, lengths)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            output = model(words, lengths)
        graph.replay()
        first = output.clone()
        graph.replay()
        assert not torch.equal(first, output)


def test_straight_through_is_exact_and_compiles():
    for structure in ("projective", "heads"):
        torch.manual_seed(0)
        layer = LatentTree(ArcScorer(12, 16), structure=structure, straight_through=True).cuda()
        vectors = torch.randn(64, 10, 12, device="cuda")
        lengths = torch.randint(1, 10, (64,), device="cuda")
        torch._dynamo.reset()
        for function in (layer, torch.compile(layer, fullgraph=True)):
            tree = function(vectors, lengths)
            assert tree.detach().unique().tolist() == [0.0, 1.0]
            assert torch.equal(tree.detach().sum((-1, -2)).long(), lengths)
            grads = torch.autograd.grad(tree.square().sum(), list(layer.parameters()))
            assert all(grad.isfinite().all() for grad in grads)


def test_a_generator_of_either_device():
    model, words, lengths = make()
    vectors = model.root(model.encoder(words, lengths))
    for device in ("cpu", "cuda"):
        first, again = (
            model.tree(vectors, lengths, generator=torch.Generator(device).manual_seed(3))
            for _ in range(2)
        )
        assert torch.equal(first, again)


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            print("passed", name, flush=True)
