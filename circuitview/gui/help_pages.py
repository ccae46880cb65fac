"""Short texts of the Help menu."""

from html import escape

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMessageBox, QWidget

from circuitview import __version__

HELD_FIXED = """<h3>What is held fixed</h3>
<p>A transformer's logit is not a sum of paths by itself: attention patterns and norms depend on
everything before them. With the <b>attention patterns</b> and the <b>scales that the norms divide
by</b> held at what the model did on this prompt, everything left is linear but the MLPs. The logit
is then exactly the sum of all end-to-end paths: a source (a token's embedding, a position, a bias),
through any chain of heads in rising layers, to the logit.</p>
<p>MLPs come in two ways, to be chosen beside the balance. <b>MLP outputs as sources</b>: what each
MLP wrote is held as recorded, and paths start there. <b>Paths through MLPs</b>: what each neuron
multiplied its input by is held as recorded, and paths run on through them. Both add up exactly.</p>
<p>Where a model caps its logits, what is explained is the logit before the cap.</p>
<p>The line at the bottom edge adds all of them up and sets the sum beside the model's own logit.
The error is what rounding leaves; past the tolerance nothing is drawn.</p>
<p>A contribution is bookkeeping, not an effect: take a head away, and later heads and norms react.
The ablation panel measures that and shows both side by side.</p>"""


def held_fixed_box(parent: QWidget) -> QMessageBox:
    """What the numbers mean."""
    return _box(parent, "What is held fixed", HELD_FIXED)


def about_box(parent: QWidget) -> QMessageBox:
    """Name and version."""
    return _box(
        parent,
        "About circuitview",
        f"<h3>circuitview {__version__}</h3><p>Every end-to-end path of a transformer's residual "
        "stream, sized by its exact contribution to a logit.</p><p>Method: Elhage et al. 2021, "
        "<i>A Mathematical Framework for Transformer Circuits</i>.</p><p>Nothing is sent anywhere: "
        "models are read from this computer.</p>",
    )


def shortcuts_box(parent: QWidget, shortcuts: list[tuple[str, str]]) -> QMessageBox:
    """The menus' shortcuts, and what the mouse does."""
    mouse = [
        ("Make a token the dest", "click it"),
        ("Mark a token as source", "Shift+click it"),
        ("Move dest", "arrow keys in the token strip"),
        ("Select a path, or all through a head", "click in the diagram"),
        ("Open it in the panels", "double click"),
        ("Show one layer of a deep model alone", "double click its number; arrow keys and Enter"),
        ("Show all layers again", "Esc in the diagram"),
    ]
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td style='padding-left: 24px'>{escape(keys)}</td></tr>"
        for name, keys in [*shortcuts, *mouse]
    )
    return _box(parent, "Keyboard shortcuts", f"<table>{rows}</table>")


def _box(parent: QWidget, title: str, text: str) -> QMessageBox:
    box = QMessageBox(parent)
    box.setWindowTitle(title)
    box.setTextFormat(Qt.TextFormat.RichText)
    box.setText(text)
    box.setStandardButtons(QMessageBox.StandardButton.Close)
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box.setModal(False)
    return box
