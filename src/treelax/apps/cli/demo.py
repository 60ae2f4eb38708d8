"""``treelax demo``: a web page to look at trees."""

from __future__ import annotations

from contextlib import suppress
from importlib.util import find_spec
from typing import Annotated

import typer

from treelax.apps.cli.commands import command
from treelax.apps.cli.console import console, error_console
from treelax.errors import BackendError, install_command

NEEDED = ("fastapi", "uvicorn")
HELP = """Explore scores, noise and trees of a sentence on a web page.

RUN is the folder of a run or of a saved model. The models that come with
treelax, english and listops, are always available. Ctrl+C stops the server.

Examples:
  treelax demo --open
  treelax demo runs/stars --port 8080
"""


def demo(
    run: Annotated[str, typer.Argument(metavar="RUN", help="Run, saved model, or listops.")] = (
        "english"
    ),
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0 for any.")
    ] = 8000,
    open_browser: Annotated[
        bool, typer.Option("--open", help="Open the page in the browser.")
    ] = False,
) -> None:
    """Serve the page; see HELP."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        needed = " and ".join(missing)
        raise BackendError(f"treelax demo needs {needed}: {install_command('demo')}")
    from treelax.apps.demo.answers import warm_up
    from treelax.apps.demo.app import create_app
    from treelax.apps.demo.score_sources import load_sources
    from treelax.apps.demo.server import address, is_loopback, listen, own_hosts, serve

    # the port first: it costs nothing to find it taken
    with listen(host, port) as bound:
        sources = load_sources(run)
        warm_up(sources)
        if not is_loopback(bound):
            risk = "anyone who can reach it can use the page; use --host 127.0.0.1 to prevent that"
            error_console.print(f"warning: {host} is not only this machine: {risk}")
        console.print(f"{address(bound)} (Ctrl+C ends it)")
        console.file.flush()
        with suppress(KeyboardInterrupt):
            app = create_app(sources, hosts=own_hosts(host, bound))
            serve(app, bound, open_browser=open_browser)


register = command("demo", HELP, demo)
