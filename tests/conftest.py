"""Shared settings: one thread unless a test says otherwise, fixed hypothesis profile, no leaks."""

import os
import shutil

import pytest
import torch
from hypothesis import HealthCheck, settings
from listops_commands import QUICK, interrupt, train
from listops_runs import options

# they are loaded anyway; looked through for doctests, two of them would have the same name
collect_ignore_glob = ["*conftest.py"]

# two pytest workers on two cores: more threads would only wait for each other
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
torch.set_num_threads(1)

settings.register_profile(
    "treelax", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("treelax")


@pytest.fixture(autouse=True)
def _same_threads():
    """A test that changes the number of threads puts it back."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(20190601)


# ------------------------------------------------------------------ runs that several files look at


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A run of ListOps that has ended, and what was said; only to be looked at."""
    folder = tmp_path_factory.mktemp("finished") / "new" / "run"
    return folder, train("--out", folder, *options(), "--seed", 5)


@pytest.fixture(scope="session")
def halves(tmp_path_factory):
    """A run of four epochs that was interrupted in its third; copy it."""
    folder = tmp_path_factory.mktemp("halves") / "run"
    interrupt(folder, 3, *QUICK)
    return folder


@pytest.fixture
def half(halves, tmp_path):
    return shutil.copytree(halves, tmp_path / "half")
