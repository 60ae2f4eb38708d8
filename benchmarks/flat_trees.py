"""What needs no learning in the ListOps comparisons of estimators, on their test data.

Every token hangs off the first one, and every operator has the commonest number of arguments.

python benchmarks/flat_trees.py results/estimators/flat.csv
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from treelax.analysis.estimators import COMPARISONS
from treelax.analysis.tables import to_csv
from treelax.files import atomic_write
from treelax.tasks.listops.config import preset
from treelax.tasks.listops.experiment import load_test

KEYS = ("comparison", "expressions", "tokens", "operator_accuracy", "attachment", "exact_trees")


def floors(name: str) -> dict[str, object]:
    """A line of the table."""
    expressions = load_test(preset(COMPARISONS[name].preset).data)
    tokens = right = exact = 0
    valencies: Counter[int] = Counter()
    for expression in expressions:
        gold = expression.heads
        flat = (0,) + (1,) * (len(gold) - 1)
        tokens += len(gold)
        right += sum(a == b for a, b in zip(flat, gold, strict=True))
        exact += flat == gold
        valencies.update(n for n in expression.valencies if n)
    shares = (
        max(valencies.values()) / valencies.total(),
        right / tokens,
        exact / len(expressions),
    )
    figures = (round(100 * share, 3) for share in shares)
    return dict(zip(KEYS, (name, len(expressions), tokens, *figures), strict=True))


if __name__ == "__main__":
    lines = [floors(name) for name, each in COMPARISONS.items() if each.task == "listops"]
    with atomic_write(Path(sys.argv[1]), "w") as file:
        file.write(to_csv(KEYS, lines))
