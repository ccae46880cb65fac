"""Make the two bundled fonts out of Inter: run once, when Inter is renewed.

    python resources/fonts/make_fonts.py FOLDER_WITH_INTER_OTF

What is changed, and why: figures are tabular and "l" has its tail (told apart from "I") by
themselves, not through OpenType features, because a PDF can name only those characters that the
font maps to a glyph directly. Contextual alternates go for the same reason. ⟨ ⟩ ▸ ▾ ␍, which Inter
lacks, are added, and so are the four unseen marks that isolate right-to-left words.
The family has a name of its own, so that an installed Inter is never taken in its place.
"""

import sys
from pathlib import Path

from fontTools.pens.boundsPen import BoundsPen
from fontTools.pens.recordingPen import RecordingPen
from fontTools.pens.t2CharStringPen import T2CharStringPen
from fontTools.pens.transformPen import TransformPen
from fontTools.ttLib import TTFont

FAMILY = "Circuitview Sans"
HERE = Path(__file__).resolve().parent
BAKED = ("tnum", "cv05")
DROPPED = ("tnum", "cv05", "calt", "aalt", "salt")
STYLES = {"Regular": ("Regular", 400), "SemiBold": ("SemiBold", 600)}


def main(folder: Path) -> None:
    for style, (shown, weight) in STYLES.items():
        font = TTFont(folder / f"Inter-{style}.otf")
        bake(font)
        add_glyphs(font)
        rename(font, shown, weight)
        font.save(HERE / f"CircuitviewSans-{style}.otf")


def bake(font: TTFont) -> None:
    """Let characters map to their alternates directly, and take the features away."""
    table = font["GSUB"].table
    chosen: dict[str, str] = {}
    for record in table.FeatureList.FeatureRecord:
        if record.FeatureTag in BAKED:
            for index in record.Feature.LookupListIndex:
                for subtable in table.LookupList.Lookup[index].SubTable:
                    subtable = getattr(subtable, "ExtSubTable", subtable)
                    chosen.update(getattr(subtable, "mapping", {}))
        if record.FeatureTag in DROPPED:
            record.Feature.LookupListIndex = []
            record.Feature.LookupCount = 0
    # In one weight a digit is three units off.
    advance = font["hmtx"].metrics
    digits = [chosen[font.getBestCmap()[ord(digit)]] for digit in "0123456789"]
    widest = max(advance[digit][0] for digit in digits)
    advance.update({digit: (widest, advance[digit][1]) for digit in digits})
    for cmap in font["cmap"].tables:
        if not cmap.isUnicode():
            continue
        for code, glyph in list(cmap.cmap.items()):
            if 0xE000 <= code < 0xF900:  # private names of alternates, which a PDF would pick
                del cmap.cmap[code]
            else:
                cmap.cmap[code] = chosen.get(glyph, glyph)


def add_glyphs(font: TTFont) -> None:
    """Draw what Inter lacks, in its own stroke width."""
    shapes = font.getGlyphSet()
    pen = BoundsPen(shapes)
    shapes["uni007C"].draw(pen)
    left, _, right, _ = pen.bounds
    stroke = right - left
    cap, middle = 2048.0, 1024.0
    top, bottom, deep = cap + 180, -180.0, 600.0
    edge, slant = 230.0, stroke * 1.08
    angle = [
        (edge, middle),
        (edge + deep - slant, top),
        (edge + deep, top),
        (edge + slant, middle),
        (edge + deep, bottom),
        (edge + deep - slant, bottom),
    ]
    wide = 2 * edge + deep
    add(font, 0x27E8, "uni27E8", wide, polygon(angle))
    add(font, 0x27E9, "uni27E9", wide, polygon([(wide - x, y) for x, y in reversed(angle)]))
    side, half = 1000.0, 620.0
    right_pointing = [(300, middle + half), (300 + side, middle), (300, middle - half)]
    add(font, 0x25B8, "uni25B8", side + 600, polygon(right_pointing))
    lift = middle + side / 2
    downward = [(250, lift), (250 + 2 * half, lift), (250 + half, lift - side)]
    add(font, 0x25BE, "uni25BE", 2 * half + 500, polygon(downward))
    control = RecordingPen()
    shapes["uni0043"].draw(TransformPen(control, (0.55, 0, 0, 0.55, 60, 1000)))
    shapes["uni0052"].draw(TransformPen(control, (0.55, 0, 0, 0.55, 820, -80)))
    add(font, 0x240D, "uni240D", 1980, control)
    for code in range(0x2066, 0x206A):  # what isolates right-to-left words: nothing to see
        add(font, code, f"uni{code:04X}", 0, RecordingPen())


def polygon(points: list[tuple[float, float]]) -> RecordingPen:
    pen = RecordingPen()
    pen.moveTo(points[0])
    for point in points[1:]:
        pen.lineTo(point)
    pen.closePath()
    return pen


def add(font: TTFont, code: int, name: str, advance: float, shape: RecordingPen) -> None:
    top = font["CFF "].cff.topDictIndex[0]
    strings = top.CharStrings
    some = strings["uni007C"]
    pen = T2CharStringPen(round(advance), None)
    shape.replay(pen)
    new = pen.getCharString(private=some.private, globalSubrs=some.globalSubrs)
    strings.charStringsIndex.append(new)
    strings.charStrings[name] = len(strings.charStringsIndex) - 1
    if name not in top.charset:
        top.charset.append(name)
    font.setGlyphOrder(top.charset)
    bounds = BoundsPen(None)
    shape.replay(bounds)
    left = bounds.bounds[0] if bounds.bounds else 0
    font["hmtx"].metrics[name] = (round(advance), round(left))
    for cmap in font["cmap"].tables:
        if cmap.isUnicode():
            cmap.cmap[code] = name


def rename(font: TTFont, style: str, weight: int) -> None:
    flat = f"{FAMILY.replace(' ', '')}-{style}"
    regular = style == "Regular"
    wanted = {
        1: FAMILY if regular else f"{FAMILY} {style}",
        2: "Regular",
        3: f"{flat}; derived from Inter",
        4: f"{FAMILY} {style}",
        6: flat,
        7: None,
        10: "Inter with tabular figures and a tailed l as defaults, and nine more glyphs.",
        16: None if regular else FAMILY,
        17: None if regular else style,
    }
    names = font["name"]
    for place, text in wanted.items():
        names.removeNames(nameID=place)
        if text is not None:
            names.setName(text, place, 3, 1, 0x409)
    font["OS/2"].usWeightClass = weight
    cff = font["CFF "].cff
    cff.fontNames[0] = flat
    cff.topDictIndex[0].FamilyName = FAMILY
    cff.topDictIndex[0].FullName = f"{FAMILY} {style}"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
