"""What the server refuses, how it says so, what no request can reach, and how long any is at work.

Times are guards against a hang and far beyond what is needed; none is asserted.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from threading import Event
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from demo_visits import Sources, a_server
from fastapi.testclient import TestClient
from torch import Tensor

import treelax.apps.demo
from treelax.apps.demo import server
from treelax.apps.demo.app import MOST_BYTES, create_app
from treelax.apps.demo.messages import MOST_SAMPLES, MOST_WORDS
from treelax.apps.demo.score_sources import ZeroSource
from treelax.apps.demo.server import listen, own_hosts

JSON = {"content-type": "application/json"}
PAGE = Path(treelax.apps.demo.__file__).parent / "static"
ONE = {"source": "zero", "text": "a b"}
PAIR = {"source": "pairs", "text": "w"}
HANG = 300.0  # seconds; only a test that fails waits that long


def refused(client: TestClient, body: bytes | dict[str, Any], **headers: str) -> tuple[int, str]:
    """Status and detail of a request that is refused, which is one line and no traceback."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    reply = client.post("/api/trees", content=content, headers=JSON | headers)
    assert reply.headers["content-type"] == "application/json"
    assert list(reply.json()) == ["detail"]
    detail = reply.json()["detail"]
    assert detail.isprintable()
    assert len(detail) <= 300
    assert not re.search(r"Traceback|File \"|\.py", detail)
    return reply.status_code, detail


def arcs(*places: tuple[int, int]) -> list[dict[str, int]]:
    return [{"head": head, "word": word} for head, word in places]


@pytest.mark.parametrize(
    ("body", "status", "detail"),
    [
        (b"", 422, "body: Field required; see /openapi.json"),
        (b'{"text": "caf\xe9"}', 400, "There was an error parsing the body"),
        (b"[" * 100_000, 400, "There was an error parsing the body"),
        (b'{"text": "\\ud800"}', 422, "text"),
        ({"text": "  \n "}, 409, "text has no words; expected 1 to 200"),
        (ONE | {"text": "w " * 201}, 409, "received 201 words; expected at most 200 in all"),
        (ONE | {"source": "run"}, 409, "source is 'run'; expected one of english, listops, zero"),
        (b'{"text": "a", "temperature": NaN}', 422, "temperature is nan; expected a finite number"),
        (ONE | {"temperature": 0}, 422, "temperature is 0; expected greater than or equal to 0.01"),
        (ONE | {"pinned": arcs((2, 0))}, 422, "pinned.0.word is 0; expected greater than or"),
        (ONE | {"pinned": arcs((0, 1), (2, 1))}, 409, "arcs leave no projective tree; free one"),
        (ONE | {"single_root": True, "pinned": arcs((0, 1), (0, 2))}, 409, "with a single root"),
        (ONE | {"structure": "heads", "single_root": True}, 409, "cannot agree on one root"),
        (ONE | {"structure": "nonprojective"}, 409, 'relaxation is "softmax"; expected "entropy"'),
        ({"text": "[MAX 2 ]", "structure": "binary"}, 409, "this model scores arcs, not spans"),
        (ONE | {"second": {"text": "c"}}, 409, "second is a text; expected null: source 'z"),
        (ONE | {"shown": "second"}, 409, "shown is 'second'; expected 'first', or a text"),
        (ONE | {"source": "listops", "text": "[MAX dogs ]"}, 409, "text: token 2 is 'dogs'; expe"),
        (
            PAIR | {"text": "w " * 150, "second": {"text": "w " * 51}},
            409,
            "received 150 and 51 words; expected at most 200 in all",
        ),
        (PAIR | {"second": {"text": " "}}, 409, "second text has no words; expected 1 to 200"),
        (
            PAIR | {"second": {"text": "a", "forbidden": arcs((0, 2), (1, 2))}},
            409,
            "second text: pinned and forbidden arcs",
        ),
    ],
)
def test_bad_requests(client: TestClient, body: Any, status: int, detail: str) -> None:
    received, line = refused(client, body)
    assert (received, detail in line) == (status, True), line


