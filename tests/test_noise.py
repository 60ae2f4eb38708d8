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
from torch import Tensor

from treelax import noise
from treelax.errors import InputError
from treelax.noise import NOISES, gumbel, perturbation, sum_of_gamma

DRAWS = 200_000
EULER = 0.5772156649015329
REAL_NOISES = [name for name in NOISES if name != "none"]


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def largest_of(s: int, x: np.ndarray) -> np.ndarray:
    """Distribution function of the largest of s exponential variables less log s."""
    return np.clip(1 - np.exp(-x) / s, 0, None) ** s


# ------------------------------------------------------------------ distributions


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_moments_of_gumbel(dtype: torch.dtype) -> None:
    draws = gumbel((DRAWS,), generator=seeded(), dtype=dtype).double()
    variance = math.pi**2 / 6
    assert abs(draws.mean().item() - EULER) < 4 * math.sqrt(variance / DRAWS)
    # Var(s²) = σ⁴ (2 + excess kurtosis) / N, and a Gumbel's excess kurtosis is 12/5
    assert abs(draws.var().item() - variance) < 4 * variance * math.sqrt((2 + 12 / 5) / DRAWS)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gumbel_has_gumbels_distribution(dtype: torch.dtype) -> None:
    draws = gumbel((DRAWS,), generator=seeded(), dtype=dtype)
    assert scipy.stats.kstest(draws.numpy(), scipy.stats.gumbel_r.cdf).pvalue > 1e-3


def test_gumbel_draws_are_independent_of_each_other() -> None:
    left, right = gumbel((2, DRAWS), generator=seeded()).double()
    correlation = torch.corrcoef(torch.stack([left, right]))[0, 1].item()
    assert abs(correlation) < 4 / math.sqrt(DRAWS)


@pytest.mark.parametrize("k", [1, 3, 20])
@pytest.mark.parametrize("s", [1, 10])
def test_a_sum_of_k_is_the_largest_of_s_exponentials(k: int, s: int) -> None:
    sums = sum_of_gamma((20_000, k), k, iterations=s, generator=seeded()).double().sum(-1)
    assert scipy.stats.kstest(sums.numpy(), lambda x: largest_of(s, x)).pvalue > 1e-3


@pytest.mark.parametrize("k", [1, 5, 20])
def test_a_sum_of_k_is_nearly_gumbel(k: int) -> None:
    # the exact distance is 0.0280 at s = 10; that of N draws is within 1.95 / √N (p = 1e-3) of it
    n = 50_000
    sums = sum_of_gamma((n, k), k, generator=seeded()).double().sum(-1)
    distance = scipy.stats.kstest(sums.numpy(), scipy.stats.gumbel_r.cdf).statistic
    assert abs(distance - 0.0280) < 1.95 / math.sqrt(n)


def test_the_distance_of_sum_of_gamma_to_gumbel_shrinks_like_one_over_s() -> None:
    x = np.linspace(-5, 15, 200_001)
    exact = scipy.stats.gumbel_r.cdf(x)
    distance = {s: np.abs(largest_of(s, x) - exact).max() for s in (10, 100)}
    assert distance[10] == pytest.approx(0.0280, abs=1e-4)  # the docstring says: within 0.029
    assert distance[100] == pytest.approx(0.00272, abs=1e-5)


def test_moments_of_sum_of_gamma() -> None:
    k, s, tau = 4, 10, 2.0
    draws = sum_of_gamma((DRAWS,), k, tau=tau, iterations=s, generator=seeded()).double()
    # Gamma(1/k, k/i) has mean 1/i and variance k/i²
    mean = tau / k * (sum(1 / i for i in range(1, s + 1)) - math.log(s))
    variance = (tau / k) ** 2 * sum(k / i**2 for i in range(1, s + 1))
    assert abs(draws.mean().item() - mean) < 4 * math.sqrt(variance / DRAWS)
    # cumulants of Gamma(1/k, k/i): κ₄ = 6 k³ / i⁴
    kurtosis = (tau / k) ** 4 * sum(6 * k**3 / i**4 for i in range(1, s + 1)) / variance**2
    assert abs(draws.var().item() - variance) < 4 * variance * math.sqrt((2 + kurtosis) / DRAWS)


def test_k_may_differ_between_sentences() -> None:
    k = torch.tensor([[1], [8]])
    draws = sum_of_gamma((2, DRAWS), k, generator=seeded()).double()
    variance = sum(1 / i**2 for i in range(1, 11))  # times 1/k
    assert draws[0].var().item() == pytest.approx(variance, rel=0.05)
    assert draws[1].var().item() == pytest.approx(variance / 8, rel=0.05)


