"""A tiny treebank and a parser that has learned it."""

from __future__ import annotations

from pathlib import Path

import pytest
from treebank_runs import train, write_treebanks


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with treebanks."""
    write_treebanks(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a trained parser."""
    folder = tmp_path_factory.mktemp("parser")
    write_treebanks(folder)
    assert train(folder) == 0
    return folder / "run"
