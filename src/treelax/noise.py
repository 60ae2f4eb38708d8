"""Noise for perturb-and-parse: Gumbel, Gaussian and sum-of-gamma, from a `torch.Generator`.

Adding independent noise to the arc scores and taking the best tree is a way of sampling trees. The
distribution of the noise is a modelling choice: Gumbel noise is the paper's (Corro & Titov 2019),
sum-of-gamma noise makes the *score of a whole tree* nearly Gumbel (Niepert et al. 2021), Gaussian
noise is the usual one of perturbed optimisers (Berthet et al. 2020).

All noise is multiplied by its ``scale``; with ``root_arcs=False`` estimators add none to arcs from the
root. What is reproducible: a generator in the same state on the same kind of device, asked for the same
shape and type, gives the same bits. A sentence's noise is drawn from one stream together with its
batch, so it depends on the shape of the batch and on the sentence's place in it. It is zero
wherever there is no arc, so padding never carries noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import ClassVar, Literal

import torch
from torch import Tensor

from treelax.errors import InputError
from treelax.ops.checks import arc_mask, broadcasts, check_lengths, check_scores, one_of

__all__ = [
    *("NOISES", "Gaussian", "Gumbel", "Noise", "NoiseName", "SumOfGamma"),
    *("gaussian", "gumbel", "noise_named", "perturbation", "sum_of_gamma"),
]

#: What is known by name.
NoiseName = Literal["gumbel", "gaussian", "sum-of-gamma", "none"]
NOISES: tuple[str, ...] = ("gumbel", "gaussian", "sum-of-gamma", "none")


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
    """Draw independent Gumbel(0, 1) variables: ``-log(E)`` with ``E`` exponential of mean 1; all finite.

    Half types are drawn in float32 and rounded. Draws happen on the generator's device and are moved to
    ``device``, if that is another one.

    Example:
        >>> noise = gumbel((2, 3), generator=torch.Generator().manual_seed(0))
        >>> noise.shape, bool(noise.isfinite().all())
        (torch.Size([2, 3]), True)
    """
    target, source, compute = _places(generator, dtype, device)
    exponential = torch.empty(tuple(shape), dtype=compute, device=source)
    return _negative_log(exponential.exponential_(generator=generator)).to(target, dtype)


def gaussian(
    shape: Sequence[int],
    *,
    generator: torch.Generator | None = None,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str | None = None,
) -> Tensor:
    """Draw independent standard normal variables; arguments are those of `gumbel`."""
    target, source, compute = _places(generator, dtype, device)
    drawn = torch.empty(tuple(shape), dtype=compute, device=source).normal_(generator=generator)
    return drawn.to(target, dtype)


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
    and is within 0.029 of it for ``s = 10``. A tree over ``n`` words has ``k = n`` arcs. Other
    arguments are those of `gumbel`.

    Args:
        k: how many variables add up to a Gumbel; a number or a tensor that broadcasts to ``shape``.
        tau: scale of that Gumbel.
        iterations: ``s``, how many gamma variables go into each.

    Example:
        >>> noise = sum_of_gamma((3, 4), k=4, generator=torch.Generator().manual_seed(0))
        >>> bool((noise >= -math.log(10) / 4).all())
        True

    Reference:
        Niepert, Minervini & Franceschi, Implicit MLE (NeurIPS 2021), arXiv:2106.01798.
    """
    counts, size = torch.as_tensor(k), tuple(shape)
    # reading values would make a GPU wait, and torch.compile break its graph
    readable = counts.device.type == "cpu" and not torch.compiler.is_compiling()
    if readable and not bool((counts > 0).all()):
        raise InputError(f"k: received {k}; expected positive numbers")
    if not tau > 0:
        raise InputError(f"tau: received {tau}; expected a positive number")
    if iterations < 1:
        raise InputError(f"iterations: received {iterations}; expected at least 1")
    if not broadcasts(given := tuple(counts.shape), size):
        raise InputError(f"k: received shape {given}; expected one that broadcasts to {size}")
    target, source, compute = _places(generator, dtype, device)
    if source.type not in _GAMMA_DEVICES:
        source = torch.device("cpu")
    counts = counts.to(source, compute)
    concentration = (1 / counts).expand(size).contiguous()
    # Gamma(1/k, k/i) is k/i · Gamma(1/k, 1), and the k cancels against the 1/k in front
    total = torch.zeros_like(concentration)
    for i in range(1, iterations + 1):
        # the function behind torch.distributions.Gamma, which takes no generator
        total += torch._standard_gamma(concentration, generator=generator) / i
    return (tau * (total - math.log(iterations) / counts)).to(target, dtype)


