"""The GPU: Triton against the float64 reference loops, and the layers as on the CPU, without waiting.

Skipped without a CUDA device. Where there is one but no pytest, the file runs as a script:
``PYTHONPATH=src:tests python tests/test_cuda.py``.
"""

import copy
from itertools import product

import torch
from tolerances import largest_error
from torch import nn

import treelax as tx
from treelax import ProjectiveTrees, ops
from treelax.errors import BackendError, InputError, NoTreeError
from treelax.nn import ArcScorer, BiLSTM, LatentTree, Root, TreeGCN
from treelax.noise import perturbation
from treelax.ops.backend import Batch
from treelax.ops.eisner import reference

try:
    import pytest
except ModuleNotFoundError:
    pass
else:
    pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")

SIZES = (1, 2, 3, 5, 17, 33)
GPU_BACKENDS = ("triton", "cuda")
RELAXATIONS = ("softmax", "entropy")
ROOTS = (False, True)
STRUCTURES = (
    tx.Projective(),
    tx.Projective(single_root=True),
    tx.NonProjective(),
    tx.NonProjective(single_root=True),
    tx.Binary(),
    tx.Labelled(tx.Projective()),
    tx.Labelled(tx.Binary()),
)


def make(n, batch=5, dtype=torch.float64, scale=2.0):
    generator = torch.Generator().manual_seed(n)
    scores = scale * torch.randn(batch, n + 1, n + 1, dtype=torch.float64, generator=generator)
    lengths = torch.randint(1, n + 1, (batch,), generator=generator)
    lengths[0] = n
    upstream = torch.randn(scores.shape, dtype=torch.float64, generator=generator)
    return scores.to(dtype), lengths, upstream.to(dtype)


def close(got, expected, tolerance):
    error = largest_error(got.detach().cpu(), expected.detach().cpu())
    assert error < tolerance, (error, tolerance)


