"""Rasters for files: sharp cells, and a PNG encoder that needs no picture library.

Viewers of SVG and PDF blur an image that they enlarge, each in its own way. So an image whose
pixels are cells is enlarged here, by whole pixels, before it goes into a file.
"""

import math
import struct
import zlib

import numpy as np
import numpy.typing as npt

from circuitview.core.names import CircuitviewError
from circuitview.figures.figure import Image

_LARGEST_SIDE = 16_384  # pixels of a PNG
_MOST_PIXELS = 2048  # on a side, after enlarging


def require_raster(width: float, height: float, scale: float) -> tuple[int, int]:
    """The pixels of a picture as a PNG, across and down.

    Args:
        width, height: picture pixels.
        scale: dots for each.

    Raises:
        CircuitviewError: where it would be too large.
    """
    wide, high = math.ceil(width * scale), math.ceil(height * scale)
    if not (0 < wide <= _LARGEST_SIDE and 0 < high <= _LARGEST_SIDE):
        raise CircuitviewError(
            f"a PNG of {wide} x {high} pixels is not possible (1 to {_LARGEST_SIDE} a side); "
            "choose another scale, or SVG or PDF"
        )
    return wide, high


def crisp(image: Image, density: float = 2.0) -> npt.NDArray[np.uint8]:
    """The raster [h, w, 4] with each pixel repeated until there are `density` a picture pixel."""
    if image.smooth:
        return image.rgba
    high, wide, _ = image.rgba.shape
    times_down = _times(high, image.height * density)
    times_across = _times(wide, image.width * density)
    return image.rgba.repeat(times_down, axis=0).repeat(times_across, axis=1)


def _times(pixels: int, wanted: float) -> int:
    return max(1, min(math.ceil(wanted / pixels), _MOST_PIXELS // pixels))


def png(rgba: npt.NDArray[np.uint8]) -> bytes:
    """The raster [h, w, 4] as a PNG file."""
    high, wide, _ = rgba.shape
    lines = np.zeros((high, 1 + 4 * wide), dtype=np.uint8)  # a line starts with its filter, 0
    lines[:, 1:] = np.ascontiguousarray(rgba).reshape(high, 4 * wide)
    header = struct.pack(">IIBBBBB", wide, high, 8, 6, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        [
            _chunk(b"IHDR", header),
            _chunk(b"IDAT", zlib.compress(lines.tobytes(), 6)),
            _chunk(b"IEND", b""),
        ]
    )


def _chunk(kind: bytes, content: bytes) -> bytes:
    check = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check)
