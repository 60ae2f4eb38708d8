"""What was learned, in three sentences: what is right, what the trees look like, how sure they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import mean

from treelax.apps.tasks.base import several_labels
from treelax.errors import counted
from treelax.lab.analysis.study import RANDOM, Study

# why trees are not learned, by `Parses.kind`
FIXED = {
    "chain": "the head of every word is the word before it",
    "given": "they came with the sentences",
    "gold": "they are the gold trees",
}
NEARLY_ALL, NEARLY_NONE = 90, 10  # percent of arcs from left to right
FLAT = 0.75  # share of words right below the root
CERTAIN, FAIRLY = 90, 60  # percent, the mean probability of the arcs of the best trees


def summary(study: Study) -> list[str]:
    """What was learned, in three sentences; where there are several runs, from lowest to highest."""
    return [_right(study), _shape(study), _certainty(study)]


def _right(study: Study) -> str:
    """Labels and heads that are right, as far as the right ones are known."""
    facts = []
    if known := [f for f in study.labels.values() if f.accuracy is not None]:
        given = study.corpus.labels or ()
        unit = "tags" if any(isinstance(one, tuple) for one in given) else "labels"
        counts = Counter(one for label in given for one in several_labels(label) if one is not None)
        [(usual, times)] = counts.most_common(1)
        text = (
            f"{_percent([f.accuracy for f in known])} of the {unit} are right "
            f"(always {usual}: {_percent([100 * times / counts.total()])})"
        )
        if study.entropies:
            text += f", {_percent([f.soft_accuracy for f in known])} with soft trees"
        facts.append(text)
    # trees that came with the sentences are right in any case
    parsed = [run for run in study.runs if run.kind not in ("given", "gold")]
    if study.treebank and study.treebank_baselines and parsed:
        scores = [study.treebank[run.name].all for run in parsed]
        best, score = max(study.treebank_baselines.items(), key=lambda item: item[1].all.uas or 0)
        unseen = all(run.kind in ("latent", "heads") for run in parsed)
        facts.append(
            f"{_percent([one.uas for one in scores])} of the words have their gold head"
            f"{', which training never shows' if unseen else ''} ({best}: {_percent([score.all.uas])}), "
            f"and {_percent([one.exact_trees for one in scores])} of the sentences their whole gold tree"
        )
    text = "; ".join(facts) or "there is nothing known that a run could get right or wrong"
    unit = "pair" if study.corpus.texts == 2 else "sentence"
    return f"On {counted(len(study.corpus.examples), unit)}, {text}."


def _shape(study: Study) -> str:
    """Which way arcs run and how far, how deep trees are, and what simple trees they are like."""
    grammars = list(study.grammars.values())
    directed = [one.left_to_right for one in grammars if one.left_to_right is not None]
    if not directed:
        return "The trees are flat: every word is a child of the root."
    share = _percent(directed)
    if min(directed) >= NEARLY_ALL:
        text = "All arcs run from left to right"
        if min(directed) < 100:
            text = f"Nearly all arcs run from left to right ({share})"
    elif max(directed) <= NEARLY_NONE:
        text = f"Nearly all arcs run from right to left; only {share} run from left to right"
    else:
        text = f"{share} of the arcs run from left to right"
    text += f", over {_range([one.mean_arc_length for one in grammars])} words on average"
    if deep := _range([one.mean_depth for one in grammars]):
        text += f", in trees {deep} levels deep"
    shares = {
        name: [baselines[name].uas for baselines in study.baselines.values()]
        for name in next(iter(study.baselines.values()))
    }
    drawn = shares.pop(RANDOM)
    nearest = max(shares, key=lambda name: _mean(shares[name]))
    if _mean(shares[nearest]) > _mean(drawn):
        plural = f"{nearest}s" if nearest.endswith("chain") else f"those of the rule '{nearest}'"
        text += f"; the most similar simple trees are {plural}, with {_percent(shares[nearest])} "
        text += f"of the heads the same (random trees: {_percent(drawn)})"
    else:
        text += f"; they are like no simple trees: {nearest}s share {_percent(shares[nearest])} of "
        text += f"the heads with them, random trees {_percent(drawn)}"
    flat = sum(1 - one.arcs / one.words >= FLAT for one in grammars)
    if flat:
        whose = "they" if flat == len(grammars) else f"those of {flat} of the {len(grammars)} runs"
        text += f"; {whose} are flat, with most words right below the root"
    trees = [one.tree_share for one in grammars]
    if min(trees) < 100:
        share = _percent(trees)
        text += f"; heads are chosen one by one, and form a tree in {share} of the sentences"
    return f"{text}."


def _certainty(study: Study) -> str:
    """How sure the runs are of trees that they learned, and how far they agree."""
    if study.entropies:
        arcs = [e.best_arcs for e in study.entropies.values()]
        sure = mean(arcs)
        how = "nearly certain" if sure >= CERTAIN else "fairly sure" if sure >= FAIRLY else "unsure"
        one, several = (
            "The model is {} of its trees",
            "The runs are {} of the trees that they learned",
        )
        text = (several if len(study.runs) > 1 else one).format(how)
        text += f": an arc of the best tree has a probability of {_percent(arcs)} on average"
        if entropy := _range([e.relative for e in study.entropies.values()]):
            text += f", and the entropy is {entropy} % of the largest possible"
    else:
        why = dict.fromkeys(FIXED.get(run.kind, "no arcs are scored") for run in study.runs)
        text = f"The trees are not learned: {'; '.join(why)}"
    if study.self_agreement is not None:
        text += f"; two runs give {study.self_agreement[0]:.1f} % of the words the same head"
    return f"{text}."


def _mean(values: Sequence[float | None]) -> float:
    return mean(value or 0 for value in values)


def _percent(values: Sequence[float | None]) -> str:
    return f"{_range(values)} %"


def _range(values: Sequence[float | None]) -> str:
    """A figure of one run, or the lowest and the highest of several; empty if there is none."""
    known = [f"{value:.1f}" for value in sorted(value for value in values if value is not None)]
    return " to ".join(dict.fromkeys((known[0], known[-1]))) if known else ""
