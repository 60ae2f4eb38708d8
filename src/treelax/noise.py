"""Noise for perturb-and-parse: Gumbel and sum-of-gamma, from a `torch.Generator`.

Adding independent noise to the arc scores and taking the best tree is a way of sampling trees. The
distribution of the noise is a modelling choice: Gumbel noise is the paper's (Corro & Titov 2019),
sum-of-gamma noise makes the *score of a whole tree* nearly Gumbel (Niepert et al. 2021).

What is reproducible: a generator in the same state on the same kind of device, asked for the same
shape and type, gives the same bits. A sentence's noise is drawn from one stream together with its
batch, so it depends on the shape of the batch and on the sentence's place in it. It is zero
wherever there is no arc, so padding never carries noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from treelax.errors import InputError
from treelax.ops.canonical import precise
from treelax.ops.checks import INTEGER_TYPES, broadcasts, check_scores, one_of, same_device

__all__ = ["NOISES", "Noise", "gumbel", "perturbation", "perturbed", "sum_of_gamma"]

#: What `perturbation` knows by name.
Noise = Literal["gumbel", "sum-of-gamma", "none"]
NOISES: tuple[str, ...] = ("gumbel", "sum-of-gamma", "none")


def __dir__() -> list[str]:
    return __all__


#: Devices on which torch draws gamma variables; elsewhere they are drawn on the CPU and moved.
_GAMMA_DEVICES = ("cpu", "cuda")


def gumbel(
    shape: Sequence[int],
    *,
    generator: torch.Generator | None = None,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str | None = None,
) -> Tensor:
    """Draw independent Gumbel(0, 1) variables: ``-log(E)`` with ``E`` exponential of mean 1.

    Args:
        shape: of the result.
        generator: source of the randomness; torch's own by default.
        dtype: of the result; half types are drawn in float32 and rounded.
        device: of the result. Draws happen on the generator's device, if it has another one.

    Returns:
        Tensor of that shape, finite everywhere.

    Raises:
        InputError: ``dtype`` is not a floating point type.

    Example:
        >>> noise = gumbel((2, 3), generator=torch.Generator().manual_seed(0))
        >>> noise.shape, bool(noise.isfinite().all())
        (torch.Size([2, 3]), True)
    """
    target, source, compute = _places(generator, dtype, device)
    exponential = torch.empty(tuple(shape), dtype=compute, device=source)
    return _negative_log(exponential.exponential_(generator=generator)).to(target, dtype)


def sum_of_gamma(
    shape: Sequence[int],
    k: float | Tensor,
    *,
    tau: float = 1.0,
    iterations: int = 10,
    generator: torch.Generator | None = None,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str | None = None,
) -> Tensor:
    """Draw independent sum-of-gamma variables, of which ``k`` add up to nearly one Gumbel(0, τ).

    ``SoG(k, τ, s) = τ/k · ( Σ_{i=1..s} Gamma(1/k, k/i) − log s )``, shape and scale in brackets.
    The sum of ``k`` of them is ``τ`` times the largest of ``s`` exponential variables less
    ``log s``: its distribution function ``(1 − e^{−x/τ}/s)^s`` tends to Gumbel's as ``s`` grows
    and is within 0.029 of it for ``s = 10``. A tree over ``n`` words has ``k = n`` arcs.

    Args:
        shape: of the result.
        k: how many variables add up to a Gumbel; a number or a tensor that broadcasts to ``shape``.
        tau: scale of that Gumbel.
        iterations: ``s``, how many gamma variables go into each.
        generator: source of the randomness; torch's own by default.
        dtype: of the result; half types are drawn in float32 and rounded.
        device: of the result. Draws happen on the generator's device, if it has another one.

    Returns:
        Tensor of that shape, finite everywhere.

    Raises:
        InputError: ``k``, ``tau`` or ``iterations`` is not positive, ``k`` does not broadcast to
            ``shape``, or ``dtype`` is not a floating point type.

    Example:
        >>> noise = sum_of_gamma((3, 4), k=4, generator=torch.Generator().manual_seed(0))
        >>> bool((noise >= -math.log(10) / 4).all())
        True

    Reference:
        Niepert, Minervini & Franceschi, Implicit MLE (NeurIPS 2021), arXiv:2106.01798.
    """
    counts = torch.as_tensor(k)
    if not bool((counts > 0).all()):
        raise InputError(f"k: received {k}; expected positive numbers")
    if not tau > 0:
        raise InputError(f"tau: received {tau}; expected a positive number")
    if iterations < 1:
        raise InputError(f"iterations: received {iterations}; expected at least 1")
    if not broadcasts(tuple(counts.shape), tuple(shape)):
        raise InputError(
            f"k: received shape {tuple(counts.shape)}; expected one that broadcasts to "
            f"{tuple(shape)}"
        )
    return _sum_of_gamma(shape, counts, tau, iterations, generator, dtype, device)


def perturbed(
    scores: Tensor,
    lengths: Tensor | None = None,
    noise: Noise | None = "gumbel",
    *,
    scale: float = 1.0,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Arc scores plus noise, in float32 for half types: rounding there would favour some trees.

    Args:
        scores: ``(..., n + 1, n + 1)``, floating point.
        lengths: words per sentence, see `perturbation`.
        noise: see `perturbation`.
        scale: factor of the noise.
        generator: source of the randomness; torch's own by default.

    Returns:
        ``(..., n + 1, n + 1)``, with a gradient to the scores.

    Raises:
        InputError: as `perturbation`, or a scale that is negative or not finite.

    Example:
        >>> perturbed(torch.zeros(1, 3, 3, dtype=torch.bfloat16)).dtype
        torch.float32
    """
    if not 0 <= scale < math.inf:
        raise InputError(f"noise_scale is {scale}; expected a finite number of at least 0.")
    check_scores(scores)
    scores = precise(scores)
    if noise is None or noise == "none":
        return scores
    drawn = perturbation(noise, scores, lengths, generator=generator)
    return scores + (drawn if scale == 1 else drawn * scale)


