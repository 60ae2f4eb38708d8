"""The script that puts load on the demo counts what it should; no speed is asserted."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from demo_visits import Sources, a_server

from benchmarks import demo_load


def test_every_request_is_counted(sources: Sources) -> None:
    with a_server(sources) as address:
        done = demo_load.load(os.getpid(), address, clients=3, seconds=0.5, words=6)
        tally = asyncio.run(done)
    row = demo_load.row(3, 0.5, 6, tally)
    assert row["requests"] == tally.statuses["200"] == len(tally.milliseconds) >= 3
    assert (row["errors"], row["busy"]) == (0, 0)
    tally.statuses.update({"503": 2, "500": 3, "ReadTimeout": 4})
    row = demo_load.row(3, 0.5, 6, tally)
    assert (row["busy"], row["errors"]) == (2, 7)
