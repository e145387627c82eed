"""Unpacking a compressed body as it comes, never beyond what its reader takes."""

from __future__ import annotations

import zlib

# With 32 added, zlib finds out itself whether it reads gzip or zlib; a deflate without any header is the third way.
_ANY_HEADER = zlib.MAX_WBITS | 32


class TooLongError(Exception):
    """The body is longer than its reader takes, packed or unpacked."""


class UnreadableError(Exception):
    """The body cannot be unpacked."""


class Body:
    """A body in pieces; raises TooLongError as soon as it is too long, UnreadableError where it cannot be unpacked."""

    def __init__(self, encoding: str, most: int) -> None:
        packed = encoding.strip().lower() in {"gzip", "x-gzip", "deflate"}
        self._inflate = zlib.decompressobj(_ANY_HEADER) if packed else None
        self._may_lack_header = encoding.strip().lower() == "deflate"
        self._most = most
        self._came = 0
        self._whole = bytearray()

    def add(self, piece: bytes) -> None:
        """Some more of it."""
        self._came += len(piece)
        if self._came > self._most:  # what unpacks to nothing would have no end otherwise
            raise TooLongError
        if self._inflate is None:
            self._take(piece)
            return
        while piece:
            piece = self._unpacked(self._inflate, piece)

    @property
    def whole(self) -> bytes:
        """All of it."""
        if self._inflate is not None and self._whole and not self._inflate.eof:
            raise UnreadableError("the compressed body ends before its end")
        return bytes(self._whole)

    def _unpacked(self, inflate: zlib._Decompress, piece: bytes) -> bytes:
        """Takes what a piece unpacks to, up to the limit; what is left of the piece."""
        if inflate.eof:  # one more member of a gzip
            self._inflate = inflate = zlib.decompressobj(_ANY_HEADER)
        try:
            self._take(inflate.decompress(piece, self._most - len(self._whole) + 1))
        except zlib.error as error:
            if not self._may_lack_header or self._whole:
                raise UnreadableError(f"the compressed body is damaged: {error}") from error
            self._inflate, self._may_lack_header = zlib.decompressobj(-zlib.MAX_WBITS), False
            return piece
        return inflate.unconsumed_tail or inflate.unused_data

    def _take(self, piece: bytes) -> None:
        if len(self._whole) + len(piece) > self._most:
            raise TooLongError
        self._whole += piece
