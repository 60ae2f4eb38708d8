"""From a request to its reply: the trees of one text, and what the model says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

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
from treelax.demo.sources import Scored, Source
from treelax.distributions import StructureDistribution
from treelax.errors import InputError, NoTreeError
from treelax.noise import perturbation
from treelax.structures import Structure, structure_named
from treelax.trees import tree_to_heads

__all__ = ["answer", "warm_up"]

DECIMALS = 6
SAMPLED_AT_ONCE = 4_000_000  # numbers: samples are matrices, and every batch fills a chart
FORBIDDEN = float("-inf")


@dataclass(frozen=True, eq=False)
class _Parsed:
    """A text with its trees; `unused` changes lie beyond its last word."""

    scored: Scored
    trees: StructureDistribution
    best: Tensor
    unused: int


@torch.no_grad()
def answer(request: TreeRequest, sources: Mapping[SourceName, Source]) -> TreeReply:
    """All that the page shows of one text, and of the pair if there are two.

    Args:
        request: the texts and all settings.
        sources: of scores, by name.

    Returns:
        The same reply for the same request, always.

    Raises:
        InputError: a text or the source is not known, the source takes another number of texts, an
            arc leads to where it comes from or is pinned and forbidden at once, or no tree is left.

    Example:
        >>> from treelax.demo.sources import ZeroSource
        >>> pinned = [Arc(head=0, word=2)]
        >>> request = TreeRequest(source="zero", text="dogs bark", pinned=pinned, noise_scale=0.0)
        >>> reply = answer(request, {"zero": ZeroSource()})
        >>> reply.marginals[0], reply.best_log_probability
        ([0.0, 0.5, 1.0], -0.693147)
    """
    source = sources.get(request.source)
    if source is None:
        raise InputError(
            f"source: received {request.source!r}, but the demo was started without a run; expected "
            f"one of {', '.join(sources)}, or start it with treelax demo RUN"
        )
    structure = structure_named(source.structure.name, single_root=request.single_root)
    texts = _parsed(request, source, structure)
    shown = texts[request.shown == "second"]
    others = [text for text in texts if text is not shown]
    scores, trees = shown.trees.scores, shown.trees
    generator = torch.Generator().manual_seed(request.noise_seed)
    noise = perturbation("gumbel", scores, generator=generator)
    perturbed = scores + request.noise_scale * noise
    soft = structure.relaxed(
        perturbed, relaxation=request.relaxation, temperature=request.temperature
    )
    said = source.answer([text.scored for text in texts], [text.best.float() for text in texts])
    return TreeReply(
        words=list(shown.scored.words),
        null=shown.scored.null,
        other_words=list(others[0].scored.words) if others else None,
        scores=_scores(scores),
        perturbed=_scores(perturbed),
        soft=_numbers(soft),
        marginals=_numbers(trees.marginals),
        best=_heads(shown.best),
        best_perturbed=_heads(structure(perturbed).mode),
        best_log_probability=_number(trees.log_prob(shown.best).clamp(max=0)),
        log_partition=_number(trees.log_partition),
        entropy=_number(trees.entropy()),
        samples=_samples(trees, request.samples, request.sample_seed),
        answer=said,
        unused=shown.unused,
    )


def warm_up(sources: Mapping[SourceName, Source]) -> None:
    """Answer once with each source: the first answer takes ten times as long as those after it.

    Args:
        sources: of scores, by name.

    Example:
        >>> from treelax.demo.sources import ZeroSource
        >>> warm_up({"zero": ZeroSource()})
    """
    for name, source in sources.items():
        second = None if source.second_example is None else SecondText(text=source.second_example)
        answer(TreeRequest(source=name, text=source.example, second=second, samples=1), sources)


def _parsed(request: TreeRequest, source: Source, structure: Structure) -> list[_Parsed]:
    """The texts of a request with their trees, the first one first."""
    if request.second is not None and len(source.texts) == 1:
        raise InputError(
            f"second: received a text, but the source {request.source!r} takes one; expected null, "
            "or a run of pairs"
        )
    if request.second is None and request.shown == "second":
        raise InputError(
            "shown: received 'second' without a second text; expected 'first', or a text in second"
        )
    parsed = []
    for number, text in enumerate([request, request.second] if request.second else [request]):
        with _named(number):
            scored = source.scored(text.text, request.score_seed)
            scores, unused = _constrained(scored.scores.double(), text)
            try:
                trees = structure(scores)
                parsed.append(_Parsed(scored, trees, trees.mode, unused))
            except NoTreeError as error:
                raise InputError(
                    f"pinned and forbidden arcs leave {structure.none_left}; expected at least one: "
                    "free an arc"
                ) from error
    words = [len(text.scored.words) - text.scored.null for text in parsed]
    if sum(words) > MOST_WORDS:
        received = " and ".join(map(str, words))
        raise InputError(f"texts: received {received} words; expected at most {MOST_WORDS} in all")
    return parsed


@contextmanager
def _named(number: int) -> Iterator[None]:
    """Errors of the second text say that they are of the second."""
    try:
        yield
    except InputError as error:
        if number == 0:
            raise
        raise InputError(f"second text: {str(error).removeprefix('text: ')}") from error


def _constrained(scores: Tensor, text: Text) -> tuple[Tensor, int]:
    """Scores after edits, forbidden and pinned arcs, and how many of these lie beyond the text."""
    for arc in (*text.edits, *text.forbidden, *text.pinned):
        if arc.head == arc.word:
            raise InputError(
                f"arcs: received one from word {arc.word} to itself; expected two positions"
            )
    scores, size = scores.clone(), len(scores)
    inside = [edit for edit in text.edits if _is_inside(edit, size)]
    for edit in inside:
        scores[edit.head, edit.word] = FORBIDDEN if edit.score is None else edit.score
    forbidden = _places(text.forbidden, size)
    for head, word in forbidden:
        scores[head, word] = FORBIDDEN
    pinned = _places(text.pinned, size)
    heads: dict[int, int] = {}
    for head, word in pinned:
        if (head, word) in forbidden:
            raise InputError(
                f"pinned: received the arc from {head} to {word}, which is forbidden too; expected "
                "one of both"
            )
        if heads.setdefault(word, head) != head:
            raise InputError(
                f"pinned: received heads {heads[word]} and {head} for word {word}; expected one"
            )
        score = scores[head, word].item()
        scores[:, word] = FORBIDDEN
        scores[head, word] = score
    given = len(text.edits) + len(text.forbidden) + len(text.pinned)
    kept = len(inside) + sum(_is_inside(arc, size) for arc in (*text.forbidden, *text.pinned))
    return scores, given - kept


def _is_inside(arc: Arc, size: int) -> bool:
    return arc.head < size and arc.word < size


def _places(arcs: Iterable[Arc], size: int) -> set[tuple[int, int]]:
    return {(arc.head, arc.word) for arc in arcs if _is_inside(arc, size)}


def _samples(trees: StructureDistribution, count: int, seed: int) -> Samples:
    """The first so many samples of a seed; they are the same whatever comes after them."""
    generator = torch.Generator().manual_seed(seed)
    total = torch.zeros_like(trees.scores)
    last: Tensor | None = None
    at_once = max(1, SAMPLED_AT_ONCE // total.numel())
    for start in range(0, count, at_once):
        drawn = trees.sample((min(at_once, count - start),), generator=generator)
        total += drawn.sum(0)
        last = drawn[-1]
    return Samples(
        count=count,
        last=None if last is None else _heads(last),
        frequencies=_numbers(total / max(count, 1)),
    )


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
