"""Clients that send half a request, take no reply, go away or come in crowds; and foreign hosts."""

from __future__ import annotations

import asyncio
import json
import select
import signal
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from threading import Event
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from demo_serving import a_server
from fastapi.testclient import TestClient
from test_demo_command import running

from treelax.demo.app import create_app
from treelax.demo.limits import MOST_LARGE, CheckedBody
from treelax.demo.messages import SourceName
from treelax.demo.server import PATIENCE, listen, own_hosts
from treelax.demo.sources import Scored, Source, ZeroSource

HEAD = b"POST /api/trees HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
HALF_HEAD = HEAD
HALF_BODY = HEAD + b'Content-Length: 999\r\n\r\n{"source": "zero", '
WHOLE = b"GET /static/style.css HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
MANY_UNREAD = 5_000 * WHOLE
HALF_AFTER_WHOLE = WHOLE + HALF_BODY
LONG = 60.0  # seconds; only a test that fails waits that long


@contextmanager
def a_client(address: str, sent: bytes = b"") -> Iterator[socket.socket]:
    """Someone who sends this, as far as it is taken, and no more."""
    where = urlsplit(address)
    with socket.create_connection((where.hostname, where.port)) as made:
        made.setblocking(False)
        while sent and select.select([], [made], [], 0.2)[1]:
            sent = sent[made.send(sent) :]
        yield made


def is_cut_off(client: socket.socket, *, read: bool = True) -> bool:
    """Whether the server has closed the connection, without a look at what it said if not to read."""
    events = select.poll()
    events.register(client, select.POLLIN if read else 0)
    for _, event in events.poll(0):
        if event & (select.POLLHUP | select.POLLERR):
            return True
        try:
            return read and client.recv(1 << 20) == b""
        except ConnectionError:
            return True
    return False


def answered(address: str) -> int:
    """Status of a request like any other."""
    request = {"source": "zero", "text": "a b"}
    with httpx2.Client(trust_env=False, timeout=LONG) as client:
        return client.post(f"{address}api/trees", json=request).status_code


@pytest.mark.parametrize("sent", [b"", HALF_HEAD, HALF_BODY, HALF_AFTER_WHOLE, MANY_UNREAD])
def test_who_keeps_it_waiting_is_cut_off(sources: Mapping[SourceName, Source], sent: bytes) -> None:
    with a_server(sources, patience=0.3) as address, a_client(address, sent) as client:
        begin = time.monotonic()
        while not is_cut_off(client, read=sent is not MANY_UNREAD):
            assert time.monotonic() < begin + LONG
            time.sleep(0.02)
        assert answered(address) == 200


def test_a_byte_now_and_then_does_not_help(sources: Mapping[SourceName, Source]) -> None:
    with a_server(sources, patience=0.3) as address, a_client(address, HALF_HEAD) as client:
        begin = time.monotonic()
        while not is_cut_off(client):
            assert time.monotonic() < begin + LONG
            with suppress(ConnectionError):
                client.send(b"x")
            time.sleep(0.05)


class Slow(ZeroSource):
    """A source that answers when it is told to, and knows what it was asked for."""

    def __init__(self) -> None:
        self.go = Event()
        self.asked: list[str] = []

    def scored(self, text: str, seed: int) -> Scored:
        self.asked.append(text)
        assert self.go.wait(LONG)
        return super().scored(text, seed)


def posted(text: str) -> bytes:
    body = json.dumps({"source": "zero", "text": text}).encode()
    return HEAD + f"Content-Length: {len(body)}\r\n\r\n".encode() + body


def test_who_waits_for_an_answer_is_not_cut_off() -> None:
    source = Slow()
    with a_server({"zero": source}, patience=0.1) as address, a_client(address) as client:
        client.send(posted("a b"))
        time.sleep(0.5)
        source.go.set()
        client.settimeout(LONG)
        assert client.recv(100).startswith(b"HTTP/1.1 200 OK")


def test_the_number_of_connections_is_bounded(sources: Mapping[SourceName, Source]) -> None:
    """Those who have kept it waiting longest make room."""
    with a_server(sources, patience=LONG, most=10) as address, ExitStack() as stack:
        kinds = [HALF_HEAD, HALF_BODY, b""]
        clients = [stack.enter_context(a_client(address, kinds[i % 3])) for i in range(60)]
        assert answered(address) == 200
        left = [i for i, client in enumerate(clients) if not is_cut_off(client)]
        assert 8 <= len(left) <= 10
        assert left == list(range(60 - len(left), 60))