def test_the_size_of_bodies(client: TestClient) -> None:
    """All arcs between as many words as there may be fit; other large bodies are not read."""
    edits = [edit | {"score": -123.456789} for edit in hours_of_work()["edits"]]
    request = {"source": "zero", "text": "w " * MOST_WORDS, "edits": edits, "samples": 1}
    reply = client.post("/api/trees", json=request)
    assert reply.status_code == 200
    assert reply.json()["scores"][0][1] == -123.456789
    message = f"the body has more than {MOST_BYTES:,} bytes; expected fewer"
    assert refused(client, b"x" * (MOST_BYTES + 1)) == (413, message)
    pieces = (b" " * 1_000_000 for _ in range(5))
    assert client.post("/api/trees", content=pieces, headers=JSON).status_code == 413


# ------------------------------------------------------------------ addresses and headers


def test_only_the_files_of_the_page_are_served(client: TestClient) -> None:
    """They name no host but that of SVG's name space, and make no markup from strings."""
    outside = ["/static/../app.py", "/static/..%2fapp.py", "/static/%2e%2e/app.py", "/docs"]
    outside += ["/static/app.js%00", "/static//etc/passwd", "/static/%2fetc%2fpasswd", "/static/"]
    for path in outside:
        reply = client.get(path)
        assert (reply.status_code, reply.json()) == (404, {"detail": "Not Found"}), path
    assert client.get("/").content == (PAGE / "index.html").read_bytes()
    assert client.get("/static/app.js").headers["content-type"].startswith("text/javascript")
    for file in PAGE.iterdir():
        assert client.get(f"/static/{file.name}").content == file.read_bytes()
        text = file.read_text(encoding="utf-8")
        addresses = set(re.findall(r"(?:https?:)?//[a-z][\w.-]+\.[a-z]{2,}[\w./]*", text))
        assert addresses <= {"http://www.w3.org/2000/svg"}, file.name
        for wrong in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
            assert wrong not in text, file.name
    for path in ("/", "/api/info", "/nowhere"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'; script-src 'self';" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"


def test_foreign_hosts_are_refused(sources: Sources) -> None:
    """A page elsewhere whose name leads to this machine would read the answers."""
    with listen("127.0.0.1", 0) as bound:
        local = TestClient(create_app(sources, hosts=own_hosts("Mine", bound)))
    for host in ("localhost", "LOCALHOST:8000", "127.0.0.1:9", "[::1]", "[::1]:8000", "mine:8000"):
        assert local.get("/api/info", headers={"host": host}).status_code == 200
    for host in ("evil.example", "evil.example:8000", "127.0.0.1.evil.example", "[::2]", "[", ""):
        for path in ("/", "/api/info", "/nowhere"):
            reply = local.get(path, headers={"host": host})
            assert reply.status_code == 400
        assert reply.json()["detail"].startswith(
            f"Host is {host!a}; expected 127.0.0.1, ::1, localhost, mine: open the address"
        )
        assert "content-security-policy" in reply.headers


# ------------------------------------------------------------------ load and faults


class Waiting(ZeroSource):
    """Zeros for those who wait, and whether someone has asked for them."""

    def __init__(self) -> None:
        self.asked, self.go = Event(), Event()

    def scores(self, words: Sequence[str], seed: int) -> Tensor:
        self.asked.set()
        assert self.go.wait(HANG)
        return super().scores(words, seed)


class Broken(ZeroSource):
    """A source with a fault."""

    def scores(self, words: Sequence[str], seed: int) -> Tensor:
        raise RuntimeError("secret /path")


def test_too_many_requests_are_told_to_come_back() -> None:
    source = Waiting()
    app = create_app({"zero": source}, at_once=1, waiting=2)

    async def many() -> list[httpx2.Response]:
        transport = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://demo") as client:
            asked = [asyncio.create_task(client.post("/api/trees", json=ONE)) for _ in range(6)]
            while sum(task.done() for task in asked) < 3:  # all the others wait
                await asyncio.sleep(0.01)
            source.go.set()
            return list(await asyncio.gather(*asked))

    replies = asyncio.run(many())
    assert sorted(reply.status_code for reply in replies) == [200] * 3 + [503] * 3
    busy = next(reply for reply in replies if reply.status_code == 503)
    assert busy.headers["retry-after"] == "1"
    assert busy.json() == {"detail": "too many requests are waiting; try again in 1 s"}


def test_a_fault_of_the_program_shows_no_traceback() -> None:
    client = TestClient(create_app({"zero": Broken()}), raise_server_exceptions=False)
    expected = (500, "the demo made a mistake; its terminal says more")
    assert refused(client, ONE) == expected


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


HEAD = b"POST /api/trees HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
HALF_BODY = HEAD + b'Content-Length: 999\r\n\r\n{"source": "zero", '
PAGE_FIRST = b"GET /static/style.css HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


def a_client(address: str, sent: bytes | dict[str, Any]) -> socket.socket:
    """Someone who sends this and no more."""
    if isinstance(sent, dict):
        body = json.dumps(sent).encode()
        sent = HEAD + b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    where = urlsplit(address)
    connection = socket.create_connection((where.hostname, where.port), timeout=HANG)
    connection.sendall(sent)
    return connection


def status(address: str) -> int:
    """Status of a request like any other."""
    with httpx2.Client(trust_env=False, timeout=HANG) as client:
        return client.post(f"{address}api/trees", json=ONE).status_code


def test_work_ends_when_its_client_leaves_or_its_time() -> None:
    source = Waiting()
    source.go.set()
    with a_server({"zero": source}, at_once=1, longest=2 * HANG) as address:
        heavy = a_client(address, hours_of_work())
        assert source.asked.wait(HANG)
        waiting = a_client(address, hours_of_work())
        heavy.close()
        waiting.close()
        assert status(address) == 200
    app = create_app({"zero": ZeroSource()}, at_once=1, longest=0.5)
    code, detail = refused(TestClient(app), hours_of_work())
    assert code == 504
    assert detail.startswith("this takes more than 0.5 s; try fewer words or")


def test_sparsemap_is_exact_or_says_that_it_is_not(ask: Callable[..., dict[str, Any]]) -> None:
    hot = {"source": "random", "estimator": "sparsemap", "temperature": 100.0}
    assert ask(text="w " * 12, **hot)["gap"] == 0
    assert ask(text="w " * 100, **hot)["gap"] > 1e-3
    assert ask(text="w " * 12, source="random")["gap"] is None
    assert ask(text="w " * 100, structure="heads", relaxation="entropy", **hot)["gap"] == 0


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
            clients = [a_client(address, hours_of_work()) for _ in range(4)]
            assert client.get(f"{address}api/info").status_code == 200
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=HANG)
        for busy in clients:
            busy.close()
    finally:
        process.kill()
        process.communicate()
    assert (process.returncode, errors) == (0, "")


