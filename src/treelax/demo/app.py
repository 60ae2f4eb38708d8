"""The addresses of the demo: the page, its files, and two for data."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from functools import partial
from http import HTTPStatus
from importlib.resources import files
from typing import Any

from anyio.to_thread import run_sync
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

import treelax
from treelax.demo.answers import answer
from treelax.demo.limits import Busy, CheckedBody, Gate, HeadAsGet, OwnHost, SafeHeaders
from treelax.demo.messages import (
    MOST_SAMPLES,
    MOST_WORDS,
    Info,
    Problem,
    SourceInfo,
    SourceName,
    TreeReply,
    TreeRequest,
)
from treelax.demo.problems import invalid, unreadable
from treelax.demo.sources import Source
from treelax.errors import TreelaxError

__all__ = ["create_app", "static_files"]

WAITING = 64
RETRY_AFTER = 1  # seconds
GONE = 499  # nobody reads it
LONGEST_DETAIL = 300
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
DESCRIPTION = "Scores, noise, soft trees and best trees of a sentence. The page is at /."
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": what}
    for status, what in {
        400: "The body cannot be read, or the request is for another host.",
        413: "The body is too large.",
        409: "The request has no answer: its words, its source and its arcs do not go together.",
        422: "The body is not such a request.",
        503: "Too many requests wait; try again after the seconds in Retry-After.",
    }.items()
}


def static_files() -> dict[str, bytes]:
    """The files of the page, by name.

    Returns:
        Their content, read once: no path from a request reaches the file system.

    Example:
        >>> sorted(static_files())[-2:]
        ['style.css', 'texts.js']
    """
    folder = files("treelax.demo") / "static"
    found = {file.name: file for file in folder.iterdir()}
    return {
        name: file.read_bytes()
        for name, file in found.items()
        if os.path.splitext(name)[1] in TYPES
    }


def create_app(
    sources: Mapping[SourceName, Source],
    *,
    hosts: Collection[str] | None = None,
    at_once: int | None = None,
    waiting: int = WAITING,
) -> FastAPI:
    """The demo as an application for any ASGI server.

    Args:
        sources: of scores, by name, the one to begin with first.
        hosts: names and addresses that a request may be for; None for any.
        at_once: how many requests compute at the same time; the number of cores by default.
        waiting: how many more may wait; others are told to come back.

    Returns:
        The application.

    Example:
        >>> from treelax.demo.sources import ZeroSource
        >>> sorted(create_app({"zero": ZeroSource()}).openapi()["paths"])
        ['/api/info', '/api/trees']
    """
    # no /docs: FastAPI's pages fetch scripts from elsewhere
    app = FastAPI(
        title="treelax demo",
        version=treelax.__version__,
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
    )
    app.add_middleware(CheckedBody)
    if hosts is not None:
        app.add_middleware(OwnHost, hosts=hosts)
    app.add_middleware(HeadAsGet)
    app.add_middleware(SafeHeaders)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(TreelaxError, _unanswerable)
    app.add_exception_handler(Busy, _busy)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(Exception, _failed)
    gate = Gate(at_once=at_once or os.cpu_count() or 1, waiting=waiting)
    content = static_files()

    @app.get("/api/info")
    async def info() -> Info:
        """What this server has."""
        return Info(
            version=treelax.__version__,
            most_words=MOST_WORDS,
            most_samples=MOST_SAMPLES,
            sources=[
                SourceInfo(
                    name=name,
                    label=source.label,
                    texts=list(source.texts),
                    example=source.example,
                    second_example=source.second_example,
                    structure=source.structure.name,
                    defaults=source.defaults,
                )
                for name, source in sources.items()
            ],
        )

    @app.post("/api/trees", responses=PROBLEMS)
    async def trees(request: TreeRequest, connection: Request) -> TreeReply:
        """Scores, trees, marginals and samples of one text, and what the model says."""
        async with gate.turn():
            if await connection.is_disconnected():
                raise HTTPException(GONE, "the client is gone")
            return await run_sync(partial(answer, request, sources))

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return Response(content["index.html"], media_type=TYPES[".html"])

    @app.get("/static/{name}", include_in_schema=False)
    async def static(name: str) -> Response:
        if name not in content:
            raise HTTPException(HTTPStatus.NOT_FOUND)
        return Response(content[name], media_type=TYPES[os.path.splitext(name)[1]])

    return app


def _problem(status: int, detail: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """A reply of one line, which is ASCII where a request may have put anything."""
    line = " ".join(detail.split())
    if len(line) > LONGEST_DETAIL:
        line = f"{line[: LONGEST_DETAIL - 3]}..."
    return JSONResponse({"detail": line}, status, headers=headers)


async def _invalid(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    return _problem(*invalid(error.errors()))


async def _unanswerable(request: Request, error: Exception) -> JSONResponse:
    # not 422: the request is as the schema says, so a client may well have sent it
    return _problem(HTTPStatus.CONFLICT, str(error))


async def _busy(request: Request, error: Exception) -> JSONResponse:
    return _problem(
        HTTPStatus.SERVICE_UNAVAILABLE,
        f"too many requests wait; try again in {RETRY_AFTER} s",
        {"retry-after": str(RETRY_AFTER)},
    )


async def _refused(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    if error.status_code == HTTPStatus.BAD_REQUEST and error.__cause__ is not None:
        return _problem(error.status_code, unreadable(await request.body(), error.__cause__))
    return _problem(error.status_code, error.detail, error.headers)


async def _failed(request: Request, error: Exception) -> JSONResponse:
    return _problem(
        HTTPStatus.INTERNAL_SERVER_ERROR, "the demo made a mistake; its terminal says more"
    )