@dataclass(frozen=True)
class _Independent:
    """Noise that is drawn for every part independently."""

    scale: float = 1.0
    root_arcs: bool = True
    source: ClassVar[Callable[..., Tensor]]

    def __post_init__(self) -> None:
        _check_scale(self.scale)

    def draw(self, like: Tensor, parts: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Noise of the shape, type and device of a tensor."""
        drawn = type(self).source(
            like.shape, generator=generator, dtype=like.dtype, device=like.device
        )
        return drawn if self.scale == 1 else drawn * self.scale


class Gumbel(_Independent):
    """Independent Gumbel(0, scale) noise on every part: the paper's, ``−s · log E`` with ``E ~ Exp(1)``.

    Example:
        >>> import treelax as tx
        >>> tx.Relaxed("entropy", temperature=0.5, noise=tx.Gumbel(0.5)).noise
        Gumbel(scale=0.5, root_arcs=True)

    Reference:
        Corro & Titov (2019), section 3.
    """

    source = staticmethod(gumbel)

    def score(self, drawn: Tensor) -> Tensor:
        """Negative derivative of the log-density of noise that was drawn: ``(1 - e^{-x/s})/s``."""
        return (1 - (-drawn / self.scale).exp()) / self.scale


class Gaussian(_Independent):
    """Independent normal noise of standard deviation ``scale`` on every part, with a draw for each.

    Example:
        >>> import treelax as tx
        >>> tx.Perturbed(samples=4, noise=tx.Gaussian(0.5)).noise
        Gaussian(scale=0.5, root_arcs=True)

    Reference:
        Berthet et al. (2020), Learning with differentiable perturbed optimizers, NeurIPS.
    """

    source = staticmethod(gaussian)

    def score(self, drawn: Tensor) -> Tensor:
        """Negative derivative of the log-density of noise that was drawn: ``x/s²``."""
        return drawn / self.scale**2


@dataclass(frozen=True)
class SumOfGamma:
    """Noise of which as many as a structure has parts add up to nearly one Gumbel(0, scale).

    The formula is that of `sum_of_gamma`; it costs ``iterations`` draws for each part.

    Example:
        >>> import treelax as tx
        >>> tx.IMLE(step=10.0).noise
        SumOfGamma(scale=1.0, iterations=10, root_arcs=True)

    Reference:
        Niepert, Minervini & Franceschi (2021), Implicit MLE, NeurIPS.
    """

    scale: float = 1.0
    iterations: int = 10
    root_arcs: bool = True

    def __post_init__(self) -> None:
        _check_scale(self.scale)
        if not isinstance(self.iterations, int) or self.iterations < 1:
            least = "expected a whole number of at least 1."
            raise InputError(f"iterations is {self.iterations!r}; {least}")

    def draw(self, like: Tensor, parts: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Noise of the shape, type and device of a tensor; ``parts`` broadcasts to it."""
        drawn = sum_of_gamma(
            like.shape,
            parts.clamp(min=1),
            iterations=self.iterations,
            generator=generator,
            dtype=like.dtype,
            device=like.device,
        )
        return drawn if self.scale == 1 else drawn * self.scale


Noise = Gumbel | Gaussian | SumOfGamma


def _check_scale(scale: float) -> None:
    if not isinstance(scale, Real) or not 0 <= scale < math.inf:
        raise InputError(f"noise_scale is {scale!r}; expected a finite number of at least 0.")


def noise_named(
    name: NoiseName | None, scale: float = 1.0, *, root_arcs: bool = True
) -> Noise | None:
    """The noise that configurations call by a name; None for no noise.

    Example:
        >>> noise_named("gumbel", 0.5), noise_named("none")
        (Gumbel(scale=0.5, root_arcs=True), None)
    """
    one_of("noise", name or "none", NOISES)
    kinds: dict[str | None, type[Noise]] = {
        "gumbel": Gumbel,
        "gaussian": Gaussian,
        "sum-of-gamma": SumOfGamma,
    }
    return kinds[name](scale, root_arcs=root_arcs) if name in kinds else None


def perturbation(
    noise: NoiseName | None,
    scores: Tensor,
    lengths: Tensor | None = None,
    *,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Draw the noise to add to arc scores, zero wherever there is no arc.

    There is no arc in column 0, on the diagonal, and beyond a sentence's length. The result has shape,
    type and device of the scores ``(..., n + 1, n + 1)``, and no gradient.

    Args:
        noise: "gumbel", "gaussian", "sum-of-gamma" (``k`` is the sentence's length, ``τ = 1``,
            ``s = 10``), or "none" or None for zeros.
        scores: of arcs.
        lengths: broadcasts to ``(...)``, words per sentence; all n by default. Their values are not
            checked here, since that would wait for the GPU.
        generator: source of the randomness.

    Example:
        >>> noise = perturbation("gumbel", torch.zeros(4, 4), torch.tensor(2))
        >>> (noise != 0).int()
        tensor([[0, 1, 1, 0],
                [0, 0, 1, 0],
                [0, 1, 0, 0],
                [0, 0, 0, 0]], dtype=torch.int32)
    """
    source = noise_named(noise)
    check_scores(scores)
    batch, size = scores.shape[:-2], scores.shape[-1]
    if lengths is None:
        lengths = torch.full((), size - 1, device=scores.device)
    if isinstance(lengths, Tensor) and broadcasts(tuple(lengths.shape), tuple(batch)):
        lengths = lengths.expand(batch)
    check_lengths(lengths, batch, scores.device)
    if source is None:
        return torch.zeros(scores.shape, dtype=scores.dtype, device=scores.device)
    drawn = source.draw(scores, lengths[..., None, None], generator)
    return drawn.masked_fill(~arc_mask(lengths, size), 0)


def _negative_log(exponential: Tensor) -> Tensor:
    """``-log(E)``, in place and finite even for ``E = 0``.

    Whether torch ever draws an exact 0 depends on its version, device and mathematics library, and
    a single ``inf`` in the scores poisons a whole batch. Exponential rather than uniform variables
    because ``-log(-log(u))`` has two such ends and rounds away the upper tail near ``u = 1``.
    """
    return exponential.clamp_(min=torch.finfo(exponential.dtype).tiny).log_().neg_()


def _places(
    generator: torch.Generator | None, dtype: torch.dtype, device: torch.device | str | None
) -> tuple[torch.device, torch.device, torch.dtype]:
    """Where the result goes, where it is drawn, and the type it is drawn in."""
    if not dtype.is_floating_point:
        raise InputError(f"dtype: received {dtype}; expected a floating point type")
    target = torch.get_default_device() if device is None else torch.device(device)
    # a generator only serves its device
    source = target if generator is None else generator.device
    return target, source, torch.float64 if dtype == torch.float64 else torch.float32
