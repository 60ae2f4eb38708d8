"""What needs no learning in the ListOps comparisons of estimators, on their test data.

Every token hangs off the first one, and every operator has the commonest number of arguments.

python benchmarks/flat_trees.py results/estimators/flat.csv
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from treelax.apps.tasks.listops.data import load_splits
from treelax.files import atomic_write
from treelax.lab.analysis.agreement import agreement
from treelax.lab.analysis.estimators import COMPARISONS
from treelax.lab.analysis.tables import to_csv
from treelax.lab.listops.task import LISTOPS

KEYS = ("comparison", "expressions", "tokens", "operator_accuracy", "attachment", "exact_trees")


def floors(name: str) -> dict[str, object]:
    """A line of the table."""
    comparison = COMPARISONS[name]
    expressions = load_splits(LISTOPS.configured(comparison.preset, comparison.settings).data)[
        "test"
    ]
    flat = [(0, *[1] * (len(expression) - 1)) for expression in expressions]
    score = agreement(flat, [expression.heads for expression in expressions])
    valencies = Counter(n for expression in expressions for n in expression.valencies if n)
    guessed = 100 * max(valencies.values()) / valencies.total()
    figures = (score.sentences, score.words, guessed, score.uas, score.exact_trees)
    return dict(zip(KEYS, (name, *figures), strict=True))


if __name__ == "__main__":
    names = [name for name, comparison in COMPARISONS.items() if comparison.task == "listops"]
    with atomic_write(Path(sys.argv[1]), "w") as file:
        file.write(to_csv(KEYS, map(floors, names)))