# ------------------------------------------------------------------ finite, always


def test_ten_million_draws_are_finite() -> None:
    assert gumbel((10_000_000,), generator=seeded()).isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_an_exponential_of_zero_gives_a_finite_gumbel(dtype: torch.dtype) -> None:
    drawn = noise._negative_log(torch.tensor([0.0, 1.0], dtype=dtype))
    assert drawn.isfinite().all()
    assert drawn[0] > 80
    assert drawn[1] == 0


def test_sum_of_gamma_is_finite_for_long_sentences() -> None:
    # Gamma(1/1000) mostly falls below the smallest float32
    assert sum_of_gamma((300_000,), 1000, generator=seeded()).isfinite().all()


@pytest.mark.parametrize("name", REAL_NOISES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_dtypes(name: str, dtype: torch.dtype) -> None:
    scores = torch.zeros(3, 6, 6, dtype=dtype)
    drawn = perturbation(name, scores, generator=seeded())
    assert drawn.dtype == dtype
    assert drawn.isfinite().all()
    if dtype.itemsize == 2:  # drawn in float32, then rounded
        wide = perturbation(name, scores.float(), generator=seeded())
        assert torch.equal(drawn, wide.to(dtype))


# ------------------------------------------------------------------ reproducible


@pytest.mark.parametrize("name", REAL_NOISES)
def test_a_seed_fixes_the_bits(name: str) -> None:
    scores, lengths = torch.zeros(4, 9, 9), torch.tensor([8, 1, 5, 8])
    first = perturbation(name, scores, lengths, generator=seeded(3))
    assert torch.equal(first, perturbation(name, scores, lengths, generator=seeded(3)))
    other = perturbation(name, scores, lengths, generator=seeded(4))
    arcs = first != 0
    assert (first != other)[arcs].all()


@pytest.mark.parametrize("name", REAL_NOISES)
def test_a_generator_moves_on_and_leaves_torchs_own_alone(name: str) -> None:
    before = torch.get_rng_state()
    generator = seeded()
    first = perturbation(name, torch.zeros(5, 5), generator=generator)
    assert not torch.equal(first, perturbation(name, torch.zeros(5, 5), generator=generator))
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("name", REAL_NOISES)
def test_without_a_generator_the_global_seed_counts(name: str) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(5)
        first = perturbation(name, torch.zeros(5, 5))
        torch.manual_seed(5)
        assert torch.equal(first, perturbation(name, torch.zeros(5, 5)))


@pytest.mark.parametrize("name", REAL_NOISES)
def test_the_number_of_threads_does_not_change_the_bits(name: str) -> None:
    threads = torch.get_num_threads()
    scores = torch.zeros(16, 65, 65)
    try:
        torch.set_num_threads(1)
        first = perturbation(name, scores, generator=seeded())
        torch.set_num_threads(4)
        assert torch.equal(first, perturbation(name, scores, generator=seeded()))
    finally:
        torch.set_num_threads(threads)


def test_noise_is_drawn_where_the_generator_lives_and_moved() -> None:
    # no generator lives on the meta device, so drawing there with one would fail
    generator = seeded()
    assert gumbel((2, 3), generator=generator, device="meta").device.type == "meta"
    assert sum_of_gamma((2, 3), 2, generator=generator, device="meta").device.type == "meta"
    moved_on = gumbel((2,), generator=generator)
    assert not torch.equal(moved_on, gumbel((2,), generator=seeded()))


# ------------------------------------------------------------------ perturbation


def is_arc(n: int, length: int) -> Tensor:
    return torch.tensor(
        [
            [m != 0 and h != m and h <= length and m <= length for m in range(n + 1)]
            for h in range(n + 1)
        ]
    )


@pytest.mark.parametrize("name", REAL_NOISES)
@pytest.mark.parametrize("batch", [(), (3,), (2, 3), (0,)])
def test_noise_sits_on_arcs_alone(name: str, batch: tuple[int, ...]) -> None:
    scores = torch.zeros(*batch, 6, 6)
    lengths = torch.randint(1, 6, batch, generator=seeded())
    drawn = perturbation(name, scores, lengths, generator=seeded())
    assert drawn.shape == scores.shape
    where = [is_arc(5, int(length)) for length in lengths.flatten()]
    expected = torch.stack(where) if where else torch.zeros(0, 6, 6, dtype=torch.bool)
    assert torch.equal((drawn != 0).reshape(-1, 6, 6), expected)


@pytest.mark.parametrize("name", REAL_NOISES)
def test_lengths_broadcast_over_samples(name: str) -> None:
    scores, lengths = torch.zeros(4, 2, 5, 5), torch.tensor([2, 4])
    drawn = perturbation(name, scores, lengths, generator=seeded())
    same = perturbation(name, scores, lengths.expand(4, 2), generator=seeded())
    assert torch.equal(drawn, same)
    assert torch.equal(drawn[3] != 0, torch.stack([is_arc(4, 2), is_arc(4, 4)]))


def test_lengths_decide_k() -> None:
    scores = torch.zeros(2, 2000, 11, 11)
    lengths = torch.tensor([[2], [10]])
    drawn = perturbation("sum-of-gamma", scores, lengths, generator=seeded()).double()
    variance = sum(1 / i**2 for i in range(1, 11))  # times 1/k
    assert drawn[0][:, is_arc(10, 2)].var().item() == pytest.approx(variance / 2, rel=0.1)
    assert drawn[1][:, is_arc(10, 10)].var().item() == pytest.approx(variance / 10, rel=0.1)
    # without lengths k is that of the shape
    full = perturbation("sum-of-gamma", scores[1], generator=seeded()).double()
    assert full[:, is_arc(10, 10)].var().item() == pytest.approx(variance / 10, rel=0.1)


@pytest.mark.parametrize("name", [None, "none"])
def test_no_noise(name: str | None) -> None:
    generator = seeded()
    drawn = perturbation(name, torch.ones(2, 4, 4, dtype=torch.float64), generator=generator)
    assert torch.equal(drawn, torch.zeros(2, 4, 4, dtype=torch.float64))
    assert torch.equal(generator.get_state(), seeded().get_state())


@pytest.mark.parametrize("name", [*NOISES])
def test_noise_has_no_gradient_and_leaves_the_scores_alone(name: str) -> None:
    scores = torch.full((3, 3), -math.inf, requires_grad=True)
    drawn = perturbation(name, scores, torch.tensor(2), generator=seeded())
    assert not drawn.requires_grad
    assert drawn.isfinite().all()
    assert (scores == -math.inf).all()


# ------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gumble", "noise is 'gumble'; .*'sum-of-gamma', 'none'. Did you mean 'gumbel'"),
        ("sum_of_gamma", "Did you mean 'sum-of-gamma'"),
        ("xyz", "expected one of 'gumbel', 'sum-of-gamma', 'none'.$"),
    ],
)
def test_unknown_noise(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        perturbation(name, torch.zeros(3, 3))


@pytest.mark.parametrize("name", [*NOISES])
@pytest.mark.parametrize(
    ("scores", "lengths", "message"),
    [
        (torch.zeros(3), None, r"scores has shape \(3,\); expected .*\(..., n\+1, n\+1\)"),
        (torch.zeros(2, 3), None, r"scores has shape \(2, 3\)"),
        (torch.zeros(0, 0), None, r"scores has shape \(0, 0\)"),
        (torch.zeros(3, 3, dtype=torch.int64), None, "scores has dtype torch.int64"),
        ([[0.0]], None, "scores is a list"),
        (torch.zeros(2, 3, 3), torch.tensor([1, 2, 2]), r"lengths: received shape \(3,\)"),
        (torch.zeros(3, 3), torch.tensor([2]), r"lengths: received shape \(1,\)"),
        (torch.zeros(2, 3, 3), torch.tensor([1.0, 2.0]), "lengths: received torch.float32"),
        (torch.zeros(2, 3, 3), torch.tensor([True, True]), "lengths: received torch.bool"),
        (torch.zeros(2, 3, 3), [1, 2], "lengths: received list"),
        (
            torch.zeros(1, 3, 3),
            torch.ones(1, dtype=torch.int64, device="meta"),
            "lengths is on meta; expected cpu",
        ),
    ],
)
def test_perturbation_checks_its_input(
    name: str, scores: Tensor, lengths: Tensor | None, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        perturbation(name, scores, lengths)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": 0}, "k: received 0; expected positive"),
        ({"k": torch.tensor([1, -1, 1])}, "k: received"),
        ({"k": torch.tensor([1, 2])}, r"k: received shape \(2,\); .* broadcasts to \(3,\)"),
        ({"k": 1, "tau": 0.0}, "tau: received 0.0"),
        ({"k": 1, "iterations": 0}, "iterations: received 0; expected at least 1"),
        ({"k": 1, "dtype": torch.int64}, "dtype: received torch.int64"),
    ],
)
def test_sum_of_gamma_checks_its_input(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        sum_of_gamma((3,), **arguments)  # type: ignore[arg-type]


def test_gumbel_checks_its_type() -> None:
    with pytest.raises(InputError, match=r"dtype: received torch.int32; expected a floating point"):
        gumbel((3,), dtype=torch.int32)
