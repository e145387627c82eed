"""
The simulated target's eyes: they read the bytes of a picture, and only letters that were drawn with its own font.

Nothing else about a page is known to it; of a photograph or a scan it sees nothing.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from importlib import resources
from math import gcd

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_PLAIN_GREY = (8, 0, 0, 0, 0)  # one byte a pixel, no palette, the usual compression, not interlaced
_MOST_PIXELS = 1 << 22  # four million, a page of A4 at 200 dots an inch: a small PNG may promise gigabytes

# Made pages are drawn with this sheet, too: one column and one row between letters. A block stands for a word that
# nobody can read.
WIDTH, HEIGHT = 5, 7


def _glyphs(sheet: str) -> Mapping[str, str]:
    """Each letter's pixels row by row, `#` for a dark one."""
    lines = sheet.splitlines()
    found = {" ": "." * WIDTH * HEIGHT}
    for top in range(0, len(lines), HEIGHT + 1):
        for left in range(0, len(lines[top]), WIDTH + 1):
            rows = lines[top + 1 : top + 1 + HEIGHT]
            found[lines[top][left]] = "".join(row[left : left + WIDTH] for row in rows)
    return found


GLYPHS = _glyphs(resources.files(__package__).joinpath("letters.txt").read_text(encoding="ascii"))
_LETTERS = {pixels: letter for letter, pixels in GLYPHS.items()}
_DARK = bytes(ord("#" if grey < 128 else ".") for grey in range(256))


@lru_cache(maxsize=256)
def text_on(picture: bytes) -> str:
    """The lines that are written on a page; empty for a picture that it cannot read."""
    try:
        rows = _pixels(picture)
    except (ValueError, struct.error, zlib.error):
        return ""
    scale = _scale(rows)
    return "\n".join(_lines([row[::scale] for row in rows[::scale]])) if scale else ""


def _pixels(picture: bytes) -> list[str]:
    """The rows of a grey PNG, `#` for dark pixels; raises ValueError and its like for any other picture."""
    if not picture.startswith(_SIGNATURE):
        raise ValueError("not a PNG")
    parts = [*_chunks(picture)]
    width, height, *form = struct.unpack(">IIBBBBB", next(data for kind, data in parts if kind == b"IHDR"))
    if tuple(form) != _PLAIN_GREY or not 0 < width * height <= _MOST_PIXELS:
        raise ValueError("not a plain grey picture")
    whole = (width + 1) * height
    # No more than its header promises: a small file may unpack to gigabytes.
    raw = zlib.decompressobj().decompress(b"".join(data for kind, data in parts if kind == b"IDAT"), whole)
    # The first byte of a row names its filter; 0 is none.
    if len(raw) != whole or any(raw[:: width + 1]):
        raise ValueError("rows that are missing, or filtered")
    return [raw[at + 1 : at + 1 + width].translate(_DARK).decode() for at in range(0, whole, width + 1)]


def _chunks(picture: bytes) -> Iterator[tuple[bytes, bytes]]:
    place = len(_SIGNATURE)
    while place < len(picture):
        (length,) = struct.unpack_from(">I", picture, place)
        yield picture[place + 4 : place + 8], picture[place + 8 : place + 8 + length]
        # Besides its data a chunk has a length, a kind and a checksum of four bytes each.
        place += 12 + length


def _scale(rows: Sequence[str]) -> int:
    """How many pixels one of the font's is wide: all edges lie at multiples of it; 0 for an empty page."""
    edges = {place for row in set(rows) for place in range(1, len(row)) if row[place] != row[place - 1]}
    return gcd(*edges)


def _lines(rows: Sequence[str]) -> Iterator[str]:
    """What is written in each line of a page of one-pixel strokes; a sign that it does not know is a `?`."""
    for top in range(1, len(rows) - HEIGHT + 1, HEIGHT + 1):
        line = rows[top : top + HEIGHT]
        cells = ("".join(row[left : left + WIDTH] for row in line) for left in range(1, len(rows[0]), WIDTH + 1))
        yield "".join(_LETTERS.get(cell, "?") for cell in cells).rstrip()
