"""A study as tables, for a terminal of any width and for the report."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import mean

from treelax.apps.table import Cell, Table
from treelax.errors import counted
from treelax.lab.analysis.agreement import mean_and_deviation
from treelax.lab.analysis.roles import roles
from treelax.lab.analysis.study import Study, TreebankScores
from treelax.lab.analysis.tables import spread

MATRIX = range(3, 7)  # runs whose agreement fits into a square
HEAD_WORDS = 10
WORD = 40  # characters of a word
# ranges of values that share a column: first, last, heading
ARC_LENGTHS = [*((n, n, str(n)) for n in range(1, 6)), (6, 10, "6–10"), (11, math.inf, "11–")]
MODIFIERS = [*((n, n, str(n)) for n in range(5)), (5, math.inf, "5–")]
# figures of a `Grammar`, their headings and what they are
ARCS = {
    "left_to_right": ("left to right, %", "arcs whose head stands left of the modifier"),
    "mean_arc_length": (
        "arc length",
        "mean number of words from head to modifier, 1 for neighbours",
    ),
    "median_arc_length": ("median length", "half of the arcs are no longer"),
    "mean_depth": ("depth", "mean number of arcs from the root to the deepest word of a sentence"),
    "mean_roots": ("roots", "mean number of words under the root of a sentence"),
    "leaves": ("leaves, %", "words without modifiers"),
}
SPANS = {
    "one_modifier": ("one modifier, %", "words with one modifier, of those with any"),
    "both_sides": ("both sides, %", "words with modifiers on either side, of those with any"),
    "mean_subtree_size": (
        "subtree",
        "mean number of words that a word with modifiers covers, itself included",
    ),
    "contiguous": (
        "contiguous, %",
        "subtrees of words with modifiers that no other word interrupts",
    ),
    "mean_runs": (
        "spans",
        "mean number, in a sentence, of series of words each of which hangs off the word before it",
    ),
    "mean_run_length": ("span length", "mean number of words in a span"),
}
ROLES = {
    "modifiers": "mean number of modifiers of an occurrence",
    "head, %": "occurrences with modifiers",
    "leaf, %": "occurrences without modifiers",
    "root, %": "occurrences under the root",
    "left, %": "occurrences whose head stands to the left",
    "usual head": "its most frequent head",
    "usual, %": "occurrences with the most frequent head",
}
TREEBANK = {
    "UAS": "words with their gold head, %",
    "UUAS": "gold edges that are found, whichever end is the head, %",
    "exact": "sentences with their whole gold tree, %",
    "UAS*": "UAS without punctuation",
    "UUAS*": "UUAS without punctuation",
}
ENTROPY = {
    "nats": "mean entropy of the trees of a sentence",
    "per word": "nats of all sentences over all words",
    "% of random": "nats of all sentences over those of random trees, the largest possible",
    "best arcs, %": "mean probability of the arcs of the best trees",
}
LABELS = {
    "discrete, %": "labels that are right with discrete trees, as in use (empty where none are known)",
    "soft, %": "labels that are right with soft trees, as in training",
    "gap": "by how many points discrete trees are better",
    "same label, %": "labels that are the same with both",
}
Rows = list[list[Cell]]


def study_tables(study: Study) -> Iterator[Table]:
    """The tables of a study, in the order to read them."""
    yield from main_tables(study)
    yield from more_tables(study)


def main_tables(study: Study) -> Iterator[Table]:
    """What is right, how far trees agree, how sure they are, and what they look like."""
    if study.labels:
        yield _labels(study)
    if study.treebank is not None:
        yield _treebank(study)
    yield _baselines(study)
    yield _grammar_table(study, "Arcs", ARCS)
    if study.entropies:
        yield _entropies(study)


def more_tables(study: Study) -> Iterator[Table]:
    """Distributions, and figures of single words, tags and runs."""
    yield _grammar_table(study, "Branching and spans", SPANS)
    yield _shares(study, "Arcs by length, %", "arc_lengths", ARC_LENGTHS)
    yield _shares(study, "Words by number of modifiers, %", "modifiers", MODIFIERS)
    words, tags = study.corpus.words, study.corpus.tags
    yield _roles(study, "Words with the most modifiers", "word", words, HEAD_WORDS)
    if tags is not None:
        yield _roles(study, "Tags with the most modifiers", "tag", tags, None)
    if len(study.runs) in MATRIX:
        yield _matrix(study)
    if study.treebank is not None and tags is not None:
        yield _by_tag(study)


def _labels(study: Study) -> Table:
    rows: Rows = [
        [run, f.labels, f.accuracy, f.soft_accuracy, f.gap, f.same]
        for run, f in study.labels.items()
    ]
    title = "Labels with discrete and with soft trees"
    return Table(["run", "labels", *LABELS], rows, title, headings=LABELS)


def _treebank(study: Study) -> Table:
    def cells(score: TreebankScores) -> list[float | None]:
        scores = [score.all.uas, score.all.uuas, score.all.exact_trees]
        return scores if score.plain is None else [*scores, score.plain.uas, score.plain.uuas]

    runs = [cells(score) for score in (study.treebank or {}).values()]
    rows: Rows = [[name, *cells(score)] for kind, name, score in study.all_scores()]
    if len(runs) > 1:
        known = [[value for value in column if value is not None] for column in zip(*runs)]  # noqa: B905
        summary = [mean_and_deviation(column) if column else (None, None) for column in known]
        middle, deviation = zip(*summary, strict=True)
        rows[len(runs) : len(runs)] = [
            [f"mean of {len(runs)} runs", *middle],
            ["± deviation", *deviation],
        ]
    _, _, total = next(study.all_scores())
    named, note = list(TREEBANK)[:3], None
    if total.plain is not None:
        named = list(TREEBANK)
        note = f"* without punctuation: {total.plain.words:,} words."
    title = f"Agreement with the gold trees: {total.all.words:,} words"
    return Table(["trees", *named], rows, title, note, {name: TREEBANK[name] for name in named})


def _baselines(study: Study) -> Table:
    several = len(study.runs) > 1
    rows: Rows = []
    for run, scores in study.baselines.items():
        pairs = [pair.uas for pair in study.pairs if run in (pair.first, pair.second)]
        others = [mean(pairs)] if several else []
        rows.append([run, *others, *(score.uas for score in scores.values())])
    title, note = "Agreement with simple trees: heads that are the same, %", None
    if several:
        title = title.replace("with", "with other runs and", 1)
        agreement = spread([pair.uas for pair in study.pairs])
        note = f"{counted(len(study.pairs), 'pair')} of runs: {agreement}"
    columns = ["run", *["other runs"] * several, *next(iter(study.baselines.values()))]
    return Table(columns, rows, title, note)


def _entropies(study: Study) -> Table:
    rows: Rows = [
        [name, f"{e.entropy:.3f}", f"{e.per_word:.3f}", e.relative, e.best_arcs]
        for name, e in study.entropies.items()
    ]
    title = "How sure the runs are: entropy of the distribution over trees"
    return Table(["run", *ENTROPY], rows, title, headings=ENTROPY)


def _grammar_table(study: Study, title: str, figures: Mapping[str, tuple[str, str]]) -> Table:
    """Figures of a `Grammar`, by the headings of their columns."""
    rows: Rows = []
    for _, name, grammar in study.all_grammars():
        cells = {figure: getattr(grammar, figure) for figure in figures}
        if "median_arc_length" in cells:  # a whole number, or a half
            cells["median_arc_length"] = _one_decimal(grammar.median_arc_length)
        rows.append([name, *cells.values()])
    headings = dict(figures.values())
    return Table(["trees", *headings], rows, title, headings=headings)


def _shares(study: Study, title: str, what: str, ranges: Sequence[tuple[int, float, str]]) -> Table:
    """A distribution, in percent."""
    rows: Rows = []
    for _, name, grammar in study.all_grammars():
        counts: Mapping[int, int] = getattr(grammar, what)
        total = sum(counts.values())
        parts = [sum(n for v, n in counts.items() if low <= v <= high) for low, high, _ in ranges]
        rows.append(
            [name, *(_one_decimal(100 * part / total) if total else None for part in parts)]
        )
    return Table(["trees", *(heading for _, _, heading in ranges)], rows, title)


def _roles(
    study: Study, title: str, unit: str, names: Sequence[Sequence[str]], most: int | None
) -> Table:
    """The roles of words or tags in the trees of all runs."""
    count = len(study.runs)
    trees = [heads for run in study.runs for heads in run.trees]
    rows: Rows = []
    for role in roles([*names] * count, trees, most=most):
        if most is not None and not role.modifiers:
            break  # the others have none either
        figures = (role.mean_modifiers, role.heads, role.leaves, role.roots, role.left_heads)
        cells: list[Cell] = [_short(role.name), role.times // count, *map(_one_decimal, figures)]
        rows.append([*cells, _short(role.usual_head), _one_decimal(role.usual)])
    of_all = f"; all {count} runs together" if count > 1 else ""
    return Table([unit, "times", *ROLES], rows, title + of_all, headings=ROLES)


def _matrix(study: Study) -> Table:
    names = [run.name for run in study.runs]
    uas = {frozenset((pair.first, pair.second)): pair.uas for pair in study.pairs}
    rows: Rows = [
        [f"{name} ({number})", *(_one_decimal(uas.get(frozenset((name, b)))) for b in names)]
        for number, name in enumerate(names, 1)
    ]
    columns = ["run", *map(str, range(1, len(names) + 1))]
    return Table(columns, rows, "Agreement of runs: heads that are the same, %")


def _by_tag(study: Study) -> Table:
    runs, baselines = study.treebank or {}, study.treebank_baselines or {}
    several = len(runs) > 1
    rows: Rows = []
    for tag, one in (next(iter(runs.values())).by_tag or {}).items():
        middle, deviation = mean_and_deviation([s.uas_of(tag) or 0.0 for s in runs.values()])
        cells: list[Cell] = [_short(tag), one.words, middle, *[deviation] * several]
        rows.append([*cells, *(score.uas_of(tag) for score in baselines.values())])
    named = [f"{len(runs)} runs", "±"] if several else list(runs)
    columns = ["tag", "words", *named, *baselines]
    return Table(columns, rows, "UAS by tag of the modifier, %")


def _short(word: str) -> str:
    """The beginning of a word."""
    return word if len(word) <= WORD else f"{word[: WORD - 1]}…"


def _one_decimal(value: float | None) -> str:
    """A number with one decimal, which takes less room than two."""
    return "" if value is None else f"{value:.1f}"
