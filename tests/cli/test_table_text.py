"""``treelax table sst | snli | multinli | ablation``: sweeps over tiny corpora, and their files."""

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from text_table_runs import SETTINGS, SMALL, ended, result, write_nli, write_sst
from typer.testing import CliRunner

from treelax.analysis import sweep, text_table
from treelax.analysis.text_table import COLUMNS, TABLES, amount, text_record, text_rows
from treelax.cli.main import app, main
from treelax.data.text.readers_corpora import CORPORA
from treelax.tasks.text.presets import PRESETS, preset
from treelax.training.config import override
from treelax.training.run import Run

# ------------------------------------------------------------------ rows and words


def test_every_row_is_a_preset() -> None:
    for table in TABLES.values():
        assert set(table.presets) <= PRESETS.keys()
        assert set(table.tuned.presets) <= PRESETS.keys()
        assert not set(table.tuned.presets) & set(table.presets)


def test_rows_by_hand() -> None:
    records = [
        text_record(result("snli-tree-2", 1, 82.0, 74.0)),
        text_record(result("own", 0, 50.0, None)),
        text_record(result("snli-tree-2", 0)),
    ]
    rows = text_rows(TABLES["snli"], records)
    assert [len(row) for row in rows] == [len(TABLES["snli"].headings)] * 2
    assert rows[0] == [
        *("latent tree, 2 GCN", "86.2", "382,003", "2", "81.00 ± 1.41", "72.00 ± 2.83"),
        *("82.00 ± 1.41", "71.00 ± 2.83", "80.0/70.0, 82.0/74.0"),
    ]
    assert rows[1] == ["own", "–", "382,003", "1", "50.00", "–", "51.00", "–", "50.0/–"]


def test_the_amount_of_training_data() -> None:
    found = {"training_examples": 6_920, "mixed_examples": 0}
    assert amount(preset("sst-tree"), found) == "all 6,920 training sentences of SST"
    found = {"training_examples": 129_340, "mixed_examples": 100_000}
    assert amount(preset("multinli-none"), found) == (
        "29,340 of the 392,702 training pairs of MultiNLI (7.5 %) and 100,000 of the 549,367 "
        "training pairs of SNLI (18 %), of which each epoch draws 15 %"
    )
    assert amount(preset("classify"), {"training_examples": 9}) == "9 training examples"
    five = override(preset("sst-tree"), ["data.classes=five"])
    assert amount(five, {"training_examples": 8_544}) == "all 8,544 training sentences of SST"


