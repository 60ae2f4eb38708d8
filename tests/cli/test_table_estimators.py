"""``treelax table estimators``: trials, choice, runs on record, and what is refused."""

import csv
from dataclasses import replace

import pytest
from table_runs import TrainedHere

from treelax.__main__ import main
from treelax.lab.analysis import estimators, sweep
from treelax.lab.analysis.estimators import ROWS, TRIAL_SEED, Key, Study

TINY = """train.epochs=1 train.updates=2 data.train=60 data.dev=20 data.test=20 data.max_length=12
model.embedding_size=4 model.encoder_size=4 model.scorer_size=4 model.gcn_size=4 model.tagger_size=4
train.batch_size=8"""
SETTINGS = [part for setting in TINY.split() for part in ("--set", setting)]


def compare(folder, *options):
    places = ["--runs", str(folder / "runs"), "--results", str(folder / "results")]
    return main(["table", "estimators", "listops", *places, "--device", "cpu", *options])


def records(folder):
    with (folder / "results/listops/runs.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_trials_choose_what_the_seeds_are_trained_with(tmp_path, monkeypatch, capsys):
    rows = {"imle": replace(ROWS["imle"], values=(1.0, 5.0))}
    monkeypatch.setattr(estimators, "ROWS", rows)
    monkeypatch.setattr(sweep, "Worker", TrainedHere)
    monkeypatch.setattr(sweep, "POLL", 0)
    assert compare(tmp_path, "--rows", "imle", "--seeds", "1", *SETTINGS) == 0
    lines = records(tmp_path)
    assert [float(r["value"]) for r in lines if r["seed"] == str(TRIAL_SEED)] == [1.0, 5.0]
    [final] = [r for r in lines if r["seed"] == "0"]
    assert float(final["value"]) in (1.0, 5.0)
    study = Study("listops", tmp_path / "runs", tmp_path / "results", ["imle"], TINY.split())
    chosen = study.chosen()
    assert chosen == {"imle": float(final["value"])}
    printed = capsys.readouterr().out
    assert "I-MLE, 1 sample" in printed
    for name in ("table.md", "curves.csv", "curves.svg", "speed.csv"):
        assert (tmp_path / "results/listops" / name).stat().st_size > 50
    # on another machine, without the runs: nothing is trained again
    (tmp_path / "runs").rename(tmp_path / "elsewhere")
    assert compare(tmp_path, "--rows", "imle", "--seeds", "1", *SETTINGS) == 0
    assert not (tmp_path / "runs").exists()
    assert records(tmp_path) == lines


def test_a_table_has_all_rows_on_record(tmp_path, capsys):
    study = Study("listops", tmp_path / "runs", tmp_path / "results", ["imle", "entropy"])
    measured = dict.fromkeys(study.table.keys, 1.0)
    for row in study.rows:
        for value, dev in zip(ROWS[row].values, (70.0, 70.0, 55.0), strict=True):
            for seed in (TRIAL_SEED, 0):
                direct = {
                    "estimator": row,
                    "value": value,
                    "seed": seed,
                    "settings": "",
                    "dev": dev,
                }
                study.records[Key(row, value, seed)] = {**measured, **direct}
    study.collect([])
    curves = ["estimator,value,seed,epoch,loss,dev"]
    for row in study.rows:
        curves += [f"{row},{ROWS[row].values[0]:g},0,{n},1,{dev}" for n, dev in ((1, 70), (2, 42))]
    (study.results / "curves.csv").write_text("\n".join(curves))
    assert compare(tmp_path, "--report", "--rows", "imle", "--seeds", "1") == 0
    assert "relaxed, entropy" in capsys.readouterr().out
    entropy, imle = (study.results / "table.md").read_text().splitlines()[-2:]
    assert "temperature 0.5 | 70.0, 70.0, 55.0 | 1" in entropy  # the smaller in a tie
    assert "step 0.1" in imle
    assert "42.00" in entropy  # the last epoch


def test_the_best_value_on_dev_is_chosen(tmp_path):
    study = Study("listops", tmp_path, tmp_path, ["imle", "rloo-4"])
    for value, dev in zip(ROWS["imle"].values, (40.0, 70.0, 55.0), strict=True):
        study.records[Key("imle", value, TRIAL_SEED)] = {"dev": dev}
    assert study.chosen() == {"imle": ROWS["imle"].values[1]}  # the trials of the other are missing
    assert [key.seed for key in study.finals(2)] == [0, 1]
    rate = study.config(Key("rloo-4", 10, 0)).train.learning_rate
    assert rate == pytest.approx(10 * study.task.preset("paper-mc").train.learning_rate)


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        (
            "estimator,value,seed,settings,dev\nimle,1,100,train.epochs=1,50\n",
            "holds runs with the settings train.epochs=1, and received no others; expected the same",
        ),
        ("a,b\n1,2\n", "expected the columns estimator, value, seed, settings, dev, as"),
    ],
)
def test_records_of_something_else_are_not_mixed_in(tmp_path, capsys, text, reply):
    file = tmp_path / "results/listops/runs.csv"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    assert compare(tmp_path, "--report") == 2
    error = capsys.readouterr().err
    assert reply in error
    assert str(file) in error
