"""Measured effects as the colours of a diagram: bands keep the width of their contribution.

Beside a head or an MLP that was measured stands its effect. What was not measured is grey; so is
what stands for several paths, and what a source token sends.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from circuitview.core.ablation.metric import METRICS, MetricName
from circuitview.core.ablation.sites import Site
from circuitview.core.names import Head, Mlp, Source
from circuitview.core.path import Path
from circuitview.figures.diagram.geometry import Band
from circuitview.figures.diagram.ribbon import dashes
from circuitview.figures.diagram.style import Style
from circuitview.figures.effect_words import held, with_error, written
from circuitview.figures.figure import Curve, Group, Image, Item, Rect, Text, segment
from circuitview.figures.text_width import width
from circuitview.figures.theme import Theme, mix, rgb

if TYPE_CHECKING:
    from circuitview.core.ablation.table import Row

Measured = Path | Head | Mlp

_PALEST = 0.4  # how much of its sign's colour an effect of about zero has
_GREY = "not measured"
_BAR = 84.0  # pixels, of the legend's colours


@dataclass(frozen=True, eq=False)
class MeasuredEffects:
    """What taking away a path, a head or an MLP does, where that is measured.

    Attributes:
        values: ablated minus clean.
        metric: of what.
        frozen: whether all else was held.
    """

    values: Mapping[Measured, float]
    metric: MetricName = "logit"
    frozen: bool = False

    @classmethod
    def of_rows(cls, rows: Iterable["Row"], metric: MetricName, frozen: bool) -> "MeasuredEffects":
        """Those of the rows whose site is one path, one head or one MLP."""
        found = ((_sole(row.site), row.effect) for row in rows)
        values = {what: effect for what, effect in found if what is not None}
        return cls(values, metric, frozen)

    @cached_property
    def limit(self) -> float:
        """The size of effect that has the strongest colour."""
        return max((abs(value) for value in self.values.values()), default=0.0)

    @cached_property
    def kinds(self) -> frozenset[type]:
        """What is measured: Path, Head, Mlp."""
        return frozenset(type(what) for what in self.values)

    def asks(self, what: object) -> bool:
        """Whether things like `what` are measured, so that one that is not is worth a word."""
        return type(_thing(what)) in self.kinds

    def of(self, what: object) -> float | None:
        """The effect of taking away `what`; None where it is not measured.

        A source "mlp 0" is what that MLP writes: without it, the MLP is taken away.
        """
        thing = _thing(what)
        return self.values.get(thing) if isinstance(thing, Path | Head | Mlp) else None

    def colour(self, what: object, theme: Theme) -> str:
        """The colour of a band or a head."""
        value = self.of(what)
        return theme.remainder if value is None else self.shade(value, theme)

    def shade(self, value: float, theme: Theme) -> str:
        """The colour of an effect: the larger, the stronger."""
        # The root: one large head must not make all paths pale.
        share = (abs(value) / self.limit) ** 0.5 if self.limit else 0.0
        return mix(theme.background, theme.sign(value), _PALEST + (1 - _PALEST) * share)

    def shaped(self, band: Band) -> Band:
        """`band`, cut into dashes where taking it away lowers the metric."""
        return replace(band, value=self.of(band.what) or 0.0)

    def words(self, what: object) -> str:
        """What is said of it when it is pointed at."""
        value = self.of(what)
        if value is None:
            return "effect not measured"
        unit = METRICS[self.metric].unit
        return f"effect {with_error(value, None, self.metric)}" + (f" {unit}" if unit else "")

    @property
    def removed(self) -> str:
        """What is taken away, for a legend: "path", "head", "MLP", or all that are measured."""
        names = {Path: "path", Head: "head", Mlp: "MLP"}
        return " or ".join(name for kind, name in names.items() if kind in self.kinds) or "path"


def _sole(site: Site) -> Measured | None:
    """What `site` takes away where that is one thing of the picture."""
    parts: list[Measured] = [*site.paths, *site.heads, *(Mlp(layer) for layer in site.mlps)]
    return parts[0] if len(parts) == 1 and not site.orders else None


def _thing(what: object) -> object:
    """What is taken away where `what` is pointed at."""
    return Mlp(what.layer) if isinstance(what, Source) and what.kind == "mlp" else what


def effect_legend(
    effects: MeasuredEffects,
    left: float,
    y: float,
    right: float,
    logit: tuple[float, float],
    theme: Theme,
    style: Style,
    numbered: bool,
) -> Group:
    """What width and colours say, in the line with its baseline at `y`.

    Args:
        left, right: the room in it (pixels).
        logit: a number of logits, and how thick a band of so many is (pixels).
        numbered: whether effects stand beside the heads as numbers.
    """
    size, middle, x = style.small, y - style.small * 0.36, left
    amount, thick = logit
    items: list[Item] = []

    def write(text: str, wide: float, marks: list[Item]) -> None:
        nonlocal x
        needed = wide + 7 + width(text, size)
        if x + needed <= right:
            items.extend([*marks, Text(x + wide + 7, y, text, size, theme.muted)])
            x += needed + 24

    line = segment(x, middle, x + 34, middle)
    unit = "logit" if amount == 1 else "logits"
    band = Curve(line, stroke=theme.remainder, stroke_width=thick, opacity=0.8)
    write(f"width: contribution, {amount:g} {unit}", 34, [band])
    low, high = (written(sign * effects.limit, effects.metric) for sign in (-1, 1))
    ends = width(low, size) + 6, width(high, size) + 6
    wide = ends[0] + _BAR + ends[1]
    # What is grey is told before all that could be said of the colours.
    room = right - x - wide - 7 - 24 - 34 - 7 - width(_GREY, size)
    kept = held(effects.frozen)
    what = "colour, number" if numbered and effects.kinds - {Path} else "colour"
    removed = f"{what}: effect of removing the {effects.removed}"
    wordings = (f"{removed}, {kept}", f"{what}: effect, {kept}")
    text = next((words for words in wordings if width(words, size) <= room), f"{what}: effect")
    write(text, wide, _ramp(effects, x, y, (low, high), ends[0], theme, size))
    grey = segment(x, middle, x + 34, middle)
    write(_GREY, 34, [Curve(grey, stroke=theme.remainder, stroke_width=4, opacity=0.8)])
    return Group(tuple(items), id="scale")


def _ramp(
    effects: MeasuredEffects,
    x: float,
    y: float,
    ends: tuple[str, str],
    start: float,
    theme: Theme,
    size: float,
) -> list[Item]:
    """The colours from the most negative to the most positive effect, with both numbers."""
    shades = [effects.shade(value, theme) for value in np.linspace(-1, 1, 64) * effects.limit]
    rgba = np.array([[(*rgb(shade), 255) for shade in shades]], np.uint8)
    high, top = size * 0.8, y - size * 0.78
    left, half = x + start, _BAR / 2
    # As the bands are, what lowers is cut.
    cut = dashes(-1, high)
    cuts: list[Item] = []
    at = left + cut[0]
    while at < left + half - cut[1]:
        cuts.append(Rect(at, top, cut[1], high, fill=theme.background))
        at += sum(cut)
    return [
        Text(x, y, ends[0], size, theme.muted),
        Image(left, top, _BAR, high, rgba, smooth=True),
        *cuts,
        Text(left + _BAR + 6, y, ends[1], size, theme.muted),
    ]
