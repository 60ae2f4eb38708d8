"""``treelax demo``: how it starts, and how it says why it does not."""

from __future__ import annotations

import socket

import pytest

import treelax.apps.cli.demo as command
from treelax.__main__ import main
from treelax.apps.demo import server

HANG = 300  # seconds; only a test that fails waits that long


def fails(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["demo", *arguments]) == 2
    [line] = capsys.readouterr().err.splitlines()
    return line


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "nowhere: does not exist; expected the folder of a run"),
        (["--port", "70000"], "'--port'"),
        (["--host", "no.such.host.invalid"], "cannot listen on --host no.such.host.invalid"),
        (["--host", "192.0.2.1"], "cannot listen on --host 192.0.2.1"),
    ],
)
def test_errors_are_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    free = [] if "--port" in arguments else ["--port", "0"]
    assert said in fails(capsys, *arguments, *free)


def test_a_port_in_use(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        line = fails(capsys, "--port", str(other.getsockname()[1]))
    assert "address already in use; expected an address of this machine and a free port" in line


def test_without_fastapi(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "find_spec", lambda name: None)
    assert fails(capsys) == (
        "treelax: error: treelax demo needs fastapi and uvicorn: "
        'pip install "treelax[demo]", or in a checkout pip install ".[demo]"'
    )


def test_a_warning_when_others_can_reach_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "serve", lambda *arguments, **options: None)
    assert main(["demo", "--port", "0"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert said.out.startswith("http://127.0.0.1:")
    assert main(["demo", "--host", "0.0.0.0", "--port", "0"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("http://127.0.0.1:")
    [warning] = said.err.splitlines()
    assert warning.startswith("warning: 0.0.0.0 is not only this machine")
    with server.listen("0.0.0.0", 0) as bound:
        assert server.own_hosts("0.0.0.0", bound) is None
