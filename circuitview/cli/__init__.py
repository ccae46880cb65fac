"""The commands: app.py puts them together, and each has a file of its own.

Whatever goes wrong leaves one line on stderr and an exit code: 1 where the paths do not add up to
the model's logit, 2 where the input is at fault, 130 after Ctrl-C. Nothing in here imports torch
before a command needs it, so that `--help` and the window come at once.
"""
