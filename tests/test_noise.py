"""Noise: its distribution, where it is zero, and that a seed fixes its bits.

Statistical tests run at fixed seeds, so they pass or fail for good. Their tolerances are four
standard errors, or a p-value of 1e-3.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
import torch
from matrix import seeded

from treelax.errors import InputError
from treelax.noise import NOISES, gumbel, noise_named, perturbation, sum_of_gamma
from treelax.structures import Binary, Heads, Labelled, NonProjective, Projective

DRAWS = 200_000
EULER = 0.5772156649015329
THREE = torch.zeros(2, 3, 3)
REAL_NOISES = [name for name in NOISES if name != "none"]


def largest_of(s: int, x: np.ndarray) -> np.ndarray:
    """Distribution function of the largest of s exponential variables less log s."""
    return np.clip(1 - np.exp(-x) / s, 0, None) ** s


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_moments_and_distribution_of_gumbel(dtype):
    draws = gumbel((DRAWS,), generator=seeded(), dtype=dtype).double()
    assert scipy.stats.kstest(draws.numpy(), scipy.stats.gumbel_r.cdf).pvalue > 1e-3
    variance = math.pi**2 / 6
    assert abs(draws.mean().item() - EULER) < 4 * math.sqrt(variance / DRAWS)
    # Var(s²) = σ⁴ (2 + excess kurtosis) / N, and a Gumbel's excess kurtosis is 12/5
    assert abs(draws.var().item() - variance) < 4 * variance * math.sqrt((2 + 12 / 5) / DRAWS)


@pytest.mark.parametrize(("k", "s"), [(1, 10), (3, 1), (20, 10)])
def test_a_sum_of_k_is_the_largest_of_s_exponentials(k, s):
    sums = sum_of_gamma((20_000, k), k, iterations=s, generator=seeded()).double().sum(-1)
    assert scipy.stats.kstest(sums.numpy(), lambda x: largest_of(s, x)).pvalue > 1e-3


def test_the_distance_of_sum_of_gamma_to_gumbel_shrinks_like_one_over_s():
    x = np.linspace(-5, 15, 200_001)
    exact = scipy.stats.gumbel_r.cdf(x)
    distance = {s: np.abs(largest_of(s, x) - exact).max() for s in (10, 100)}
    assert distance[10] == pytest.approx(0.0280, abs=1e-4)  # the docstring says: within 0.029
    assert distance[100] == pytest.approx(0.00272, abs=1e-5)


@pytest.mark.parametrize("name", REAL_NOISES)
@pytest.mark.parametrize("structure", [Projective(), Heads(), Labelled(NonProjective())])
def test_arcs_from_the_root_without_noise(name, structure):
    scores = torch.zeros(3, 5, 5, *(2,) * (structure.event_dim - 2))
    noise = noise_named(name, root_arcs=False)
    noisy, _, drawn = structure(scores).perturbed(noise, (4,), generator=seeded())
    assert not noisy[:, :, 0].any()
    assert noisy[:, :, 1:].all()
    assert torch.equal(noisy, drawn)
    usual, _, _ = structure(scores).perturbed(noise_named(name), (4,), generator=seeded())
    assert usual.all()
    assert torch.equal(noisy[:, :, 1:], usual[:, :, 1:])
    spans, _, _ = Binary()(torch.zeros(3, 5, 5)).perturbed(noise, generator=seeded())
    assert spans.all()  # which have no root


def test_draws_are_finite(monkeypatch):
    # Gamma(1/1000) mostly falls below the smallest float32
    assert sum_of_gamma((300_000,), 1000, generator=seeded()).isfinite().all()
    assert gumbel((3_000_000,), generator=seeded()).isfinite().all()
    monkeypatch.setattr(torch.Tensor, "exponential_", lambda self, **_: self.zero_())
    for dtype in (torch.float32, torch.float64):
        drawn = gumbel((2,), dtype=dtype)
        assert drawn.isfinite().all()
        assert (drawn > 80).all()


@pytest.mark.parametrize("name", REAL_NOISES)
def test_a_seed_fixes_the_bits(name):
    """Whatever the number of threads; a generator moves on and leaves torch's own alone."""
    scores, lengths = torch.zeros(4, 65, 65), torch.tensor([64, 1, 5, 8])
    before = torch.get_rng_state()
    generator = seeded(3)
    first = perturbation(name, scores, lengths, generator=generator)
    torch.set_num_threads(4)
    assert torch.equal(first, perturbation(name, scores, lengths, generator=seeded(3)))
    for other in (generator, seeded(4)):
        again = perturbation(name, scores, lengths, generator=other)
        assert (first != again)[first != 0].float().mean() > 0.99
    assert torch.equal(torch.get_rng_state(), before)
    # half types are drawn in float32, then rounded
    half = perturbation(name, scores.bfloat16(), lengths, generator=seeded(3))
    assert torch.equal(half, first.bfloat16())
    with torch.random.fork_rng():
        torch.manual_seed(5)
        own = perturbation(name, scores)
        torch.manual_seed(5)
        assert torch.equal(own, perturbation(name, scores))