def test_halves_of_large_bodies_do_not_fill_the_memory() -> None:
    """Of 30 clients with megabytes a few are read; small requests pass them by."""
    taken = [0] * 30
    replies = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        replies.append(await receive())

    async def crowd() -> None:
        checked = CheckedBody(app)

        async def half(number: int) -> dict[str, Any]:
            if taken[number] >= 3_000_000:
                await asyncio.sleep(LONG)
            taken[number] += 100_000
            return {"type": "http.request", "body": b" " * 100_000, "more_body": True}

        async def small() -> dict[str, Any]:
            return {"type": "http.request", "body": b" ", "more_body": False}

        scope = {"type": "http", "method": "POST"}
        clients = [
            asyncio.create_task(checked(scope, partial(half, number), None))  # type: ignore[arg-type]
            for number in range(30)
        ]
        await asyncio.sleep(0.1)
        await checked(scope, small, None)  # type: ignore[arg-type]
        for client in clients:
            client.cancel()

    asyncio.run(crowd())
    assert len(replies) == 1
    assert sum(taken) == MOST_LARGE * 3_000_000 + (30 - MOST_LARGE) * 100_000


def test_with_few_open_files_it_goes_on_in_silence() -> None:
    """As many as a terminal of macOS allows; asyncio alone would log thousands of lines a second."""
    resource = pytest.importorskip("resource", reason="has no limit of open files")
    if not hasattr(resource, "prlimit"):
        pytest.skip("the limit of another process cannot be set")
    with running() as (process, address), ExitStack() as stack:
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (256, 256))
        for i in range(400):
            stack.enter_context(a_client(address, HALF_BODY if i % 2 else b""))
        assert answered(address) == 200
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=PATIENCE / 2)  # waits for none of them
    assert (process.returncode, said) == (0, "")


def test_what_clients_asked_for_who_have_gone_is_not_computed() -> None:
    source = Slow()
    with a_server({"zero": source}, at_once=1) as address, ExitStack() as stack:

        def meanwhile() -> None:
            """The server has seen what was sent before."""
            for _ in range(3):
                assert httpx2.get(f"{address}api/info", trust_env=False).status_code == 200

        first = stack.enter_context(a_client(address, posted("first")))
        while not source.asked:
            time.sleep(0.01)
        for _ in range(5):
            with a_client(address, posted("gone")):
                meanwhile()
        last = stack.enter_context(a_client(address, posted("last")))
        meanwhile()
        source.go.set()
        for client in (first, last):
            client.settimeout(LONG)
            assert client.recv(100).startswith(b"HTTP/1.1 200 OK")
    assert source.asked == ["first", "last"]


# ------------------------------------------------------------------ hosts


@pytest.fixture(scope="module")
def local(sources: Mapping[SourceName, Source]) -> TestClient:
    with listen("127.0.0.1", 0) as bound:
        return TestClient(create_app(sources, hosts=own_hosts("Mine", bound)))


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8000", "127.0.0.1:9", "[::1]", "[::1]:8000", "mine:8000"]
)
def test_own_hosts_are_answered(local: TestClient, host: str) -> None:
    assert local.get("/api/info", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "[::2]", "[", ""],
)
def test_foreign_hosts_are_refused(local: TestClient, host: str) -> None:
    """A page elsewhere whose name leads to this machine would read the answers."""
    for path in ("/", "/api/info", "/nowhere"):
        assert local.get(path, headers={"host": host.encode("latin-1")}).status_code == 400
    reply = local.post("/api/trees", headers={"host": host.encode("latin-1")}, content=b"[" * 99)
    assert reply.status_code == 400
    detail = reply.json()["detail"]
    assert detail.startswith(
        f"Host: received {host!a}; expected 127.0.0.1, ::1, localhost, mine: open the address"
    )
    assert "content-security-policy" in reply.headers


def test_for_other_machines_it_has_any_name() -> None:
    with listen("0.0.0.0", 0) as bound:
        assert own_hosts("0.0.0.0", bound) is None
