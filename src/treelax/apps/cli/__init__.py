"""The commands of ``treelax``."""

import os

# Before torch is loaded: its threads sleep while they wait for each other instead of keeping cores
# busy, which beside other programs slows training down several times.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