def test_the_whole_of_a_corpus_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the corpora themselves."""
    smaller = {name: replace(corpus, official={"train": 9}) for name, corpus in CORPORA.items()}
    monkeypatch.setattr(text_table, "CORPORA", smaller)
    found = {"training_examples": 9, "mixed_examples": 0}
    assert amount(preset("snli-none"), found) == "all 9 training pairs of SNLI"
    assert amount(preset("sst-none"), found) == "all 9 training sentences of SST"
    assert amount(
        preset("multinli-none"), found | {"training_examples": 18, "mixed_examples": 9}
    ) == (
        "all 9 training pairs of MultiNLI and all 9 training pairs of SNLI, of which each epoch draws "
        "15 %"
    )


# ------------------------------------------------------------------ commands


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREELAX_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sweep, "POLL", 0.02)


def test_sst_from_data_to_table(tmp_path: Path) -> None:
    source = write_sst(tmp_path / "sst")
    results = tmp_path / "results"
    command = ["table", "sst", "--from", str(source), "--rows", "sst-tree,sst-none", "--seeds", "2"]
    command += ["--runs", str(tmp_path / "runs"), "--results", str(results), "--device", "cpu"]
    command += [*SETTINGS, "--set", "model.encoder_size=8"]
    shown = CliRunner().invoke(app, command)
    assert shown.exit_code == 0, shown.output
    with (results / "runs.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert list(lines[0]) == list(COLUMNS)
    assert [(line["preset"], line["seed"]) for line in lines] == [
        *(("sst-tree", "0"), ("sst-tree", "1"), ("sst-none", "0"), ("sst-none", "1"))
    ]
    for line in lines:
        record = json.loads(
            (tmp_path / "runs" / f"{line['preset']}-{line['seed']}" / "test.json").read_text()
        )
        assert line["test_accuracy"] == f"{record['splits']['test']['accuracy']:.3f}"
        assert int(line["parameters"]) == record["parameters"]
    text = (results / "table.md").read_text()
    assert "24 of the 6,920 training sentences of SST (0.3 %), with random word vectors; " in text
    assert "; dev has 8 examples, test 8. Accuracy" in text
    rows = "--rows sst-tree,sst-none --set data.vector_size=8"
    assert f"`treelax table sst --seeds 2 {rows}" in text
    assert [line.split("|")[1].strip() for line in text.splitlines() if line[:2] == "| "][1:] == [
        *("BiLSTM without a tree", "latent tree")
    ]
    again = CliRunner().invoke(app, [*command, "--report"])
    assert (again.exit_code, again.stdout) == (0, shown.stdout)


def test_a_table_goes_on_though_its_files_have_moved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write_sst(tmp_path / "sst")
    settings = ["--device", "cpu", *SETTINGS, "--set", "model.encoder_size=8"]
    places = ["--runs", str(tmp_path / "runs"), "--results", str(tmp_path / "results")]
    begun = tmp_path / "runs" / "sst-none-1"
    train = ["train", "sst", "--preset", "sst-none", "--seed", "1", "--from", str(source)]
    assert main([*train, "--out", str(begun), *settings]) == 0
    (begun / "test.json").unlink()  # all but ended
    command = ["table", "sst", "--rows", "sst-none,", *places, *settings]
    assert main([*command, "--seeds", "1", "--from", str(source)]) == 0

    elsewhere = source.rename(tmp_path / "elsewhere")
    moved = [*command, "--from", str(elsewhere), "--seeds"]
    capsys.readouterr()
    assert main([*moved, "2", "--report"]) == 0
    assert "not ended yet: sst-none-1" in capsys.readouterr().err
    assert main([*moved, "2"]) == 0
    assert "not ended yet" not in capsys.readouterr().err
    assert len((tmp_path / "results" / "runs.csv").read_text().splitlines()) == 3
    assert str(elsewhere) in (begun / "config.toml").read_text()

    (elsewhere / "dev.txt").write_text("(4 (2 good) (2 film))\n(0 (2 bad) (2 plot))\n")
    assert main([*moved, "3"]) == 2
    assert "other data" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "family", "splits"),
    [
        ("snli", "snli_1.0", ("train", "dev", "test")),
        ("ablation", "multinli_1.0", ("train", "dev_matched", "dev_mismatched")),
    ],
)
def test_pairs_from_data_to_table(
    tmp_path: Path, name: str, family: str, splits: tuple[str, ...]
) -> None:
    source = write_nli(tmp_path / "nli", family, splits)
    table = TABLES[name]
    command = ["table", name, "--from", str(source), "--rows", table.presets[-1], "--seeds", "1"]
    command += ["--runs", str(tmp_path / "runs"), "--results", str(tmp_path / "results")]
    shown = CliRunner().invoke(app, [*command, "--device", "cpu", *SETTINGS])
    assert shown.exit_code == 0, shown.output
    assert "latent tree, 2 GCN" in shown.stdout
    assert f"| {table.dev} | {table.test} |" in (tmp_path / "results" / "table.md").read_text()


def test_the_tables_of_multinli_share_their_runs(tmp_path: Path) -> None:
    for seed in range(3):
        ended(tmp_path / "runs", replace(preset("multinli-tree-2"), seed=seed))
    more = ["--runs", str(tmp_path / "runs"), "--report"]
    for name in ("multinli", "ablation"):
        assert main(["table", name, *more, "--results", str(tmp_path / name)]) == 0
        text = (tmp_path / name / "table.md").read_text()
        assert f"| {TABLES[name].rows['tree-2']} | 382,003 | 3 | 80.00 ± 0.00 |" in text


# ------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            ["--rows", "snli-none,snli-tre-2"],
            r"--rows is 'snli-tre-2'; expected one of 'snli-none', 'snli-intra', 'snli-tree-1', "
            r"'snli-tree-2'\. Did you mean 'snli-tree-2'\?\n$",
        ),
        (["--set", "train.epoch=3"], r"train.epoch: no such key; did you mean train.epochs"),
        (["--set", "preset=pair"], r"preset: received the setting preset=pair"),
        (["--set", "seed=3"], r"seed: received the setting seed=3; expected --seeds N"),
        (["--set", "model.trees=chain"], r"--set: received model.trees=chain, in which the rows"),
        (["--report"], r"no run has ended yet"),
    ],
)
def test_bad_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], said: str
) -> None:
    places = ["--runs", str(tmp_path / "runs"), "--results", str(tmp_path / "results")]
    assert main(["table", "snli", *places, *more]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.count("\n") == 1
    assert re.search(said, output.err)


def test_bad_data_are_told_once_before_any_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write_sst(tmp_path / "sst")
    (source / "train.txt").write_text("(4 (2 no end)\n")
    places = ["--runs", str(tmp_path / "runs"), "--results", str(tmp_path / "results")]
    more = ["--rows", "sst-none,sst-tree", "--seeds", "2", "--from", str(source)]
    assert main(["table", "sst", *places, *more, "--device", "cpu"]) == 2
    [said] = capsys.readouterr().err.splitlines()
    assert "train.txt, line 1" in said
    assert not (tmp_path / "runs").exists()


def test_what_is_missing_is_told_before_anything_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, runs = write_sst(tmp_path / "sst"), tmp_path / "runs"
    command = ["table", "sst", "--seeds", "1", "--runs", str(runs), "--device", "cpu", *SETTINGS]
    given = ["--from", str(source), "--set", f"data.trees={tmp_path}/{{split}}.conllu"]
    for more, message in (
        ([], "data.path is none"),
        (["--from", str(tmp_path / "typo")], "typo: does not exist"),
        (["--from", str(source)], "or leave that row out: --rows sst-none,sst-chain,sst-heads,"),
        (given, "train.conllu: does not exist; expected a CoNLL-U file of given trees"),
        (
            ["--from", str(source), "--rows", "sst-none", "--vectors", "glove.txt"],
            "glove.txt: does not exist; expected word vectors",
        ),
    ):
        rows = ["--rows", "sst-none"] if message.startswith(("data.path", "typo")) else []
        assert main([*command, *rows, *more]) == 2
        assert message in capsys.readouterr().err
    assert not runs.exists()


def test_rows_without_given_trees_are_the_same_runs_with_and_without(tmp_path: Path) -> None:
    source, runs = write_sst(tmp_path / "sst"), tmp_path / "runs"
    command = ["table", "sst", "--seeds", "1", "--rows", "sst-none", "--from", str(source)]
    command += ["--runs", str(runs), "--results", str(tmp_path / "results"), "--device", "cpu"]
    command += [*SETTINGS, "--set", "model.encoder_size=8"]
    assert main(command) == 0
    (tmp_path / "train.conllu").touch()
    assert main([*command, "--set", f"data.trees={tmp_path}/{{split}}.conllu"]) == 0
    # a report needs no settings, but must not be given others
    report = ["table", "sst", "--seeds", "1", "--rows", "sst-none", "--report"]
    report += ["--runs", str(runs), "--results", str(tmp_path / "results")]
    assert main(report) == 0
    assert main([*report, "--set", "model.encoder_size=9"]) == 2


def test_what_has_ended_is_published_though_a_run_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, results, runs = write_sst(tmp_path / "sst"), tmp_path / "results", tmp_path / "runs"
    command = ["table", "sst", "--seeds", "1", "--rows", "sst-none,sst-chain"]
    command += ["--from", str(source), "--runs", str(runs), "--results", str(results)]
    command += ["--device", "cpu", *SETTINGS, "--set", "model.encoder_size=8"]
    changes = [f"data.path={source}", *SMALL, "model.encoder_size=8"]
    broken = Run.create(
        runs / "sst-chain-0", override(preset("sst-chain"), changes, list_all=""), task="classify"
    )
    broken.last_checkpoint.parent.mkdir()
    broken.last_checkpoint.write_text("damaged")
    assert main(command) != 0
    said = capsys.readouterr().err.splitlines()[-1]
    assert "1 of 2 runs failed: sst-chain-0 (" in said
    assert "last.safetensors" in said
    assert (results / "runs.csv").read_text().count("sst-none") == 1
    text = (results / "table.md").read_text()
    assert text.endswith("\nRuns that have not ended: sst-chain-0.\n")


# ------------------------------------------------------------------ rows that belong together


def test_the_command_in_a_table_is_that_of_its_runs(tmp_path: Path) -> None:
    changes = ["train.epochs=5", "data.train=a.tsv", "data.text=a,b", "model.distances=none"]
    for name in ("snli-none", "snli-intra"):
        ended(tmp_path / "runs", override(preset(name), changes, list_all=""))
    command = ["table", "snli", "--seeds", "1", "--report", "--runs", str(tmp_path / "runs")]
    assert main([*command, "--results", str(tmp_path / "results")]) == 0
    text = (tmp_path / "results" / "table.md").read_text()
    settings = "--set data.text=a,b --set model.distances=none --set train.epochs=5"
    assert f"`treelax table snli --seeds 1 {settings} --runs " in text
    assert " Files: a.tsv. `treelax table" in text
    assert "Runs that have not ended: snli-tree-1-0, snli-tree-2-0." in text


def test_rows_of_other_settings_or_data_are_no_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["table", "snli", "--seeds", "1", "--report", "--results", str(tmp_path / "results")]
    for runs, changes, data, said in (
        ("settings", ["train.epochs=5"], "one", "train.epochs: is 5 in "),
        ("data", [], "other", "intra-0: was trained or tested on other data than "),
    ):
        config = override(preset("snli-none"), changes, list_all="")
        ended(tmp_path / runs, config, data="one")
        ended(tmp_path / runs, preset("snli-intra"), data=data)
        assert main([*command, "--runs", str(tmp_path / runs)]) == 2
        assert said in capsys.readouterr().err
    assert not (tmp_path / "results").exists()


def test_rows_are_not_joined_by_rows_on_other_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write_sst(tmp_path / "sst")
    command = ["table", "sst", "--from", str(source), "--seeds", "1", "--device", "cpu"]
    command += ["--runs", str(tmp_path / "runs"), "--results", str(tmp_path / "results")]
    command += [*SETTINGS, "--set", "model.encoder_size=8"]
    assert main([*command, "--rows", "sst-none"]) == 0
    test = source / "test.txt"
    test.write_text(test.read_text().replace("(4 ", "(0 ", 1))
    assert main([*command, "--rows", "sst-none,sst-chain"]) == 2
    assert "sst-none-0: was trained or tested on other data than are there now" in (
        capsys.readouterr().err
    )
    assert not (tmp_path / "runs" / "sst-chain-0").exists()
    assert main([*command, "--rows", "sst-none"]) == 0  # nothing is trained, so nothing is read


def test_tables_that_are_not_the_paper_s_do_without_its_figures(tmp_path: Path) -> None:
    for changes, title in (
        (["data.classes=five"], "# Sentiment of the Stanford Sentiment Treebank, five classes\n"),
        (
            ["model.encoder=transformer", "model.pretrained=bert"],
            "# Sentiment of the Stanford Sentiment Treebank, binary, encoder transformer\n",
        ),
    ):
        folder = tmp_path / changes[0]
        for name in ("sst-none", "sst-tree"):
            ended(folder / "runs", override(preset(name), changes, list_all=""))
        command = ["table", "sst", "--seeds", "1", "--report", "--runs", str(folder / "runs")]
        assert main([*command, "--results", str(folder / "results")]) == 0
        text = (folder / "results" / "table.md").read_text()
        assert text.startswith(title)
        assert "84.6" not in text
        assert ("BiLSTM" in text) == ("five" in title)


@pytest.mark.parametrize("name", list(TABLES))
def test_help_fits_and_has_an_example(name: str) -> None:
    shown = CliRunner().invoke(app, ["table", name, "--help"], prog_name="treelax").output
    assert f"  treelax table {name} --recipe tuned --from " in shown
    assert max(map(len, shown.splitlines())) <= 80
