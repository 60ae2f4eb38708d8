"""From a request to its reply: the trees of one text, and what the model says."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from treelax.apps.demo.messages import (
    MOST_WORDS,
    Arc,
    Matrix,
    Parts,
    Samples,
    SourceName,
    Text,
    TreeReply,
    TreeRequest,
)
from treelax.apps.demo.score_sources import Source
from treelax.apps.tasks.settings import NOISY, RELAXING, TEMPERED, EstimatorSettings, LatentSettings
from treelax.distributions import StructureDistribution
from treelax.errors import InputError, NoTreeError
from treelax.estimators import IMLE
from treelax.interface import StructureInterface
from treelax.noise import Gumbel
from treelax.ops.backend import inner
from treelax.structures import Structure, structure_named

DECIMALS = 6
SAMPLED_AT_ONCE = 4_000_000  # numbers: samples are matrices, and every batch fills a chart
# SparseMAP adds this many trees times words at most: all that 40 words need at high temperatures, and
# one or two seconds of 200 words
MOST_SPARSEMAP = 64_000
FORBIDDEN = float("-inf")


@torch.no_grad()
def answer(request: TreeRequest, sources: Mapping[SourceName, Source]) -> TreeReply:
    """All that the page shows of one text, and of the pair if there are two.

    >>> from treelax.apps.demo.score_sources import ZeroSource
    >>> pinned = [Arc(head=0, word=2)]
    >>> request = TreeRequest(source="zero", text="dogs bark", pinned=pinned, noise_scale=0.0)
    >>> reply = answer(request, {"zero": ZeroSource()})
    >>> reply.marginals[0], reply.best_log_probability
    ([0.0, 0.5, 1.0], -0.693147)
    """
    source = _source(request, sources)
    structure = _structure(request, source)
    texts = _parsed(request, source, structure)
    (words, trees), *others = reversed(texts) if request.shown == "second" else texts
    scores = trees.scores
    allowed = _allowed(structure, scores)
    spread = _spread(structure, scores, allowed)
    unit = spread if request.relative else 1.0
    generator = torch.Generator().manual_seed(request.noise_seed)
    noisy, _, noise = trees.perturbed(Gumbel(request.noise_scale * unit), generator=generator)
    assert noise is not None
    soft, target, gradient = _estimated(request, source, trees, allowed, noisy, unit)
    null = ["NULL"] * source.null
    shown = partial(_matrix, structure)
    return TreeReply(
        words=[*null, *words],
        null=source.null,
        other_words=[*null, *others[0][0]] if others else None,
        scores=shown(scores, allowed),
        spread=round(spread, DECIMALS),
        noise=shown(noise, allowed),
        perturbed=shown(noisy, allowed),
        soft=shown(soft),
        gap=_gap(structure, noisy / (request.temperature * unit), soft)
        if request.estimator == "sparsemap"
        else None,
        target=target,
        gradient=None if gradient is None else shown(gradient),
        marginals=shown(trees.marginals),
        best=_parts(structure, trees.mode),
        best_perturbed=_parts(structure, structure(noisy).mode),
        best_log_probability=_number(trees.log_prob(trees.mode).clamp(max=0)),
        log_partition=_number(trees.log_partition),
        entropy=_number(trees.entropy()),
        samples=_samples(trees, request.samples, request.sample_seed),
        answer=source.answer([text for text, _ in texts], [dist.mode.float() for _, dist in texts]),
    )


def warm_up(sources: Mapping[SourceName, Source]) -> None:
    """Answer once with each source: the first answer takes ten times as long as those after it."""
    for name, source in sources.items():
        first, *more = (Text(text=text) for text in source.info.examples)
        second, target = next(iter(more), None), Arc(head=1, word=2)
        answer(
            TreeRequest(source=name, text=first.text, second=second, samples=1, target=target),
            sources,
        )


def _source(request: TreeRequest, sources: Mapping[SourceName, Source]) -> Source:
    source = sources.get(request.source or next(iter(sources)))
    if source is None:
        raise InputError(
            f"source is {request.source!r}; expected one of {', '.join(sources)}, or a demo started "
            "with treelax demo RUN"
        )
    return source


def _structure(request: TreeRequest, source: Source) -> Structure:
    name = request.structure or source.info.structure
    if name not in source.info.structures:
        raise InputError(
            f"structure is {name!r}; expected {' or '.join(source.info.structures)}: this model "
            f"scores {'spans, not arcs' if 'binary' in source.info.structures else 'arcs, not spans'}"
        )
    return structure_named(name, single_root=request.single_root)


def _parsed(
    request: TreeRequest, source: Source, structure: Structure
) -> list[tuple[tuple[str, ...], StructureDistribution]]:
    """The words of each text, without NULL, and their trees; the first text first."""
    texts: dict[str, Text] = {"text": request}
    if request.second is not None:
        texts["second text"] = request.second
    elif request.shown == "second":
        raise InputError("shown is 'second'; expected 'first', or a text in second")
    if len(texts) > len(source.info.texts):
        raise InputError(f"second is a text; expected null: source {source.info.name!r} takes one")
    several = [_words(name, text.text, source) for name, text in texts.items()]
    if sum(map(len, several)) > MOST_WORDS:
        received = " and ".join(str(len(words)) for words in several)
        raise InputError(f"received {received} words; expected at most {MOST_WORDS} in all")
    parsed = []
    for (name, text), words in zip(texts.items(), several, strict=True):
        size = source.null + len(words) + structure.rooted
        # spans have no root, but scores without a model do
        scores = source.scores(words, request.score_seed).double()[-size:, -size:]
        trees = structure(_constrained(structure, scores, text))
        try:
            trees.mode  # noqa: B018  (raises where there is no tree)
        except NoTreeError as error:
            what = f"{name}: pinned and forbidden {structure.part}s leave {structure.none_left}"
            raise InputError(f"{what}; free one") from error
        parsed.append((words, trees))
    return parsed


def _words(name: str, text: str, source: Source) -> tuple[str, ...]:
    try:
        words = source.words(text) if text.strip() else ()
    except InputError as error:
        raise InputError(f"{name}: {error}") from error
    if not words:
        raise InputError(f"{name} has no words; expected 1 to {MOST_WORDS}")
    return words


def _constrained(structure: Structure, scores: Tensor, text: Text) -> Tensor:
    """Scores after edits, forbidden and pinned parts; what is no part has no effect."""
    scores, place = scores.clone(), partial(_place, structure, size=len(scores))
    for edit in text.edits:
        if at := place(edit):
            scores[at] = edit.score
    for arc in text.forbidden:
        if at := place(arc):
            scores[at] = FORBIDDEN
    for arc in text.pinned:
        if at := place(arc):
            one = torch.zeros_like(scores, dtype=torch.bool)
            one[at] = True
            scores = scores.masked_fill(~structure.compatible_parts(one), FORBIDDEN)
    return scores


def _place(structure: StructureInterface, arc: Arc, size: int) -> tuple[int, int] | None:
    """Where a part is in the scores; None beyond the last word, and for what is no part."""
    first = not structure.rooted  # spans count words from 0
    row, column = arc.head - first, arc.word - first
    is_part = row != column if structure.rooted else 0 <= row < column
    return (row, column) if is_part and max(row, column) < size else None


def _allowed(structure: StructureInterface, scores: Tensor) -> Tensor:
    """Parts that are not forbidden, without single words, which all binary trees have."""
    words = torch.tensor(len(scores) - structure.rooted)
    parts = structure.part_mask(words, len(scores)) & (scores > FORBIDDEN)
    return parts if structure.rooted else parts.triu(1)


def _spread(structure: Structure, scores: Tensor, allowed: Tensor) -> float:
    """Standard deviation around the mean of each column of arcs, or of all spans; 1 in place of 0."""
    by = (0,) if structure.rooted else (0, 1)
    counts = allowed.sum(by, keepdim=True).clamp(min=1)
    apart = (scores - scores.where(allowed, 0).sum(by, keepdim=True) / counts).where(allowed, 0)
    return (apart.square().sum() / allowed.sum().clamp(min=1)).sqrt().item() or 1.0


def _estimated(
    request: TreeRequest,
    source: Source,
    trees: StructureDistribution,
    allowed: Tensor,
    noisy: Tensor,
    unit: float,
) -> tuple[Tensor, Arc | None, Tensor | None]:
    """The tree of the estimator, the target, and the gradient of 1 - the weight there."""
    structure, name = trees.structure, request.estimator
    within_polytope = name == "spigot" and structure.unconstrained is None
    estimator = EstimatorSettings(
        name,
        step=unit * IMLE.step if name == "imle" else None,
        projection="polytope" if within_polytope else "simplex",
        max_iterations=MOST_SPARSEMAP // len(trees.scores) if name == "sparsemap" else None,
    )
    used: dict[str, Any] = {}
    if name in TEMPERED:
        used["temperature"] = request.temperature * unit
    if name in NOISY:
        used |= {"noise": "gumbel", "noise_scale": request.noise_scale * unit}
    if name in RELAXING:
        used["relaxation"] = request.relaxation or source.info.defaults.relaxation
    settings = LatentSettings(estimator=estimator, **used)
    generator = torch.Generator().manual_seed(request.noise_seed)
    with torch.enable_grad():
        scores = trees.scores.clone().requires_grad_()
        soft = settings.make_estimator().sample(
            StructureDistribution(structure, scores), generator=generator
        )
        best = StructureDistribution(structure, noisy).mode
        target = request.target or _least_certain(trees, allowed, soft.detach(), best)
        place = target and _place(structure, target, len(scores))
        if not place:
            return soft.detach(), target, None
        [gradient] = torch.autograd.grad(1 - soft[place], scores)
    return soft.detach(), target, gradient


def _gap(structure: StructureInterface, scores: Tensor, soft: Tensor) -> float:
    """How far a sparse tree may be from the nearest one, as `SparseMap.gap`."""
    rest = scores - soft
    dims = structure.event_dim
    better = inner(structure.argmax(rest), rest, dims) - inner(soft, rest, dims)
    return _number(better.clamp(min=0))


def _least_certain(
    trees: StructureDistribution, allowed: Tensor, soft: Tensor, best: Tensor
) -> Arc | None:
    """Of the parts outside the best tree, that whose weight is nearest 0.5; None if there is no part.

    A part of the best tree has all that it can get from estimators that give whole trees, so that
    their gradient is 0. All other weights are 0 then, and marginals decide.
    """
    if (outside := allowed & (best == 0)).any():
        allowed = outside
    if not allowed.any():
        return None
    apart = (soft - 0.5).abs() + 1e-3 * (trees.marginals - 0.5).abs()
    first = not trees.structure.rooted  # spans count words from 0
    row, column = divmod(int(apart.masked_fill(~allowed, torch.inf).argmin()), len(soft))
    return Arc(head=row + first, word=column + first)


def _samples(trees: StructureDistribution, count: int, seed: int) -> Samples:
    """The first so many samples of a seed; they are the same whatever comes after them."""
    generator = torch.Generator().manual_seed(seed)
    total, last = torch.zeros_like(trees.scores), None
    at_once = max(1, SAMPLED_AT_ONCE // total.numel())
    for start in range(0, count, at_once):
        drawn = trees.sample((min(at_once, count - start),), generator=generator)
        total += drawn.sum(0)
        last = _parts(trees.structure, drawn[-1])
    frequencies = _matrix(trees.structure, total / max(count, 1))
    return Samples(count=count, last=last, frequencies=frequencies)


def _shown(structure: StructureInterface, matrix: Tensor) -> Tensor:
    """With a row and a column for the root; without single words, which all binary trees have."""
    return matrix if structure.rooted else F.pad(matrix.triu(1), (1, 0, 1, 0))


def _parts(structure: StructureInterface, tree: Tensor) -> Parts:
    """The parts of a tree, in the order of the words."""
    pairs = _shown(structure, tree).T.nonzero().tolist()
    return [(head, word) for word, head in pairs]


def _number(value: Tensor) -> float:
    return round(value.item(), DECIMALS)


def _matrix(structure: StructureInterface, matrix: Tensor, allowed: Tensor | None = None) -> Matrix:
    """Numbers, with None at what is no part or not allowed if that is given."""
    rows: Matrix = _shown(structure, matrix).round(decimals=DECIMALS).tolist()
    for row, column in [] if allowed is None else (~_shown(structure, allowed)).nonzero().tolist():
        rows[row][column] = None
    return rows
