"""From a request to its reply: the trees of one text, and what the model says."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from treelax.demo.messages import (
    MOST_WORDS,
    Arc,
    Matrix,
    Samples,
    SecondText,
    SourceName,
    Text,
    TreeReply,
    TreeRequest,
)
from treelax.demo.score_sources import Source
from treelax.distributions import StructureDistribution
from treelax.errors import InputError, NoTreeError
from treelax.noise import perturbation
from treelax.structures import Structure, structure_named
from treelax.trees import tree_to_heads

DECIMALS = 6
SAMPLED_AT_ONCE = 4_000_000  # numbers: samples are matrices, and every batch fills a chart
FORBIDDEN = float("-inf")


@torch.no_grad()
def answer(request: TreeRequest, sources: Mapping[SourceName, Source]) -> TreeReply:
    """All that the page shows of one text, and of the pair if there are two.

    >>> from treelax.demo.score_sources import ZeroSource
    >>> pinned = [Arc(head=0, word=2)]
    >>> request = TreeRequest(source="zero", text="dogs bark", pinned=pinned, noise_scale=0.0)
    >>> reply = answer(request, {"zero": ZeroSource()})
    >>> reply.marginals[0], reply.best_log_probability
    ([0.0, 0.5, 1.0], -0.693147)
    """
    source = sources.get(request.source)
    if source is None:
        raise InputError(
            f"source is {request.source!r}; expected one of {', '.join(sources)}, or a demo started "
            "with treelax demo RUN"
        )
    structure = structure_named(source.info.structure, single_root=request.single_root)
    texts = _parsed(request, source, structure)
    (words, trees), *others = reversed(texts) if request.shown == "second" else texts
    scores = trees.scores
    generator = torch.Generator().manual_seed(request.noise_seed)
    noise = perturbation("gumbel", scores, generator=generator)
    perturbed = scores + request.noise_scale * noise
    soft = structure.relaxed(
        perturbed, relaxation=request.relaxation, temperature=request.temperature
    )
    null = ["NULL"] * source.null
    return TreeReply(
        words=[*null, *words],
        null=source.null,
        other_words=[*null, *others[0][0]] if others else None,
        scores=_scores(scores),
        perturbed=_scores(perturbed),
        soft=_numbers(soft),
        marginals=_numbers(trees.marginals),
        best=_heads(trees.mode),
        best_perturbed=_heads(structure(perturbed).mode),
        best_log_probability=_number(trees.log_prob(trees.mode).clamp(max=0)),
        log_partition=_number(trees.log_partition),
        entropy=_number(trees.entropy()),
        samples=_samples(trees, request.samples, request.sample_seed),
        answer=source.answer([own for own, _ in texts], [own.mode.float() for _, own in texts]),
    )


def warm_up(sources: Mapping[SourceName, Source]) -> None:
    """Answer once with each source: the first answer takes ten times as long as those after it."""
    for name, source in sources.items():
        first, *more = source.info.examples
        second = SecondText(text=more[0]) if more else None
        request = TreeRequest(source=name, text=first, second=second, samples=1)
        relaxation = source.info.defaults.relaxation  # not all trees have both
        answer(request.model_copy(update={"relaxation": relaxation}), sources)


def _parsed(
    request: TreeRequest, source: Source, structure: Structure
) -> list[tuple[tuple[str, ...], StructureDistribution]]:
    """The words of each text, without NULL, and their trees; the first text first."""
    texts: dict[str, Text] = {"text": request}
    if request.second is not None:
        texts["second text"] = request.second
    if len(texts) > len(source.info.texts):
        raise InputError(f"second is a text; expected null: source {request.source!r} takes one")
    if request.shown == "second" and request.second is None:
        raise InputError("shown is 'second'; expected 'first', or a text in second")
    words = {name: _words(name, text.text, source) for name, text in texts.items()}
    counts = [len(own) for own in words.values()]
    if sum(counts) > MOST_WORDS:
        received = " and ".join(map(str, counts))
        raise InputError(f"received {received} words; expected at most {MOST_WORDS} in all")
    parsed = []
    for name, text in texts.items():
        scores = source.scores(words[name], request.score_seed).double()
        try:
            trees = structure(_constrained(scores, text))
            trees.mode  # noqa: B018  (raises where there is no tree)
            parsed.append((words[name], trees))
        except NoTreeError as error:
            raise InputError(
                f"{name}: pinned and forbidden arcs leave {structure.none_left}; free an arc"
            ) from error
    return parsed


def _words(name: str, text: str, source: Source) -> tuple[str, ...]:
    try:
        words = source.words(text) if text.strip() else ()
    except InputError as error:
        raise InputError(f"{name}: {error}") from error
    if not words:
        raise InputError(f"{name} has no words; expected 1 to {MOST_WORDS}")
    return words


def _constrained(scores: Tensor, text: Text) -> Tensor:
    """Scores after edits, forbidden and pinned arcs; those beyond the last word have no effect."""
    scores = scores.clone()

    def inside(arc: Arc) -> bool:
        return max(arc.head, arc.word) < len(scores)

    for edit in filter(inside, text.edits):
        scores[edit.head, edit.word] = edit.score
    for arc in filter(inside, text.forbidden):
        scores[arc.head, arc.word] = FORBIDDEN
    for arc in filter(inside, text.pinned):
        score = scores[arc.head, arc.word].item()
        scores[:, arc.word] = FORBIDDEN
        scores[arc.head, arc.word] = score
    return scores


def _samples(trees: StructureDistribution, count: int, seed: int) -> Samples:
    """The first so many samples of a seed; they are the same whatever comes after them."""
    generator = torch.Generator().manual_seed(seed)
    total, last = torch.zeros_like(trees.scores), None
    at_once = max(1, SAMPLED_AT_ONCE // total.numel())
    for start in range(0, count, at_once):
        drawn = trees.sample((min(at_once, count - start),), generator=generator)
        total += drawn.sum(0)
        last = _heads(drawn[-1])
    return Samples(count=count, last=last, frequencies=_numbers(total / max(count, 1)))


def _heads(tree: Tensor) -> list[int]:
    heads: list[int] = tree_to_heads(tree).tolist()
    return heads


def _number(value: Tensor) -> float:
    return round(value.item(), DECIMALS)


def _numbers(matrix: Tensor) -> Matrix:
    rounded: Matrix = matrix.round(decimals=DECIMALS).tolist()
    return rounded


def _scores(matrix: Tensor) -> Matrix:
    """Numbers, with None where there is no arc or a forbidden one."""
    rows = _numbers(matrix)
    return [
        [None if m in (0, h) or score == FORBIDDEN else score for m, score in enumerate(row)]
        for h, row in enumerate(rows)
    ]
