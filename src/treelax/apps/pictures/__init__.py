"""Pictures of trees, for the terminal, a notebook or a file."""

from treelax.apps.pictures.arcs import draw_arcs
from treelax.apps.pictures.brackets import draw_brackets
from treelax.apps.pictures.drawing import align_pictures, stack_pictures
from treelax.apps.pictures.heat_map import draw_heat_map
from treelax.apps.pictures.svg import Picture
from treelax.apps.pictures.terminal import draw_tree, list_weights
from treelax.apps.pictures.terminal_brackets import draw_binary_tree, list_brackets
from treelax.apps.pictures.text import supports_unicode

__all__ = [
    "Picture",
    "align_pictures",
    "draw_arcs",
    "draw_binary_tree",
    "draw_brackets",
    "draw_heat_map",
    "draw_tree",
    "list_brackets",
    "list_weights",
    "stack_pictures",
    "supports_unicode",
]
