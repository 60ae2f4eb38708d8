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


#: A tree is on the face of the point if it misses the best value by less than this, times the parts of a
#: tree and the size of their scores.
TIE = 1e-11
#: A tree whose squared distance to the affine hull of others is less is one of its trees.
APART = 1e-8
#: In a direction with entries of about 1, trees of a hull that is orthogonal to it differ by less.
LEAST_GAIN = 1e-7
#: How far from the point trees are looked for at first, times the size of the scores.
REACH = 1e-7
#: Nearer than this, rounding hides the difference between trees.
SHORTEST_REACH = 1e-11

#: Rounds of that search where their number must be known beforehand.
ROUNDS = 4
