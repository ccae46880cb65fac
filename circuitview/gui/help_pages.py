"""Short texts of the Help menu."""

from html import escape
from typing import Literal

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QMessageBox, QSizePolicy, QSpacerItem, QWidget

from circuitview import __version__

_WIDE = 640  # pixels of a page

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

LAB = """<h3>What the ablation panel measures</h3>
<p>A <b>contribution</b> is bookkeeping: the sum of all paths through a head and its value bias,
with everything held as it was. On a text it is to the logits of the next tokens, their mean. (The
diagram's number at a head leaves the value bias out: there it counts under the bias of the layer.)
An <b>effect</b> is an experiment: the head is taken away, the
model runs, and the effect is what was measured, ablated minus clean.</p>
<p><b>Frozen</b>, patterns, norm scales and MLP outputs stay as recorded. Zero in the place of a
head then changes a logit by exactly minus its contribution, and all points lie on the diagonal.
For zero with all else frozen the diagonal is a law; for every other kind, and free, it is a guide
only: what is put there adds to the logit too.</p>
<p><b>Free</b>, all that comes after it is computed anew, and points leave the diagonal:</p>
<ul>
<li>Later heads read what the head wrote. Without it they look elsewhere: a head that others depend
on, like the previous-token head of an induction circuit, has an effect far larger than its
contribution.</li>
<li><b>Backup heads and self-repair</b>: others step in for what is lost, or stop working against
it. The effect is smaller than the contribution, the point lies between the diagonal and zero.</li>
<li><b>The norms react</b>: with less in the stream they divide by less, and everything else counts
for more.</li>
</ul>
<p>An end-to-end path is taken out of the final stream alone: of what comes after, only the final
norm can react.</p>
<p><b>What is put there.</b> <i>Zero</i>: nothing, the value bias goes too; a model has never seen
that, so part of an effect is surprise. <i>Mean over a text</i>: what it writes whatever the prompt
says stays. <i>Resampled</i>: what it wrote on another prompt, or in a row of a text drawn with the
seed: usual values, without what this prompt says. <i>Own output, frozen pattern</i>: its own
values, moved as another prompt's pattern says; with its own pattern nothing may change, which is a
check of the measurement.</p>
<p><b>Paths by order</b>: the model with the paths of up to so many heads; the marginal value is
what one order more is worth. The constants of all layers are in each. The contribution of order 0
leaves out the constant b_U, which the logit holds: contributions add up to the logit less b_U.
<b>±</b> is the standard error over prompts or windows.</p>
<p>Runs go one after the other in the background, and keep the model and prompt that they began
with. Results of another model or prompt are pale, and say so.</p>"""


FREEZING = """<h3>What the freezing panel shows</h3>
<p><b>Frozen</b>, a prompt's attention patterns, norm scales and MLP outputs are those of the clean
run, whatever tokens are put in. What is left of the model is linear in the token embeddings.
<b>Free</b>, all of it is computed anew from the new tokens.</p>
<p><b>Linearity</b> puts that to the test. g(t) are all logits with the token embeddings t, minus
those with none. a is this prompt, b another of as many tokens, or the same tokens in another order.
Frozen, g(a + b) and g(a) + g(b) agree but for rounding, and so do g(2a) and 2 g(a); free,
they are apart by whole logits.</p>
<p><b>Token swap</b> replaces the token at one position. Each path that starts there changes by its
weight times what the new token would send less what the old one does. These changes add up to the
frozen run, which is a forward pass of its own; where they don't, nothing is shown. The free run
stands beside it: what the frozen one lacks is what patterns, norms and MLPs make of the new
token.</p>
<p><b>Two prompts</b> compares one row of a head: where it looks from dest under prompt A and under
prompt B. In layer 0 the score between two tokens that both prompts have at the same places stays.
The weights move all the same, since the row adds up to 1. In later layers scores move too, as
earlier heads have read other tokens.</p>
<p>Where two prompts are open, linearity and swap are of the one that is shown (of A, where B − A
is), and the row compares A with B unless another prompt is typed.</p>"""

HelpPage = Literal["held fixed", "ablation", "freezing"]

_PAGES: dict[HelpPage, tuple[str, str]] = {
    "held fixed": ("What is held fixed", HELD_FIXED),
    "ablation": ("What the ablation panel measures", LAB),
    "freezing": ("What the freezing panel shows", FREEZING),
}


def help_box(parent: QWidget, page: HelpPage) -> QMessageBox:
    """What the numbers mean: one page."""
    return _box(parent, *_PAGES[page])


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
    grid = box.layout()
    assert isinstance(grid, QGridLayout)
    # A box keeps long texts narrow, and so higher than a small screen.
    policy = QSizePolicy.Policy
    spacer = QSpacerItem(_WIDE, 0, policy.Minimum, policy.Fixed)
    grid.addItem(spacer, grid.rowCount(), 0, 1, grid.columnCount())
    return box
