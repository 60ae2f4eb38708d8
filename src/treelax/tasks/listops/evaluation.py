"""All figures of a ListOps tagger on a set of expressions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from treelax.data.listops import Expression, baseline_heads, encode_listops
from treelax.errors import InputError
from treelax.tasks.listops.model import ListOpsTagger

# upper ends of the rows by length
LENGTHS = (10, 20, 50, 100, 200, 500)
# entries of the trees of one batch
BATCH_ENTRIES = 2_000_000
BATCH_MOST = 256


@dataclass(frozen=True)
class Parsed:
    """What a tagger says of one expression.

    Attributes:
        heads: of the discrete tree, counted from 1, 0 the root.
        tags: valencies, read from the discrete tree.
        soft_tags: valencies, read from the soft tree.

    Example:
        >>> Parsed(heads=(0, 1, 1, 1), tags=(2, 0, 0, 0), soft_tags=(2, 0, 0, 0)).heads
        (0, 1, 1, 1)
    """

    heads: tuple[int, ...]
    tags: tuple[int, ...]
    soft_tags: tuple[int, ...]


@torch.inference_mode()
def parse_all(
    model: ListOpsTagger,
    expressions: Sequence[Expression],
    *,
    progress: Callable[[int], None] | None = None,
) -> list[Parsed]:
    """Parse and tag expressions, in evaluation mode, whatever their lengths.

    Args:
        model: the tagger; its mode is left as it was.
        expressions: what to parse.
        progress: called with the number of tokens done; long expressions take most of the time.

    Returns:
        What the tagger says of each, in their order.

    Example:
        >>> from treelax.data.listops import parse_expression
        >>> from treelax.tasks.listops.model import ModelConfig
        >>> model = ListOpsTagger(ModelConfig(trees="gold"))
        >>> parse_all(model, [parse_expression("[MAX 2 9 ]")])[0].heads
        (0, 1, 1, 1)
    """
    device = model.composer.vertex.device
    order = sorted(range(len(expressions)), key=lambda i: len(expressions[i]))
    result: list[Parsed | None] = [None] * len(expressions)
    mode = model.training
    model.eval()
    done = tokens = 0
    try:
        while done < len(order):
            size = _batch_size([len(expressions[i]) for i in order[done : done + BATCH_MOST]])
            chosen = order[done : done + size]
            batch = encode_listops([expressions[i] for i in chosen]).to(device)
            discrete, soft = model.both_trees(batch)
            heads = discrete.argmax(-2)[:, 1:].tolist()
            tags = model.composer(discrete).argmax(-1).tolist()
            soft_tags = model.composer(soft).argmax(-1).tolist()
            for row, i in enumerate(chosen):
                n = len(expressions[i])
                result[i] = Parsed(
                    tuple(heads[row][:n]), tuple(tags[row][:n]), tuple(soft_tags[row][:n])
                )
            done += size
            tokens += sum(len(expressions[i]) for i in chosen)
            if progress is not None:
                progress(tokens)
    finally:
        model.train(mode)
    return [parsed for parsed in result if parsed is not None]


@dataclass(frozen=True)
class Evaluation:
    """Figures in percent; see `evaluate`."""

    sentences: int
    tokens: int
    operators: int
    operator_accuracy: float
    token_accuracy: float
    attachment: float
    exact_trees: float
    soft_operator_accuracy: float
    soft_token_accuracy: float
    attachment_by_kind: dict[str, float]
    by_length: list[dict[str, Any]]
    baselines: dict[str, float]


def evaluate(
    model: ListOpsTagger,
    expressions: Sequence[Expression],
    *,
    progress: Callable[[int], None] | None = None,
) -> Evaluation:
    """Evaluate a tagger with discrete trees, as the paper does, and with soft ones.

    - ``operator_accuracy``: valencies of operators that are right, the paper's accuracy;
      ``token_accuracy`` counts all tokens, which have valency 0 if they are no operator.
    - ``attachment``: heads that are right, over all tokens; ``exact_trees``: expressions with all
      heads right; ``attachment_by_kind``: over arguments (digits), brackets, nested operators and
      the outermost operators, which hang off the root.
    - ``soft_…``: the same accuracies read from the soft tree of the scores, without noise.
    - ``baselines``: attachment if every token hangs off the previous token, or off the last operator
      to its left.

    Args:
        model: the tagger.
        expressions: with their gold trees, at least one.
        progress: called with the number of tokens done; long expressions take most of the time.

    Returns:
        The figures.

    Raises:
        InputError: there are no expressions.

    Example:
        >>> from treelax.data.listops import parse_expression
        >>> from treelax.tasks.listops.model import ModelConfig
        >>> model = ListOpsTagger(ModelConfig(trees="chain"))
        >>> evaluate(model, [parse_expression("[MAX 2 9 ]")]).attachment
        50.0
    """
    if not expressions:
        raise InputError("expressions: received none; expected at least one")
    parsed = parse_all(model, expressions, progress=progress)
    total: Counter[str] = Counter()
    rows: dict[int, Counter[str]] = {}
    for expression, one in zip(expressions, parsed, strict=True):
        counts = _counts(expression, one)
        total.update(counts)
        rows.setdefault(_row(len(expression)), Counter()).update(counts)
    kinds = ("argument", "bracket", "nested operator", "outermost operator")
    return Evaluation(
        sentences=total["sentences"],
        tokens=total["tokens"],
        operators=total["operators"],
        operator_accuracy=_percent(total, "right operators", "operators"),
        token_accuracy=_percent(total, "right tokens", "tokens"),
        attachment=_percent(total, "right heads", "tokens"),
        exact_trees=_percent(total, "exact", "sentences"),
        soft_operator_accuracy=_percent(total, "soft operators", "operators"),
        soft_token_accuracy=_percent(total, "soft tokens", "tokens"),
        attachment_by_kind={
            kind: _percent(total, f"right {kind}", kind) for kind in kinds if total[kind]
        },
        by_length=[
            {
                "longest": LENGTHS[row] if row < len(LENGTHS) else None,
                "sentences": rows[row]["sentences"],
                "tokens": rows[row]["tokens"],
                "operators": rows[row]["operators"],
                "operator_accuracy": _percent(rows[row], "right operators", "operators"),
                "attachment": _percent(rows[row], "right heads", "tokens"),
                "exact_trees": _percent(rows[row], "exact", "sentences"),
                "attachment_operator": _percent(rows[row], "operator baseline", "tokens"),
            }
            for row in sorted(rows)
        ],
        baselines={
            "previous token": _percent(total, "previous baseline", "tokens"),
            "last operator": _percent(total, "operator baseline", "tokens"),
        },
    )


def _counts(expression: Expression, parsed: Parsed) -> Counter[str]:
    gold, valencies = expression.heads, expression.valencies
    counts: Counter[str] = Counter(sentences=1, tokens=len(expression))
    counts["exact"] = int(parsed.heads == gold)
    previous, operator = (baseline_heads(expression, name) for name in ("previous", "operator"))
    for i, kind in enumerate(expression.kinds):
        right = parsed.heads[i] == gold[i]
        tag = parsed.tags[i] == valencies[i]
        soft = parsed.soft_tags[i] == valencies[i]
        if kind == "operator":
            counts["operators"] += 1
            counts["right operators"] += tag
            counts["soft operators"] += soft
            kind = "nested operator" if gold[i] else "outermost operator"
        counts[kind] += 1
        counts[f"right {kind}"] += right
        counts["right heads"] += right
        counts["right tokens"] += tag
        counts["soft tokens"] += soft
        counts["previous baseline"] += previous[i] == gold[i]
        counts["operator baseline"] += operator[i] == gold[i]
    return counts


def _row(length: int) -> int:
    return next((row for row, longest in enumerate(LENGTHS) if length <= longest), len(LENGTHS))


def _percent(counts: Counter[str], part: str, whole: str) -> float:
    return 100 * counts[part] / counts[whole] if counts[whole] else 0.0


def _batch_size(lengths: Sequence[int]) -> int:
    """How many of these expressions, sorted by length, fit into one batch; at least one."""
    size = 1
    while size < len(lengths) and (size + 1) * (lengths[size] + 1) ** 2 <= BATCH_ENTRIES:
        size += 1
    return size
