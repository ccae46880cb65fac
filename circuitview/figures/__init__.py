"""From numbers to pictures, without a screen.

A `Figure` is a display list: rectangles, curves, texts, images, and groups with an id and a title.
The functions `…_figure` make one from plain numbers; `svg.py` writes one as SVG; the window, PNG
and PDF paint the same list. So what is on the screen, in a paper and in a test cannot differ.

Nothing in here computes a result, and nothing imports Qt or torch. Coordinates are in pixels of
1/96 inch, y downwards; colours are "#rrggbb", opacity is a number of its own.
"""
