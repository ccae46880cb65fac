"""The residual-stream diagram.

shown (which paths), geometry (its parts), frames (the room of each), columns and layout (stacks),
grid, ways, lane and embedding (deep models), tokens (the source tokens), ribbon and style (shapes
and sizes), node_labels, labels, grid_labels, words and room (what is written), nodes, strands and
overview (what is drawn beside the bands), effects (other colours), drawing (all of it) and picture
(the parts that a window keeps).
"""

from circuitview.figures.diagram.drawing import Diagram, diagram_figure, path_title
from circuitview.figures.diagram.effects import MeasuredEffects
from circuitview.figures.diagram.shown import require_layer, shown_paths
from circuitview.figures.diagram.words import count

__all__ = [
    "Diagram",
    "MeasuredEffects",
    "count",
    "diagram_figure",
    "path_title",
    "require_layer",
    "shown_paths",
]
