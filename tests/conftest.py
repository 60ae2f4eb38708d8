"""Shared settings: one thread unless a test says otherwise, fixed hypothesis profile, no leaks."""

import os
import shutil

import pytest
import torch
from hypothesis import HealthCheck, settings
from pages import HINT, NO_BROWSER

# they are loaded anyway; looked through for doctests, two of them would have the same name
collect_ignore_glob = ["*conftest.py"]

# two pytest workers on two cores: more threads would only wait for each other
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
torch.set_num_threads(1)

settings.register_profile(
    "treelax", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("treelax")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter):
    """Below all else: how to run what was left out for want of a browser."""
    yield
    skipped = terminalreporter.stats.get("skipped", [])
    if any(NO_BROWSER in str(report.longrepr) for report in skipped):
        terminalreporter.write_line(HINT, yellow=True, bold=True)


@pytest.fixture(autouse=True)
def _same_threads():
    """A test that changes the number of threads puts it back."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(20190601)


@pytest.fixture
def backend(request):
    """The name of a backend of the matrix, set up."""
    from matrix import using

    with using(request.param) as name:
        yield name


# ------------------------------------------------------------------ runs that several files look at
# imported inside: most files need neither the commands nor the models


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A run of ListOps that has ended, and what was said; only to be looked at."""
    from listops_runs import options, train

    folder = tmp_path_factory.mktemp("finished") / "new" / "run"
    return folder, train("--out", folder, *options(), "--seed", 5)


@pytest.fixture(scope="session")
def halves(tmp_path_factory):
    """A run of four epochs that was interrupted in its third; copy it."""
    from listops_runs import QUICK, interrupt

    folder = tmp_path_factory.mktemp("halves") / "run"
    interrupt(folder, 3, *QUICK)
    return folder


@pytest.fixture
def half(halves, tmp_path):
    return shutil.copytree(halves, tmp_path / "half")


@pytest.fixture(scope="session")
def sentence_runs(tmp_path_factory):
    """A run of sentences of each kind and another of classes, beside their data; do not touch."""
    from sentence_runs import train

    folder = tmp_path_factory.mktemp("runs")
    found = {kind: train(kind, folder / kind) for kind in ("classify", "pair", "tag")}
    return found | {"again": train("classify", folder / "again", seed=1)}


@pytest.fixture(scope="session")
def moved_runs(tmp_path_factory):
    """A run of sentences of each kind, whose data are gone; only to be looked at."""
    from sentence_runs import train

    found = {}
    for kind in ("classify", "pair", "tag"):
        folder = tmp_path_factory.mktemp(kind)
        run = train(kind, folder)
        for file in folder.iterdir():
            if file.is_file():
                file.unlink()
        shutil.rmtree(folder / "cache")
        found[kind] = run.rename(folder / "moved")
    return found
