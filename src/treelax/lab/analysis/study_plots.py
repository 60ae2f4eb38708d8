"""A study as pictures: distributions, agreement, entropy."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from statistics import mean

from treelax.lab.analysis.entropy import TreeEntropy
from treelax.lab.analysis.grammar import Grammar
from treelax.lab.analysis.study import LEFT_TO_RIGHT, RANDOM, RIGHT_TO_LEFT, Study
from treelax.lab.plots import Curve, Curves, Panel, draw_curves, draw_panels
from treelax.lab.plots.plot import COLOURS, FADED, plot_style

# distribution, what its values are, least and greatest one that is drawn
PANELS = (
    ("arc_lengths", "arc length, words", "arcs, %", 1, 15),
    ("modifiers", "modifiers of a word", "words, %", 0, 8),
    ("subtree_sizes", "words in a subtree", "subtrees, %", 1, 15),
)
LENGTH_STEP = 5  # words by which sentences are put together
TAGS = 20
NAME = 28  # characters of the name of a run
OTHER_RUNS = "other runs"
HATCHES = ("", "///", "...", "xx", "\\\\\\", "++")  # to tell bars apart in black and white
ROW, MARGIN, WIDTH = 0.26, 1.3, 6.4  # inches


def draw_study(study: Study) -> dict[str, Curves]:
    """The pictures of a study, by their names."""
    plots = {"distributions": _distributions(study), "agreement": _agreement(study)}
    if study.treebank is not None:
        plots["treebank"] = _treebank(study)
        if study.corpus.tags is not None:
            plots["treebank_tags"] = _by_tag(study)
    if study.entropies:
        plots["entropy"] = _entropy(study)
    return plots


def _labels(names: Sequence[str]) -> dict[str, str]:
    """The ends of names, which tell runs apart, or whole names where their ends are the same."""
    short = [name if len(name) <= NAME else f"…{name[1 - NAME :]}" for name in names]
    chosen = short if len(set(short)) == len(names) else names
    return dict(zip(names, chosen, strict=True))


def _label(study: Study, several: str = "") -> str:
    [label, *others] = _labels([run.name for run in study.runs]).values()
    return f"{several}{len(study.runs)} runs" if others else label


def _distributions(study: Study) -> Curves:
    panels = []
    for what, x_label, y_label, first, last in PANELS:
        x = list(range(first, last + 1))
        lines = [_shares(grammar, what, x) for grammar in study.grammars.values()]
        middle = [mean(values) for values in zip(*lines, strict=True)]
        curves = [Curve(_label(study), x, middle, lines if len(lines) > 1 else ())]
        for name, grammar in study.reference_grammars.items():
            if name not in (LEFT_TO_RIGHT, RIGHT_TO_LEFT):  # all arcs of length 1
                curves.append(Curve(name, x, _shares(grammar, what, x)))
        panels.append(Panel(curves, x_label, y_label))
    return draw_panels(panels)


def _shares(grammar: Grammar, what: str, x: Sequence[int]) -> list[float]:
    counts: Mapping[int, int] = getattr(grammar, what)
    total = sum(counts.values())
    return [100 * counts.get(value, 0) / total if total else 0.0 for value in x]


def _agreement(study: Study) -> Curves:
    points: dict[str, list[float]] = {}
    if study.pairs:
        points[OTHER_RUNS] = [pair.uas for pair in study.pairs]
    for scores in study.baselines.values():
        for name, score in scores.items():
            points.setdefault(name, []).append(score.uas or 0.0)
    return draw_bars(
        f"Agreement of {_label(study)}",
        "heads that are the same, %",
        {name: [mean(values)] for name, values in points.items()},
        points=points if len(study.runs) > 1 else {},
        faded=frozenset(points) - {OTHER_RUNS},
    )


def _treebank(study: Study) -> Curves:
    labels = _labels([run.name for run in study.runs])
    shares = {labels.get(name, name): [s.all.uas or 0.0] for _, name, s in study.all_scores()}
    return draw_bars(
        "Agreement with gold trees",
        "heads that are right, %",
        shares,
        faded=frozenset(shares) - frozenset(labels.values()),
    )


def _by_tag(study: Study) -> Curves:
    runs, baselines = study.treebank or {}, study.treebank_baselines or {}
    tags = list(next(iter(runs.values())).by_tag or {})[:TAGS]
    return draw_bars(
        "Agreement with gold trees by tag of the modifier",
        "heads that are right, %",
        {
            tag: [
                mean(score.uas_of(tag) or 0.0 for score in runs.values()),
                *(score.uas_of(tag) or 0.0 for score in baselines.values()),
            ]
            for tag in tags
        },
        series=[_label(study, "mean of "), *baselines],
    )


def _entropy(study: Study) -> Curves:
    latent = [run for run in study.runs if run.entropies]
    labels = _labels([run.name for run in latent])
    lines = {
        labels[run.name]: _by_length(run.entropies or (), lambda e: e.entropy) for run in latent
    }
    lines[RANDOM] = _by_length(latent[0].entropies or (), lambda e: e.greatest)
    curves = [Curve(name, list(line), list(line.values())) for name, line in lines.items()]
    return draw_curves(curves, x_label="words of a sentence", y_label="entropy per word, nats")


def _by_length(
    entropies: Sequence[TreeEntropy], nats: Callable[[TreeEntropy], float]
) -> dict[float, float]:
    """All nats over all words of sentences of about the same length, by their mean length."""
    groups: dict[int, list[tuple[int, float]]] = {}
    for entropy in entropies:
        place = (entropy.vertices - 1) // LENGTH_STEP
        groups.setdefault(place, []).append((entropy.vertices, nats(entropy)))
    return {
        mean(n for n, _ in group): sum(value for _, value in group) / sum(n for n, _ in group)
        for _, group in sorted(groups.items())
    }


def draw_bars(
    title: str,
    x_label: str,
    values: Mapping[str, Sequence[float]],
    *,
    series: Sequence[str] = ("",),
    points: Mapping[str, Sequence[float]] | None = None,
    faded: Collection[str] = (),
) -> Curves:
    """Bars from left to right, a row for each name from the top, a bar for each series.

    ``points`` are marked on the first bar of their name, and the bars of ``faded`` names are grey.
    """
    points = points or {}
    with plot_style() as Figure:
        names, count = list(values), len(series)
        height = MARGIN + ROW * len(names) * max(1.0, 0.55 * count)
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        axes = figure.add_subplot()
        thickness = 0.72 / count
        for number, label in enumerate(series):
            colour = COLOURS[number % len(COLOURS)]
            axes.barh(
                [row + (number - (count - 1) / 2) * thickness for row in range(len(names))],
                [values[name][number] for name in names],
                height=thickness,
                color=[FADED if name in faded else colour for name in names],
                hatch=HATCHES[number % len(HATCHES)],
                edgecolor="white",
                linewidth=0.4,
                label=label or None,
            )
        for row, name in enumerate(names):
            marked = points.get(name, ())
            if count == 1:
                axes.annotate(
                    f"{values[name][0]:.1f}",
                    (max(*values[name], *marked, 0), row),
                    xytext=(4, 0),
                    textcoords="offset points",
                    va="center",
                    fontsize=9,
                )
            # the rim keeps a point visible on a bar of any colour
            axes.plot(
                marked,
                [row] * len(marked),
                "o",
                color="black",
                markersize=3.6,
                markeredgecolor="white",
                markeredgewidth=0.6,
            )
        axes.set_yticks(range(len(names)), names)
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        axes.set_axisbelow(True)
        axes.margins(x=0.1, y=0.02)
        axes.set_xlim(left=0)
        axes.set_xlabel(x_label)
        axes.set_title(title)
        if count > 1:
            figure.legend(loc="outside lower center", ncols=min(count, 4), frameon=False)
    rows = []
    for name in names:
        pairs = zip(series, values[name], strict=True)
        text = ", ".join(f"{label} {value:.1f}".strip() for label, value in pairs)
        rows.append(f"{name}: {text}")
    return Curves(figure, title, f"{x_label}. {'; '.join(rows)}.")
