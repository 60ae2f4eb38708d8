"""A terminal that is none, for tests of what commands print on one."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

import treelax.cli.console
import treelax.cli.progress


class Terminal(io.StringIO):
    """A file that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def terminal_of_80(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal of 80 columns on stdout and stderr."""
    file = Terminal()
    console = Console(
        file=file, force_terminal=True, width=80, markup=False, highlight=False, soft_wrap=True
    )
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(treelax.cli.console, "console", console)
    for module in (treelax.cli.console, treelax.cli.progress):
        monkeypatch.setattr(module, "error_console", console)
    monkeypatch.setattr("sys.stdout", file)
    return file


def bare(text: str) -> str:
    """Without control sequences."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
