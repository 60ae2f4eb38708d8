"""Statistics of trees as tables for the screen, none wider than 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from treelax.analysis.cells import Cell
from treelax.analysis.grammar import Grammar
from treelax.analysis.roles import roles
from treelax.analysis.study import Study

__all__ = [
    "StudyTable",
    "arcs_table",
    "one_decimal",
    "roles_table",
    "run_name",
    "shares_table",
    "short_word",
    "spans_table",
]

NAME, WORD = 20, 13  # characters of the name of a run, and of a word


@dataclass(frozen=True)
class StudyTable:
    """A table for the screen.

    Attributes:
        title: a line above it.
        columns: their heads.
        rows: a cell for each column.
        note: lines below it, which say what the columns are.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str | None = None


def run_name(name: str, width: int = NAME) -> str:
    """The end of a name, which tells runs apart.

    Args:
        name: of a run.
        width: the most characters.

    Returns:
        The name, or its end after an ellipsis.

    Example:
        >>> run_name("table-listops/paper-mc-3", 11)
        '…paper-mc-3'
    """
    return name if len(name) <= width else f"…{name[1 - width :]}"


def short_word(word: str) -> str:
    """The beginning of a word.

    Args:
        word: or a tag.

    Returns:
        The word, or its beginning before an ellipsis.

    Example:
        >>> short_word("incomprehensibility")
        'incomprehens…'
    """
    return word if len(word) <= WORD else f"{word[: WORD - 1]}…"


def one_decimal(value: float | None) -> str:
    """A number with one decimal, which takes less room than two.

    Args:
        value: or None.

    Returns:
        The text, empty for None.

    Example:
        >>> one_decimal(99.96), one_decimal(None)
        ('100.0', '')
    """
    return "" if value is None else f"{value:.1f}"


def _grammars(study: Study) -> Iterator[tuple[str, Grammar]]:
    for name, own in (*study.grammars.items(), *study.reference_grammars.items()):
        yield run_name(name), own


def arcs_table(study: Study) -> StudyTable:
    """Which way arcs run and how far, and how deep trees are.

    Args:
        study: the study.

    Returns:
        The table.
    """
    rows = [
        [
            name,
            own.left_to_right,
            own.mean_arc_length,
            one_decimal(own.median_arc_length),
            own.mean_depth,
            own.mean_roots,
            own.leaves,
        ]
        for name, own in _grammars(study)
    ]
    return StudyTable(
        "Arcs",
        ["trees", "l-to-r", "length", "median", "depth", "roots", "leaves"],
        rows,
        "l-to-r: arcs whose head stands left of the modifier, %; length: words from head\n"
        "to modifier; depth: of a sentence; roots: words under the root in a sentence;\n"
        "leaves: words without modifiers, %.",
    )


def spans_table(study: Study) -> StudyTable:
    """How trees branch, and what spans their words make.

    Args:
        study: the study.

    Returns:
        The table.
    """
    rows = [
        [
            name,
            own.one_modifier,
            own.both_sides,
            own.mean_subtree_size,
            own.contiguous,
            own.mean_runs,
            own.mean_run_length,
        ]
        for name, own in _grammars(study)
    ]
    return StudyTable(
        "Branching and spans",
        ["trees", "1 mod.", "2 sides", "subtree", "contig.", "spans", "words"],
        rows,
        "Of words with modifiers, %: 1 mod.: those with one; 2 sides: those with some on\n"
        "either side; contig.: those whose subtree no other word interrupts; subtree:\n"
        "its mean size. spans: series of words in a sentence each of which hangs off the\n"
        "word before it; words: in such a span.",
    )


def shares_table(
    study: Study, title: str, what: str, ranges: Sequence[tuple[int, int | None, str]]
) -> StudyTable:
    """A distribution, in percent.

    Args:
        study: the study.
        title: of the table.
        what: one of `treelax.analysis.grammar.DISTRIBUTIONS`.
        ranges: of values that share a column: first, last or None, heading.

    Returns:
        The table.
    """
    rows: list[list[Cell]] = []
    for name, own in _grammars(study):
        counts: Mapping[int, int] = getattr(own, what)
        total = sum(counts.values())
        cells: list[Cell] = [name]
        for first, last, _ in ranges:
            part = sum(
                times
                for value, times in counts.items()
                if first <= value and (last is None or value <= last)
            )
            cells.append(one_decimal(100 * part / total) if total else None)
        rows.append(cells)
    return StudyTable(title, ["trees", *(heading for _, _, heading in ranges)], rows)


def roles_table(
    study: Study, title: str, unit: str, names: Sequence[Sequence[str]], most: int | None
) -> StudyTable:
    """The parts that words or tags play in the trees of all runs.

    Args:
        study: the study.
        title: of the table.
        unit: "word" or "tag".
        names: the words or tags of each sentence.
        most: how many to show; None for all.

    Returns:
        The table.
    """
    count = len(study.runs)
    trees = [heads for run in study.runs for heads in run.trees]
    rows: list[list[Cell]] = []
    for role in roles([*names] * count, trees, most=most):
        if most is not None and not role.modifiers:
            break  # the others have none either
        rows.append(
            [
                short_word(role.name),
                role.times // count,
                one_decimal(role.mean_modifiers),
                one_decimal(role.heads),
                one_decimal(role.leaves),
                one_decimal(role.roots),
                one_decimal(role.left_heads),
                short_word(role.usual_head),
                one_decimal(role.usual),
            ]
        )
    of_all = f"; all {count} runs together" if count > 1 else ""
    return StudyTable(
        title + of_all,
        [unit, "times", "mod.", "head", "leaf", "root", "left", "hangs off", "%"],
        rows,
        f"mod.: modifiers of each; of all times, %: head: with modifiers; leaf: without;\n"
        f"root: under the root; left: with its head to the left; hangs off: the {unit} that\n"
        "is its head most often.",
    )
