"""What every test needs: no screen. A platform that is set already stays."""

import os

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
