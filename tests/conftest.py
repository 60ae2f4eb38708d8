"""Shared settings: one thread unless a test says otherwise, fixed hypothesis profile, no leaks."""

import os

import pytest
import torch
from hypothesis import HealthCheck, settings

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
