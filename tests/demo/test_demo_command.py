"""``treelax demo``: how it starts, and how it says why it does not."""

from __future__ import annotations

import socket

import pytest

import treelax.apps.cli.demo as command
from treelax.__main__ import main
from treelax.apps.demo import server


def fails(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["demo", *arguments]) == 2
    [line] = capsys.readouterr().err.splitlines()
    return line


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["nowhere"], "nowhere: does not exist; expected the folder of a run"),
        (["--port", "70000"], "'--port'"),
        (["--host", "no.such.host.invalid"], "cannot listen on --host no.such.host.invalid"),
        (["--host", "192.0.2.1"], "cannot listen on --host 192.0.2.1"),
        (["--port", "PORT"], "address already in use; expected an address of this machine and a"),
    ],
)
def test_errors_are_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], problem: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        given = [port if argument == "PORT" else argument for argument in arguments]
        free = [] if "--port" in given else ["--port", "0"]
        assert problem in fails(capsys, *given, *free)


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
    printed = capsys.readouterr()
    assert printed.err == ""
    assert printed.out.startswith("http://127.0.0.1:")
    assert main(["demo", "--host", "0.0.0.0", "--port", "0"]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("http://127.0.0.1:")
    [warning] = printed.err.splitlines()
    assert warning.startswith("warning: 0.0.0.0 is not only this machine")
    with server.listen("0.0.0.0", 0) as bound:
        assert server.own_hosts("0.0.0.0", bound) is None
