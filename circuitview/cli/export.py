"""`circuitview export`: one figure as SVG, PDF or PNG, without a screen."""

import math
from collections.abc import Callable
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from circuitview.cli.figure_file import (
    FORMATS,
    named_for,
    parse_size,
    require_place,
    require_scale,
    write,
)
from circuitview.cli.opening import Opening, parse_config
from circuitview.cli.options import (
    BosOption,
    ConfigOption,
    DestOption,
    DeviceOption,
    DtypeOption,
    EvenIfLargeOption,
    ListOption,
    ModelArgument,
    PromptBOption,
    PromptOption,
    TargetOption,
    ThroughMlpsOption,
    TokenizerOption,
    TopOption,
    VersusOption,
)
from circuitview.cli.question import Question
from circuitview.core.names import AttentionMode, CircuitviewError, Head, OVSense

if TYPE_CHECKING:  # torch is loaded when the question is put
    from circuitview.core.expansion import Expansion
    from circuitview.core.model import Model
    from circuitview.figures.figure import Figure
    from circuitview.figures.theme import Theme

FigureKind = Literal["diagram", "attention", "ov", "table"]


def export(
    model: ModelArgument,
    prompt: PromptOption,
    figure: Annotated[
        FigureKind,
        typer.Option(
            "--figure",
            help="All paths; a head's attention; a head by source token; the paths as a table.",
        ),
    ],
    out: Annotated[
        FilePath,
        typer.Option(
            "--out",
            metavar="FILE",
            help="FILE.svg, FILE.pdf or FILE.png; without an ending --format gives it one.",
        ),
    ],
    target: TargetOption = None,
    versus: VersusOption = None,
    prompt_b: PromptBOption = None,
    dest: DestOption = -1,
    bos: BosOption = None,
    top: TopOption = 50,
    by_source: Annotated[
        bool,
        typer.Option("--by-source", help="For the table: say where each path mostly starts."),
    ] = False,
    through_mlps: ThroughMlpsOption = False,
    listed: ListOption = None,
    dtype: DtypeOption = "float32",
    device: DeviceOption = "cpu",
    config: ConfigOption = None,
    tokenizer: TokenizerOption = None,
    even_if_large: EvenIfLargeOption = False,
    form: Annotated[
        str | None,
        typer.Option(
            "--format", metavar="|".join(FORMATS), help="Of the file. Default: as FILE ends."
        ),
    ] = None,
    head: Annotated[
        str | None,
        typer.Option(
            "--head",
            metavar="HEAD",
            help="For attention and ov: 1.4, or a virtual head like '0.3>1.4'. Default: the head "
            "whose last hop carries most.",
        ),
    ] = None,
    mode: Annotated[
        AttentionMode,
        typer.Option("--mode", help="For attention: what the cells hold."),
    ] = "pattern",
    sense: Annotated[
        OVSense,
        typer.Option(
            "--sense",
            help="For ov: everything that the head carries, or the source's own embedding alone.",
        ),
    ] = "everything",
    floor: Annotated[
        float,
        typer.Option(
            "--floor",
            metavar="X",
            min=0,
            help="For the diagram: draw paths below X logits as one grey remainder.",
        ),
    ] = 0.0,
    layer: Annotated[
        int | None,
        typer.Option(
            "--layer",
            metavar="N",
            help="For the diagram of a deep model: layer N alone, with what enters and leaves it.",
        ),
    ] = None,
    size: Annotated[
        str, typer.Option("--size", metavar="WxH", help="Of the figure, in pixels of 1/96 inch.")
    ] = "1280x720",
    scale: Annotated[
        float,
        typer.Option("--scale", help="For PNG: dots a pixel, 0.1 to 8; 2 for dense screens."),
    ] = 1.0,
    theme: Annotated[Literal["light", "dark"], typer.Option("--theme", help="Colours.")] = "light",
    transparent: Annotated[
        bool, typer.Option("--transparent", help="Leave the background out.")
    ] = False,
) -> None:
    """Draw one figure of a run into a file.

    The file carries where its numbers come from: model, tokens, target, precision, sum and error.
    """
    out = named_for(out, form)
    if not math.isfinite(floor):
        raise CircuitviewError(f"floor {floor} is no number of logits; name one, like 0.1")
    width, height = parse_size(size)
    require_scale(scale)
    require_place(out)
    heads = None if head is None else tuple(Head.parse(part) for part in head.split(">"))
    if prompt_b is not None and figure == "ov":
        raise CircuitviewError(
            "--prompt-b goes with the diagram, attention and the table: weight × value is of one "
            "prompt, so give --figure ov without it"
        )
    opening = Opening(model, device, parse_config(config), tokenizer, even_if_large)
    question = Question(
        opening, prompt, target, versus, dest, bos, dtype, through_mlps, listed, prompt_b
    )
    opened, expansion = question.answer()
    from circuitview.core.ov import chosen_chain
    from circuitview.figures.diagram import require_layer
    from circuitview.figures.theme import theme as theme_called

    if heads is not None:  # a slip is told for figures of all paths too, where it changes nothing
        chosen_chain(expansion.recording, expansion.target, heads)
    if layer is not None:
        require_layer(opened.name, opened.config, layer)

    drawing = _Drawing(opened, expansion, theme_called(theme), width, height)
    draw: dict[FigureKind, Callable[[], Figure]] = {
        "diagram": lambda: drawing.diagram(floor, layer),
        "attention": lambda: drawing.attention(heads, mode),
        "ov": lambda: drawing.ov(heads, sense),
        "table": lambda: drawing.table(top, by_source),
    }
    write(draw[figure](), out, scale, transparent)


class _Drawing:
    """The figures of one expansion at one size."""

    def __init__(
        self, model: "Model", expansion: "Expansion", theme: "Theme", width: int, height: int
    ) -> None:
        self.model = model
        self.expansion = expansion
        self.theme = theme
        self.width, self.height = float(width), float(height)

    def diagram(self, floor: float, layer: int | None) -> "Figure":
        from circuitview.figures.diagram import diagram_figure

        return diagram_figure(
            self.expansion,
            theme=self.theme,
            width=self.width,
            height=self.height,
            floor=floor,
            captioned=True,
            layer=layer,
        )

    def attention(self, heads: tuple[Head, ...] | None, mode: AttentionMode) -> "Figure":
        from circuitview.core.difference import attention_of
        from circuitview.figures.compose import attention_figure

        chain = self._heads(heads)
        return attention_figure(
            self.expansion,
            chain,
            mode,
            theme=self.theme,
            width=self.width,
            height=self.height,
            values=attention_of(self.expansion, chain, mode, self.model.scores),
        )

    def ov(self, heads: tuple[Head, ...] | None, sense: OVSense) -> "Figure":
        from circuitview.core.ov import ov_breakdown
        from circuitview.figures.compose import ov_figure

        expansion = self.expansion
        breakdown = ov_breakdown(expansion.recording, expansion.target, self._heads(heads), sense)
        return ov_figure(
            expansion,
            breakdown,
            self.model.tokenizer.labels,
            theme=self.theme,
            width=self.width,
            height=self.height,
        )

    def table(self, top: int, by_source: bool) -> "Figure":
        from circuitview.figures.compose import paths_figure

        return paths_figure(
            self.expansion,
            top,
            theme=self.theme,
            width=self.width,
            height=self.height,
            by_source=by_source,
        )

    def _heads(self, heads: tuple[Head, ...] | None) -> tuple[Head, ...]:
        from circuitview.core.difference import chain_of

        return chain_of(self.expansion, heads)
