"""What a latent structure is: the parts it is made of and its exact algorithms."""

from typing import get_args

from treelax.errors import InputError
from treelax.interface import BY_NAME, StructureName
from treelax.ops.checks import one_of
from treelax.structures.alignment import Alignment
from treelax.structures.base import Structure
from treelax.structures.binary import Binary
from treelax.structures.chain import Chain
from treelax.structures.heads import Heads
from treelax.structures.labelled import Labelled
from treelax.structures.nonprojective import NonProjective
from treelax.structures.projective import Projective, ProjectiveTrees
from treelax.structures.segments import Segments
from treelax.structures.spanning import Spanning

__all__ = [
    "Alignment",
    "Binary",
    "Chain",
    "Heads",
    "Labelled",
    "NonProjective",
    "Projective",
    "ProjectiveTrees",
    "Segments",
    "Spanning",
    "Structure",
    "StructureName",
    "structure_named",
]


def __dir__() -> list[str]:
    return __all__


def structure_named(name: str, *, single_root: bool = False) -> Structure:
    """The structure that configurations call by a name, with one modifier of the root or any number.

    Example:
        >>> structure_named("projective", single_root=True)
        Projective(single_root=True)
    """
    one_of("structure", name, get_args(StructureName))
    kind: type[Structure] = BY_NAME[name]
    if not single_root:
        return kind()
    if name not in ("projective", "nonprojective"):
        raise InputError(
            f'single_root is True with structure "{name}"; expected False: words that choose alone '
            'cannot agree on one root, and binary trees have none. Use "projective" or "nonprojective".'
        )
    return kind(single_root=True)  # type: ignore[call-arg]
