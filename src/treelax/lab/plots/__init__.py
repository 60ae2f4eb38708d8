"""Plots of training and of relaxations, drawn by matplotlib, which is imported with the first one."""

from treelax.lab.plots.curves import Curve, Panel, draw_curves, draw_panels
from treelax.lab.plots.plot import Curves
from treelax.lab.plots.relaxation import draw_relaxation

__all__ = ["Curve", "Curves", "Panel", "draw_curves", "draw_panels", "draw_relaxation"]
