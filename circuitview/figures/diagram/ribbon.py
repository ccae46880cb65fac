"""The shapes of bands: strokes, dashed or not; filled ribbons where a turn is too tight for one."""

import itertools
from dataclasses import replace

import numpy as np

from circuitview.figures.diagram.geometry import Band
from circuitview.figures.figure import Command, Curve

HAIR = 0.7  # pixels: thinner bands are drawn this wide, and paler in proportion
_DASH = (9.0, 2.5)  # pixels along the band, for thin bands; thick ones get longer dashes
# A band thicker than this share of the way between two columns is filled, not stroked: a stroke
# would fold over itself in the turns.
FAT = 0.35


def dashes(value: float, thickness: float) -> tuple[float, ...]:
    """The dashes of a band (pixels): none where it adds."""
    if value >= 0:
        return ()
    return (max(_DASH[0], 0.55 * thickness), max(_DASH[1], 0.09 * thickness))


def band_curve(band: Band, colour: str, opacity: float, fat: float = FAT) -> Curve:
    """The shape of `band` through all its stops; filled where it is thicker than the share `fat` of
    the way between two of them."""
    steps = list(itertools.pairwise(band.stops))
    thickness = max(band.thickness, HAIR)
    if any(thickness > fat * (right[0] - left[2]) for left, right in steps):
        return replace(_filled(band, thickness, colour), opacity=opacity)
    commands: list[Command] = []
    at = None
    for (arrives, _, left, leave), (right, arrive, _, _) in steps:
        if at != (left, leave):
            # A node covers what happens between its two sides; in the lane a band goes on.
            rides = at == (arrives, leave)
            commands.append(("L" if rides else "M", left, leave))
        bend = (right - left) / 2
        commands.append(("C", left + bend, leave, right - bend, arrive, right, arrive))
        at = right, arrive
    dash = dashes(band.value, band.thickness)
    return Curve(tuple(commands), stroke=colour, stroke_width=thickness, dash=dash, opacity=opacity)


def _filled(band: Band, thickness: float, colour: str) -> Curve:
    spans = [
        (left[2], left[3], right[0], right[1]) for left, right in itertools.pairwise(band.stops)
    ]
    spans += [(x, y, end, y) for x, y, end, leave in band.stops if end > x and leave == y]
    pieces = [
        ribbon(x, y, end, to, thickness, colour, band.value < 0) for x, y, end, to in sorted(spans)
    ]
    return Curve(tuple(command for piece in pieces for command in piece.commands), fill=colour)


def ribbon(
    left: float, start: float, right: float, end: float, thickness: float, fill: str, cut: bool
) -> Curve:
    """A filled band from (left, start) to (right, end): for turns too tight for a stroke.

    Its thickness is measured upright. `cut` slices it as dashes slice a stroke.
    """
    half, bend = thickness / 2, (right - left) / 2
    if not cut:
        return Curve(
            (
                ("M", left, start - half),
                ("C", left + bend, start - half, right - bend, end - half, right, end - half),
                ("L", right, end + half),
                ("C", right - bend, end + half, left + bend, start + half, left, start + half),
                ("Z",),
            ),
            fill=fill,
        )
    on, off = dashes(-1, thickness)
    # The dash lengths run along the band: on a steep one they take less of the way across.
    steep = max(1.0, abs(end - start) / (right - left))
    commands: list[Command] = []
    x = left
    while x < right:
        stop = min(x + on / steep, right)
        across = np.linspace(x, stop, 4)
        share = (across - left) / (right - left)
        middle = start + (end - start) * share * share * (3 - 2 * share)
        edge = list(zip(across.tolist(), middle.tolist(), strict=True))
        commands.append(("M", edge[0][0], edge[0][1] - half))
        commands += [("L", at, y - half) for at, y in edge[1:]]
        commands += [("L", at, y + half) for at, y in reversed(edge)]
        commands.append(("Z",))
        x = stop + off / steep
    return Curve(tuple(commands), fill=fill)
