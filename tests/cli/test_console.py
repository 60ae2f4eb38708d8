"""Tables: drawn on a terminal, plain elsewhere."""

import io

import pytest
from commands import bare, terminal_of_80
from rich.console import Console

from treelax.apps.cli.console import is_terminal, table


@pytest.fixture
def terminal(monkeypatch):
    return terminal_of_80(monkeypatch)


# ------------------------------------------------------------------ tables


def test_a_plain_table_is_markdown(capsys):
    table(
        ["name", "count", "mean ± sd"],
        [["[MAX", 12345, "9.1 ± 0.2"], ["a|b", None, "-"], ["c", 7, "+1.5"]],
        title="Title",
        note="Note",
    )
    assert capsys.readouterr().out.splitlines() == [
        "Title",
        "",
        "| name |  count | mean ± sd |",
        "| :--- | -----: | --------: |",
        "| [MAX | 12,345 | 9.1 ± 0.2 |",
        "| a\\|b |        |         - |",
        "| c    |      7 |      +1.5 |",
        "",
        "Note",
    ]


def test_a_drawn_table_keeps_brackets_and_fits(terminal):
    long = "a/rather/long/folder/with/a/rather/long/name/and/a/file.tsv"
    table(["", long, long], [["[MAX", 1234, 5.0]], title="Title [bold]", note="Note [bold]")
    lines = bare(terminal.getvalue()).splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.split() == ["[MAX", "1,234", "5.00"] for line in lines)
    assert lines[0].strip() == "Title [bold]"
    assert lines[-1] == "Note [bold]"


def test_a_narrow_terminal_breaks_headings_between_words(terminal):
    """Rather than names; a wide one breaks nothing."""
    columns = ["trees", *(f"a rather long heading {i}" for i in range(5))]
    table(columns, [["left-to-right chain", *[100.0] * 5]])
    lines = bare(terminal.getvalue()).splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.split() == ["left-to-right", "chain", *["100.00"] * 5] for line in lines)
    assert any("heading" in line for line in lines)


@pytest.mark.parametrize(("encoding", "dash"), [("ascii", "-"), ("latin-1", "-"), ("utf-8", "–")])
@pytest.mark.parametrize("kind", [io.TextIOWrapper, "terminal"])
def test_a_table_where_not_all_characters_can_be_written(monkeypatch, encoding, dash, kind):
    class Stream(io.TextIOWrapper):
        def isatty(self):
            return kind == "terminal"

    raw = io.BytesIO()
    stream = Stream(raw, encoding=encoding, errors="strict")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr("sys.stdout", stream)
    table(["≤ 5", "词"], [["1–10", "9.1 ± 0.2"], ["–", "-"]], title="→ …", note="−")
    stream.flush()
    lines = bare(raw.getvalue().decode(encoding)).splitlines()
    assert any(f"1{dash}10" in line for line in lines)
    assert len({len(line) for line in lines if line.startswith("|")}) <= 1
    if encoding == "ascii":
        assert any("<= 5" in line and "\\u8bcd" in line for line in lines)
        assert any("9.1 +- 0.2" in line for line in lines)


# ------------------------------------------------------------------ terminals


@pytest.mark.parametrize("name", ["FORCE_COLOR", "TTY_COMPATIBLE"])
def test_no_wish_for_colours_makes_a_file_a_terminal(monkeypatch, name):
    monkeypatch.setenv(name, "1")
    assert not is_terminal(Console(file=io.StringIO()))
