"""Latent trees for PyTorch: structured latent variables, exact and fast, learned end to end."""

from importlib import import_module
from typing import Any

#: Where public names come from; their types are in __init__.pyi.
_NAMES = {
    "errors": "TreelaxError",
    "noise": "Gaussian Gumbel SumOfGamma",
    "structures": "Alignment Binary Chain Heads Labelled NonProjective Projective ProjectiveTrees"
    " Segments Spanning",
    "estimators": "IMLE REINFORCE RLOO SPIGOT Exact Marginals Perturbed Relaxed SparseMAP"
    " StraightThrough fenchel_young_loss",
    "apps.tasks": "load",
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}
__all__ = sorted([*_HOMES, "nn", "noise", "ops", "trees"])
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
