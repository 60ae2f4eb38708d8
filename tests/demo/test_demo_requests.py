"""What the server refuses, how it says so, and what no request can reach."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from pathlib import Path
from threading import Event
from typing import Any

import httpx2
import pytest
from fastapi.testclient import TestClient

import treelax.demo
from treelax.demo.app import create_app, static_files
from treelax.demo.limits import MOST_BYTES
from treelax.demo.messages import MOST_WORDS, SourceName
from treelax.demo.sources import Scored, Source, ZeroSource

JSON = {"content-type": "application/json"}
PAGE = Path(treelax.demo.__file__).parent / "static"


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


ONE = {"source": "zero", "text": "a b"}


@pytest.mark.parametrize(
    ("body", "status", "detail"),
    [
        (b"", 422, "body: received nothing; expected a JSON object"),
        (b"{", 400, "the body is not JSON"),
        (b"nonsense", 400, "the body is not JSON"),
        (b'{"text": "a"} more', 400, "the body is not JSON"),
        (b"\xff\xfe{}", 400, "the body is not UTF-8 (byte 1)"),
        (b'{"text": "caf\xe9"}', 400, "the body is not UTF-8 (byte 14)"),
        ('{"text": "a"}'.encode("utf-16-be"), 400, "the body has a NUL byte (byte 1)"),
        (b'{"text": "a\0b"}', 400, "a NUL byte (byte 12); expected JSON in UTF-8, which has none"),
        (
            b"[" * 100_000,
            400,
            f"too deep inside each other, '{'[' * 40}...'; expected at most four levels: see",
        ),
        (
            b'{"text": "a", "score_seed": ' + b"9" * 5_000 + b"}",
            400,
            """thousands of digits, '{"text": "a", "score_seed": 999999999999...'; expected numbers""",
        ),
        (b"[1]", 422, "body: received a list of 1; expected a JSON object"),
        (b"null", 422, "body: received null; expected a JSON object"),
        (b'{"text": "\\ud800"}', 422, "text: received '\\ud800'; expected text without halves"),
        (b'{"text": "a", "\\ud800": 1}', 422, "received '\\ud800'; expected text without halves"),
        ({}, 422, "text: received no such field; expected one: see /openapi.json"),
        ({"text": 5}, 422, "text: received 5; expected a string: see /openapi.json"),
        ({"text": None}, 422, "text: received null; expected a string"),
        ({"text": ["a"]}, 422, "text: received a list of 1; expected a string"),
        ({"text": "  \n "}, 422, "text: received no words; expected 1 to 200"),
        ({"text": "x" * 20_001}, 422, "text: received 20001 characters; expected at most 20000"),
        (ONE | {"text": "w " * 201}, 409, "text: received 201 words; expected at most 200"),
        (ONE | {"text": "w", "more": 1}, 422, "more: received 1 in a field that is not known"),
        (ONE | {"<b>\n": 1}, 422, "<b> : received 1 in a field that is not known"),
        (
            ONE | {"source": "../../etc/passwd"},
            422,
            "source: received '../../etc/passwd'; expected 'zero', 'random', 'listops' or 'run'",
        ),
        (ONE | {"source": "run"}, 409, "without a run; expected one of listops, zero, random"),
        (ONE | {"source": ["zero"]}, 422, "source: received a list of 1; expected 'zero'"),
        (
            b'{"text": "a", "temperature": NaN}',
            422,
            "temperature: received NaN; expected a finite number",
        ),
        (
            b'{"text": "a", "noise_scale": Infinity}',
            422,
            "noise_scale: received Infinity; expected a finite",
        ),
        (
            b'{"text": "a", "noise_scale": 1e999}',
            422,
            "noise_scale: received Infinity; expected a finite",
        ),
        (ONE | {"temperature": 0}, 422, "temperature: received 0; expected at least 0.01: see"),
        (ONE | {"temperature": "1"}, 422, "temperature: received '1'; expected a number"),
        (ONE | {"temperature": True}, 422, "temperature: received true; expected a number"),
        (ONE | {"single_root": 1}, 422, "single_root: received 1; expected true or false"),
        (
            ONE | {"relaxation": "sparsemax"},
            422,
            "relaxation: received 'sparsemax'; expected 'softmax' or",
        ),
        (ONE | {"noise_seed": -1}, 422, "noise_seed: received -1; expected at least 0"),
        (ONE | {"noise_seed": 1.5}, 422, "noise_seed: received 1.5; expected a whole number"),
        (ONE | {"samples": 1_001}, 422, "samples: received 1001; expected at most 1000"),
        (ONE | {"edits": [{"head": 0, "word": 1}]}, 422, "edits.0.score: received no such field"),
        (
            ONE | {"edits": [{"head": 0, "word": 1, "score": 2e6}]},
            422,
            "edits.0.score: received 2000000.0; expected at most 1000000",
        ),
        (
            ONE | {"edits": [{"head": 0, "word": 1, "score": "x"}]},
            422,
            "edits.0.score: received 'x'; expected a number",
        ),
        (
            ONE | {"pinned": [{"head": 2, "word": 2}]},
            409,
            "arcs: received one from word 2 to itself",
        ),
        (
            ONE | {"pinned": [{"head": 2, "word": 0}]},
            422,
            "pinned.0.word: received 0; expected at least 1",
        ),
        (
            ONE | {"pinned": [{"head": -1, "word": 1}]},
            422,
            "pinned.0.head: received -1; expected at least 0",
        ),
        (
            ONE | {"forbidden": [{"head": 0, "word": 999}]},
            422,
            "forbidden.0.word: received 999; expected at most",
        ),
        (ONE | {"forbidden": [{"head": 0, "word": m} for m in (1, 2)]}, 409, "no projective tree;"),
        (
            ONE | {"single_root": True, "pinned": [{"head": 0, "word": m} for m in (1, 2)]},
            409,
            "no projective tree with a single root;",
        ),
        (
            ONE | {"pinned": [{"head": 0, "word": 1}, {"head": 2, "word": 1}]},
            409,
            "for word 1; expected one",
        ),
        (
            ONE | {"pinned": [{"head": 0, "word": 1}], "forbidden": [{"head": 0, "word": 1}]},
            409,
            "pinned: received the arc from 0 to 1, which is forbidden too",
        ),
        (ONE | {"second": {"text": "c"}}, 409, "second: received a text, but the source 'zero'"),
        (ONE | {"second": {"text": " "}}, 422, "second.text: received no words; expected 1 to 200"),
        (ONE | {"second": "c"}, 422, "second: received 'c'; expected a JSON object: see"),
        (ONE | {"shown": "second"}, 409, "shown: received 'second' without a second text"),
        ({"text": "<script>alert(1)</script>"}, 409, "token 1: received '<script>alert(1)</sc...'"),
        ({"text": "[MAX 2 dogs ]"}, 409, "text, token 3: received 'dogs'; expected [MIN [MAX"),
    ],
)
def test_bad_requests(client: TestClient, body: Any, status: int, detail: str) -> None:
    received, said = refused(client, body)
    assert (received, detail in said) == (status, True), said


def test_other_types_of_content(client: TestClient) -> None:
    status, detail = refused(client, ONE, **{"content-type": "text/plain"})
    assert status == 422
    assert "sent as application/json" in detail


def test_large_bodies(client: TestClient) -> None:
    assert refused(client, b"x" * (MOST_BYTES + 1)) == (
        413,
        "the body has more than 4,000,000 bytes; expected fewer",
    )

    def pieces() -> Any:
        for _ in range(5):
            yield b" " * 1_000_000

    reply = client.post("/api/trees", content=pieces(), headers=JSON)
    assert reply.status_code == 413


def test_the_largest_request_is_small_enough(client: TestClient) -> None:
    """All arcs between as many words as there may be, each with a long score."""
    words = range(1, MOST_WORDS + 1)
    edits = [
        {"head": head, "word": word, "score": -123.456789}
        for word in words
        for head in range(MOST_WORDS + 1)
        if head != word
    ]
    request = {"source": "zero", "text": "w " * MOST_WORDS, "edits": edits, "samples": 1}
    assert len(json.dumps(request)) < MOST_BYTES
    reply = client.post("/api/trees", json=request)
    assert reply.status_code == 200
    assert reply.json()["scores"][0][1] == -123.456789


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script> <b>x</b> &amp; \"'",
        "\u202e \x00 \x1b[31m 🌳 é ﷽",
        "{{7*7}} ${7*7} %s %n",
    ],
)
def test_markup_is_text(client: TestClient, text: str) -> None:
    reply = client.post("/api/trees", json={"source": "zero", "text": text})
    assert reply.status_code == 200
    assert reply.json()["words"] == text.split()
    assert reply.headers["content-type"] == "application/json"


# ------------------------------------------------------------------ addresses and headers


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/..%2fapp.py",
        "/static/%2e%2e/app.py",
        "/static//etc/passwd",
        "/static/%2fetc%2fpasswd",
        "/static/app.js%00",
        "/static/",
        "/docs",
        "/redoc",
    ],
)
def test_nothing_else_is_served(client: TestClient, path: str) -> None:
    reply = client.get(path)
    assert (reply.status_code, reply.json()) == (404, {"detail": "Not Found"})


def test_the_files_of_the_page(client: TestClient) -> None:
    served = static_files()
    assert set(served) == {file.name for file in PAGE.iterdir()}
    for name, content in served.items():
        reply = client.get(f"/static/{name}")
        assert reply.content == content
    assert client.get("/").content == served["index.html"]
    assert client.get("/static/app.js").headers["content-type"].startswith("text/javascript")


@pytest.mark.parametrize("path", ["/", "/static/app.js", "/api/info", "/nowhere"])
def test_headers_of_every_reply(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"


def test_the_page_asks_no_other_server() -> None:
    """No address with a host but that of SVG's name space; no markup from strings."""
    for file in PAGE.iterdir():
        text = file.read_text(encoding="utf-8")
        addresses = set(re.findall(r"(?:https?:)?//[a-z][\w.-]+\.[a-z]{2,}[\w./]*", text))
        assert addresses <= {"http://www.w3.org/2000/svg"}, file.name
        for wrong in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
            assert wrong not in text, file.name


