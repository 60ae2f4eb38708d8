"""``python -m treelax`` is the same as ``treelax``."""

import sys

from treelax.cli.main import main

# other programs may import this module, to document it or to start workers
if __name__ == "__main__":
    sys.exit(main())
