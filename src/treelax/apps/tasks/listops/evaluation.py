"""The figures of a ListOps tagger on a set of expressions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from treelax.apps.data.batching import length_batches
from treelax.apps.data.listops import Baseline, Expression, baseline_heads, encode_listops
from treelax.apps.table import Table
from treelax.apps.tasks.listops.model import ListOpsTagger
from treelax.errors import InputError
from treelax.nn.modes import evaluating

LENGTHS = (10, 20, 50, 100, 200, 500)  # upper ends of the rows by length
BATCH_ENTRIES = 2_000_000  # of the trees of one batch
BATCH_MOST = 256
KINDS = ("argument", "bracket", "nested operator", "outermost operator")
BASELINES: dict[str, Baseline] = {"previous token": "previous", "last operator": "operator"}


@dataclass(frozen=True)
class Parsed:
    """The heads of one expression, and the valencies predicted with either tree."""

    heads: tuple[int, ...]
    tags: tuple[int, ...]
    soft_tags: tuple[int, ...]
    scores: Tensor | None = None


@torch.inference_mode()
def parse_all(
    model: ListOpsTagger,
    expressions: Sequence[Expression],
    *,
    scores: bool = False,
    progress: Callable[[int], None] | None = None,
) -> list[Parsed]:
    """Parse and tag expressions, in evaluation mode, in their order."""
    device = model.composer.vertex.device
    parses: dict[int, Parsed] = {}
    done = 0
    lengths = [len(expression) for expression in expressions]
    with evaluating(model):
        for chosen in length_batches(lengths, most_arcs=BATCH_ENTRIES, most_sentences=BATCH_MOST):
            batch = encode_listops([expressions[i] for i in chosen]).to(device)
            arcs = None
            if scores and model.parser is not None:
                arcs = model.parser.scores(batch.tokens, batch.lengths)
            discrete, soft = model.both_trees(batch, arcs)
            heads = discrete.argmax(-2)[:, 1:].tolist()
            tags, soft_tags = (model.composer(t).argmax(-1).tolist() for t in (discrete, soft))
            for row, i in enumerate(chosen):
                n = lengths[i]
                parses[i] = Parsed(
                    tuple(heads[row][:n]),
                    tuple(tags[row][:n]),
                    tuple(soft_tags[row][:n]),
                    None if arcs is None else arcs[row, : n + 1, : n + 1].to("cpu", copy=True),
                )
                done += n
            if progress is not None:
                progress(done)
    return [parses[i] for i in range(len(expressions))]


@dataclass(frozen=True)
class Evaluation:
    """Figures in percent; see `evaluate`. Attachment counts ``arcs``, or all tokens without it."""

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
    arcs: int | None = None

    def record(self) -> dict[str, Any]:
        return asdict(self)

    def tables(self, title: str) -> list[Table]:
        every = self.arcs in (None, self.tokens)
        figures: dict[str, tuple[float, ...]] = {
            "tags of operators": (self.operator_accuracy, self.soft_operator_accuracy),
            "tags of all tokens": (self.token_accuracy, self.soft_token_accuracy),
            "attachment" if every else "attachment below the root": (self.attachment,),
            **{f"  of {kind}s": (share,) for kind, share in self.attachment_by_kind.items()},
            "exact trees": (self.exact_trees,),
            **{f"attachment to the {name}": (share,) for name, share in self.baselines.items()},
        }
        rows = [[what, *(f"{f:.2f}" for f in row), ""][:3] for what, row in figures.items()]
        title = f"{title}: {self.sentences:,} expressions, {self.operators:,} operators"
        starts = dict(zip((*LENGTHS, None), (1, *(n + 1 for n in LENGTHS)), strict=True))
        keys = ("operator_accuracy", "attachment", "exact_trees", "attachment_operator")
        by_length = [
            [
                f"{starts[row['longest']]}–{row['longest'] or ''}",
                f"{row['sentences']:,}",
                *(f"{row[key]:.2f}" for key in keys),
            ]
            for row in self.by_length
        ]
        names = ("tokens", "expressions", "operators", "attachment", "exact trees", "last operator")
        return [
            Table(["%", "discrete trees", "soft trees"], rows, title),
            Table(names, by_length),
        ]


def evaluate(
    model: ListOpsTagger,
    expressions: Sequence[Expression],
    *,
    progress: Callable[[int], None] | None = None,
) -> Evaluation:
    """Evaluate a tagger with discrete trees, as the paper does, and with soft ones.

    - ``operator_accuracy``: valencies of operators that are right, the paper's accuracy;
      ``token_accuracy`` counts all tokens, which have valency 0 if they are no operator.
    - ``attachment``: heads that are right, over all tokens, or without ``model.root_arcs`` over those
      whose gold head is not the root; ``exact_trees``: expressions with all of these right;
      ``attachment_by_kind``: over arguments (digits), brackets, nested operators and the outermost
      operators, whose head is the root.
    - ``soft_…``: the same accuracies read from the soft tree of the scores, without noise.
    - ``baselines``: attachment if every token is attached to the previous token, or to the last
      operator to its left.
    """
    if not expressions:
        raise InputError("expressions: received none; expected at least one")
    parsed = parse_all(model, expressions, progress=progress)
    root_arcs = model.config.root_arcs
    groups: dict[float, list[Counter[str]]] = {}
    for expression, one in zip(expressions, parsed, strict=True):
        longest = next((n for n in LENGTHS if len(expression) <= n), math.inf)
        groups.setdefault(longest, []).append(_counts(expression, one, root_arcs))
    rows = [(longest, sum(groups[longest], Counter())) for longest in sorted(groups)]
    total = sum((counts for _, counts in rows), Counter[str]())
    return Evaluation(
        **_shares(total),
        token_accuracy=_percent(total, "right", "tokens"),
        soft_operator_accuracy=_percent(total, "soft operators", "operators"),
        soft_token_accuracy=_percent(total, "soft", "tokens"),
        attachment_by_kind={
            kind: _percent(total, f"right {kind}", kind) for kind in KINDS if total[kind]
        },
        by_length=[
            {
                "longest": None if longest == math.inf else longest,
                **_shares(counts),
                "attachment_operator": _percent(counts, "last operator", "arcs"),
            }
            for longest, counts in rows
        ],
        baselines={name: _percent(total, name, "arcs") for name in BASELINES},
    )


def _shares(counts: Counter[str]) -> dict[str, Any]:
    return {
        **{name: counts[name] for name in ("sentences", "tokens", "operators", "arcs")},
        "operator_accuracy": _percent(counts, "right operators", "operators"),
        "attachment": _percent(counts, "right heads", "arcs"),
        "exact_trees": _percent(counts, "exact", "sentences"),
    }


def _counts(expression: Expression, parsed: Parsed, root_arcs: bool) -> Counter[str]:
    baselines = {name: baseline_heads(expression, rule) for name, rule in BASELINES.items()}
    counts = Counter(sentences=1, tokens=len(expression))
    for i, (kind, head, valency) in enumerate(
        zip(expression.kinds, expression.heads, expression.valencies, strict=True)
    ):
        right, soft = parsed.tags[i] == valency, parsed.soft_tags[i] == valency
        counts.update({"right": right, "soft": soft})
        if kind == "operator":
            counts.update({"operators": 1, "right operators": right, "soft operators": soft})
            kind = "nested operator" if head else "outermost operator"
        if head or root_arcs:
            attached = parsed.heads[i] == head
            counts.update({"arcs": 1, "right heads": attached, kind: 1, f"right {kind}": attached})
            counts.update({name: heads[i] == head for name, heads in baselines.items()})
    counts["exact"] = int(counts["right heads"] == counts["arcs"])
    return counts


def _percent(counts: Counter[str], part: str, whole: str) -> float:
    return 100 * counts[part] / counts[whole] if counts[whole] else 0.0
