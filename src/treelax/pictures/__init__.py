"""Pictures of trees and of training, for the terminal, a notebook or a file.

Matplotlib draws the curves and is imported when the first one is drawn.
"""

from treelax.pictures.arcs import draw_arcs
from treelax.pictures.brackets import draw_brackets
from treelax.pictures.curves import Curve, Panel, draw_curves, draw_panels
from treelax.pictures.heat_map import draw_heat_map
from treelax.pictures.plot import Curves
from treelax.pictures.relaxation import draw_relaxation
from treelax.pictures.stack import align_pictures, stack_pictures
from treelax.pictures.svg import Picture
from treelax.pictures.terminal import draw_tree, list_weights, supports_unicode
from treelax.pictures.terminal_brackets import draw_binary_tree, list_brackets

__all__ = [
    "Curve",
    "Curves",
    "Panel",
    "Picture",
    "align_pictures",
    "draw_arcs",
    "draw_binary_tree",
    "draw_brackets",
    "draw_curves",
    "draw_heat_map",
    "draw_panels",
    "draw_relaxation",
    "draw_tree",
    "list_brackets",
    "list_weights",
    "stack_pictures",
    "supports_unicode",
]
