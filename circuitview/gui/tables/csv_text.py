"""Rows as text for files and the clipboard, numbers at full precision."""

import csv
import io
from collections.abc import Iterable, Sequence


def csv_text(header: Sequence[str], rows: Iterable[Sequence[object]], between: str = ",") -> str:
    """The rows under their header, cells parted by `between`."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=between, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)  # a float is written by repr: every digit that it has
    return text.getvalue()
