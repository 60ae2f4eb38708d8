"""``treelax figure``: a figure by one command, to a file or to standard output."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from treelax.cli.main import main
from treelax.pictures import draw_relaxation


def test_the_relaxation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "relaxation.svg"
    assert main(["figure", "relaxation", "--out", str(file)]) == 0
    assert file.read_text(encoding="utf-8").endswith(draw_relaxation().svg())
    assert capsys.readouterr() == ("", "")
    assert main(["figure", "relaxation", "--temperature", "0.5"]) == 0
    assert capsys.readouterr().out == draw_relaxation(temperature=0.5).svg()


def test_an_output_that_takes_nothing_but_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    assert main(["figure", "relaxation"]) == 0
    shown = raw.getvalue().decode("ascii")
    expected = ElementTree.fromstring(draw_relaxation().svg())
    assert ElementTree.tostring(ElementTree.fromstring(shown)) == ElementTree.tostring(expected)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--out", "one.gif"], "one.gif: received the suffix '.gif'; expected .svg, .png or .pdf"),
        (["--out", "nowhere/one.svg"], "nowhere/one.svg: was not written"),
    ],
)
def test_what_is_refused(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["figure", "relaxation", *arguments]) == 2
    assert capsys.readouterr().err.startswith(f"treelax: error: {said}")
    assert not list(tmp_path.iterdir())