@pytest.mark.parametrize("path", ["/", "/static/app.js", "/api/info", "/openapi.json", "/nowhere"])
def test_head_is_get_without_the_body(client: TestClient, path: str) -> None:
    head, get = client.head(path), client.get(path)
    assert (head.status_code, head.content) == (get.status_code, b"")
    assert head.headers == get.headers


def test_what_the_server_has(client: TestClient) -> None:
    info = client.get("/api/info").json()
    assert info["most_words"] == MOST_WORDS
    assert [source["name"] for source in info["sources"]] == ["listops", "zero", "random"]
    assert info["sources"][0]["defaults"]["relaxation"] in ("softmax", "entropy")


def test_wrong_methods(client: TestClient) -> None:
    for method, path in (("GET", "/api/trees"), ("POST", "/api/info"), ("PUT", "/")):
        reply = client.request(method, path)
        assert (reply.status_code, reply.json()) == (405, {"detail": "Method Not Allowed"})


# ------------------------------------------------------------------ load and faults


class Waiting(ZeroSource):
    """A source that answers when it is told to."""

    def __init__(self) -> None:
        self.go = Event()

    def scored(self, text: str, seed: int) -> Scored:
        assert self.go.wait(30)
        return super().scored(text, seed)


def test_too_many_requests_are_told_to_come_back() -> None:
    source = Waiting()
    app = create_app({"zero": source}, at_once=1, waiting=2)

    async def many() -> list[httpx2.Response]:
        transport = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://demo") as client:
            asked = [asyncio.create_task(client.post("/api/trees", json=ONE)) for _ in range(6)]
            refused = []
            while len(refused) < 3:  # all the others wait
                done, _ = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
                refused = [task for task in asked if task in done]
                await asyncio.sleep(0.01)
            source.go.set()
            return list(await asyncio.gather(*asked))

    replies = asyncio.run(many())
    statuses = [reply.status_code for reply in replies]
    assert (statuses.count(200), statuses.count(503)) == (3, 3)
    busy = next(reply for reply in replies if reply.status_code == 503)
    assert busy.headers["retry-after"] == "1"
    assert busy.json() == {"detail": "too many requests wait; try again in 1 s"}


def test_turns_are_given_back_after_errors(sources: Mapping[SourceName, Source]) -> None:
    with TestClient(create_app(sources, at_once=1, waiting=0)) as client:
        for _ in range(3):
            assert client.post("/api/trees", json={"text": "nonsense"}).status_code == 409
        assert client.post("/api/trees", json={"text": "[MAX 2 9 ]"}).status_code == 200


class Broken(ZeroSource):
    """A source with a fault."""

    def scored(self, text: str, seed: int) -> Scored:
        raise RuntimeError("secret /path")


def test_a_fault_of_the_program_shows_no_traceback() -> None:
    client = TestClient(create_app({"zero": Broken()}), raise_server_exceptions=False)
    reply = client.post("/api/trees", json=ONE)
    assert reply.status_code == 500
    assert reply.json() == {"detail": "the demo made a mistake; its terminal says more"}
