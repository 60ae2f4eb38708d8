"""``python -m treelax`` is the same as ``treelax``."""

import os
import sys

from treelax.cli.main import main

# other programs may import this module, to document it or to start workers
if __name__ == "__main__":
    status = main()
    if "RANK" in os.environ:  # one of several: threads of gloo can abort the end of the interpreter
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    sys.exit(status)
