"""When the search ends, and how many trees it may need; the same in every backend."""

from __future__ import annotations

#: A gap below this, times the parts of a tree and the size of their scores, is rounding in float64.
ROUNDING = 1e-13
#: A squared distance to the affine hull of the support below this is 0: the tree adds nothing.
TINY = 1e-12


def most_trees(parts: int) -> int:
    """Trees added before the search gives up: many times what Gaussian scores take.

    A support never needs more trees than there are parts (Carathéodory), and the search drops those
    that it does not need.
    """
    return 10 * parts + 100


def usual_iterations(words: int) -> int:
    """Trees added where the number must be known beforehand: scores of a deviation of 0.3 take about
    five a word, larger ones fewer."""
    return 8 * words + 16


def usual_room(words: int, parts: int, iterations: int) -> int:
    """Slots of a support where memory is made beforehand: those scores take about four a word, and
    never more than one for every part, nor for every tree that is added to the first."""
    return max(1, min(6 * words + 16, parts, iterations + 1))
