"""Small page images with drawn letters, made of nothing but zlib and struct."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence

from skillopt_es.adapters.models.simulated.sight import GLYPHS, HEIGHT, WIDTH

JPEG = b"\xff\xd8\xff\xe0\x00\x10JFIF\x00" + b"made for a test" + b"\xff\xd9"


def page(lines: Sequence[str], *, scale: int = 2) -> bytes:
    """A PNG in black on white, with these letters of the simulated target's font, a `#` for a word that is none."""
    columns = max(len(line) for line in lines) * (WIDTH + 1) + 1
    rows = [[0] * columns]
    for line in lines:
        for number in range(HEIGHT):
            row = [0]
            for letter in line:
                row += [int(dot == "#") for dot in GLYPHS[letter][number * WIDTH : (number + 1) * WIDTH]] + [0]
            rows.append(row + [0] * (columns - len(row)))
        rows.append([0] * columns)
    grey = [bytes(0 if bit else 255 for bit in row for _ in range(scale)) for row in rows for _ in range(scale)]
    head = struct.pack(">IIBBBBB", columns * scale, len(grey), 8, 0, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\x00" + row for row in grey), 9)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", head) + _chunk(b"IDAT", pixels) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