def captured(step):
    """What a step returns when it is replayed from a CUDA graph."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = step()
    graph.replay()
    torch.cuda.synchronize()
    return results


def raises(error, call):
    try:
        call()
    except error as caught:
        said = str(caught)
    else:
        raise AssertionError(f"no {error.__name__}")
    assert "expected" in said or error is BackendError


def test_soft_trees_and_gradients():
    for n, relaxation, single_root in product(SIZES, RELAXATIONS, ROOTS):
        scores, lengths, upstream = make(n)
        options = (relaxation, single_root)
        given = Batch(scores, lengths, *options)
        tree, value, saved = reference.soft_tree(given, True)
        grad_value = upstream[:, 0, 1].contiguous()
        grad = reference.soft_tree_backward(upstream, grad_value, saved, given)
        for dtype, tolerance in ((torch.float64, 1e-11), (torch.float32, 1e-5)):
            for backend in GPU_BACKENDS:
                s = scores.to("cuda", dtype).requires_grad_()
                got, got_value, _ = torch.ops.treelax.soft_tree(
                    s, lengths.cuda(), "eisner", *options, backend, True, True
                )
                close(got, tree, tolerance)
                close(got_value, value, tolerance)
                (got_grad,) = torch.autograd.grad(
                    (got, got_value), s, (upstream.to(s), grad_value.to(s))
                )
                close(got_grad, grad, 10 * tolerance)


PATHS = (
    (tx.Chain(), (70, 5, 5), [70, 31, 0, 1]),
    (tx.Chain(), (9, 130, 130), [9, 3, 0, 1]),
    (tx.Segments(7), (60, 7, 3), [60, 30, 0, 1]),
    (tx.Segments(30, transitions=True), (40, 30, 20, 20), [40, 39, 0, 1]),
    (tx.Alignment(), (60, 43, 3), [[60, 43], [12, 43], [1, 1], [60, 1]]),
)


def test_paths_and_their_gradients():
    """Chains, segments and alignments as in plain PyTorch, and bits that no neighbour changes."""
    for (structure, shape, lengths), dtype in product(PATHS, (torch.float64, torch.float32)):
        tolerance = 1e-10 if dtype == torch.float64 else 1e-5
        generator = torch.Generator().manual_seed(0)
        scores = 3 * torch.randn(4, *shape, dtype=torch.float64, generator=generator)
        scores[0][torch.rand(shape, generator=generator) < 0.05] = float("-inf")
        scores[0].view(-1)[0] = 0  # all alignments have it
        upstream = torch.randn(4, *shape, dtype=torch.float64, generator=generator)
        scores, upstream = scores.to("cuda", dtype), upstream.to("cuda", dtype)
        lengths = torch.tensor(lengths, device="cuda")
        for relaxation in RELAXATIONS:
            results = []
            for backend in ("diagonal", "triton"):
                leaf = scores.clone().requires_grad_()
                soft = structure.relaxed(leaf, lengths, relaxation=relaxation, backend=backend)
                results.append((soft, *torch.autograd.grad(soft, leaf, upstream)))
            for got, expected in zip(*results, strict=True):
                close(got, expected, 10 * tolerance)
        found = []
        for backend in ("diagonal", "triton"):
            dist = structure(scores.round(), lengths, backend=backend)
            found.append((dist.log_partition, dist.entropy(), dist.mode))
        for got, expected in zip(*found, strict=True):
            close(got, expected, 10 * tolerance)
        dist = structure(scores, lengths)
        samples = dist.sample((50,), generator=torch.Generator("cuda").manual_seed(0))
        assert (dist.support.check(samples)).all()
        alone = structure(scores[1:2], lengths[1:2]).marginals
        assert torch.equal(alone[0], dist.marginals[1])


def test_paths_in_cuda_graphs():
    for structure, shape, lengths in PATHS:
        scores = torch.randn(4, *shape, device="cuda", requires_grad=True)
        dist = structure(scores, torch.tensor(lengths, device="cuda"))
        weights = torch.randn(4, *shape, device="cuda")

        def step(scores=scores, structure=structure, dist=dist, weights=weights):
            again = structure(scores, dist.lengths)
            losses = (again.marginals * weights).sum() + again.log_partition.sum()
            return losses, *torch.autograd.grad(losses, scores), again.mode

        expected = [x.detach().clone() for x in step()]
        for got, wanted in zip(captured(step), expected, strict=True):
            close(got, wanted, 1e-5)


def test_long_chains_keep_their_digits():
    scores = 3 * torch.randn(2, 4096, 32, 32, device="cuda") - 10_000
    precise = tx.Chain()(scores.double(), backend="diagonal")
    close(tx.Chain()(scores).marginals, precise.marginals, 1e-5)
    assert (tx.Chain()(scores).marginals.sum((1, 2, 3)) - 4096).abs().max() < 1e-2


def test_long_sentences_and_large_batches():
    """Every shape of the CUDA kernels and Triton's in float64, and both in float32 against that."""
    shapes = ((3, 90), (2, 260), (600, 20), (40, 100), (20, 100), (150, 100))
    bars = {torch.float64: 1e-9, torch.float32: 1e-4}
    for batch, n in shapes:
        scores, _, upstream = (x.cuda() for x in make(n, batch, torch.float32))
        for relaxation, single_root in product(RELAXATIONS, ROOTS):
            results = []
            for dtype, backend in product(bars, GPU_BACKENDS):
                s = scores.to(dtype, copy=True).requires_grad_()
                options = {"relaxation": relaxation, "single_root": single_root}
                tree = ops.soft_tree(s, backend=backend, **options)
                results.append((tree, torch.autograd.grad(tree, s, upstream.to(dtype))[0]))
            tree, grad = results[0]
            for got, got_grad in results[1:]:
                close(got, tree, bars[got.dtype])
                close(got_grad / grad.abs().max(), grad / grad.abs().max(), bars[got.dtype])


def test_cuda_is_chosen_and_agrees_with_the_other_backends():
    scores, lengths, _ = (x.cuda() for x in make(4))
    scores.requires_grad_()
    chosen = ops.soft_tree(scores, lengths)
    (grad,) = torch.autograd.grad(chosen.square().sum(), scores)
    assert torch.equal(chosen, ops.soft_tree(scores, lengths, backend="cuda"))
    for backend in ("reference", "diagonal", "triton"):
        tree = ops.soft_tree(scores, lengths, backend=backend)
        close(tree, chosen, 1e-11)
        close(torch.autograd.grad(tree.square().sum(), scores)[0], grad, 1e-10)
        value = ops.log_partition(scores, lengths, backend=backend)
        close(value, ops.log_partition(scores, lengths), 1e-11)
    raises(BackendError, lambda: ops.best_tree(scores, lengths, backend="native"))


