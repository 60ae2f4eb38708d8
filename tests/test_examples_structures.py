"""The examples of structures say what they should."""

import re
import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "examples"


@pytest.fixture
def printed(capsys):
    """What an example prints, line by line."""

    def run(name):
        runpy.run_path(str(FOLDER / f"{name}.py"))["example"]()
        return capsys.readouterr().out.splitlines()

    return run


def numbers(lines):
    return [float(re.search(r"[\d.]+(?= %| a word)", line)[0]) for line in lines]


def test_perturbed_trees(printed):
    lines = printed("perturbed_trees")
    best, expected, exact, gumbel, gamma = numbers(lines[:5])
    assert best > 80
    assert abs(best - expected) < 10
    assert exact < 0.05
    assert exact < min(gumbel, gamma)  # perturbed trees are no exact samples
    assert lines[-2].endswith("]")
    assert all(0 <= float(p) <= 1 for p in lines[-1].split()[1:])


def test_labelled_crf(printed):
    lines = printed("labelled_crf")
    several, one, crossing, crossing_one, half = numbers(lines[1:6])
    assert min(several, one) > 70
    assert max(several, one) < 100  # one pattern in four has crossing arcs
    assert min(crossing, crossing_one) > 90
    assert half > 70
    assert [line.split()[1] for line in lines[6:]] == ["det", "subj", "root", "case", "mod"]


def test_structured_attention(printed):
    alone, heads, trees, spans = numbers(printed("structured_attention"))
    assert alone < 70
    assert min(heads, trees) > 90
    assert spans > 70


def test_latent_words(printed):
    before, guess, after, words, likely = printed("latent_words")
    assert numbers([before])[0] < 20 < 90 < numbers([after])[0]
    assert guess.replace(" ", "") == words.replace(" ", "")
    assert {"a", "bird", "sees", "small", "today"} <= set(likely.split())


def test_learned_edits(printed):
    *lines, cheapest = printed("learned_edits")
    before, after = numbers(lines)
    assert after > before + 10
    assert cheapest == "cheapest for a: a s"
