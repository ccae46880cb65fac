"""The bars that bands pass in a diagram of stacks, and at both ends of a grid."""

from circuitview.core.names import TOKEN, Head, Mlp, Source
from circuitview.figures.diagram.geometry import Elsewhere, Node, SourceToken
from circuitview.figures.diagram.labels import Labels
from circuitview.figures.figure import Group, Rect


def node_group(node: Node, labels: Labels) -> Group:
    """The bar of a node, with its name and net."""
    if node.what in ("adds", "takes away") and not node.height:
        return Group(())
    wide, high = labels.layout.node_width, max(node.height, 0.0) + 1.5
    # A bar that carries nothing and has no name would only cross another one's name.
    bare = node.height < 1 and not labels.is_named(node)
    fill = None if bare else _fill(node, labels)
    bar = Rect(node.x, node.y - 0.75, wide, high, fill, radius=2)
    return Group(
        (bar, *labels.label(node)),
        id=f"node {labels.name(node)}",
        title=labels.title(node),
        data=node.what,
    )


def _fill(node: Node, labels: Labels) -> str:
    theme = labels.theme
    match node.what:
        case "adds":
            return theme.positive
        case "takes away":
            return theme.negative
        case Head() if labels.selection.head == node.what:
            return theme.accent
        case SourceToken(position) if position == labels.expansion.target.dest:
            return theme.text
        case Head() | Mlp() | Source() if labels.effects and labels.effects.asks(node.what):
            return labels.effects.colour(node.what, theme)
        case Head() | Mlp() | SourceToken() | Elsewhere():
            return theme.node
        case Source() as source:
            # An MLP writes what it computed; positions and biases are constants.
            return theme.node if source == TOKEN or source.kind == "mlp" else theme.remainder
    return theme.remainder
