"""A cache of its own for every test, and nothing kept of the test before."""

import pytest

from treelax.apps.tasks.text import data


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TREELAX_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(data, "_latest", None)
