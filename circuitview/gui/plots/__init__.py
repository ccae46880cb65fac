"""Plots that can be panned and zoomed, on pyqtgraph.

pyqtgraph gives the view, its wheel and its drag, and draws the raster of a heatmap; axes, marks and
points are the items of figures/, so that screen and export look alike. Importing this package costs
a good part of a second: import it when the first plot is shown, never at a panel module's top.
"""

import os

# pyqtgraph reads this when it is imported.
os.environ["PYQTGRAPH_QT_LIB"] = "PySide6"

import pyqtgraph

# Arrays are [row, column] here, as everywhere but in pyqtgraph.
pyqtgraph.setConfigOptions(imageAxisOrder="row-major", antialias=True)