def test_noise_is_drawn_where_the_generator_lives_and_moved():
    # no generator lives on the meta device, so drawing there with one would fail
    generator = seeded()
    assert gumbel((2, 3), generator=generator, device="meta").device.type == "meta"
    assert sum_of_gamma((2, 3), 2, generator=generator, device="meta").device.type == "meta"
    moved_on = gumbel((2,), generator=generator)
    assert not torch.equal(moved_on, gumbel((2,), generator=seeded()))


@pytest.mark.parametrize("name", REAL_NOISES)
@pytest.mark.parametrize("batch", [(), (2, 3), (0,)])
def test_noise_sits_on_arcs_alone(name, batch):
    scores = torch.zeros(*batch, 6, 6)
    lengths = torch.randint(1, 6, batch, generator=seeded())
    drawn = perturbation(name, scores, lengths, generator=seeded())
    assert drawn.shape == scores.shape
    for matrix, n in zip((drawn != 0).reshape(-1, 6, 6), lengths.flatten().tolist(), strict=True):
        arcs = {(h, m) for h in range(n + 1) for m in range(1, n + 1) if h != m}
        assert {*map(tuple, matrix.nonzero().tolist())} == arcs


def test_lengths_decide_k():
    scores = torch.zeros(2, 2000, 11, 11)
    lengths = torch.tensor([[2], [10]])
    drawn = perturbation("sum-of-gamma", scores, lengths, generator=seeded()).double()
    variance = sum(1 / i**2 for i in range(1, 11))  # times 1/k
    assert drawn[0][drawn[0] != 0].var().item() == pytest.approx(variance / 2, rel=0.1)
    assert drawn[1][drawn[1] != 0].var().item() == pytest.approx(variance / 10, rel=0.1)
    # without lengths k is that of the shape
    full = perturbation("sum-of-gamma", scores[1], generator=seeded()).double()
    assert full[full != 0].var().item() == pytest.approx(variance / 10, rel=0.1)


@pytest.mark.parametrize("name", [None, *NOISES])
def test_noise_has_no_gradient_and_leaves_the_scores_alone(name):
    scores = torch.full((3, 3), -math.inf, requires_grad=True)
    generator = seeded()
    drawn = perturbation(name, scores, torch.tensor(2), generator=generator)
    assert not drawn.requires_grad
    assert drawn.isfinite().all()
    assert (scores == -math.inf).all()
    if name in (None, "none"):
        assert not drawn.any()
        assert torch.equal(generator.get_state(), seeded().get_state())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: perturbation("gumble", torch.zeros(3, 3)), "noise is 'gumble'; .*mean 'gumbel'"),
        (lambda: perturbation("none", torch.zeros(2, 3)), r"scores has shape \(2, 3\)"),
        (lambda: perturbation(None, THREE, torch.tensor([1, 2, 2])), r"lengths has shape \(3,\)"),
        (lambda: sum_of_gamma((3,), 0), "k: received 0; expected positive"),
        (lambda: sum_of_gamma((3,), torch.tensor([1, -1, 1])), "k: received"),
        (lambda: sum_of_gamma((3,), torch.tensor([1, 2])), r"k: received shape \(2,\); .*\(3,\)"),
        (lambda: sum_of_gamma((3,), 1, tau=0.0), "tau: received 0.0"),
        (lambda: sum_of_gamma((3,), 1, iterations=0), "iterations: received 0"),
        (lambda: gumbel((3,), dtype=torch.int32), "dtype: received torch.int32"),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
