"""The word "offline" in the status bar: what this program never does."""

from PySide6.QtWidgets import QLabel


class OfflineMark(QLabel):
    """Always there."""

    def __init__(self) -> None:
        super().__init__("offline")
        self.setObjectName("offline-mark")
        self.setForegroundRole(self.palette().ColorRole.PlaceholderText)
        self.setContentsMargins(8, 0, 0, 0)
        self.setToolTip(
            "Nothing is fetched from the network and nothing is sent. Models open from this "
            "computer only: bundled ones, folders, files, and names in the Hugging Face cache"
        )
