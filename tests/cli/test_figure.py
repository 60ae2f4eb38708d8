"""``treelax figure``: a figure by one command, to a file or to standard output."""

import numpy as np
from commands import fail

from treelax.__main__ import main
from treelax.lab.analysis.seed_plots import draw_seeds, read_runs
from treelax.lab.plots import draw_relaxation


def test_the_relaxation(tmp_path, capsys):
    file = tmp_path / "relaxation.svg"
    assert main(["figure", "relaxation", "--out", str(file)]) == 0
    assert file.read_text(encoding="utf-8").endswith(draw_relaxation().svg())
    assert capsys.readouterr() == ("", "")
    assert main(["figure", "relaxation", "--temperature", "0.5"]) == 0
    assert capsys.readouterr().out == draw_relaxation(temperature=0.5).svg()


RUNS = """preset,seed,operator_accuracy,soft_operator_accuracy,attachment
paper-mc,1,99.0,99.5,98.5
paper-mc,0,98.0,100.0,99.0
paper-zero-st,0,70.0,40.0,35.0
chain,0,25.0,25.0,20.0
"""


def test_the_seeds_of_table_1(tmp_path, capsys):
    runs, picture = tmp_path / "runs.csv", tmp_path / "seeds.svg"
    runs.write_text(RUNS)
    assert main(["figure", "listops", str(runs), "--out", str(picture)]) == 0
    svg = picture.read_text(encoding="utf-8")
    assert "MC, forward relaxed: accuracy as trained 99.5 to 100.0 over 2 seeds, paper 99.6." in svg
    assert "MC, forward relaxed: attachment 98.5 to 99.0 over 2 seeds, paper 99.7." in svg
    assert "G = 0, straight-through: accuracy as trained 70.0, paper 70.8." in svg
    # dots as trained, with discrete trees where they differ, and the paper's mark
    axes = draw_seeds(read_runs(runs)).figure.axes
    drawn = [[np.asarray(line.get_xdata()).tolist() for line in row.lines] for row in axes]
    assert drawn == [
        [[100.0, 99.5], [98.0, 99.0], [99.6, 99.6], [70.0], [70.8, 70.8]],
        [[99.0, 98.5], [99.7, 99.7], [35.0], [33.9, 33.9]],
    ]
    assert "chain" not in svg
    for wrong, message in (
        (RUNS.replace("99.5", "much"), "cannot be read as a list of runs (ValueError"),
        (RUNS.replace("paper", "balanced"), "has no run of table 1; expected rows of paper-mc, "),
    ):
        runs.write_text(wrong)
        line = fail(capsys, "figure", "listops", runs, device=False)
        assert line.startswith(f"{runs}: {message}")
