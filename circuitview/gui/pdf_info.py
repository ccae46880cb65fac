"""Adds what QPdfWriter can't say to a PDF's document information: where the numbers come from.

A PDF may be extended at its end: a newer version of one object, a table with its place, and a
trailer that points to the table before. Source: ISO 32000-1, 7.5.6, incremental updates.
"""

import re

from circuitview.core.names import CircuitviewError

_TRAILER = re.compile(rb"trailer\s*<<(.*?)>>\s*startxref\s+(\d+)\s+%%EOF\s*$", re.DOTALL)
_DATE = re.compile(rb"/CreationDate\s*\((D:[^)]*)\)")


def with_info(content: bytes, title: str, subject: str, creator: str) -> bytes:
    """The PDF `content` with these three in its document information.

    Raises:
        CircuitviewError: where `content` does not end as Qt's PDFs do.
    """
    trailer = _TRAILER.search(content)
    info = trailer and re.search(rb"/Info (\d+) (\d+) R", trailer[1])
    if not trailer or not info:
        raise CircuitviewError("this version of Qt writes PDFs of another kind; export SVG instead")
    date = _DATE.search(content)
    entries = [
        b"/Title " + _text(title),
        b"/Subject " + _text(subject),
        b"/Creator " + _text(creator),
        b"/CreationDate (" + date[1] + b")" if date else b"",
    ]
    body = content if content.endswith(b"\n") else content + b"\n"
    number = info[1] + b" " + info[2]
    added = number + b" obj\n<<\n" + b"\n".join(entries) + b"\n>>\nendobj\n"
    table = len(body) + len(added)
    return (
        body
        + added
        + b"".join(
            [
                b"xref\n" + info[1] + b" 1\n",
                b"%010d %05d n \n" % (len(body), int(info[2])),
                b"trailer\n<<" + trailer[1] + b"/Prev " + trailer[2] + b"\n>>\n",
                b"startxref\n%d\n%%%%EOF\n" % table,
            ]
        )
    )


def _text(text: str) -> bytes:
    """A PDF text string: UTF-16 with its mark, in hex, so that nothing needs escaping."""
    return b"<FEFF" + text.encode("utf-16-be", errors="replace").hex().upper().encode() + b">"