def perturbation(
    noise: Noise | None,
    scores: Tensor,
    lengths: Tensor | None = None,
    *,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Draw the noise to add to arc scores, zero wherever there is no arc.

    There is no arc in column 0, on the diagonal, and beyond a sentence's length.

    Args:
        noise: "gumbel", "sum-of-gamma" (``k`` is the sentence's length, ``τ = 1``, ``s = 10``), or
            "none" or None for zeros.
        scores: ``(..., n + 1, n + 1)``, floating point; gives shape, type and device.
        lengths: integer, broadcasts to ``(...)``, words per sentence; all n by default. Their
            values are not checked here, since that would wait for the GPU.
        generator: source of the randomness; torch's own by default.

    Returns:
        ``(..., n + 1, n + 1)`` of the scores' type and device, without gradient.

    Raises:
        InputError: an unknown name, or an argument of the wrong type or shape.

    Example:
        >>> noise = perturbation("gumbel", torch.zeros(4, 4), torch.tensor(2))
        >>> (noise != 0).int()
        tensor([[0, 1, 1, 0],
                [0, 0, 1, 0],
                [0, 1, 0, 0],
                [0, 0, 0, 0]], dtype=torch.int32)
    """
    name = "none" if noise is None else noise
    one_of("noise", name, NOISES)
    check_scores(scores)
    words = _words(lengths, scores)
    if name == "none":
        return torch.zeros(scores.shape, dtype=scores.dtype, device=scores.device)
    if name == "gumbel":
        drawn = gumbel(scores.shape, generator=generator, dtype=scores.dtype, device=scores.device)
    else:
        drawn = _sum_of_gamma(
            scores.shape, words.clamp(min=1), 1.0, 10, generator, scores.dtype, scores.device
        )
    position = torch.arange(scores.shape[-1], device=scores.device)
    head, modifier = position[:, None], position
    arc = (modifier > 0) & (head != modifier) & (head <= words) & (modifier <= words)
    return drawn.masked_fill(~arc, 0)


def _negative_log(exponential: Tensor) -> Tensor:
    """``-log(E)``, in place and finite even for ``E = 0``.

    Whether torch ever draws an exact 0 depends on its version, device and mathematics library, and
    a single ``inf`` in the scores poisons a whole batch. Exponential rather than uniform variables
    because ``-log(-log(u))`` has two such ends and rounds away the upper tail near ``u = 1``.
    """
    return exponential.clamp_(min=torch.finfo(exponential.dtype).tiny).log_().neg_()


def _sum_of_gamma(
    shape: Sequence[int],
    k: Tensor,
    tau: float,
    iterations: int,
    generator: torch.Generator | None,
    dtype: torch.dtype,
    device: torch.device | str | None,
) -> Tensor:
    """`sum_of_gamma` without the checks, which would wait for the GPU."""
    target, source, compute = _places(generator, dtype, device)
    if source.type not in _GAMMA_DEVICES:
        source = torch.device("cpu")
    counts = k.to(source, compute)
    concentration = (1 / counts).expand(tuple(shape)).contiguous()
    # Gamma(1/k, k/i) is k/i · Gamma(1/k, 1), and the k cancels against the 1/k in front
    total = torch.zeros_like(concentration)
    for i in range(1, iterations + 1):
        # the function behind torch.distributions.Gamma, which takes no generator
        total += torch._standard_gamma(concentration, generator=generator) / i
    return (tau * (total - math.log(iterations) / counts)).to(target, dtype)


def _places(
    generator: torch.Generator | None, dtype: torch.dtype, device: torch.device | str | None
) -> tuple[torch.device, torch.device, torch.dtype]:
    """Where the result goes, where it is drawn, and the type it is drawn in."""
    if not dtype.is_floating_point:
        raise InputError(f"dtype: received {dtype}; expected a floating point type")
    target = torch.get_default_device() if device is None else torch.device(device)
    # a generator only serves its own device
    source = target if generator is None else generator.device
    return target, source, torch.float64 if dtype == torch.float64 else torch.float32


def _words(lengths: Tensor | None, scores: Tensor) -> Tensor:
    """The lengths as ``(..., 1, 1)``, to be compared with positions."""
    if lengths is None:
        return torch.full((1, 1), scores.shape[-1] - 1, device=scores.device)
    if not isinstance(lengths, Tensor) or lengths.dtype not in INTEGER_TYPES:
        kind = lengths.dtype if isinstance(lengths, Tensor) else type(lengths).__name__
        raise InputError(f"lengths: received {kind}; expected an integer tensor")
    batch = tuple(scores.shape[:-2])
    if not broadcasts(tuple(lengths.shape), batch):
        raise InputError(
            f"lengths: received shape {tuple(lengths.shape)}; expected one that broadcasts to "
            f"the batch's {batch}"
        )
    same_device("lengths", lengths, scores)
    return lengths[..., None, None]
