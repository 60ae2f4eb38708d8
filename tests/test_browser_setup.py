"""What `make test` does where there is no browser: install it, or let the tests say how."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from browsing import PROGRAMS

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "ci" / "browser.sh"


def program(folder: Path, name: str, does: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{does}\n")
    path.chmod(0o755)


def run(folder: Path, *, system: str = "debian", user: int = 0) -> tuple[str, str, list[str]]:
    """What the script says on both outputs, and how it called apt-get, on a machine of pretence."""
    calls = folder / "calls"
    (folder / "os-release").write_text(f'NAME="Some Linux"\nID={system}\n')
    program(folder, "id", f"echo {user}")
    program(folder, "timeout", 'shift; "$@"')
    if not (folder / "apt-get").exists():
        program(folder, "apt-get", f'echo "$@" >> {calls}')
    done = subprocess.run(
        ["/bin/sh", SCRIPT],
        env={"PATH": str(folder), "OS_RELEASE": str(folder / "os-release")},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout, done.stderr, calls.read_text().splitlines() if calls.exists() else []


def test_as_root_on_debian_it_is_installed(tmp_path: Path) -> None:
    out, err, calls = run(tmp_path)
    assert out.startswith("installing chromium")
    assert err == ""
    assert calls == ["update -qq", "install -qq --yes --no-install-recommends chromium"]


def test_a_browser_that_is_there_is_enough(tmp_path: Path) -> None:
    for name in PROGRAMS:
        program(tmp_path, name, "exit 1")
        assert run(tmp_path) == ("", "", [])
        (tmp_path / name).unlink()


@pytest.mark.parametrize("machine", [{"user": 1000}, {"system": "fedora"}, {"system": "ubuntu"}])
def test_elsewhere_nothing_is_done(tmp_path: Path, machine: dict[str, object]) -> None:
    assert run(tmp_path, **machine) == ("", "", [])  # type: ignore[arg-type]


def test_a_failure_is_told_and_ends_nothing(tmp_path: Path) -> None:
    program(tmp_path, "apt-get", "exit 100")
    _, err, _ = run(tmp_path)
    assert err.startswith("chromium could not be installed")
