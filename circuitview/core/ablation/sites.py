"""What is taken away in one run: heads, MLPs, end-to-end paths, or all paths of one order.

Pure values, nothing heavy: a site is the identity of one row of a result.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

from circuitview.core.config import ModelConfig
from circuitview.core.names import POSITION, CircuitviewError, Head, Mlp, is_number
from circuitview.core.path import Path

_TOGETHER = " + "


@dataclass(frozen=True, slots=True)
class Site:
    """What one run replaces, all at once; prints as "1.4", "mlp 0", "token > 1.4", "order 1", or
    several of these joined by " + ".

    Attributes:
        heads: whose output is replaced, with all that runs through them.
        mlps: layers whose MLP's output is replaced.
        paths: end-to-end paths: only this source through exactly this chain.
        orders: numbers of heads: all paths with exactly so many.
    """

    heads: tuple[Head, ...] = ()
    mlps: tuple[int, ...] = ()
    paths: tuple[Path, ...] = ()
    orders: tuple[int, ...] = ()

    def __str__(self) -> str:
        return _TOGETHER.join(
            [
                *map(str, self.heads),
                *(str(Mlp(layer)) for layer in self.mlps),
                *map(str, self.paths),
                *(f"order {order}" for order in self.orders),
            ]
        )

    @property
    def end_to_end(self) -> bool:
        """Whether it takes something out of the final stream alone, so that no later layer reacts
        in any run."""
        return not self.heads and not self.mlps

    @classmethod
    def parse(cls, text: str) -> "Site":
        """The site that `text` names.

        Raises:
            CircuitviewError: where it names none.
        """
        heads: list[Head] = []
        mlps: list[int] = []
        paths: list[Path] = []
        orders: list[int] = []
        for part in text.split("+"):
            match part.split():
                case ["order", order] if is_number(order):
                    orders.append(int(order))
                case ["mlp", layer] if is_number(layer) and ">" not in part:
                    mlps.append(int(layer))
                case ["direct"]:
                    paths.append(Path.parse("token"))
                case [one] if ">" not in one and (one[:1].isdigit() or one[:1] in "lL"):
                    heads.append(Head.parse(one))
                case _:
                    paths.append(_path(part))
        named = [*heads, *(Mlp(layer) for layer in mlps), *paths, *orders]
        if len(set(named)) < len(named):
            raise CircuitviewError(f"{text!r} names the same thing twice; name each once")
        return cls(tuple(sorted(heads)), tuple(sorted(mlps)), tuple(paths), tuple(sorted(orders)))

    def require_in(self, config: ModelConfig) -> None:
        """Pass only what a model of `config` has.

        Raises:
            CircuitviewError: naming what it lacks.
        """
        heads = [*self.heads, *(head for path in self.paths for head in path.heads)]
        for head in heads:
            if head.layer >= config.n_layers or head.head >= config.n_heads:
                raise CircuitviewError(
                    f"there is no head {head}: the model has layers 0 to {config.n_layers - 1} "
                    f"with heads 0 to {config.n_heads - 1} each"
                )
        sources = [path.source for path in self.paths]
        through = [s.layer for path in self.paths for s in path.steps if isinstance(s, Mlp)]
        mlps = [*self.mlps, *through, *(s.layer for s in sources if s.kind in ("mlp", "mlp bias"))]
        if any(layer >= config.n_layers for layer in (*mlps, *(s.layer for s in sources))):
            raise CircuitviewError(f"{self}: the model has layers 0 to {config.n_layers - 1}")
        if config.attn_only and mlps:
            raise CircuitviewError(f"{self}: the model has no MLPs; choose heads or paths")
        if POSITION in sources and not config.has_positions:
            raise CircuitviewError(
                f"{self}: positions write nothing to this model's stream; choose another source"
            )
        if any(order > config.n_layers for order in self.orders):
            raise CircuitviewError(f"{self}: paths have at most {config.n_layers} heads")


def _path(text: str) -> Path:
    try:
        return Path.parse(text.strip())
    except CircuitviewError as error:
        if re.match(r"\s*(token|position|bias|mlp)\b.*>", text):
            raise CircuitviewError(f"{error}; write one like token > 0.3 > 1.4") from None
        if re.match(r"\s*[lL]?\d.*>", text):
            raise CircuitviewError(
                f"{text.strip()!r} does not say where the path starts: write token > 0.3 > 1.4"
            ) from None
        raise CircuitviewError(
            f"{text.strip()!r} names nothing to take away: write a head (1.4), mlp 0, order 1, "
            "direct, or a path (token > 0.3 > 1.4); join what goes together with +"
        ) from None


def parse_each(texts: Iterable[str]) -> tuple[Site, ...]:
    """The sites that `texts` name, one row each.

    Raises:
        CircuitviewError: where one names none, or two name the same.
    """
    found: dict[Site, None] = {}
    for text in texts:
        site = Site.parse(text)
        if site in found:
            raise CircuitviewError(f"{site} is named twice; each row is of another site")
        found[site] = None
    return tuple(found)


def each_head(config: ModelConfig) -> tuple[Site, ...]:
    """Every head alone, layer by layer."""
    return tuple(Site(heads=(head,)) for head in all_heads(config))


def each_pair(heads: Iterable[Head]) -> tuple[Site, ...]:
    """Each of `heads` alone, then every two of them together."""
    ordered = sorted(set(heads))
    alone = [Site(heads=(head,)) for head in ordered]
    return (*alone, *(Site(heads=pair) for pair in combinations(ordered, 2)))


def each_mlp(config: ModelConfig) -> tuple[Site, ...]:
    """Every layer's MLP alone."""
    return tuple(Site(mlps=(layer,)) for layer in range(0 if config.attn_only else config.n_layers))


def each_order(config: ModelConfig) -> tuple[Site, ...]:
    """All paths of each order alone."""
    return tuple(Site(orders=(order,)) for order in range(config.n_layers + 1))


def all_heads(config: ModelConfig) -> tuple[Head, ...]:
    """The heads of a model, layer by layer."""
    return tuple(
        Head(layer, head) for layer in range(config.n_layers) for head in range(config.n_heads)
    )
