"""The parts of a report: selection, plots, tables of the paper, settings, the gallery."""

from __future__ import annotations

import dataclasses
import re
from base64 import b64decode
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from drawings import texts
from hypothesis import given
from hypothesis import strategies as st
from listops_runs import tiny
from pages import ReportPage, read_page

import treelax.lab.report
from treelax.apps.data.conllu import Sentence
from treelax.apps.data.text.vectors import random_vectors
from treelax.apps.tasks import task_named
from treelax.apps.tasks.text.config import SentenceSettings
from treelax.apps.tasks.text.presets import preset
from treelax.apps.tasks.text.pretrained import SentenceModel
from treelax.lab.analysis.corpora import Corpus
from treelax.lab.analysis.parses import Parses, parse_corpus
from treelax.lab.analysis.study import study
from treelax.lab.report import Gallery, Report, Result, RunRecord, Selection, ask, is_report
from treelax.lab.report.examples import LONGEST

NASTY = "<script>alert('1')</script>"


def corpus_of(*sentences: str, **options: Any) -> Corpus:
    return Corpus("some", tuple(Sentence(tuple(s.split())) for s in sentences), **options)


def page_of(runs: Sequence[RunRecord], gallery: Gallery | None = None) -> ReportPage:
    return ReportPage(Report(runs, gallery=gallery).html())


def text_run(name: str, accuracy: float, seed: int = 0, **changes: Any) -> RunRecord:
    config = dataclasses.replace(preset("snli-tree-2"), seed=seed, **changes)
    figures = {"examples": 10, "accuracy": accuracy, "soft_accuracy": accuracy - 1}
    result = {
        **{"preset": config.preset, "seed": seed, "kind": "pair", "device": "CPU"},
        **{"training_examples": 549_367, "mixed_examples": 0, "parameters": 5, "seconds": 3.0},
        **{"best_epoch": 1, "epochs": 2, "updates": 4, "labels": ["a"]},
        "splits": {"dev": figures, "test": figures},
    }
    rows = [{"epoch": 1, "loss": 1.0, "dev": {"score": 5.0, "accuracy": 5.0}}]
    return RunRecord(name, Path(name), task_named("pair"), config, rows, result)


@given(st.lists(st.integers(1, 300), min_size=1, max_size=60), st.integers(0, 20), st.data())
def test_a_gallery_is_as_large_as_it_can_be(lengths: list[int], size: int, data: Any) -> None:
    corpus = Corpus("c", tuple(Sentence(("w",) * n) for n in lengths))
    chosen = Selection.of(corpus, size)
    wrong = data.draw(st.sets(st.integers(0, len(lengths) - 1)))
    shown = chosen.shown(wrong.__contains__)
    short = [i for i, n in enumerate(lengths) if n <= LONGEST]
    assert len(shown) == min(size, len(short))
    assert list(shown) == sorted(set(shown))
    assert set(chosen.mapped) <= set(chosen.fixed) <= set(shown) <= set(chosen.asked) <= set(short)
    assert chosen.too_long == len(lengths) - len(short)
    # whatever is wrong and was asked about comes before what is neither fixed nor wrong
    if any(i not in wrong for i in set(shown) - set(chosen.fixed)):
        assert wrong & set(chosen.asked) <= set(shown)


def test_curves_of_metrics_with_gaps() -> None:
    run = dataclasses.replace(
        text_run("a", 80.0),
        rows=[
            {"epoch": 1, "loss": 2.0, "dev": {"score": 1.0, "accuracy": 1.0}},
            {"epoch": 2, "loss": None, "dev": {"score": 3.0, "accuracy": 3.0}},
            {"epoch": 3, "loss": 1.0},
        ],
    )
    [image] = page_of([run]).all("img")
    assert image["alt"] == (
        "training loss by epoch: a from 2 to 1. dev: accuracy, % by epoch: a from 1 to 3."
    )
    kind, _, data = image["src"].partition(",")
    assert kind == "data:image/svg+xml;base64"
    assert {"training loss", "dev: accuracy, %", "a"} <= set(texts(b64decode(data).decode()))
    assert page_of([dataclasses.replace(run, rows=[])]).all("img") == []


def test_the_papers_figures_of_sentences() -> None:
    runs = [text_run("a", 85.0, 0), text_run("b", 87.0, 1)]
    page = page_of(runs)
    assert "Beside the paper: SNLI" in page.texts
    assert "86.2" in page.texts
    assert "86.00 ± 1.41" in page.texts
    assert "all 549,367 training pairs of SNLI" in page.text
    assert "Not the settings of their presets" not in page.text
    other = text_run("c", 50.0, train=dataclasses.replace(runs[0].config.train, epochs=3))
    page = page_of([*runs, other])
    assert "86.00 ± 1.41" in page.texts  # what was trained otherwise is no other seed
    assert "c: train.epochs 3 (preset: 200)." in page.text
    assert "Results" not in page_of([dataclasses.replace(other, result=None)]).texts


