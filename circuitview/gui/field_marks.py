"""A field marked as wrong: the frame of the style sheet's [wrong="true"]."""

from PySide6.QtWidgets import QWidget


def mark_wrong(widget: QWidget, wrong: bool) -> None:
    """Mark or unmark; Qt reads properties of a style sheet only when asked to."""
    if bool(widget.property("wrong")) != wrong:
        widget.setProperty("wrong", wrong)
        widget.style().unpolish(widget)
        widget.style().polish(widget)
