"""A study of several runs: figures by hand, tables, CSV, JSON, pictures."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest

from treelax.apps.data.conllu import Sentence
from treelax.apps.tasks.base import LabelFigures
from treelax.errors import InputError
from treelax.lab.analysis.corpora import Corpus
from treelax.lab.analysis.entropy import TreeEntropy
from treelax.lab.analysis.grammar import DISTRIBUTIONS
from treelax.lab.analysis.parses import Parses
from treelax.lab.analysis.study import GOLD, LEFT_TO_RIGHT, RANDOM, RIGHT_TO_LEFT, Study, study
from treelax.lab.analysis.study_files import csv_files
from treelax.lab.analysis.study_plots import draw_study
from treelax.lab.analysis.study_tables import study_tables

DOGS = Sentence(("the", "dog", "barks", "!"), (2, 3, 0, 3), ("DET", "NOUN", "VERB", "PUNCT"))
HI = Sentence(("hi", "!"), (0, 1), ("INTJ", "PUNCT"))
TREEBANK = Corpus("bank.conllu", (DOGS, HI))
TEXT = Corpus("text.txt", (Sentence(DOGS.words), Sentence(HI.words)))
SURE = TreeEntropy(vertices=4, entropy=1.0, greatest=4.0, best_arcs=90.0)
UNSURE = TreeEntropy(vertices=2, entropy=1.0, greatest=1.1, best_arcs=50.0)
FIGURES = LabelFigures(labels=2, same=50.0, accuracy=100.0, soft_accuracy=50.0)
RIGHT = Parses("right", ((2, 3, 0, 3), (0, 1)), (SURE, UNSURE), FIGURES)
CHAIN = Parses("chain", ((0, 1, 2, 3), (0, 1)))
FLAT = Parses("flat", ((0, 0, 0, 0), (0, 0)), (SURE, SURE))
LONG = Parses("a" * 60 + "-seed-17", ((0, 1, 2, 2), (2, 0)), (SURE, UNSURE))


RUNS = [RIGHT, CHAIN, FLAT, LONG]


@pytest.fixture(scope="module")
def whole() -> Study:
    return study(TREEBANK, RUNS)


def test_what_is_compared_with_what() -> None:
    """The figures themselves are those of `agreement`."""
    both = study(TREEBANK, [RIGHT, CHAIN])
    [pair] = both.pairs
    assert pair.uas == pytest.approx(100 * 3 / 6)  # the "!" of both, and hi
    assert both.self_agreement == (pair.uas, None)
    assert both.baselines["right"][LEFT_TO_RIGHT].uas == pair.uas
    assert both.baselines["right"][RIGHT_TO_LEFT].uas == pytest.approx(100 * 2 / 6)
    assert both.treebank is not None
    assert both.treebank_baselines is not None
    assert both.treebank["right"].all.uas == 100
    assert list(both.treebank_baselines) == [LEFT_TO_RIGHT, RIGHT_TO_LEFT, RANDOM]
    chain, random = both.treebank["chain"], both.treebank_baselines[RANDOM]
    assert both.treebank_baselines[LEFT_TO_RIGHT] == chain
    figures = {"words": 6, "uas": 50, "uuas": 100, "exact_trees": 50}
    without = {"words": 4, "uas": 25, "uuas": 100}
    assert chain.figures() == figures | {
        f"{key}_without_punctuation": value for key, value in without.items()
    }
    assert chain.record()["uas_by_tag"] == {
        "PUNCT": 100,
        "DET": 0,
        "INTJ": 100,
        "NOUN": 0,
        "VERB": 0,
    }
    assert random.by_tag is not None
    assert sum(one.right for one in random.by_tag.values()) == pytest.approx(random.all.right)
    assert both.reference_grammars[GOLD] == both.grammars["right"]


def test_random_trees_have_as_many_roots_as_those_of_the_runs() -> None:
    one = Parses("one", ((2, 3, 0, 3), (0, 1)), single_root=True)
    assert study(TREEBANK, [one]).reference_grammars[RANDOM].single_root == 100
    several = study(TREEBANK, [one, FLAT], seed=1).reference_grammars[RANDOM]
    assert several.single_root < 100


def test_runs_that_are_refused() -> None:
    with pytest.raises(InputError, match="with different names"):
        study(TREEBANK, [RIGHT, RIGHT])
    with pytest.raises(InputError, match="trees of x: sentence 2: received 1; expected 2"):
        study(TREEBANK, [Parses("x", ((0, 1, 2, 3), (0,)))])


def shown(comparison: Study) -> dict[str, list[list[Any]]]:
    return {table.title: [list(row) for row in table.rows] for table in study_tables(comparison)}


def test_tables_by_hand() -> None:
    tables = shown(study(TREEBANK, [RIGHT, CHAIN, FLAT]))
    arcs = {row[0]: row[1:] for row in tables["Arcs"]}
    assert arcs["right"] == [50, 1, "1.0", 2.5, 1, 50]
    assert arcs["flat"] == [None, None, "", 1, 3, 100]
    lengths = {row[0]: row[1:] for row in tables["Arcs by length, %"]}
    assert lengths["chain"] == ["100.0", *["0.0"] * 6]
    assert lengths["flat"] == [None] * 7
    matrix = tables["Agreement of runs: heads that are the same, %"]
    assert matrix[1] == ["chain (2)", "50.0", "", "33.3"]
    others = tables["Agreement with other runs and simple trees: heads that are the same, %"]
    assert others[1][1] == pytest.approx((50 + 100 / 3) / 2)
    bank = {row[0]: row[1:] for row in tables["Agreement with the gold trees: 6 words"]}
    assert bank["mean of 3 runs"][0] == pytest.approx((100 + 50 + 100 / 3) / 3)
    tags = {row[0]: row[1:3] for row in tables["UAS by tag of the modifier, %"]}
    assert tags["PUNCT"] == [2, pytest.approx(200 / 3)]
    one = {table.title: table for table in study_tables(study(TREEBANK, [RIGHT]))}
    assert one["UAS by tag of the modifier, %"].columns[:3] == ["tag", "words", "right"]
    words = tables["Words with the most modifiers; all 3 runs together"]
    assert words[0][:3] == ["barks", 1, "1.0"]  # two modifiers, one and none
    assert all(float(row[2]) > 0 for row in words)
    labels = tables["Labels with discrete and with soft trees"]
    assert labels == [["right", 2, 100, 50, 50, 50]]
    entropies = tables["How sure the runs are: entropy of the distribution over trees"]
    assert [row[0] for row in entropies] == ["right", "flat"]


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_csv_files_hold_what_the_study_holds(whole: Study) -> None:
    files = {name: rows(text) for name, text in csv_files(whole).items()}
    grammars = {row["trees"]: row for row in files["grammar.csv"]}
    assert list(grammars) == [*whole.grammars, *whole.reference_grammars]
    assert grammars["right"]["left_to_right"] == "50"
    assert grammars["flat"]["left_to_right"] == ""
    assert (grammars["right"]["kind"], grammars[RANDOM]["kind"]) == ("run", "baseline")
    assert grammars[GOLD]["kind"] == "gold"
    shares = [float(row["share"]) for row in files["distributions.csv"] if row["trees"] == "chain"]
    assert sum(shares) == pytest.approx(100 * len(DISTRIBUTIONS), rel=1e-4)
    assert len(files["pairs.csv"]) == 6
    assert len(files["words.csv"]) == 4 * 5
    assert {row["tag"] for row in files["tags.csv"]} == {"DET", "NOUN", "VERB", "PUNCT", "INTJ"}
    assert len(files["treebank.csv"]) == 4 + 3
    assert len(files["treebank_tags.csv"]) == 7 * 5
    first = files["sentences.csv"][0]
    assert (first["run"], first["words"], first["right_heads"]) == ("right", "4", "4")
    assert (first["entropy"], first["entropy_per_word"]) == ("1", "0.25")
    assert [row["run"] for row in files["labels.csv"]] == ["right"]
    assert files["labels.csv"][0]["gap"] == "50"


def test_the_record_is_json_without_anything_that_is_no_number(whole: Study) -> None:
    without = study(TEXT, RUNS).record()
    assert without["treebank"] is None
    for record in (whole.record(), without):
        again = json.loads(json.dumps(record, allow_nan=False))
        assert again["runs"] == [run.name for run in RUNS]
        assert again["grammar"]["chain"]["arc_lengths"] == {"1": 4}
        assert len(again["agreement"]["pairs"]) == 6
    assert whole.record()["treebank"]["right"]["uas"] == 100


def test_pictures_of_a_study(whole: Study) -> None:
    drawings = {name: drawing.svg() for name, drawing in draw_study(whole).items()}
    assert list(drawings) == ["distributions", "agreement", "treebank", "treebank_tags", "entropy"]
    assert "NaN" not in "".join(drawings.values())
    assert "-seed-17" in drawings["treebank"]
    assert "random trees" in drawings["entropy"]
    assert list(draw_study(study(TEXT, [CHAIN]))) == ["distributions", "agreement"]
