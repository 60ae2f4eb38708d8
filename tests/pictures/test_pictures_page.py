"""What docs/pictures.md shows is what its commands and its code make."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from drawings import texts

from treelax.__main__ import main

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "pictures.md").read_text(encoding="utf-8")
COMMANDS = [
    line
    for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    for line in block.splitlines()
    if line.startswith("treelax ") and "runs/" not in line
]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")


def made() -> list[str]:
    """Pictures that were made here and are on the page, each the same as there."""
    files = [file for file in sorted(Path().iterdir()) if f"](images/{file.name})" in PAGE]
    for own in files:
        shown = DOCS / "images" / own.name
        if own.stem == "relaxation":  # the last digits of its surfaces depend on the machine
            assert texts(own.read_text("utf-8")) == texts(shown.read_text("utf-8"))
        else:
            assert own.read_bytes() == shown.read_bytes(), own.name
    return [file.name for file in files]


def test_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(COMMANDS) == 4
    printed = []
    for command in COMMANDS:
        assert main(shlex.split(command)[1:]) == 0
        printed.append(capsys.readouterr().out)
    assert [f"```text\n{out}```" in PAGE for out in printed if out] == [True, True]
    assert made() == ["listops-tree.svg", "relaxation.svg"]


def test_code(capsys: pytest.CaptureFixture[str]) -> None:
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(compile(block, "pictures.md", "exec"), {})
        if printed := capsys.readouterr().out:
            assert f"```python\n{block}```\n\n```text\n{printed}```" in PAGE
    assert made() == ["brackets.svg", "heat-map.svg", "right-and-wrong.svg", "span-marginals.svg"]
    for name in ("accuracy.svg", "both.svg"):
        assert "latent trees" in Path(name).read_text(encoding="utf-8")
