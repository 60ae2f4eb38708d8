"""What docs/pictures.md shows is what its commands and its code make."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from drawings import texts

from treelax.cli.main import main

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
    (tmp_path / "docs" / "images").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")


def made() -> list[str]:
    """Pictures that were made here, each the same as that of the page."""
    files = sorted(Path("docs/images").iterdir())
    for file in files:
        own, shown = (folder / file.name for folder in (file.parent, DOCS / "images"))
        if file.stem == "relaxation":  # the last digits of its surfaces depend on the machine
            assert texts(own.read_text("utf-8")) == texts(shown.read_text("utf-8"))
        else:
            assert own.read_bytes() == shown.read_bytes(), file.name
        assert f"](images/{file.name})" in PAGE
    return [file.name for file in files]


def test_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(COMMANDS) == 3
    for command in COMMANDS:
        assert main(shlex.split(command)[1:]) == 0
    assert f"```text\n{capsys.readouterr().out}```" in PAGE
    assert made() == ["listops-tree.svg", "relaxation.svg"]


def test_code() -> None:
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(compile(block, "pictures.md", "exec"), {})
    assert made() == ["heat-map.svg", "right-and-wrong.svg"]
    for name in ("accuracy.svg", "both.svg"):
        assert "latent trees" in Path(name).read_text(encoding="utf-8")
