"""Chains, segments and alignments: against the enumeration of all paths, on every backend."""

import itertools
import math
import re

import pytest
import torch
from matrix import paths
from scipy.stats import chisquare
from torch.autograd import gradcheck

import treelax as tx
from treelax.errors import InputError, NoTreeError

BACKENDS = ("reference", "diagonal", "native")
# structure, shape of scores, lengths of a batch
CASES = {
    "chain": (tx.Chain(), (4, 3, 3), [4, 2, 0, 1]),
    "segments": (tx.Segments(3), (5, 3, 2), [5, 3, 0, 1]),
    "segments after labels": (tx.Segments(2, transitions=True), (4, 2, 2, 2), [4, 3, 0, 1]),
    "alignment": (tx.Alignment(), (3, 4, 3), [[3, 4], [2, 3], [1, 1], [3, 1]]),
}
every_case = pytest.mark.parametrize(("structure", "shape", "lengths"), CASES.values(), ids=CASES)
every_backend = pytest.mark.parametrize("backend", BACKENDS)


def problem(structure, shape, lengths, seed=0):
    """Scores with NaN where there is no part, and some forbidden parts in the first sentence."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.tensor(lengths)
    scores = torch.randn(len(lengths), *shape, generator=generator, dtype=torch.float64)
    scores[0, -1].view(-1)[1] = -math.inf
    return scores.masked_fill(~structure.part_mask(lengths, *shape), math.nan), lengths


def weights(structure, scores, lengths):
    """For each sentence all paths and their scores."""
    for sentence, length in zip(scores, lengths.tolist(), strict=True):
        every = paths(structure, sentence.shape, length)
        yield every, torch.where(every > 0, sentence, 0).flatten(1).sum(1)


@every_case
@every_backend
def test_operations(structure, shape, lengths, backend):
    scores, lengths = problem(structure, shape, lengths)
    dist = structure(scores, lengths, backend=backend)
    best = dist.top_k(3)
    results = dist.log_partition, dist.marginals, dist.mode, dist.entropy(), dist.max_marginals
    for b, (every, s) in enumerate(weights(structure, scores, lengths)):
        log_z, p = s.logsumexp(0), s.softmax(0)
        at_best = torch.where(every > 0, s.view(-1, *(1,) * len(shape)), -math.inf).amax(0)
        expected = (
            log_z,
            (p[:, None] * every.flatten(1)).sum(0).view(shape),
            every[s.argmax()],
            torch.special.entr(p).sum(),
            at_best - log_z,
        )
        for result, wanted in zip(results, expected, strict=True):
            torch.testing.assert_close(result[b], wanted, atol=1e-8, rtol=1e-8)
        log_probs = torch.cat((s - log_z, s.new_full((3,), -math.inf))).topk(3).values
        torch.testing.assert_close(best.log_probs[:, b], log_probs, atol=1e-8, rtol=1e-8)


@every_case
def test_structures_are_counted_listed_and_recognised(structure, shape, lengths):
    scores, lengths = problem(structure, shape, lengths)
    for b, (every, _) in enumerate(weights(structure, scores, lengths)):
        sizes = *lengths[b].reshape(-1).tolist(), *structure.sizes(*shape)[structure.length_count :]
        assert structure.log_count(*sizes) == pytest.approx(math.log(len(every)))
        listed = structure.enumerate(*sizes)
        room = tuple(slice(size) for size in listed.shape[1:])
        wanted = every[(slice(None), *room)]
        assert sorted(map(str, listed.int().tolist())) == sorted(map(str, wanted.int().tolist()))
        assert structure.contains(every, lengths[b].expand(len(every), *lengths.shape[1:])).all()
        nothing = structure.contains(torch.zeros_like(every[:1]), lengths[b : b + 1])
        assert nothing.item() == (not lengths[b].any())


def test_there_is_no_alignment_without_a_cell():
    assert tx.Alignment().enumerate(3, 0).shape == (0, 3, 0, 3)
    assert tx.Alignment().log_count(3, 0) == -math.inf


@every_case
@every_backend
@pytest.mark.parametrize("relaxation", ["softmax", "entropy"])
def test_gradients(structure, shape, lengths, backend, relaxation):
    scores, lengths = problem(structure, shape, lengths)
    mask = structure.part_mask(lengths, *shape)
    fixed = torch.where(scores == -math.inf, scores, 0)

    def relaxed(parts):
        used = torch.where(mask & fixed.isfinite(), parts, fixed)
        options = {"relaxation": relaxation, "temperature": 0.7, "backend": backend}
        return structure.relaxed(used, lengths, **options), structure.log_partition(used, lengths)

    assert gradcheck(relaxed, scores.nan_to_num(0, neginf=0).requires_grad_(), fast_mode=True)


@every_case
def test_backends_agree(structure, shape, lengths):
    """Larger scores; all operations with their gradients, whatever the uniform variables."""
    scores, lengths = problem(structure, shape, lengths, seed=1)
    upstream = torch.randn(
        scores.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(2)
    )
    results = []
    for backend in BACKENDS:
        leaf = (10 * scores).requires_grad_()
        soft = structure.relaxed(leaf, lengths, relaxation="softmax", backend=backend)
        (grad,) = torch.autograd.grad(soft, leaf, upstream)
        generator = torch.Generator().manual_seed(3)
        sample = structure.sample(
            leaf, lengths, sample_shape=(20,), generator=generator, backend=backend
        )
        results.append((soft.detach(), grad, sample))
    for other in results[1:]:
        for result, wanted in zip(other, results[0], strict=True):
            torch.testing.assert_close(result, wanted, atol=1e-9, rtol=1e-9)


@every_case
@every_backend
def test_samples_are_exact(structure, shape, lengths, backend):
    scores, lengths = problem(structure, shape, lengths)
    generator = torch.Generator().manual_seed(5)
    count = 400 if backend == "reference" else 4000
    samples = structure.sample(
        scores[:2], lengths[:2], sample_shape=(count,), generator=generator, backend=backend
    )
    for b, (every, s) in enumerate(weights(structure, scores[:2], lengths[:2])):
        same = (samples[:, b, None] == every).flatten(2).all(-1)
        assert same.any(-1).all()
        possible = s > -math.inf
        assert not same[:, ~possible].any()
        if possible.sum() > 1:
            expected = s.softmax(0)[possible] * count
            assert chisquare(same.sum(0)[possible].double(), expected).pvalue > 1e-4


@every_case
@pytest.mark.parametrize("level", [-1e4, 1e4])
def test_levels_that_paths_share_cost_no_digits_of_float32(structure, shape, lengths, level):
    """One for all positions, one for each; one for all parts, where no path has more of them."""
    shape = structure.shape(*(20 * size for size in structure.sizes(*shape)))
    start, stop = structure.extent(*shape)
    noise, steps = (
        torch.randn(size, generator=torch.Generator().manual_seed(0)) for size in (shape, 200)
    )
    heights = [level * torch.arange(200), (level * steps).cumsum(0)]
    levels = [(height[stop] - height[start]).expand(shape) for height in heights]
    for shared in (*levels, *([] if structure == tx.Alignment() else [level])):
        scores = 3 * noise + shared
        wanted = structure(scores.double()).marginals
        got = structure(scores, backend="native").marginals.double()
        torch.testing.assert_close(got, wanted, atol=1e-5, rtol=0)


def test_long_chains_keep_the_digits_of_float32():
    scores = 3 * torch.randn(2, 3000, 4, 4, generator=torch.Generator().manual_seed(0))
    single, double = tx.Chain()(scores), tx.Chain()(scores.double())
    torch.testing.assert_close(single.marginals.double(), double.marginals, atol=1e-5, rtol=0)
    torch.testing.assert_close(
        single.log_partition.double(), double.log_partition, rtol=1e-6, atol=0
    )


@every_case
def test_neighbours_and_padding_change_no_bit(structure, shape, lengths):
    scores, lengths = problem(structure, shape, lengths)
    together = structure(scores.float(), lengths).marginals
    for b, length in enumerate(lengths):
        room = tuple(slice(n) for n in length.reshape(-1).tolist())
        alone = scores[b].float()[room]
        if alone.numel():
            assert torch.equal(structure(alone).marginals, together[b][room])


@every_case
def test_sparsemap_and_estimators(structure, shape, lengths):
    scores, lengths = problem(structure, shape, lengths)
    solution = structure.sparsemap(scores.requires_grad_(), lengths)
    assert solution.gap.max() < 1e-9
    assert torch.autograd.grad(solution.tree.square().sum(), scores)[0].isfinite().all()
    dist = structure(scores.float().detach().requires_grad_(), lengths)
    for estimator in (
        tx.Relaxed(),
        tx.StraightThrough(),
        tx.RLOO(samples=2),
        tx.Exact(),
        tx.SPIGOT(projection="polytope"),
    ):
        loss = estimator.expect(dist, lambda value: value.square().flatten(-len(shape)).sum(-1))
        assert torch.autograd.grad(loss.sum(), dist.scores)[0].isfinite().all()


@every_case
def test_maps_and_compiled_functions(structure, shape, lengths):
    scores, lengths = problem(structure, shape, lengths)

    def values(scores, lengths):
        tree = structure.sparsemap(scores, lengths).tree
        return (
            structure.log_partition(scores, lengths),
            tree,
            structure.max_marginals(scores, lengths),
        )

    mapped = torch.vmap(values)(scores, lengths)
    torch.testing.assert_close(mapped, values(scores, lengths))
    grad = torch.vmap(torch.func.grad(structure.log_partition))(scores, lengths)
    torch.testing.assert_close(grad, structure(scores, lengths).marginals)
    compiled = torch.compile(values, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(scores, lengths), mapped)


@every_case
@every_backend
def test_a_batch_without_sentences(structure, shape, lengths, backend):
    dist = structure(torch.zeros(0, *shape), backend=backend)
    assert dist.log_partition.shape == (0,)
    assert dist.marginals.shape == dist.mode.shape == dist.sample().shape == (0, *shape)


@every_case
def test_a_sentence_without_a_path_leaves_its_neighbours_alone(structure, shape, lengths):
    scores = torch.zeros(2, *shape)
    scores[1] = -math.inf
    full = structure.full_lengths(scores)
    for _ in range(20):
        samples = structure.sample(scores, full, sample_shape=(50,), validate=False)
        assert structure.contains(samples[:, 0], full[0].expand(50, *full.shape[1:])).all()


def test_max_marginals_of_long_chains():
    """As many calls of argmax as there are parts would take minutes."""
    chain = tx.Chain()(torch.randn(100, 20, 20, generator=torch.Generator().manual_seed(0)))
    best = chain.max_marginals.amax((1, 2))
    torch.testing.assert_close(best, chain.log_prob(chain.mode).expand(100))


@every_case
@pytest.mark.parametrize("level", [-1e30, -1e8, -1e4, 1e4, 1e8, 1e30])
def test_the_entropy_of_paths_at_any_level(structure, shape, lengths, level):
    """The paths of the most parts, or the fewest, all have the same score."""
    shape = structure.shape(*(4 * size - 1 for size in structure.sizes(*shape)))
    even = structure(torch.full(shape, math.copysign(1e3, level), dtype=torch.float64))
    d, other = (structure(torch.full(shape, slope * level)) for slope in (1, 0.9375))
    for value in (d.entropy(), d.renyi_entropy(2), d.cross_entropy(other)):
        torch.testing.assert_close(value, even.entropy().float(), rtol=1e-6, atol=1e-5)


# ── what users put in ────────────────────────────────────────────────────────────────────────────


def test_join_sums_up_what_a_chain_passes():
    generator = torch.Generator().manual_seed(0)
    emissions, transitions = (
        torch.randn(2, 4, 3, generator=generator),
        torch.randn(3, 3, generator=generator),
    )
    start, end = torch.randn(2, 3, generator=generator)
    lengths, tags = torch.tensor([4, 2]), torch.tensor([[0, 2, 1, 1], [2, 0, 0, 0]])
    scores = tx.Chain.join(emissions, transitions, start, end, lengths)
    value = tx.Chain.parts(tags, lengths, num_tags=3)
    for b, n in enumerate(lengths.tolist()):
        used = tags[b, :n]
        wanted = emissions[b, range(n), used].sum() + transitions[used[:-1], used[1:]].sum()
        wanted = wanted + start[used[0]] + end[used[-1]]
        torch.testing.assert_close((scores * value)[b].sum(), wanted)
    assert tx.Chain.tags(value, lengths).tolist() == [[0, 2, 1, 1], [2, 0, -1, -1]]
    assert torch.equal(
        tx.Chain.tags(value.expand(5, -1, -1, -1, -1), lengths)[3], used_tags(tags, lengths)
    )
    ended = tx.Chain.join(
        emissions, transitions, end=torch.tensor([0, -math.inf, 0]), lengths=lengths
    )
    assert not ended.isnan().any()
    assert tx.Chain()(ended, lengths).marginals[0, 3, :, 1].sum() == 0


def used_tags(tags, lengths):
    return tags.masked_fill(torch.arange(tags.shape[1]) >= lengths[:, None], -1)


@pytest.mark.parametrize(
    ("tags", "form"),
    [
        (["O", "B", "I"], "(O|BI*)*"),
        (["I-X", "O", "B-Y", "I-Y", "B-X"], "(O|B(I)*|b(i)*)*"),  # small: Y
        (["S-X", "I-X", "E-X", "B-X", "O", "S-Y"], "(O|S|BI*E|s)*"),
    ],
)
def test_bio_allows_what_a_regular_expression_does(tags, form):
    scores = tx.Chain.join(torch.zeros(4, len(tags)), *tx.Chain.bio(tags))
    letters = [tag[0].lower() if tag.endswith("Y") else tag[0] for tag in tags]
    sequences = map("".join, itertools.product(letters, repeat=4))
    wanted = sorted(s for s in sequences if re.fullmatch(form, s))
    best = tx.Chain()(scores).top_k(len(wanted) + 1)
    assert best.log_probs.isfinite().sum() == len(wanted)
    found = tx.Chain.tags(best.trees[:-1]).tolist()
    assert sorted("".join(letters[tag] for tag in row) for row in found) == wanted


def test_the_likelihood_of_partly_known_tags():
    """As the page says; of a known chain it is its log-probability, of nothing it is 0."""
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(3, 4, 3, 3, generator=generator, dtype=torch.float64)
    lengths, tags = (
        torch.tensor([4, 3, 2]),
        torch.tensor([[0, 2, 1, 1], [2, 0, 0, 0], [1, 1, 0, 0]]),
    )
    possible = torch.nn.functional.one_hot(tags, 3).bool()
    possible[0, 1] = torch.tensor([True, False, True])
    possible[1] = True
    chain, structure = tx.Chain()(scores, lengths), tx.Chain()
    known = scores.masked_fill(~possible[..., None, :], -math.inf)
    likelihood = structure(known, lengths).log_partition - chain.log_partition
    first = [
        chain.log_prob(tx.Chain.parts(torch.tensor(row).expand(3, 4), lengths, num_tags=3))[0]
        for row in ([0, 2, 1, 1], [0, 0, 1, 1])
    ]
    third = chain.log_prob(tx.Chain.parts(tags, lengths, num_tags=3))[2]
    wanted = torch.stack((torch.stack(first).logsumexp(0), torch.tensor(0.0), third))
    torch.testing.assert_close(likelihood, wanted)


@pytest.mark.parametrize(
    "case", ["plain", "ragged", "empty", "bio", "steep", "weak", "apart", "half"]
)
def test_the_likelihood_of_tags_is_that_of_their_chain(case):
    """From emissions and transitions, whether the short way can be taken or not."""
    generator = torch.Generator().manual_seed(0)
    dtype = torch.bfloat16 if case == "half" else torch.float64
    emissions, tags = torch.randn(2, 3, 9, 3, dtype=dtype, generator=generator), BIO_TAGS
    terms = [torch.randn(size, dtype=dtype, generator=generator) for size in ((3, 3), 3, 3)]
    lengths = torch.tensor([[9, 4, 1], [2, 9, 5]]) if case != "plain" else None
    if case == "empty":
        lengths[0, 0] = 0
    if case == "bio":
        terms = [x + y for x, y in zip(terms, tx.Chain.bio(["O", "B", "I"]), strict=True)]
    if case == "steep":  # what the last tag needs is far below the rest on the way
        emissions, terms[2] = 40 * emissions, torch.tensor([0, -math.inf, -math.inf]).to(dtype)
    if case == "weak":  # tag 2, without which there is no end, can only be reached from itself
        terms[0] = torch.tensor([[0.0, 0, -math.inf], [0, 0, -math.inf], [-math.inf] * 2 + [-90]])
        terms = [terms[0].to(dtype), *torch.tensor([[0.0, 0, 0], [-math.inf] * 2 + [0]]).to(dtype)]
        tags = torch.full_like(tags, 2)
    if case == "apart":  # tags 0 and 1 cannot be reached, and nothing bounds what would follow them
        emissions = 90 * torch.tensor([1.0, 1, 0]).expand(2, 3, 9, 3).to(dtype, copy=True)
        terms[0] = torch.tensor([[0.0, 0, -math.inf], [0, 0, -math.inf], [-math.inf, -math.inf, 0]])
        terms = [terms[0].to(dtype), torch.tensor([-math.inf, -math.inf, 0]).to(dtype), terms[2]]
        tags = torch.full_like(tags, 2)
    leaves = [x.requires_grad_() for x in (emissions, *terms)]
    upstream = torch.randn(2, 3, dtype=torch.float64, generator=generator)
    results = []
    for way in ("short", "long"):
        if way == "short":
            value = tx.Chain.log_likelihood(emissions, terms[0], tags, *terms[1:], lengths)
        else:
            dist = tx.Chain()(tx.Chain.join(*leaves, lengths), lengths)
            value = dist.log_prob(tx.Chain.parts(tags, lengths, num_tags=3))
        results.append((value, *torch.autograd.grad((value * upstream).sum(), leaves)))
    for got, expected in zip(*results, strict=True):
        bar = 0.1 if case == "half" else 1e-9  # the long way rounds the sums of scores
        torch.testing.assert_close(got, expected, rtol=bar, atol=bar)


BIO_TAGS = torch.tensor([1, 2, 0, 0, 1, 2, 2, 2, 0]).expand(2, 3, 9)


def test_the_short_way_is_taken_and_has_its_gradient(monkeypatch):
    monkeypatch.setattr(tx.Chain, "join", None)
    generator = torch.Generator().manual_seed(0)
    shapes = (2, 6, 3), (3, 3), (3,), (3,)
    leaves = [torch.randn(*s, dtype=torch.float64, generator=generator) for s in shapes]
    tags, lengths = torch.randint(3, (2, 6), generator=generator), torch.tensor([6, 3])

    def likelihood(emissions, transitions, *ends):
        return tx.Chain.log_likelihood(emissions, transitions, tags, *ends, lengths)

    assert gradcheck(likelihood, [x.requires_grad_() for x in leaves])


def test_join_sums_up_what_a_segment_covers():
    generator = torch.Generator().manual_seed(0)
    emissions, durations = (
        torch.randn(5, 2, generator=generator),
        torch.randn(3, 2, generator=generator),
    )
    transitions = torch.randn(2, 2, generator=generator)
    scores = tx.Segments.join(emissions, durations, transitions)
    torch.testing.assert_close(
        scores[1, 2, 0, 1], emissions[1:4, 1].sum() + durations[2, 1] + transitions[0, 1]
    )
    torch.testing.assert_close(scores[0, 1, 0, 1], emissions[:2, 1].sum() + durations[1, 1])
    assert tx.Segments.join(emissions[:0], durations).shape == (0, 3, 2)


FIVE = torch.zeros(5, 3)
REFUSED = {
    "scores is a list": lambda: tx.Chain()([1.0]),
    "scores has shape (4, 3, 2)": lambda: tx.Chain()(torch.zeros(4, 3, 2)),
    "scores has shape (4, 2, 5); expected (..., n, K, C)": lambda: tx.Segments(3)(
        torch.zeros(4, 2, 5)
    ),
    "expected (..., n, m, 3)": lambda: tx.Alignment()(torch.zeros(4, 0, 3)),
    "max_length is 0": lambda: tx.Segments(0),
    "transitions is 1; expected True or False": lambda: tx.Segments(2, transitions=1),
    "structure is Chain(); expected one without labels": lambda: tx.Labelled(tx.Chain()),
    "The sizes are (-1, 2); expected whole numbers of at least (0, 1)": lambda: (
        tx.Chain().enumerate(-1, 2)
    ),
    "The sizes are (3, -1); expected whole numbers of at least (0, 0)": lambda: (
        tx.Alignment().log_count(3, -1)
    ),
    "lengths has shape (2,); expected (2, 2)": lambda: tx.Alignment()(
        torch.zeros(2, 3, 3, 3), torch.tensor([3, 3])
    ),
    "lengths[1, 0] (of the flattened batch) is 0; expected 1 to 3": lambda: (
        tx.Alignment()(torch.zeros(2, 3, 3, 3), torch.tensor([[3, 3], [0, 1]])).log_partition
    ),
    "lengths[0] (of the flattened batch) is 6; expected 0 to 5": lambda: (
        tx.Chain()(torch.zeros(1, 5, 2, 2), torch.tensor([6])).log_partition
    ),
    "transitions has shape (2, 2); expected (3, 3)": lambda: tx.Chain.join(FIVE, torch.zeros(2, 2)),
    "end has shape (2, 3); expected (3,)": lambda: tx.Chain.join(
        FIVE.expand(2, 5, 3), torch.zeros(3, 3), end=torch.zeros(2, 3)
    ),
    "transitions has shape (4, 3, 3); expected (3, 3)": lambda: tx.Chain.join(
        FIVE, torch.zeros(4, 3, 3)
    ),
    "max_length is 3; expected": lambda: tx.Segments.join(FIVE, torch.zeros(2, 3), max_length=3),
    "start has shape (2,); expected (3,)": lambda: tx.Chain.join(
        FIVE, torch.zeros(3, 3), torch.zeros(2)
    ),
    "durations has shape (4, 2); expected (K, 3)": lambda: tx.Segments.join(
        FIVE, torch.zeros(4, 2)
    ),
    "tags has shape (4,); expected (5,)": lambda: tx.Chain.log_likelihood(
        FIVE, torch.zeros(3, 3), torch.zeros(4, dtype=torch.long)
    ),
    "max_length is None": lambda: tx.Segments.join(FIVE),
    "tags[1] is 'NOUN'; expected O or": lambda: tx.Chain.bio(["O", "NOUN"]),
    "tags[0] is 'O-X'; expected O or": lambda: tx.Chain.bio(["O-X"]),
    "tags holds 7; expected 0 to 2": lambda: tx.Chain.parts(torch.tensor([0, 7]), num_tags=3),
}


@pytest.mark.parametrize("message", REFUSED)
def test_refused(message):
    with pytest.raises(InputError) as caught:
        REFUSED[message]()
    assert message in str(caught.value)


@every_case
@every_backend
@pytest.mark.parametrize("move", [-9, 9, 2**40])
def test_lengths_without_room_touch_no_memory(structure, shape, lengths, backend, move):
    scores, wrong = torch.zeros(4, *shape), torch.tensor(lengths) + move
    with pytest.raises(InputError, match="lengths"):
        structure.marginals(scores, wrong, backend=backend, validate=False)


@every_case
@every_backend
def test_a_mask_that_leaves_no_path(structure, shape, lengths, backend):
    scores = torch.full((1, *shape), -math.inf)
    with pytest.raises(NoTreeError, match="forbidden"):
        _ = structure(scores, torch.tensor(lengths[:1]), backend=backend).log_partition


@every_case
def test_a_score_that_is_no_number(structure, shape, lengths):
    scores, lengths = problem(structure, shape, lengths)
    scores[0].view(-1)[0] = math.nan
    place = ", ".join("0" * (1 + len(shape)))
    with pytest.raises(InputError, match=rf"scores\[{place}\] \(of the flattened batch\) is nan"):
        _ = structure(scores, lengths).marginals
    spoiled = structure(scores, lengths, validate_args=False).marginals
    assert spoiled[0].isnan().any()
    assert spoiled[1:].isfinite().all()
