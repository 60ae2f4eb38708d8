"""The web application: addresses, limits, and errors of one line."""

from __future__ import annotations

import asyncio
import ctypes
import mimetypes
import os
import re
import reprlib
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from anyio import CancelScope, CapacityLimiter
from anyio.to_thread import run_sync
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import treelax
from treelax.apps.demo.answers import answer
from treelax.apps.demo.messages import (
    MOST_SAMPLES,
    MOST_WORDS,
    Info,
    Problem,
    SourceName,
    TreeReply,
    TreeRequest,
)
from treelax.apps.demo.score_sources import Source
from treelax.apps.pictures import style
from treelax.errors import TreelaxError
from treelax.ops.native import Stopped, stoppable

STATIC = Path(__file__).parent / "static"
MOST_BYTES = 4_000_000  # edits of all arcs between 200 words
WAITING = 64
LONGEST = 20.0  # seconds: what a request computes ends then
LONGEST_DETAIL = 300
HEADERS = {
    # nothing from elsewhere, no script or style inside the page, no frame around it
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-cache",
}
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": what}
    for status, what in {
        400: "The body cannot be read, or the request is for another host.",
        409: "The request has no answer: its words, its source and its arcs do not go together.",
        413: "The body is too large.",
        422: "The body is not such a request.",
        503: "Too many requests are waiting; try again after the seconds in Retry-After.",
        504: f"The answer takes more than {LONGEST:g} seconds.",
    }.items()
}
mimetypes.add_type("text/javascript", ".js")  # the registry of Windows may say text/plain


def create_app(
    sources: Mapping[SourceName, Source],
    *,
    hosts: Collection[str] | None = None,
    at_once: int | None = None,
    waiting: int = WAITING,
    longest: float = LONGEST,
) -> FastAPI:
    """The demo as an ASGI application.

    It answers requests for ``hosts`` (None: any), as many ``at_once`` as there are cores by default;
    beyond ``waiting`` more, requests are refused for now. A request is dropped when its client
    leaves, and refused after ``longest`` seconds of work.
    """
    # no /docs: FastAPI's pages fetch scripts from elsewhere
    app = FastAPI(
        title="treelax demo",
        version=treelax.__version__,
        description="Scores, noise, soft trees and best trees of a sentence. The page is at /.",
        docs_url=None,
        redoc_url=None,
    )
    app.add_middleware(Guard, hosts=hosts)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(TreelaxError, _unanswerable)
    app.add_exception_handler(Exception, _failed)
    app.mount("/static", StaticFiles(directory=STATIC))
    at_once = at_once or os.cpu_count() or 1
    turns = CapacityLimiter(at_once)
    inside = 0  # requests that compute or wait

    @app.get("/api/info")
    async def info() -> Info:
        """What this server has."""
        return Info(
            version=treelax.__version__,
            most_words=MOST_WORDS,
            most_samples=MOST_SAMPLES,
            sources=[source.info for source in sources.values()],
            sizes=style.as_json()["sizes"],
        )

    @app.post("/api/trees", responses=PROBLEMS)
    async def trees(request: TreeRequest, client: Request) -> TreeReply:
        """Scores, trees, marginals and samples of one text, and what the model says."""
        nonlocal inside
        if inside >= at_once + waiting:
            detail = "too many requests are waiting; try again in 1 s"
            raise HTTPException(503, detail, {"retry-after": "1"})
        inside += 1
        try:
            return await _computed(partial(answer, request, sources), client, turns, longest)
        finally:
            inside -= 1

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return FileResponse(STATIC / "index.html")

    return app


async def _computed(
    work: Callable[[], TreeReply], client: Request, turns: CapacityLimiter, longest: float
) -> TreeReply:
    """The result of work in a thread, which ends early with its client or its time."""
    stop = ctypes.c_int(0)

    def compute() -> TreeReply:
        with stoppable(stop):
            return work()

    def end() -> None:
        stop.value = 1

    async def end_with_client() -> None:
        while (await client.receive())["type"] != "http.disconnect":
            pass
        end()
        waiting.cancel()

    leaving = asyncio.create_task(end_with_client())
    deadline = None
    try:
        with CancelScope() as waiting:
            async with turns:
                deadline = asyncio.get_running_loop().call_later(longest, end)
                # shielded: a turn is given back when its thread is done
                return await run_sync(compute, limiter=CapacityLimiter(1))
    except Stopped:
        pass
    finally:
        leaving.cancel()
        if deadline is not None:
            deadline.cancel()
    detail = f"this takes more than {longest:g} s; try fewer words or samples, or another estimator"
    raise HTTPException(504, detail)


class Guard:
    """Refuses requests for other hosts and large bodies, and puts `HEADERS` on every reply."""

    def __init__(self, app: ASGIApp, hosts: Collection[str] | None) -> None:
        self.app, self.hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check the header Host, and count the bytes of the body."""
        taken = 0

        async def limited() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > MOST_BYTES:
                # what is left of the body is not read, so the connection cannot go on
                detail = f"the body has more than {MOST_BYTES:,} bytes; expected fewer"
                raise HTTPException(413, detail, {"connection": "close"})
            return message

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        if scope["type"] == "http" and self.hosts is not None:
            given = Headers(scope=scope).get("host", "")
            if re.sub(r":\d+$", "", given.lower()).strip("[]") not in self.hosts:
                hosts = ", ".join(sorted(self.hosts))
                advice = (
                    "open the address that treelax demo printed, or start it with another --host"
                )
                refusal = _problem(400, f"Host is {given[:100]!a}; expected {hosts}: {advice}")
                await refusal(scope, receive, with_headers)
                return
        await self.app(scope, limited, with_headers)


def _problem(status: int, detail: str) -> JSONResponse:
    line = " ".join(detail.split())[:LONGEST_DETAIL]
    # a request may have halves of surrogate pairs in it
    return JSONResponse({"detail": line.encode("utf-8", "backslashreplace").decode()}, status)


async def _invalid(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(str(part)[:40] for part in first["loc"][1:]) or "body"
    message = str(first["msg"])
    wanted = message.removeprefix("Input should be ")
    if wanted == message:
        return _problem(422, f"{place}: {message}; see /openapi.json")
    given = reprlib.repr(first["input"])
    return _problem(422, f"{place} is {given}; expected {wanted}; see /openapi.json")


async def _unanswerable(request: Request, error: Exception) -> JSONResponse:
    # not 422: the request is as the schema says, so a client may well have sent it
    return _problem(409, str(error))


async def _failed(request: Request, error: Exception) -> JSONResponse:
    return _problem(500, "the demo made a mistake; its terminal says more")
