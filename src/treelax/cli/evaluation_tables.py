"""Tables of what is known of a tagger of ListOps, as commands print them."""

from __future__ import annotations

from treelax.cli.console import console, table
from treelax.tasks.listops.evaluation import LENGTHS, Evaluation


def print_evaluation(figures: Evaluation, title: str) -> None:
    """Print everything that is known of a tagger on a set of expressions."""
    table(
        ["%", "discrete trees", "soft trees"],
        [
            [
                "tags of operators",
                two(figures.operator_accuracy),
                two(figures.soft_operator_accuracy),
            ],
            ["tags of all tokens", two(figures.token_accuracy), two(figures.soft_token_accuracy)],
            ["attachment", two(figures.attachment), ""],
            *[[f"  of {kind}s", two(v), ""] for kind, v in figures.attachment_by_kind.items()],
            ["exact trees", two(figures.exact_trees), ""],
            *[[f"attachment to the {k}", two(v), ""] for k, v in figures.baselines.items()],
        ],
        title=f"{title}: {figures.sentences:,} expressions, {figures.operators:,} operators",
    )
    console.print()
    rows = []
    starts = dict(zip((*LENGTHS, None), (1, *(longest + 1 for longest in LENGTHS)), strict=True))
    for row in figures.by_length:
        longest = row["longest"]
        rows.append(
            [
                f"{starts[longest]}–{longest}" if longest else f"{starts[longest]} and more",
                f"{row['sentences']:,}",
                two(row["operator_accuracy"]),
                two(row["attachment"]),
                two(row["exact_trees"]),
                two(row["attachment_operator"]),
            ]
        )
    table(
        ["tokens", "expressions", "operators", "attachment", "exact trees", "last operator"],
        rows,
    )
    console.print()


def two(value: float) -> str:
    """A percentage with two decimals."""
    return f"{value:.2f}"
