"""The latent tree layer: modes, noise, straight-through, gradients, torch.compile."""

import pytest
import torch
from layer_checks import Given, check_gradients, drawn, error
from layer_checks import some_vectors as vectors_of
from matrix import seeded
from tolerances import EXACT
from torch import nn

import treelax as tx
from treelax import ops
from treelax.errors import InputError, NoTreeError
from treelax.nn import ArcScorer, BiaffineScorer, LatentTree, SpanScorer

LENGTHS = torch.tensor([5, 3, 1])
STRUCTURES = ["projective", "heads"]

every_structure = pytest.mark.parametrize("structure", STRUCTURES)


def make(**options) -> LatentTree:
    return drawn(LatentTree(ArcScorer(4, 6), **options), std=0.5)


def make_vectors() -> torch.Tensor:
    return vectors_of(3, 6, 4)


# ── evaluation ───────────────────────────────────────────────────────────────────────────────────


@every_structure
@pytest.mark.parametrize("straight_through", [False, True])
def test_evaluation_gives_the_best_tree_without_noise(structure, straight_through):
    layer = make(structure=structure, straight_through=straight_through).eval()
    vectors = make_vectors()
    scores = layer.scorer(vectors)
    if structure == "heads":
        expected = ops.select_heads(scores, LENGTHS, hard=True)
    else:
        expected = ops.best_tree(scores, LENGTHS)
    tree = layer(vectors, LENGTHS)
    assert torch.equal(tree, expected)
    assert torch.equal(tree, layer(vectors, LENGTHS))
    assert not tree.requires_grad


# ── training ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("noise", ["gumbel", "sum-of-gamma"])
def test_noise_is_reproducible_and_differs_from_call_to_call(noise):
    layer, vectors = make(noise=noise), make_vectors()
    first = layer(vectors, LENGTHS, generator=seeded())
    assert torch.equal(first, layer(vectors, LENGTHS, generator=seeded()))
    generator = seeded()
    drawn = [layer(vectors, LENGTHS, generator=generator) for _ in range(2)]
    assert torch.equal(first, drawn[0])
    assert not torch.equal(first, drawn[1])
    torch.manual_seed(1)
    own = layer(vectors, LENGTHS)
    torch.manual_seed(1)
    assert torch.equal(own, layer(vectors, LENGTHS))


def test_no_noise_touches_no_generator():
    layer, vectors = make(noise="none"), make_vectors()
    generator = seeded()
    before = generator.get_state(), torch.get_rng_state()
    assert torch.equal(layer(vectors, LENGTHS, generator=generator), layer(vectors, LENGTHS))
    assert torch.equal(generator.get_state(), before[0])
    assert torch.equal(torch.get_rng_state(), before[1])
    assert make(noise=None).estimator.noise is None


def test_single_root():
    """Scores that love the root: many modifiers if allowed, one if not."""
    scores = torch.zeros(2, 6, 6, dtype=torch.float64)
    scores[:, 0] = 5.0
    loose, tight = make(noise="none"), make(noise="none", single_root=True)
    assert (loose.discrete(scores)[:, 0].sum(-1) == 5).all()
    assert (tight.discrete(scores)[:, 0].sum(-1) == 1).all()
    assert (loose.soft(scores)[:, 0].sum(-1) > 3).all()
    assert error(tight.soft(scores)[:, 0].sum(-1), torch.ones(2)) < EXACT


# ── shapes and gradients ─────────────────────────────────────────────────────────────────────────


@every_structure
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("batch", [(), (2, 1, 3)])
def test_any_leading_shape(structure, training, batch):
    layer = make(structure=structure, straight_through=True).train(training)
    vectors = torch.randn(*batch, 6, 4, dtype=torch.float64, generator=seeded(2))
    lengths = torch.randint(1, 6, batch, generator=seeded(3))
    tree = layer(vectors, lengths, generator=seeded())
    assert tree.shape == (*batch, 6, 6)
    assert set(tree.detach().unique().tolist()) <= {0.0, 1.0}
    assert tree.requires_grad == training
    flat = layer(vectors.reshape(-1, 6, 4), lengths.reshape(-1), generator=seeded())
    assert error(tree.reshape(flat.shape), flat) < EXACT


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"relaxation": "entropy"},
        {"single_root": True, "temperature": 0.8},
        {"relaxation": "entropy", "single_root": True, "noise": "sum-of-gamma"},
        {"structure": "heads"},
    ],
    ids=str,
)
def test_gradients(options):
    """By finite differences, noise and all, for vectors and every parameter of the scorer."""
    layer, lengths = make(**options), torch.tensor([4, 2])
    vectors = vectors_of(2, 5, 4)
    assert check_gradients(layer, lambda x: ((x, lengths), {"generator": seeded()}), vectors)


