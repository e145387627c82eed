"""Small page images with drawn figures, made of nothing but zlib and struct."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence

_PIXELS = {
    "0": "111101101101111", "1": "010110010010111", "2": "111001111100111", "3": "111001111001111",
    "4": "101101111001001", "5": "111100111001111", "6": "111100111101111", "7": "111001010010010",
    "8": "111101111101111", "9": "111101111001111", "/": "001001010100100", ".": "000000000000010",
    ",": "000000000010100", "-": "000000111000000", "#": "111111111111111", " ": "000000000000000",
}  # fmt: skip
_WIDTH, _HEIGHT = 3, 5
JPEG = b"\xff\xd8\xff\xe0\x00\x10JFIF\x00" + b"made for a test" + b"\xff\xd9"


def page(lines: Sequence[str], *, scale: int = 4) -> bytes:
    """A PNG in black on white; a line may hold figures, `/.,-`, spaces, and `#`, a block in the place of a letter."""
    columns = max(len(line) for line in lines) * (_WIDTH + 1) + 1
    rows = [[0] * columns]
    for line in lines:
        for number in range(_HEIGHT):
            row = [0]
            for letter in line:
                row += [int(bit) for bit in _PIXELS[letter][number * _WIDTH : (number + 1) * _WIDTH]] + [0]
            rows.append(row + [0] * (columns - len(row)))
        rows.append([0] * columns)
    grey = [bytes(0 if bit else 255 for bit in row for _ in range(scale)) for row in rows for _ in range(scale)]
    head = struct.pack(">IIBBBBB", columns * scale, len(grey), 8, 0, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\x00" + row for row in grey), 9)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", head) + _chunk(b"IDAT", pixels) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def lines_of(png: bytes, *, scale: int = 4) -> list[str]:
    """What is written on a page of ours; raises KeyError or ValueError when a pixel is not as it was drawn."""
    start = png.index(b"IDAT")
    (length,) = struct.unpack(">I", png[start - 4 : start])
    width, height = struct.unpack(">II", png[16:24])
    raw = zlib.decompress(png[start + 4 : start + 4 + length])
    rows = [raw[at * scale * (width + 1) + 1 :][:width:scale] for at in range(height // scale)]
    letters = {pixels: letter for letter, pixels in _PIXELS.items()}
    lines = []
    for top in range(1, len(rows) - 1, _HEIGHT + 1):
        columns = range(1, width // scale, _WIDTH + 1)
        cells = (
            "".join("01"[pixel == 0] for row in rows[top : top + _HEIGHT] for pixel in row[left : left + _WIDTH])
            for left in columns
        )
        lines.append("".join(letters[cell] for cell in cells).rstrip())
    return lines
