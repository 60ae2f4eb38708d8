"""A study as tables for the screen, none wider than 80 columns."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import mean

from treelax.analysis.agreement import mean_and_deviation
from treelax.analysis.grammar import Grammar
from treelax.analysis.roles import roles
from treelax.analysis.study import LEFT_TO_RIGHT, RANDOM, RIGHT_TO_LEFT, Study, TreebankScores
from treelax.analysis.tables import spread
from treelax.errors import counted
from treelax.table import Cell, Table

NAME, WORD = 20, 13  # characters of the name of a run, and of a word
MATRIX = range(3, 7)  # runs whose agreement fits into a square
HEAD_WORDS = 10
# ranges of values that share a column: first, last, heading
ARC_LENGTHS = [*((n, n, str(n)) for n in range(1, 6)), (6, 10, "6–10"), (11, math.inf, "11–")]
MODIFIERS = [*((n, n, str(n)) for n in range(5)), (5, math.inf, "5–")]
# headings, and the figures of a `Grammar` below them
ARCS = {
    "l-to-r": "left_to_right",
    "length": "mean_arc_length",
    "median": "median_arc_length",
    "depth": "mean_depth",
    "roots": "mean_roots",
    "leaves": "leaves",
}
ARCS_NOTE = """\
l-to-r: arcs whose head stands left of the modifier, %; length: words from head
to modifier; depth: of a sentence; roots: words under the root in a sentence;
leaves: words without modifiers, %."""
SPANS = {
    "1 mod.": "one_modifier",
    "2 sides": "both_sides",
    "subtree": "mean_subtree_size",
    "contig.": "contiguous",
    "spans": "mean_runs",
    "words": "mean_run_length",
}
SPANS_NOTE = """\
Of words with modifiers, %: 1 mod.: those with one; 2 sides: those with some on
either side; contig.: those whose subtree no other word interrupts; subtree:
its mean size. spans: series of words in a sentence each of which hangs off the
word before it; words: in such a span."""
SHORT = {LEFT_TO_RIGHT: "l-to-r", RIGHT_TO_LEFT: "r-to-l", RANDOM: "random"}


def study_tables(study: Study) -> Iterator[Table]:
    """The tables of a study, in the order to read them."""
    yield _grammar_table(study, "Arcs", ARCS, ARCS_NOTE)
    yield _grammar_table(study, "Branching and spans", SPANS, SPANS_NOTE)
    yield shares_table(study, "Arcs by length, %", "arc_lengths", ARC_LENGTHS)
    yield shares_table(study, "Words by number of modifiers, %", "modifiers", MODIFIERS)
    yield roles_table(
        study, "Words with the most modifiers", "word", study.corpus.words, HEAD_WORDS
    )
    if study.corpus.tags is not None:
        yield roles_table(study, "Tags with the most modifiers", "tag", study.corpus.tags, None)
    if len(study.runs) in MATRIX:
        yield _matrix(study)
    yield _baselines(study)
    if study.treebank is not None and study.treebank_baselines is not None:
        yield _treebank(study.treebank, study.treebank_baselines)
        if study.corpus.tags is not None:
            yield _by_tag(study.treebank, study.treebank_baselines)
    if study.entropies:
        yield _entropies(study)
    if any(run.labels is not None for run in study.runs):
        yield _labels(study)


def _matrix(study: Study) -> Table:
    names = [run.name for run in study.runs]
    found = {(pair.first, pair.second): pair.uas for pair in study.pairs}
    rows = []
    for number, name in enumerate(names, 1):
        figures = (found.get((name, other), found.get((other, name))) for other in names)
        rows.append([f"{run_name(name, NAME - 4)} ({number})", *map(one_decimal, figures)])
    columns = ["run", *map(str, range(1, len(names) + 1))]
    return Table(columns, rows, "Agreement of runs: heads that are the same, %")


def _baselines(study: Study) -> Table:
    baselines = list(next(iter(study.baselines.values())))
    several = len(study.runs) > 1
    rows: list[list[Cell]] = []
    for run in study.runs:
        cells: list[Cell] = [run_name(run.name)]
        if several:
            cells.append(mean(p.uas for p in study.pairs if run.name in (p.first, p.second)))
        rows.append([*cells, *(study.baselines[run.name][name].uas for name in baselines)])
    title = "Agreement with baselines: heads that are the same, %"
    note = None
    if several:
        title = title.replace("with baselines", "with other runs and baselines")
        agreement = spread([pair.uas for pair in study.pairs])
        note = f"{counted(len(study.pairs), 'pair')} of runs: {agreement}"
    columns = ["run", *["runs"] * several, *(SHORT.get(name, name) for name in baselines)]
    return Table(columns, rows, title, note)


def _treebank(runs: Mapping[str, TreebankScores], baselines: Mapping[str, TreebankScores]) -> Table:
    def cells(own: TreebankScores) -> list[float | None]:
        found = [own.all.uas, own.all.uuas, own.all.exact_trees]
        return found if own.plain is None else [*found, own.plain.uas, own.plain.uuas]

    rows: list[list[Cell]] = [[run_name(name), *cells(own)] for name, own in runs.items()]
    if len(runs) > 1:
        columns = [
            [value for value in column if value is not None]
            for column in zip(*(cells(own) for own in runs.values()), strict=True)
        ]
        found = [mean_and_deviation(column) if column else (None, None) for column in columns]
        rows.append([f"mean of {len(runs)} runs", *(middle for middle, _ in found)])
        rows.append(["± deviation", *(spread for _, spread in found)])
    rows += [[name, *cells(own)] for name, own in baselines.items()]
    total = next(iter(runs.values()))
    columns_named = ["trees", "UAS", "UUAS", "exact"]
    note = "UAS: words with the right head, %; UUAS: edges found in either direction, %;\n"
    note += "exact: whole trees, %."
    if total.plain is not None:
        columns_named += ["UAS*", "UUAS*"]
        note = f"{note[:-1]}; *: without the punctuation, {total.plain.words:,} words."
    title = f"Agreement with the gold trees: {total.all.words:,} words"
    return Table(columns_named, rows, title, note)


def _by_tag(runs: Mapping[str, TreebankScores], baselines: Mapping[str, TreebankScores]) -> Table:
    first = next(iter(runs.values())).by_tag or {}
    several = len(runs) > 1
    rows: list[list[Cell]] = []
    for tag, one in first.items():
        values = [(own.by_tag or first)[tag].uas or 0.0 for own in runs.values()]
        middle, deviation = mean_and_deviation(values)
        cells: list[Cell] = [short_word(tag), one.words, middle]
        if several:
            cells.append(deviation)
        rows.append([*cells, *((own.by_tag or first)[tag].uas for own in baselines.values())])
    named = [f"{len(runs)} runs", "±"] if several else ["run"]
    columns = ["tag", "words", *named, *(SHORT.get(name, name) for name in baselines)]
    return Table(columns, rows, "UAS by tag of the modifier, %")


def _entropies(study: Study) -> Table:
    rows = [
        [run_name(name), f"{own.entropy:.3f}", f"{own.per_word:.3f}", own.relative, own.best_arcs]
        for name, own in study.entropies.items()
    ]
    return Table(
        ["run", "nats", "per word", "% of random", "best arcs"],
        rows,
        "Entropy of the distribution over trees",
        "nats: mean over sentences; per word: all nats over all words; % of random: all\n"
        "nats over those of random trees; best arcs: mean probability of the arcs of the\n"
        "best trees, %.",
    )


def _labels(study: Study) -> Table:
    rows = [
        [run_name(run.name), own.labels, own.accuracy, own.soft_accuracy, own.gap, own.same]
        for run in study.runs
        if (own := run.labels) is not None
    ]
    return Table(
        ["run", "labels", "discrete", "soft", "gap", "same label"],
        rows,
        "Labels with discrete and with soft trees",
        "discrete, soft: labels that are right with these trees, %, empty where none are\n"
        "known; gap: by how much discrete trees are better; same label: labels that are\n"
        "the same with both, %.",
    )


def run_name(name: str, width: int = NAME) -> str:
    """The end of a name, which tells runs apart."""
    return name if len(name) <= width else f"…{name[1 - width :]}"


def short_word(word: str) -> str:
    """The beginning of a word."""
    return word if len(word) <= WORD else f"{word[: WORD - 1]}…"


def one_decimal(value: float | None) -> str:
    """A number with one decimal, which takes less room than two."""
    return "" if value is None else f"{value:.1f}"


def _grammars(study: Study) -> Iterator[tuple[str, Grammar]]:
    for name, own in (*study.grammars.items(), *study.reference_grammars.items()):
        yield run_name(name), own


def _grammar_table(study: Study, title: str, columns: Mapping[str, str], note: str) -> Table:
    """Figures of a `Grammar`, by the headings of their columns."""
    rows: list[list[Cell]] = []
    for name, own in _grammars(study):
        cells = {figure: getattr(own, figure) for figure in columns.values()}
        if "median_arc_length" in cells:  # a whole number, or a half
            cells["median_arc_length"] = one_decimal(own.median_arc_length)
        rows.append([name, *cells.values()])
    return Table(["trees", *columns], rows, title, note)


def shares_table(
    study: Study, title: str, what: str, ranges: Sequence[tuple[int, float, str]]
) -> Table:
    """A distribution, in percent."""
    rows: list[list[Cell]] = []
    for name, own in _grammars(study):
        counts: Mapping[int, int] = getattr(own, what)
        total = sum(counts.values())
        cells: list[Cell] = [name]
        for first, last, _ in ranges:
            part = sum(times for value, times in counts.items() if first <= value <= last)
            cells.append(one_decimal(100 * part / total) if total else None)
        rows.append(cells)
    return Table(["trees", *(heading for _, _, heading in ranges)], rows, title)


def roles_table(
    study: Study, title: str, unit: str, names: Sequence[Sequence[str]], most: int | None
) -> Table:
    """The roles of words or tags in the trees of all runs."""
    count = len(study.runs)
    trees = [heads for run in study.runs for heads in run.trees]
    rows: list[list[Cell]] = []
    for role in roles([*names] * count, trees, most=most):
        if most is not None and not role.modifiers:
            break  # the others have none either
        figures = (role.mean_modifiers, role.heads, role.leaves, role.roots, role.left_heads)
        cells: list[Cell] = [short_word(role.name), role.times // count, *map(one_decimal, figures)]
        rows.append([*cells, short_word(role.usual_head), one_decimal(role.usual)])
    of_all = f"; all {count} runs together" if count > 1 else ""
    return Table(
        [unit, "times", "mod.", "head", "leaf", "root", "left", "hangs off", "%"],
        rows,
        title + of_all,
        f"mod.: modifiers of each; of all times, %: head: with modifiers; leaf: without;\n"
        f"root: under the root; left: with its head to the left; hangs off: the {unit} that\n"
        "is its head most often.",
    )