# ------------------------------------------------------------------ slow clients


def is_open(client: socket.socket) -> bool:
    try:
        return client.recv(1) != b""
    except BlockingIOError:
        return True
    except ConnectionError:
        return False


def test_who_keeps_the_server_waiting_is_cut_off(sources: Sources) -> None:
    with a_server(sources, patience=0.3) as address:
        for sent in (b"", PAGE_FIRST + HALF_BODY):
            with a_client(address, sent) as client:
                while is_open(client):  # until the end of what it says, or until it times out
                    pass


def test_the_number_of_connections_is_bounded(
    sources: Sources, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those who have kept the server waiting longest make room; a reply is sent at once."""
    made, delayed = server._Patient.connection_made, []

    def connection_made(self: Any, transport: Any) -> None:
        made(self, transport)
        # else a body waits for the acknowledgement of its head, which takes 40 ms on Linux
        option = socket.IPPROTO_TCP, socket.TCP_NODELAY
        delayed.append(transport.get_extra_info("socket").getsockopt(*option) == 0)

    monkeypatch.setattr(server._Patient, "connection_made", connection_made)
    with a_server(sources, patience=HANG, most=10) as address, ExitStack() as stack:
        kinds = [HEAD, HALF_BODY, b""]
        clients = [stack.enter_context(a_client(address, kinds[i % 3])) for i in range(40)]
        assert status(address) == 200
        for client in clients:
            client.setblocking(False)
        left = [i for i, client in enumerate(clients) if is_open(client)]
        assert 8 <= len(left) <= 10
        assert left == list(range(40 - len(left), 40))
    assert not any(delayed)
