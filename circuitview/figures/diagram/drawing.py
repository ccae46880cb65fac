"""The residual-stream diagram: every path a band, as wide as its contribution, on one scale.

Blue adds; orange, cut into dashes, takes away; grey stands for what is not drawn singly and for
positions and biases' own nodes. What is selected lies on top. In a model of few layers the bands
are stacked at columns of nodes, thick under thin; a deep model is a grid, strong over weak, and any
of its layers can be shown alone. The same picture serves the window and the exports.
"""

from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from circuitview.core.path import Path
from circuitview.figures.compose import provenance
from circuitview.figures.diagram.effects import MeasuredEffects, effect_legend
from circuitview.figures.diagram.frames import frame_for
from circuitview.figures.diagram.geometry import Band, Frame, Layout
from circuitview.figures.diagram.grid import lay_out_grid
from circuitview.figures.diagram.grid_labels import GridLabels, in_grid
from circuitview.figures.diagram.labels import Labels
from circuitview.figures.diagram.layout import lay_out
from circuitview.figures.diagram.nodes import node_group
from circuitview.figures.diagram.overview import Overview
from circuitview.figures.diagram.picture import Bands, Picture
from circuitview.figures.diagram.ribbon import FAT, HAIR, band_curve
from circuitview.figures.diagram.room import width as text_width
from circuitview.figures.diagram.shown import is_deep
from circuitview.figures.diagram.strands import selected_strands, strand
from circuitview.figures.diagram.style import Kind, Style
from circuitview.figures.diagram.words import expansion_name
from circuitview.figures.enlarge import enlarged
from circuitview.figures.figure import Curve, Figure, Group, Item, Rect, Text
from circuitview.figures.theme import Theme
from circuitview.session.balance import HELD_FIXED, balance_text
from circuitview.session.expansions import explained
from circuitview.session.numbers import logits, percent
from circuitview.session.state import Selection

if TYPE_CHECKING:
    from circuitview.core.expansion import Expansion

# The largest size for which an exported diagram is laid out (pixels); larger ones are enlarged.
_SLIDE = (1280.0, 720.0)
_PICKED = 0.95
_STEPPED_BACK = 0.22  # how strong all other bands are beside what is picked
_HAIR_DASH = (26.0, 6.0)  # pixels: of a grid's hairs, or a PDF would be millions of short pieces
_ROOMY = 760.0  # pixels of width; in less the legend of effects needs all of it
_STRIP = (50.0, 0.15, 150.0)  # the overview: least, share of the height, most (pixels)


def diagram_figure(
    expansion: "Expansion",
    *,
    theme: Theme,
    width: float,
    height: float,
    floor: float = 0.0,
    selection: Selection | None = None,
    captioned: bool = False,
    titled: bool = True,
    layer: int | None = None,
    effects: MeasuredEffects | None = None,
) -> Figure:
    """The diagram of `expansion`; the arguments are those of Diagram.

    Raises:
        ImbalanceError: where the paths don't add up; nothing unbalanced is drawn.
    """
    factor = max(1.0, min(width / _SLIDE[0], height / _SLIDE[1])) if captioned else 1.0
    diagram = Diagram(
        expansion,
        theme=theme,
        width=width / factor,
        height=height / factor,
        floor=floor,
        captioned=captioned,
        titled=titled,
        layer=layer,
        effects=effects,
    )
    figure = diagram.picture(selection or Selection()).figure
    return enlarged(figure, factor) if factor > 1.0 else figure


def path_title(expansion: "Expansion", path: Path) -> str:
    """What is said of a listed path that is pointed at: value (logits), and share |c| / Σ|c|."""
    return _title(expansion, str(path), float(expansion.contributions[expansion.place[path]]))


def _title(expansion: "Expansion", name: str, value: float) -> str:
    share = abs(value) / (float(np.abs(expansion.contributions).sum()) or 1.0)
    return f"{name}: {logits(value, signed=True)} logits, {percent(share)} of Σ|c|"


