"""What `make test` does where there is no browser: install it, or let the tests say how."""

from __future__ import annotations

import subprocess
from pathlib import Path

from pages import PROGRAMS

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
    _, err, calls = run(tmp_path)
    assert err == ""
    assert calls == ["update -qq", "install -qq --yes --no-install-recommends chromium"]
    program(tmp_path, "apt-get", "exit 100")  # a failure ends nothing
    assert run(tmp_path)[1].startswith("chromium could not be installed")


def test_elsewhere_nothing_is_done(tmp_path: Path) -> None:
    assert run(tmp_path, user=1000) == run(tmp_path, system="fedora") == ("", "", [])
    for name in PROGRAMS:
        program(tmp_path, name, "exit 1")
        assert run(tmp_path) == ("", "", [])
        (tmp_path / name).unlink()
