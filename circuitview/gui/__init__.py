"""The desktop program: the only folder that imports Qt.

Fonts and painting also serve the command line, which exports figures without a window.
"""
