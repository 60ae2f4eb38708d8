"""Two processes that train together, started as torchrun starts them, without torchrun's own cost."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress

SECONDS = 120  # more is a hang


def start(
    *commands: Sequence[str], env: dict[str, str] | None = None
) -> list[subprocess.Popen[str]]:
    """A process for each command line of Python, which are to find each other."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    size = str(len(commands))
    found = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": size}
    return [
        subprocess.Popen(
            [sys.executable, *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ
            | quick_threads()
            | found
            | {"RANK": str(rank), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": size}
            | (env or {}),
        )
        for rank, command in enumerate(commands)
    ]


def quick_threads() -> dict[str, str]:
    """As in conftest.py: more threads would only wait for each other."""
    return {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}


def wait(processes: Sequence[subprocess.Popen[str]]) -> list[tuple[int, str, str]]:
    """Status, stdout and stderr of each; a hang ends all and fails."""
    try:
        texts = [process.communicate(timeout=SECONDS) for process in processes]
    finally:
        for process in processes:
            with suppress(ProcessLookupError):
                process.kill()
    return [(process.returncode, *text) for process, text in zip(processes, texts, strict=True)]
