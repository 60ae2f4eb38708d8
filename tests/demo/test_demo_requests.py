"""What the server refuses, how it says so, and what no request can reach."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
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
from treelax.apps.demo.messages import MOST_WORDS
from treelax.apps.demo.score_sources import ZeroSource
from treelax.apps.demo.server import listen, own_hosts

JSON = {"content-type": "application/json"}
PAGE = Path(treelax.apps.demo.__file__).parent / "static"
ONE = {"source": "zero", "text": "a b"}
LONG = 300.0  # seconds; only a test that fails waits that long


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
        (
            ONE | {"source": "run"},
            409,
            "source is 'run'; expected one of english, listops, zero",
        ),
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
        (
            {"source": "listops", "text": "[MAX 2 dogs ]"},
            409,
            "text: token 3 is 'dogs'; expected [MIN [MAX",
        ),
    ],
)
def test_bad_requests(client: TestClient, body: Any, status: int, detail: str) -> None:
    received, said = refused(client, body)
    assert (received, detail in said) == (status, True), said


def test_the_size_of_bodies(client: TestClient) -> None:
    """All arcs between as many words as there may be fit; other large bodies are not read."""
    edits = [
        {"head": head, "word": word, "score": -123.456789}
        for word in range(1, MOST_WORDS + 1)
        for head in range(MOST_WORDS + 1)
    ]
    request = {"source": "zero", "text": "w " * MOST_WORDS, "edits": edits, "samples": 1}
    reply = client.post("/api/trees", json=request)
    assert reply.status_code == 200
    assert reply.json()["scores"][0][1] == -123.456789

    message = f"the body has more than {MOST_BYTES:,} bytes; expected fewer"
    assert refused(client, b"x" * (MOST_BYTES + 1)) == (413, message)
    pieces = (b" " * 1_000_000 for _ in range(5))
    assert client.post("/api/trees", content=pieces, headers=JSON).status_code == 413


# ------------------------------------------------------------------ addresses and headers


@pytest.mark.parametrize(
    "path",
    [
        *("/static/../app.py", "/static/..%2fapp.py", "/static/%2e%2e/app.py", "/static/app.js%00"),
        *("/static//etc/passwd", "/static/%2fetc%2fpasswd", "/static/", "/docs"),
    ],
)
def test_nothing_else_is_served(client: TestClient, path: str) -> None:
    reply = client.get(path)
    assert (reply.status_code, reply.json()) == (404, {"detail": "Not Found"})


@pytest.mark.parametrize("path", ["/", "/api/info", "/nowhere"])
def test_headers_of_every_reply(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'; script-src 'self';" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"


def test_the_files_of_the_page(client: TestClient) -> None:
    """They name no host but that of SVG's name space, and make no markup from strings."""
    assert client.get("/").content == (PAGE / "index.html").read_bytes()
    assert client.get("/static/app.js").headers["content-type"].startswith("text/javascript")
    for file in PAGE.iterdir():
        assert client.get(f"/static/{file.name}").content == file.read_bytes()
        text = file.read_text(encoding="utf-8")
        addresses = set(re.findall(r"(?:https?:)?//[a-z][\w.-]+\.[a-z]{2,}[\w./]*", text))
        assert addresses <= {"http://www.w3.org/2000/svg"}, file.name
        for wrong in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
            assert wrong not in text, file.name


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
    """A source that answers when it is told to."""

    def __init__(self) -> None:
        self.go = Event()

    def scores(self, words: Sequence[str], seed: int) -> Tensor:
        assert self.go.wait(LONG)
        return super().scores(words, seed)


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


class Broken(ZeroSource):
    """A source with a fault."""

    def scores(self, words: Sequence[str], seed: int) -> Tensor:
        raise RuntimeError("secret /path")


def test_a_fault_of_the_program_shows_no_traceback() -> None:
    client = TestClient(create_app({"zero": Broken()}), raise_server_exceptions=False)
    reply = client.post("/api/trees", json=ONE)
    assert reply.status_code == 500
    assert reply.json() == {"detail": "the demo made a mistake; its terminal says more"}


# ------------------------------------------------------------------ slow clients

HALF_HEAD = b"POST /api/trees HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
HALF_BODY = HALF_HEAD + b'Content-Length: 999\r\n\r\n{"source": "zero", '
WHOLE = b"GET /static/style.css HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


@contextmanager
def a_client(address: str, sent: bytes) -> Iterator[socket.socket]:
    """Someone who sends this and no more."""
    where = urlsplit(address)
    with socket.create_connection((where.hostname, where.port), timeout=LONG) as made:
        made.sendall(sent)
        yield made


def is_open(client: socket.socket) -> bool:
    try:
        return client.recv(1) != b""
    except BlockingIOError:
        return True
    except ConnectionError:
        return False


def answered(address: str) -> int:
    """Status of a request like any other."""
    with httpx2.Client(trust_env=False, timeout=LONG) as client:
        return client.post(f"{address}api/trees", json=ONE).status_code


def test_a_reply_is_sent_at_once(sources: Sources, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its body does not wait for the acknowledgement of its head, which takes 40 ms on Linux."""
    made, delayed = server._Patient.connection_made, []

    def connection_made(self: Any, transport: Any) -> None:
        made(self, transport)
        option = socket.IPPROTO_TCP, socket.TCP_NODELAY
        delayed.append(transport.get_extra_info("socket").getsockopt(*option) == 0)

    monkeypatch.setattr(server._Patient, "connection_made", connection_made)
    with a_server(sources) as address:
        assert answered(address) == 200
    assert delayed == [False]


@pytest.mark.parametrize("sent", [b"", WHOLE + HALF_BODY])
def test_who_keeps_the_server_waiting_is_cut_off(sources: Sources, sent: bytes) -> None:
    with a_server(sources, patience=0.3) as address, a_client(address, sent) as client:
        while is_open(client):  # until the end of what it says, or until it times out
            pass


def test_the_number_of_connections_is_bounded(sources: Sources) -> None:
    """Those who have kept the server waiting longest make room."""
    with a_server(sources, patience=LONG, most=10) as address, ExitStack() as stack:
        kinds = [HALF_HEAD, HALF_BODY, b""]
        clients = [stack.enter_context(a_client(address, kinds[i % 3])) for i in range(40)]
        assert answered(address) == 200
        for client in clients:
            client.setblocking(False)
        left = [i for i, client in enumerate(clients) if is_open(client)]
        assert 8 <= len(left) <= 10
        assert left == list(range(40 - len(left), 40))
