"""A study as tables for the screen, none wider than 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import mean

from treelax.analysis.agreement import mean_and_deviation
from treelax.analysis.cells import Cell
from treelax.analysis.grammar_tables import (
    NAME,
    StudyTable,
    arcs_table,
    one_decimal,
    roles_table,
    run_name,
    shares_table,
    short_word,
    spans_table,
)
from treelax.analysis.study import (
    LEFT_TO_RIGHT,
    RANDOM,
    RIGHT_TO_LEFT,
    Study,
    TreebankScores,
)

__all__ = ["StudyTable", "study_tables"]

MATRIX = range(3, 7)  # runs whose agreement fits into a square
HEAD_WORDS = 10
# ranges of values that share a column: first, last, heading
ARC_LENGTHS = [*((n, n, str(n)) for n in range(1, 6)), (6, 10, "6–10"), (11, None, "11–")]
MODIFIERS = [*((n, n, str(n)) for n in range(5)), (5, None, "5–")]
SHORT = {
    LEFT_TO_RIGHT: "l-to-r",
    RIGHT_TO_LEFT: "r-to-l",
    RANDOM: "random",
}


def study_tables(study: Study) -> Iterator[StudyTable]:
    """The tables of a study, in the order to read them.

    Args:
        study: the study.

    Returns:
        The tables.

    Example:
        >>> from treelax.analysis.corpora import Corpus
        >>> from treelax.analysis.parses import Parses
        >>> from treelax.analysis.study import study
        >>> from treelax.data.conllu import Sentence
        >>> found = study(Corpus("a", (Sentence(("Dogs", "bark")),)), [Parses("run", ((2, 0),))])
        >>> for table in study_tables(found):
        ...     print(table.title)
        Arcs
        Branching and spans
        Arcs by length, %
        Words by number of modifiers, %
        Words with the most modifiers
        Agreement with baselines: heads that are the same, %
    """
    yield arcs_table(study)
    yield spans_table(study)
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
        yield _treebank(study, study.treebank, study.treebank_baselines)
        if study.corpus.tags is not None:
            yield _by_tag(study, study.treebank, study.treebank_baselines)
    if study.entropies:
        yield _entropies(study)
    if any(run.labels is not None for run in study.runs):
        yield _labels(study)


def _matrix(study: Study) -> StudyTable:
    names = [run.name for run in study.runs]
    found = {(pair.first, pair.second): pair.uas for pair in study.pairs}
    rows: list[list[Cell]] = []
    for number, name in enumerate(names, 1):
        cells: list[Cell] = [f"{run_name(name, NAME - 4)} ({number})"]
        for other in names:
            cells.append(one_decimal(found.get((name, other), found.get((other, name)))))
        rows.append(cells)
    columns = ["run", *map(str, range(1, len(names) + 1))]
    return StudyTable("Agreement of runs: heads that are the same, %", columns, rows)


def _baselines(study: Study) -> StudyTable:
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
    if study.self_agreement is not None:
        middle, deviation = study.self_agreement
        title = title.replace("with baselines", "with other runs and baselines")
        count = len(study.pairs)
        pairs = "1 pair" if count == 1 else f"{count} pairs"
        spread = "" if deviation is None else f" ± {deviation:.2f}"
        note = f"{pairs} of runs: {middle:.2f}{spread}"
    columns = [
        "run",
        *(["runs"] if several else []),
        *(SHORT.get(name, name) for name in baselines),
    ]
    return StudyTable(title, columns, rows, note)


def _treebank(
    study: Study, runs: Mapping[str, TreebankScores], baselines: Mapping[str, TreebankScores]
) -> StudyTable:
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
        note = (
            note.removesuffix(".") + f"; *: without the punctuation, {total.plain.words:,} words."
        )
    title = f"Agreement with the gold trees: {total.all.words:,} words"
    return StudyTable(title, columns_named, rows, note)


def _by_tag(
    study: Study, runs: Mapping[str, TreebankScores], baselines: Mapping[str, TreebankScores]
) -> StudyTable:
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
    return StudyTable("UAS by tag of the modifier, %", columns, rows)


def _entropies(study: Study) -> StudyTable:
    rows = [
        [run_name(name), _three(own.entropy), _three(own.per_word), own.relative, own.best_arcs]
        for name, own in study.entropies.items()
    ]
    return StudyTable(
        "Entropy of the distribution over trees",
        ["run", "nats", "per word", "% of random", "best arcs"],
        rows,
        "nats: mean over sentences; per word: all nats over all words; % of random: all\n"
        "nats over those of random trees; best arcs: mean probability of the arcs of the\n"
        "best trees, %.",
    )


def _three(value: float) -> str:
    return f"{value:.3f}"


def _labels(study: Study) -> StudyTable:
    rows = [
        [
            run_name(run.name),
            run.labels.labels,
            run.labels.accuracy,
            run.labels.soft_accuracy,
            run.labels.gap,
            run.labels.same,
        ]
        for run in study.runs
        if run.labels is not None
    ]
    return StudyTable(
        "Labels with discrete and with soft trees",
        ["run", "labels", "discrete", "soft", "gap", "same label"],
        rows,
        "discrete, soft: labels that are right with these trees, %, empty where none are\n"
        "known; gap: by how much discrete trees are better; same label: labels that are\n"
        "the same with both, %.",
    )
