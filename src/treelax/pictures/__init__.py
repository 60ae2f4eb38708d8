"""Pictures of trees and of training, for the terminal, a notebook or a file.

Matplotlib draws the curves and is imported when the first one is drawn.
"""

from treelax.pictures.curves import Curves, draw_curves, draw_panels
from treelax.pictures.series import Curve, Panel
from treelax.pictures.terminal import draw_tree, supports_unicode

__all__ = [
    "Curve",
    "Curves",
    "Panel",
    "draw_curves",
    "draw_panels",
    "draw_tree",
    "supports_unicode",
]
