"""Public names, signatures and commands change on purpose only."""

import difflib

from surface import FILE, surface


def test_the_public_surface():
    """After a change on purpose: ``python tests/surface.py``, and a line in the changelog."""
    recorded = FILE.read_text(encoding="utf-8")
    lines = difflib.unified_diff(
        recorded.splitlines(), surface().splitlines(), "recorded", "now", n=0, lineterm=""
    )
    changes = "\n".join(lines)
    assert not changes, f"If this is on purpose, run python tests/surface.py:\n{changes}"
