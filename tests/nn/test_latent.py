"""The latent tree layer: modes, noise, batches, and what does not fit together."""

import pytest
import torch
from layer_checks import Given, drawn, error
from matrix import seeded
from tolerances import EXACT
from torch import nn

import treelax as tx
from treelax import ops
from treelax.errors import InputError, NoTreeError
from treelax.nn import ArcScorer, BiaffineScorer, LatentTree, SpanScorer

every_structure = pytest.mark.parametrize("structure", ["projective", "heads"])


def make(**options) -> LatentTree:
    return drawn(LatentTree(ArcScorer(4, 6), **options), std=0.5)


@every_structure
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("batch", [(), (2, 1, 3)])
def test_any_leading_shape(structure, training, batch):
    """In evaluation the best tree without noise; straight through while training."""
    layer = make(structure=structure, straight_through=True).train(training)
    vectors = torch.randn(*batch, 6, 4, dtype=torch.float64, generator=seeded(2))
    lengths = torch.randint(1, 6, batch, generator=seeded(3))
    tree = layer(vectors, lengths, generator=seeded())
    assert tree.shape == (*batch, 6, 6)
    assert set(tree.detach().unique().tolist()) <= {0.0, 1.0}
    assert tree.requires_grad == training
    flat = layer(vectors.reshape(-1, 6, 4), lengths.reshape(-1), generator=seeded())
    assert error(tree.reshape(flat.shape), flat) < EXACT
    if not training:
        scores = layer.scorer(vectors)
        best = ops.best_tree(scores, lengths)
        assert torch.equal(
            tree,
            best if structure == "projective" else ops.select_heads(scores, lengths, hard=True),
        )


def test_noise_is_reproducible_and_differs_from_call_to_call():
    layer, vectors = make(noise="sum-of-gamma"), torch.randn(3, 6, 4, dtype=torch.float64)
    first = layer(vectors, generator=seeded())
    assert torch.equal(first, layer(vectors, generator=seeded()))
    generator = seeded()
    assert torch.equal(first, layer(vectors, generator=generator))
    assert not torch.equal(first, layer(vectors, generator=generator))
    quiet = make(noise="none")
    torch.manual_seed(1)
    again = layer(vectors)
    torch.manual_seed(1)
    assert torch.equal(again, layer(vectors))
    state = torch.get_rng_state()
    assert torch.equal(quiet(vectors), quiet(vectors))
    assert torch.equal(torch.get_rng_state(), state)
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


@pytest.mark.parametrize(
    ("structure", "options", "message"),
    [
        (tx.NonProjective(), {"relaxation": "softmax"}, 'expected "entropy"'),
        (tx.Labelled(tx.NonProjective()), {"estimator": tx.StraightThrough()}, '"entropy"'),
        (tx.Labelled(tx.Projective()), {"estimator": tx.SPIGOT()}, 'expected "polytope"'),
        (tx.Heads(), {"estimator": tx.IMLE(), "relaxation": "entropy"}, "estimator is IMLE"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused_when_the_layer_is_built(structure, options, message):
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
    for scores, kind in [(nothing_left, NoTreeError), (broken, InputError)]:
        loose = LatentTree(Given(scores), structure=structure, validate=False).train(training)
        assert scores is nothing_left or loose(vectors).isnan().any()
        with pytest.raises(kind):
            LatentTree(Given(scores), structure=structure).train(training)(vectors)
