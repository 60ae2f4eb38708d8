"""A process of a sweep, which trains one run after the other; ``treelax.lab.analysis.sweep`` starts it.

Each line of standard input is a run: the file for what it prints, and the arguments of ``treelax``.
A line on standard output says that it has ended well. The process ends with the first run that fails,
and, as by SIGTERM, when the sweep is gone, even by kill -9: its standard input closes.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import threading
from queue import SimpleQueue

from treelax.apps.cli.main import create_app, run


def work() -> int:
    """Train what comes; returns the exit status of the run that failed."""
    app = create_app({"train": "treelax.apps.cli.train"})
    given: SimpleQueue[tuple[str, list[str]]] = SimpleQueue()

    def read() -> None:
        for line in sys.stdin:
            given.put(json.loads(line))
        os.kill(os.getpid(), signal.SIGTERM)

    # Ctrl-C reaches all processes of a terminal; the sweep ends its workers by SIGTERM
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=read, daemon=True).start()
    answers = os.dup(1)
    while True:
        log, arguments = given.get()
        with open(log, "ab") as file:
            for stream in (1, 2):
                os.dup2(file.fileno(), stream)
        if status := run(app, arguments):
            return status
        gc.collect()  # graphs and models refer to each other, and hold memory of the device
        os.write(answers, b"\n")


if __name__ == "__main__":
    sys.exit(work())
