"""Latent trees for PyTorch: structured latent variables, exact and fast, learned end to end."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from treelax import nn, noise, ops, trees
    from treelax.errors import TreelaxError
    from treelax.estimators import Relaxed, StraightThrough
    from treelax.noise import Gumbel, SumOfGamma
    from treelax.structures import (
        Binary,
        Heads,
        Labelled,
        NonProjective,
        Projective,
        ProjectiveTrees,
    )
    from treelax.tasks import load

_HOMES = {
    "Binary": "structures",
    "Gumbel": "noise",
    "Heads": "structures",
    "Labelled": "structures",
    "NonProjective": "structures",
    "Projective": "structures",
    "ProjectiveTrees": "structures",
    "Relaxed": "estimators",
    "StraightThrough": "estimators",
    "SumOfGamma": "noise",
    "TreelaxError": "errors",
    "load": "tasks",
}
__all__ = [
    "Binary",
    "Gumbel",
    "Heads",
    "Labelled",
    "NonProjective",
    "Projective",
    "ProjectiveTrees",
    "Relaxed",
    "StraightThrough",
    "SumOfGamma",
    "TreelaxError",
    "load",
    "nn",
    "noise",
    "ops",
    "trees",
]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Load a part when it is first used: torch comes with it, and the program sets that up before."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = import_module(f"{__name__}.{_HOMES.get(name, name)}")
    found = getattr(home, name) if name in _HOMES else home
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
