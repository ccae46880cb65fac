"""Text made fit for drawing: whatever a token holds, one visible line comes out.

Two dangers are met here, for the screen and for files alike: characters that no XML file may hold
or that would break or reverse a line, and right-to-left words that would drag the number beside
them to the wrong side.
"""

import unicodedata

_ISOLATE, _END = "\u2068", "\u2069"  # first strong isolate, pop directional isolate
_RIGHT_TO_LEFT = frozenset(("R", "AL"))
# Zero-width joiners make up emoji and Indic letters; every other format character is shown as code.
_KEPT = frozenset("\u200c\u200d\u00ad")
_ESCAPED = frozenset(("Cc", "Cf", "Co", "Cs", "Zl", "Zp"))


def drawable(text: str) -> str:
    """`text` on one line, control characters as codes, right-to-left words isolated."""
    if text.isascii() and text.isprintable():
        return text
    return _isolated("".join(_shown(character) for character in text))


def valid_xml(text: str) -> str:
    """`text` of several lines without what an XML file may not hold: those as codes."""
    return "".join(
        character if character in "\n\t" else _shown(character, only_invalid=True)
        for character in text.replace("\r\n", "\n")
    )


def _shown(character: str, only_invalid: bool = False) -> str:
    code = ord(character)
    invalid = (
        code < 0x20 or 0x7F <= code < 0xA0 or 0xD800 <= code < 0xE000 or code & 0xFFFE == 0xFFFE
    )
    if invalid:
        return _code(code)
    if only_invalid or character in _KEPT or unicodedata.category(character) not in _ESCAPED:
        return character
    return _code(code)


def _code(code: int) -> str:
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _isolated(text: str) -> str:
    """`text` with each run that holds right-to-left letters between isolating marks."""
    if not any(unicodedata.bidirectional(character) in _RIGHT_TO_LEFT for character in text):
        return text
    pieces: list[str] = []
    run: list[str] = []
    for character in text:
        kind = unicodedata.bidirectional(character)
        # Marks and joiners stay with the letter that they follow.
        if kind in _RIGHT_TO_LEFT or (run and kind in ("NSM", "BN")):
            run.append(character)
            continue
        pieces += _closed(run)
        run = []
        pieces.append(character)
    return "".join(pieces + _closed(run))


def _closed(run: list[str]) -> list[str]:
    return [_ISOLATE, *run, _END] if run else []
