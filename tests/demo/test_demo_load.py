"""The script that puts load on the demo counts what it should; no speed is asserted."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from demo_visits import Sources, a_server

from benchmarks import demo_load
from treelax.demo.answers import answer
from treelax.demo.messages import TreeRequest


def test_every_request_is_counted(sources: Sources) -> None:
    with a_server(sources) as address:
        done = demo_load.load(os.getpid(), address, clients=3, seconds=0.2, words=6)
        tally = asyncio.run(done)
    row = demo_load.row(3, 0.2, 6, tally)
    assert set(row) == set(demo_load.COLUMNS) - {"machine", "torch", "commit", "dirty"}
    assert row["requests"] == tally.statuses["200"] == len(tally.milliseconds) >= 3
    assert (row["errors"], row["busy"]) == (0, 0)
    assert 0 < row["ms_p50"] <= row["ms_p90"] <= row["ms_p99"] <= row["ms_p100"]
    assert row["memory_peak_mb"] >= row["memory_start_mb"] > 0
    for words, number in ((6, 0), (30, 1)):
        request = TreeRequest(**demo_load.request(number, words))
        assert len(answer(request, sources).words) == words
    tally.statuses.update({"503": 2, "500": 3, "ReadTimeout": 4})
    row = demo_load.row(3, 0.2, 6, tally)
    assert (row["busy"], row["errors"]) == (2, 7)