def test_settings_that_differ_stand_first() -> None:
    config = tiny("balanced-mc", model__gcn_size=9)
    one = RunRecord("one", Path("one"), task_named("listops"), config, [], None)
    two = dataclasses.replace(one, name="two", config=dataclasses.replace(config, seed=7))
    page = page_of([one])
    at = page.texts.index("gcn_size")
    assert page.texts[at : at + 3] == ["gcn_size", "9", "100"]  # and what the preset has
    page = page_of([one, two])
    at = page.texts.index("Settings that differ")
    assert page.texts[at + 1 : at + 7] == ["setting", "one", "two", "seed", "0", "7"]
    same = dataclasses.replace(one, name="same")
    assert "All runs have the same settings." in page_of([one, same]).texts
    parser = task_named("parser")
    other = RunRecord("b", Path("b"), parser, parser.preset("small"), [], None)
    page = page_of([one, other])  # runs of different tasks have different settings
    at = page.texts.index("data.labelled")
    assert page.texts[at : at + 3] == ["data.labelled", "–", "1.0"]


def test_everything_is_escaped(tmp_path: Path) -> None:
    """Names, words and labels that are markup, turn the direction, or are no characters."""
    words = f"{NASTY} </svg> \u202eabc \ud800 שלום {'x' * 400}"
    corpus = corpus_of(words, "b", labels=(NASTY, None))
    heads = [tuple(range(6)), (0,)]
    answers = {i: Result((one,), NASTY, "soft", 0.5, right=False) for i, one in enumerate(heads)}
    chosen = Selection.of(corpus, 5)
    run = text_run(NASTY, 50.0)
    for name in ("<!--", "&lt;", "</style>", "a\nb"):
        page = page_of([dataclasses.replace(run, name=name, rows=[])])
        assert f"Report of {' '.join(name.split())}" in page.texts
    made = Report(
        [run],
        study(corpus, [Parses(run.name, tuple(heads))]),
        Gallery(corpus, chosen, {run.name: answers}, ("text",), False),
        [(NASTY, NASTY)],
    ).save(tmp_path / "a.html")
    page = read_page(made)
    assert is_report(made)
    made.write_bytes(b'<meta name="generator" content="other">\xff')
    assert not is_report(made)
    assert sum(NASTY in text for text in page.texts) > 5
    assert "alert" not in page.raw["script"]
    assert "\u202e" not in page.text


def test_tags_right_and_wrong_at_the_same_place_for_all_runs() -> None:
    corpus = corpus_of("a b", "c", labels=(("A", "B"), ("C",)))

    def run_of(*tags: str, right: bool) -> dict[int, Result]:
        first = Result(((0, 1),), tags, ("Y", *tags[1:]), right=right)
        return {0: first, 1: Result(((0,),), ("C",), ("C",), right=True)}

    results = {"r": run_of("A", "X", right=False), "s": run_of("a very long tag", "B", right=False)}
    gallery = Gallery(corpus, Selection.of(corpus, 5), results, ("text",), True)
    page = page_of([text_run("r", 50.0), text_run("s", 50.0)], gallery)
    assert "X ✗ B" in page.texts
    assert "1 tag differs with soft trees" in page.texts
    right = [part["data-right"] for part in page.all("div", class_="said")]
    assert right == ["0", "0", "1", "1"]
    assert [part["data-labels"] for part in page.all("article")] == ["0 1", "2"]
    one, two = (result["trees"][0][0].body for result in gallery.examples[0]["results"])
    places = [re.findall(r'x="([\d.]+)"[^>]*>b</text>', body) for body in (one, two)]
    assert places[0] == places[1] != []


def test_marginals_are_probabilities_of_heads(finished: tuple[Path, Any]) -> None:
    parser = treelax.load(finished[0], called="r")
    corpus = Corpus.of(parser.own_examples("dev", limit=4))
    answers = ask(
        parser, corpus, parse_corpus(parser, corpus), Selection(4, (0, 1, 2, 3), (), (2,), 0)
    )
    assert [len(answers[i].marginals) for i in range(4)] == [0, 0, 1, 0]
    [shares] = answers[2].marginals
    n = len(corpus.sentences[2])
    assert shares.shape == (n + 1, n + 1)
    torch.testing.assert_close(shares[:, 1:].sum(0), torch.ones(n, dtype=torch.float64))


def test_a_run_of_another_kind_of_labels_knows_no_right_ones() -> None:
    """`right` stays unknown where the labels of the data are none of the model's."""
    model = SentenceModel(SentenceSettings(), random_vectors(["a"], 8), ["yes", "no"]).eval()
    for labels, known in ((("up", "down"), False), (("yes", "no"), True)):
        corpus = corpus_of("a b", "b", labels=labels)
        answers = ask(model, corpus, parse_corpus(model, corpus), Selection(2, (0, 1), (), (), 0))
        assert [one.right is not None for one in answers.values()] == [known, known]
        assert all(one.label in model.labels for one in answers.values())
