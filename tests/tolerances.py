"""Every tolerance of the tests, with its reason."""

import torch

#: Two float64 computations of the same sums in another order: rounding grows with the O(n) depth of
#: the chart, a few hundred units in the last place at n = 64.
EXACT = 1e-11
#: float32 against a float64 reference: the bar for values is 1e-5.
VALUE_F32 = 1e-5
#: float32 gradients relative to the largest entry: the bar is 1e-4.
GRADIENT_F32 = 1e-4
#: Half types are computed in float32 and rounded once at the end: half a unit of 2^-7 (bfloat16) or
#: 2^-10 (float16) at values up to 1.
HALF = {torch.bfloat16: 2**-8, torch.float16: 2**-11}

#: With fixed seeds a test of frequencies either always passes or always fails; a right sampler fails at
#: one seed in a thousand, a wrong one at all of them.
SIGNIFICANCE = 1e-3


def value_tolerance(dtype: torch.dtype) -> float:
    return EXACT if dtype == torch.float64 else VALUE_F32


def gradient_tolerance(dtype: torch.dtype) -> float:
    return EXACT if dtype == torch.float64 else GRADIENT_F32


def largest_error(got: torch.Tensor, expected: torch.Tensor) -> float:
    """Largest difference relative to the largest expected entry (at least 1)."""
    if expected.numel() == 0:
        return 0.0 if got.shape == expected.shape else float("inf")
    expected = expected.double()
    scale = max(1.0, float(expected.abs().max()))
    return float((got.double() - expected).abs().max()) / scale
