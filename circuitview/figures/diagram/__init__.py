"""The residual-stream diagram.

geometry (its parts), tokens and layout (where they stand), ribbon and style (shapes and sizes),
labels (words), drawing (all of it as one Figure).
"""

from circuitview.figures.diagram.drawing import diagram_figure, path_title
from circuitview.figures.diagram.layout import shown_paths

__all__ = ["diagram_figure", "path_title", "shown_paths"]
