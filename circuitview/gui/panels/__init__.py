"""The docks, one file each; see panel.py for what a panel is."""
