"""Server-sent events: bytes in pieces of any size become events, whatever the pieces cut through."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from attrs import frozen


@frozen
class ServerEvent:
    """One event; `name` is empty when the server gave none."""

    name: str
    data: str

    def object(self) -> Mapping[str, object] | None:
        """The JSON object in its data, if that is what it holds."""
        try:
            parsed: object = json.loads(self.data)
        except (ValueError, RecursionError):
            return None
        return parsed if isinstance(parsed, dict) else None


class EventParser:
    """Takes bytes as they come and gives events as they are complete."""

    def __init__(self) -> None:
        self._rest = b""
        self._name = ""
        self._data: list[str] = []
        self._after_cr = False

    def feed(self, piece: bytes) -> Iterator[ServerEvent]:
        """The events that this piece completes."""
        if not piece:
            return
        # A CR that ends one piece and an LF that begins the next are one line end.
        split_line_end = self._after_cr and piece.startswith(b"\n")
        self._after_cr = piece.endswith(b"\r")
        if split_line_end:
            piece = piece[1:]
        # Only CR and LF end a line here: str.splitlines would also split at characters inside JSON texts.
        lines = (self._rest + piece).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._rest = lines.pop()
        for line in lines:
            event = self._line(line)
            if event is not None:
                yield event

    def close(self) -> Iterator[ServerEvent]:
        """A last event that lacks its blank line, if its data is whole JSON."""
        for line in (self._rest, b""):
            event = self._line(line)
            if event is not None and (event.object() is not None or event.data == "[DONE]"):
                yield event
        self._rest = b""

    def _line(self, raw: bytes) -> ServerEvent | None:
        if not raw:
            name, data = self._name, self._data
            self._name, self._data = "", []
            return ServerEvent(name, "\n".join(data)) if data else None
        # A byte order mark may stand before the first field.
        field, _, value = raw.decode("utf-8", "replace").lstrip("\ufeff").partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._name = value
        return None


def events_in(body: bytes) -> list[ServerEvent]:
    """All events of a whole stream."""
    parser = EventParser()
    return [*parser.feed(body), *parser.close()]


def is_stream(headers: Mapping[str, str]) -> bool:
    """Whether a reply is a stream of events."""
    return headers.get("content-type", "").startswith("text/event-stream")