# ── what is refused ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("scorer", "structure", "fits"),
    [
        (ArcScorer(4, 6), tx.Projective(), True),
        (ArcScorer(4, 6), tx.Binary(), False),
        (BiaffineScorer(4, 6, labels=2), tx.Labelled(tx.NonProjective()), True),
        (BiaffineScorer(4, 6, labels=2), tx.Labelled(tx.Binary()), False),
        (SpanScorer(4, 6), tx.Binary(), True),
        (SpanScorer(4, 6), "heads", False),
        (nn.Sequential(ArcScorer(4, 6)), tx.Binary(), True),  # says nothing
    ],
)
def test_what_the_scorer_scores_fits_the_structure(scorer, structure, fits):
    if fits:
        assert LatentTree(scorer, structure)(torch.randn(2, 5, 4)).requires_grad
    else:
        with pytest.raises(InputError, match=r"expected a scorer of (arcs|spans), such as"):
            LatentTree(scorer, structure)


def test_the_default_relaxation_is_one_that_the_structure_has():
    for structure in (tx.NonProjective(), tx.Labelled(tx.NonProjective())):
        layer = LatentTree(ArcScorer(4, 6), structure, straight_through=True)
        assert layer.estimator == tx.StraightThrough(tx.Relaxed("entropy"))
    assert LatentTree(ArcScorer(4, 6), "heads").estimator == tx.Relaxed("softmax")
    LatentTree(ArcScorer(4, 6), tx.NonProjective())(torch.randn(2, 5, 4)).sum().backward()


@pytest.mark.parametrize(
    ("structure", "options", "message"),
    [
        (tx.NonProjective(), {"relaxation": "softmax"}, 'expected "entropy"'),
        (tx.NonProjective(), {"estimator": tx.Relaxed()}, 'expected "entropy"'),
        (
            tx.Labelled(tx.NonProjective()),
            {"estimator": tx.StraightThrough()},
            'expected "entropy"',
        ),
        (tx.Labelled(tx.Projective()), {"estimator": tx.SPIGOT()}, 'expected "polytope"'),
        (
            tx.NonProjective(),
            {"estimator": tx.IMLE(), "relaxation": "softmax"},
            "estimator is IMLE",
        ),
    ],
    ids=str,
)
def test_what_a_structure_does_not_have_is_refused_when_the_layer_is_built(
    structure, options, message
):
    with pytest.raises(InputError, match=message):
        LatentTree(ArcScorer(4, 6), structure, **options)


def test_a_forgotten_root_is_named_where_it_can_be_noticed():
    with pytest.raises(InputError, match=r"lengths\[1\].*treelax\.nn\.Root"):
        LatentTree(ArcScorer(4, 6))(torch.randn(2, 5, 4), torch.tensor([3, 5]))


@every_structure
@pytest.mark.parametrize("training", [True, False])
def test_values_are_checked_on_the_cpu_unless_told_not_to(structure, training):
    nothing_left = torch.zeros(1, 4, 4)
    nothing_left[0, :, 2] = -torch.inf
    broken = torch.full((1, 4, 4), torch.nan)
    vectors = torch.zeros(1, 4, 8)
    for scores, said in [(nothing_left, NoTreeError), (broken, InputError)]:
        loose = LatentTree(Given(scores), structure=structure, validate=False).train(training)
        assert scores is nothing_left or loose(vectors).isnan().any()
        with pytest.raises(said):
            LatentTree(Given(scores), structure=structure).train(training)(vectors)


def test_the_distribution_behind_the_layer():
    layer = LatentTree(ArcScorer(4, 6), single_root=True)
    vectors, lengths = torch.randn(2, 5, 4), torch.tensor([4, 2])
    trees = layer.distribution(vectors, lengths)
    assert torch.equal(trees.mode, layer.eval()(vectors, lengths))
    assert (trees.mode[:, 0].sum(-1) == 1).all()
    trees.log_prob(trees.mode).sum().backward()
    assert all(p.grad is not None for p in layer.parameters())
