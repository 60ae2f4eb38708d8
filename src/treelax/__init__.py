"""Latent trees for PyTorch: structured latent variables, exact and fast, learned end to end."""

from importlib import import_module
from typing import Any

#: Where public names come from; their types are in __init__.pyi.
_HOMES = {
    "IMLE": "estimators",
    "REINFORCE": "estimators",
    "RLOO": "estimators",
    "SPIGOT": "estimators",
    "Binary": "structures",
    "Exact": "estimators",
    "Gaussian": "noise",
    "Gumbel": "noise",
    "Heads": "structures",
    "Labelled": "structures",
    "Marginals": "estimators",
    "NonProjective": "structures",
    "Perturbed": "estimators",
    "Projective": "structures",
    "ProjectiveTrees": "structures",
    "Relaxed": "estimators",
    "SparseMAP": "estimators",
    "StraightThrough": "estimators",
    "SumOfGamma": "noise",
    "TreelaxError": "errors",
    "fenchel_young_loss": "estimators",
    "load": "apps.tasks",
}
__all__ = [
    "IMLE",
    "REINFORCE",
    "RLOO",
    "SPIGOT",
    "Binary",
    "Exact",
    "Gaussian",
    "Gumbel",
    "Heads",
    "Labelled",
    "Marginals",
    "NonProjective",
    "Perturbed",
    "Projective",
    "ProjectiveTrees",
    "Relaxed",
    "SparseMAP",
    "StraightThrough",
    "SumOfGamma",
    "TreelaxError",
    "fenchel_young_loss",
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