def test_structures_as_on_the_cpu():
    for structure, n in product((*STRUCTURES, tx.Spanning()), SIZES):
        generator = torch.Generator().manual_seed(n)
        shape = (5, n + structure.rooted, n + structure.rooted, 2)[: 1 + structure.event_dim]
        scores = 2 * torch.randn(shape, dtype=torch.float64, generator=generator)
        lengths = torch.tensor([n, 1, (n + 1) // 2, n, 0])
        upstream = torch.randn(shape, dtype=torch.float64, generator=generator)
        results = []
        for device in ("cpu", "cuda"):
            s = scores.to(device).requires_grad_()
            d = structure(s, lengths.to(device))
            results.append(
                (
                    d.mode,
                    d.sample((3,), generator=torch.Generator().manual_seed(1)),
                    d.top_k(2).trees,
                    d.marginals,
                    d.log_partition,
                    torch.autograd.grad((d.marginals * upstream.to(device)).sum(), s)[0],
                )
            )
        for place, (expected, got) in enumerate(zip(*results, strict=True)):
            if place < 3:
                assert torch.equal(got.cpu(), expected), (structure, n, place)
            close(got, expected, 1e-10)
        single = structure(scores.float().cuda(), lengths.cuda())
        close(single.marginals, results[0][3], 1e-5)
        close(single.log_partition, results[0][4], 1e-3)


def test_structures_in_cuda_graphs():
    """Bit for bit, in every run."""
    for structure in STRUCTURES:
        shape = (16, 20 + structure.rooted, 20 + structure.rooted, 2)[: 1 + structure.event_dim]
        scores = torch.randn(shape, device="cuda", requires_grad=True)
        lengths = torch.arange(1, 17, device="cuda")

        def step(structure=structure, scores=scores, lengths=lengths):
            d = structure(scores, lengths)
            grad = torch.autograd.grad(d.marginals.square().sum(), scores)[0]
            return d.marginals.detach(), d.mode, d.top_k(2).trees, grad

        expected = step()
        for got, wanted in zip(captured(step), expected, strict=True):
            assert torch.equal(got, wanted), structure


def test_sparsemap_as_on_the_cpu():
    for structure, n in product((tx.Heads(), *STRUCTURES), (1, 2, 5, 12)):
        generator = torch.Generator().manual_seed(n)
        shape = (4, n + structure.rooted, n + structure.rooted, 2)[: 1 + structure.event_dim]
        scores = torch.randn(shape, dtype=torch.float64, generator=generator)
        lengths = torch.tensor([n, 1, (n + 1) // 2, 0])
        upstream = torch.randn(shape, dtype=torch.float64, generator=generator)
        results = []
        for device in ("cpu", "cuda"):
            s = scores.to(device).requires_grad_()
            found = structure.sparsemap(s, lengths.to(device))
            (grad,) = torch.autograd.grad((found.tree * upstream.to(device)).sum(), s)
            trees, weights = found.support
            mixed = (trees * weights.reshape(*weights.shape, *(1,) * structure.event_dim)).sum(0)
            results.append((found.tree, found.gap, grad, mixed))
        for got, expected in zip(results[1], results[0], strict=True):
            close(got, expected, 1e-7)
        single = structure.sparsemap(scores.float().cuda(), lengths.cuda())
        close(single.tree, results[0][0], 1e-4)


def test_gradients_of_sparsemap_have_all_directions():
    """Those of the CPU, which are held against finite differences."""
    plain = [structure for structure in STRUCTURES if structure.event_dim == 2]
    for structure, (n, scale) in product(plain, ((20, 0.3), (40, 1.0), (40, 0.1))):
        generator = torch.Generator().manual_seed(n)
        shape = (2, n + structure.rooted, n + structure.rooted)
        scores = scale * torch.randn(shape, dtype=torch.float64, generator=generator)
        upstream = torch.randn(shape, dtype=torch.float64, generator=generator)
        grads = []
        for device in ("cpu", "cuda"):
            s = scores.to(device).requires_grad_()
            tree = structure.sparsemap(s).tree
            grads.append(torch.autograd.grad((tree * upstream.to(device)).sum(), s)[0])
            alone = torch.vmap(lambda x: structure.sparsemap(x).tree)(s.detach())  # noqa: B023
            close(alone, tree.detach(), 1e-10)
        close(grads[1], grads[0], 1e-7)


ESTIMATORS = (
    tx.Relaxed(),
    tx.StraightThrough(),
    tx.StraightThrough(gradient="identity"),
    tx.Marginals(),
    tx.SparseMAP(),
    tx.SPIGOT(),
    tx.SPIGOT(projection="polytope"),
    tx.SPIGOT(form="ce"),
    tx.SPIGOT(form="eg"),
    tx.IMLE(),
    tx.Perturbed(),
    tx.RLOO(),
    tx.REINFORCE(2),
    tx.Exact(),
)


def test_every_estimator_in_a_cuda_graph():
    for estimator in ESTIMATORS:
        n = 5 if isinstance(estimator, tx.Exact) else 20
        torch.manual_seed(0)
        latent = LatentTree(ArcScorer(12, 16), estimator=estimator).cuda()
        vectors = torch.randn(16, n + 1, 12, device="cuda")
        lengths = torch.arange(16, device="cuda") % n + 1
        weights = torch.randn(n + 1, n + 1, device="cuda")

        def step(latent=latent, vectors=vectors, lengths=lengths, weights=weights):
            losses = latent.expect(vectors, lengths, lambda t: (t * weights).sum((-2, -1)).square())
            return losses.detach(), *torch.autograd.grad(losses.sum(), list(latent.parameters()))

        results = captured(step)
        assert all(x.isfinite().all() for x in results), estimator
        assert any(x.any() for x in results[1:]), estimator


def test_randomness_and_half_types():
    scores, lengths, _ = (x.cuda() for x in make(9, dtype=torch.float32))
    trees = ProjectiveTrees(scores.bfloat16(), lengths)
    for noise in ("gumbel", "sum-of-gamma"):
        draws = [
            trees.rsample((2,), noise=noise, generator=torch.Generator("cuda").manual_seed(s))
            for s in (1, 1, 2)
        ]
        assert draws[0].dtype == torch.bfloat16
        assert torch.equal(draws[0], draws[1])
        assert not torch.equal(draws[0], draws[2])
        cpu = perturbation(noise, scores, lengths, generator=torch.Generator().manual_seed(0))
        assert cpu.is_cuda
    first, again = (
        trees.sample((3,), generator=torch.Generator("cuda").manual_seed(5)) for _ in range(2)
    )
    assert torch.equal(first, again)
    assert trees.support.check(first).all()


def test_bad_input():
    scores = torch.zeros(2, 4, 4, device="cuda")
    raises(InputError, lambda: ops.soft_tree(scores, torch.tensor([3, 2])))  # lengths on the CPU
    for length in (4, 2**40, -5):
        lengths = torch.tensor([3, length], device="cuda")
        for op in (ops.soft_tree, ops.best_tree, ops.log_partition, ops.sample_tree):
            raises(InputError, lambda op=op, lengths=lengths: op(scores, lengths, validate="now"))
    for value in (float("nan"), float("inf")):
        bad = scores.clone()
        bad[1, 2, 3] = value
        for op in (ops.soft_tree, ops.best_tree, ops.select_heads):
            raises(InputError, lambda op=op, bad=bad: op(bad, validate="now"))
        ops.soft_tree(bad, torch.tensor([3, 2], device="cuda"), validate="now")
    bad = scores.clone()
    bad[0, 0] = -torch.inf
    for backend in GPU_BACKENDS:
        raises(NoTreeError, lambda b=backend: ops.soft_tree(bad, backend=b, validate="now"))
    bad[0, :, 1] = -torch.inf
    raises(NoTreeError, lambda: ops.select_heads(bad, validate="now"))


def test_what_is_wrong_is_raised_later():
    good = torch.zeros(2, 4, 4, device="cuda")
    for backend, value in product((*GPU_BACKENDS, None), (float("nan"), float("inf"))):
        bad = good.clone()
        bad[1, 2, 3] = value
        bad.requires_grad_()
        for op in (ops.soft_tree, ops.best_tree, ops.log_partition):
            op(bad, backend=backend)
            torch.cuda.synchronize()
            raises(InputError, lambda op=op: op(good))
            op(good)
        tree = ops.soft_tree(bad, backend=backend)
        torch.cuda.synchronize()
        raises(InputError, tree.sum().backward)
        ops.soft_tree(bad, backend=backend)
        raises(InputError, ops.synchronize)
        ops.soft_tree(bad, backend=backend, validate=False)
        ops.synchronize()


def test_what_is_wrong_in_a_graph_is_raised_later():
    scores = torch.zeros(2, 4, 4, device="cuda")
    for op in (ops.soft_tree, ops.best_tree):
        captured(lambda op=op: op(scores))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            op(scores)
        graph.replay()
        ops.synchronize()
        scores[0, 1, 2] = float("nan")
        graph.replay()
        raises(InputError, ops.synchronize)
        scores.zero_()


def test_validation_does_not_wait():
    scores, lengths, upstream = (x.cuda() for x in make(9, dtype=torch.float32))
    scores.requires_grad_()
    for mode in ("default", "error"):  # first calls set things up
        torch.cuda.set_sync_debug_mode(mode)
        try:
            for backend in GPU_BACKENDS:
                tree = ops.soft_tree(scores, lengths, backend=backend)
                torch.autograd.grad(tree, scores, upstream)
                ops.log_partition(scores, lengths, backend=backend)
                ops.best_tree(scores, lengths, backend=backend)
            ops.select_heads(scores, lengths)
        finally:
            torch.cuda.set_sync_debug_mode("default")


def test_empty_batch_and_views():
    assert ops.soft_tree(torch.zeros(0, 4, 4, device="cuda")).shape == (0, 4, 4)
    scores = torch.randn(2, 3, 6, 6, device="cuda").mT
    close(ops.soft_tree(scores), ops.soft_tree(scores.contiguous().cpu()), 1e-5)


# ------------------------------------------------------------------ layers

LENGTHS = [9, 3, 1, 6]


class Model(nn.Module):
    """Word vectors to word vectors by way of a tree."""

    def __init__(self, **options):
        super().__init__()
        self.encoder = BiLSTM(8, 8)
        self.root = Root(16)
        self.tree = LatentTree(ArcScorer(16, 16), **options)
        self.gcn = TreeGCN(16, 8, layers=2, dense=True)

    def forward(self, words, lengths):
        vectors = self.root(self.encoder(words, lengths))
        return self.gcn(vectors, self.tree(vectors, lengths))


def make_model(**options):
    torch.manual_seed(0)
    words = torch.randn(4, 9, 8)
    return Model(**options).cuda(), words.cuda(), torch.tensor(LENGTHS).cuda()


def test_as_on_the_cpu():
    """No noise, so the two devices compute the same; values and every gradient."""
    model, words, lengths = make_model(noise="none")
    model.double()
    twin = copy.deepcopy(model).cpu()
    output = model(words.double(), lengths)
    expected = twin(words.double().cpu(), lengths.cpu())
    close(output, expected, 1e-11)
    output.square().sum().backward()
    expected.square().sum().backward()
    for own, other in zip(model.parameters(), twin.parameters(), strict=True):
        close(own.grad, other.grad, 1e-11)


def closing_columns(encoder):
    return [w[:, -1].detach() for name, w in encoder.named_parameters() if "weight_ih" in name]


def test_the_closing_column_never_moves():
    """Nor does padding count, in half types by autocast either."""
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        torch.manual_seed(0)
        encoder = BiLSTM(8, 8).cuda()
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
        model, words, lengths = make_model(**options)
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
    model, words, lengths = make_model(noise="none", straight_through=True)

    def step():
        output = model(words, lengths)
        return output, *torch.autograd.grad(output.square().sum(), list(model.parameters()))

    expected = [x.detach().clone() for x in step()]
    for got, wanted in zip(captured(step), expected, strict=True):
        close(got, wanted, 1e-5)


def test_noise_is_new_in_every_replay():
    model, words, lengths = make_model()
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
    model, words, lengths = make_model()
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
