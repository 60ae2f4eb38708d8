"""The door: ``treelax`` and ``python -m treelax`` start here, with the commands of apps and lab."""

import os
import sys
from collections.abc import Sequence

import treelax.lab  # noqa: F401  its task is one of those that train knows
from treelax.apps.cli import main as program

# in the order of the help; each module has a function register(app)
COMMANDS = {
    "data": "treelax.apps.cli.data",
    "train": "treelax.apps.cli.train",
    "eval": "treelax.apps.cli.eval",
    "predict": "treelax.apps.cli.predict",
    "analyse": "treelax.lab.cli.analyse",
    "report": "treelax.lab.cli.report",
    "parse": "treelax.apps.cli.parse",
    "table": "treelax.lab.cli.table",
    "figure": "treelax.lab.cli.figure",
    "demo": "treelax.apps.cli.demo",
}
app = program.create_app(COMMANDS)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program with the arguments of the command line, or others; returns its exit status."""
    return program.run(app, arguments)


# other programs may import this module, to document it or to start workers
if __name__ == "__main__":
    status = main()
    if "RANK" in os.environ:  # one of several: threads of gloo can abort the end of the interpreter
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    sys.exit(status)
