"""No request keeps the server busy for long: not by its work, and not after its client has gone.

Times are guards against a hang and far beyond what is needed; none is asserted.
"""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from threading import Event
from typing import Any
from urllib.parse import urlsplit

import httpx2
from demo_visits import a_server
from fastapi.testclient import TestClient

from treelax.apps.demo.app import create_app
from treelax.apps.demo.messages import MOST_SAMPLES, MOST_WORDS
from treelax.apps.demo.score_sources import ZeroSource

HANG = 300.0  # seconds
LIGHT = {"source": "zero", "text": "a b"}


def hours_of_work() -> dict[str, Any]:
    """Samples of non-projective trees cost most, and with scores far apart seconds each."""
    draw = random.Random(0)
    return {
        "source": "zero",
        "text": "w " * MOST_WORDS,
        "structure": "nonprojective",
        "relaxation": "entropy",
        "samples": MOST_SAMPLES,
        "edits": [
            {"head": head, "word": word, "score": round(draw.gauss(0, 1e5), 1)}
            for word in range(1, MOST_WORDS + 1)
            for head in range(MOST_WORDS + 1)
            if head != word
        ],
    }


def sent(address: str, request: dict[str, Any]) -> socket.socket:
    """A connection that waits for the reply."""
    where = urlsplit(address)
    body = json.dumps(request).encode()
    connection = socket.create_connection((where.hostname, where.port), timeout=HANG)
    connection.sendall(
        b"POST /api/trees HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    )
    return connection


def status(address: str, request: dict[str, Any]) -> int:
    with httpx2.Client(trust_env=False, timeout=HANG) as client:
        return client.post(f"{address}api/trees", json=request).status_code


class Noticed(ZeroSource):
    """Zeros, and whether someone has asked for them."""

    def __init__(self) -> None:
        self.asked = Event()

    def scores(self, words: Any, seed: int) -> Any:
        self.asked.set()
        return super().scores(words, seed)


def test_work_ends_when_its_client_leaves() -> None:
    source = Noticed()
    with a_server({"zero": source}, at_once=1, longest=2 * HANG) as address:
        heavy = sent(address, hours_of_work())
        assert source.asked.wait(HANG)
        waiting = sent(address, hours_of_work())
        heavy.close()
        waiting.close()
        assert status(address, LIGHT) == 200


def test_work_that_takes_too_long_is_refused() -> None:
    app = create_app({"zero": ZeroSource()}, at_once=1, longest=0.5)
    client = TestClient(app)
    reply = client.post("/api/trees", json=hours_of_work())
    assert reply.status_code == 504
    assert reply.json()["detail"].startswith("this takes more than 0.5 s; try fewer words or")


def test_sparsemap_is_exact_or_says_that_it_is_not(ask: Callable[..., dict[str, Any]]) -> None:
    hot = {"source": "random", "estimator": "sparsemap", "temperature": 100.0}
    assert ask(text="w " * 12, **hot)["gap"] == 0
    assert ask(text="w " * 100, **hot)["gap"] > 1e-3
    assert ask(text="w " * 12, source="random")["gap"] is None
    heads = ask(text="w " * 100, structure="heads", relaxation="entropy", **hot)
    assert heads["gap"] == 0


def test_it_serves_and_ends_with_ctrl_c_however_busy() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "treelax", "demo", "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_WAIT_POLICY": "PASSIVE"},
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.endswith("(Ctrl+C ends it)\n"), process.communicate(timeout=HANG)
        address = line.split()[0]
        with httpx2.Client(trust_env=False, timeout=HANG) as client:
            reply = client.post(f"{address}api/trees", json={"text": "Dogs bark."})
            assert reply.json()["best"] == [[2, 1], [0, 2], [2, 3]]
            assert "server" not in reply.headers
            clients = [sent(address, hours_of_work()) for _ in range(4)]
            assert client.get(f"{address}api/info").status_code == 200
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=HANG)
        for busy in clients:
            busy.close()
    finally:
        process.kill()
        process.communicate()
    assert (process.returncode, errors) == (0, "")