class Diagram:
    """One diagram, laid out; any selection can be picked out of it.

    Args:
        expansion: must balance.
        theme: colours.
        width, height: pixels.
        floor: paths below this |contribution| (logits) become the grey remainder.
        captioned: whether the prompt and the balance stand under the picture, as on a slide.
        titled: whether each band carries its name and path_title, as in exported files.
        layer: the layer of a deep model that is shown alone; None for all.
        effects: what colours bands and heads, instead of the contribution's sign.

    Raises:
        ImbalanceError: where the paths don't add up; nothing unbalanced is drawn.
    """

    def __init__(
        self,
        expansion: "Expansion",
        *,
        theme: Theme,
        width: float,
        height: float,
        floor: float = 0.0,
        captioned: bool = False,
        titled: bool = True,
        layer: int | None = None,
        effects: MeasuredEffects | None = None,
    ) -> None:
        expansion.require_balance()
        config = expansion.recording.weights.config
        self.expansion, self.theme, self.titled = expansion, theme, titled
        self.effects = effects
        self.width, self.height = width, height
        self.layer = layer if is_deep(config) else None
        self.is_grid = is_deep(config) and layer is None
        kind: Kind = "grid" if self.is_grid else "stacks" if self.layer is None else "layer"
        self.style = Style.for_size(width, height, config.n_heads, kind)
        self.caption: tuple[str, ...] = ()
        if captioned:
            self.caption = (balance_text(expansion), self._origin())
        frame = self._frame(kind)
        self.layout: Layout = (
            lay_out_grid(expansion, frame, floor)
            if self.is_grid
            else lay_out(expansion, frame, floor, self.layer)
        )

    def in_theme(self, theme: Theme) -> "Diagram":
        """The same diagram in other colours; it is not laid out again."""
        other = copy(self)
        other.theme = theme
        for name in ("_bands", "_overview"):
            other.__dict__.pop(name, None)
        return other

    def with_effects(self, effects: MeasuredEffects | None) -> "Diagram":
        """The same diagram coloured by effects, or, without any, by contribution; it is not laid
        out again."""
        other = self.in_theme(self.theme)
        other.effects = effects
        return other

    def picture(self, selection: Selection) -> Picture:
        """The diagram with `selection` picked out."""
        back = selection.anything
        picked = [band for band in self._ordered if _picked(band, selection)] if back else []
        title = f"Paths to {explained(self.expansion)}"
        return Picture(
            width=self.width,
            height=self.height,
            background=self.theme.background,
            title=title if self.layer is None else f"{title} through layer {self.layer}",
            description=provenance(self.expansion),
            under=self._under(selection),
            bands=self._bands,
            strength=_STEPPED_BACK if back else 1.0,
            picked=Bands(
                len(picked), lambda i: self._band(picked[i], self._picked_opacity(picked[i]))
            ),
            over=self._over(selection, picked),
            strong_on_top=self.is_grid,
            thickness=tuple(band.thickness for band in self._ordered),
            picked_thickness=tuple(band.thickness for band in picked),
        )

    @cached_property
    def _ordered(self) -> tuple[Band, ...]:
        """Thick under thin, among stacks; a grid has them in order already: strong over weak."""
        bands = self.layout.bands
        return bands if self.is_grid else tuple(sorted(bands, key=lambda band: -band.thickness))

    @cached_property
    def _bands(self) -> Bands:
        bands = self._ordered
        return Bands(len(bands), lambda i: self._band(bands[i], self._opacity(bands[i])))

    def _under(self, selection: Selection) -> tuple[Item, ...]:
        labels = self._labels(selection)
        parts = (strand(self.layout, net, node, y, labels) for node, net, y in self.layout.strands)
        ruled = labels.rules() if isinstance(labels, GridLabels) else ()
        return (self._lane(), *ruled, *parts)

    def _over(self, selection: Selection, picked: list[Band]) -> tuple[Item, ...]:
        layout, labels = self.layout, self._labels(selection)
        nodes = [node for node in layout.nodes if layout.cell is None or not in_grid(node)]
        items: list[Item] = [*selected_strands(layout, picked, labels)]
        if isinstance(labels, GridLabels):
            items += [*labels.cells(), *labels.rows()]
        items += [node_group(node, labels) for node in nodes]
        items += [*labels.headings(), *labels.total()]
        if self.layer is not None and not self.caption:  # in a file there is nothing to click
            items.append(labels.way_back())
        if self.is_grid:
            items += self._overview
        items.append(self._legend(labels))
        return (*items, *labels.captions(self.caption))

    def _legend(self, labels: Labels) -> Group:
        n_captions = len(self.caption)
        if self.effects is None:
            return labels.legend(n_captions)
        style, roomy = self.style, self.width >= _ROOMY
        left = self.layout.columns[0].x - 10 if roomy else 1.5 * style.label
        y, right = labels.legend_line(n_captions), self.width - style.label
        numbered = labels.layer is None and not self.is_grid
        sample, theme = labels.sample(), self.theme
        return effect_legend(self.effects, left, y, right, sample, theme, style, numbered)

    @cached_property
    def _overview(self) -> tuple[Item, ...]:
        top, bottom = self._strip()
        return Overview(self.expansion, self.layout, self.theme, self.style, top, bottom).items()

    def _labels(self, selection: Selection) -> Labels:
        kind = GridLabels if self.is_grid else Labels
        size = (self.width, self.height)
        return kind(
            self.expansion,
            self.layout,
            self.theme,
            self.style,
            selection,
            size,
            self.layer,
            self.effects,
        )

    def _footer(self) -> float:
        return self.style.small * 2.6 + len(self.caption) * self.style.label * 1.6

    def _strip(self) -> tuple[float, float]:
        """Top and bottom of the overview."""
        least, share, most = _STRIP
        bottom = self.height - self._footer()
        return bottom - min(max(share * self.height, least), most), bottom

    def _frame(self, kind: Kind) -> Frame:
        bottom = self.height - self._footer() - self.style.label
        if self.is_grid:
            bottom = self._strip()[0]
        captioned = bool(self.caption)
        return frame_for(self.expansion, self.style, kind, self.width, bottom, captioned)

    def _lane(self) -> Item:
        x, y, wide, high = self.layout.lane
        theme, style = self.theme, self.style
        return Group(
            (
                Rect(x - 10, y, wide + 20, high, fill=theme.lane, radius=10),
                Text(x + wide / 2, y - 5, "residual stream", style.small, theme.muted, "middle"),
            ),
            id="residual stream",
        )

    def _band(self, band: Band, opacity: float) -> Group:
        colour = self.theme.remainder if isinstance(band.what, str) else self.theme.sign(band.value)
        if self.effects is not None:
            colour = self.effects.colour(band.what, self.theme)
        # In a grid a path may fall steeply: as a filled ribbon it would all but vanish there.
        fat = 9.0 if self.is_grid and isinstance(band.what, Path) else FAT
        shape = band if self.effects is None else self.effects.shaped(band)
        curve: Curve = band_curve(shape, colour, opacity, fat)
        if self.is_grid and curve.dash and band.thickness < HAIR:
            curve = replace(curve, dash=_HAIR_DASH)
        if not self.titled and isinstance(band.what, Path):
            return Group((curve,), data=band.what)
        return Group((curve,), id=str(band.what), title=self._title(band), data=band.what)

    def _opacity(self, band: Band) -> float:
        if isinstance(band.what, str):
            return 0.55
        if not self.is_grid:
            faint = min(1.0, max(0.35, band.thickness / HAIR))
            return (0.5 + 0.32 * min(1.0, band.thickness / 24)) * faint
        faint = min(1.0, max(0.15, band.thickness / HAIR))
        return (0.3 + 0.55 * min(1.0, band.thickness / 4)) * faint

    def _picked_opacity(self, band: Band) -> float:
        """In a grid a head may carry most of the paths: fine ones stay fine there."""
        strong = min(1.0, band.thickness / 2) if self.is_grid else 1.0
        return 0.4 + (_PICKED - 0.4) * strong

    def _title(self, band: Band) -> str:
        match band.what:
            case "b_U":
                name = "unembedding bias b_U"
            case "remainder":
                name = f"remainder, {self.layout.hidden:,} paths"
            case path:
                name = str(path)
        title = _title(self.expansion, name, band.value)
        if self.effects is None or not isinstance(band.what, Path):
            return title
        return f"{title}, {self.effects.words(band.what)}"

    def _origin(self) -> str:
        """The model, what is held, and the prompt up to dest; a long one loses its start."""
        prompt, dest = self.expansion.recording.prompt, self.expansion.target.dest
        named, style = expansion_name(self.expansion), self.style
        held = f"{HELD_FIXED}, {named}" if named else HELD_FIXED
        words = f"{prompt.model}, {held}, prompt up to dest {dest}:  "
        left = self.width - 4 * style.label - text_width(words, style.label)
        kept: list[str] = []
        for label in reversed(prompt.labels[: dest + 1]):
            left -= text_width(f"{label} ", style.label)
            if left < 0:
                kept[-1:] = ["…"]
                break
            kept.append(label)
        return words + " ".join(reversed(kept))


def _picked(band: Band, selection: Selection) -> bool:
    return isinstance(band.what, Path) and selection.covers(band.what)
