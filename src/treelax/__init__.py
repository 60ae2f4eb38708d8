"""Latent trees for PyTorch: learn projective dependency trees end to end from the task alone."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from treelax import nn, noise, ops, trees
    from treelax.distributions import ProjectiveTrees
    from treelax.errors import TreelaxError

__all__ = ["ProjectiveTrees", "TreelaxError", "nn", "noise", "ops", "trees"]
__version__ = "0.1.0"

_HOMES = {"ProjectiveTrees": "distributions", "TreelaxError": "errors"}


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
