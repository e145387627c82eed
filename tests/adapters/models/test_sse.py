"""Server-sent events, however their bytes are cut up."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.wires import FORMATS, Said

from skillopt_es.adapters.models.reading import EventParser, ServerEvent, events_in

STREAMS = [
    (b"data: a\n\n", [ServerEvent("", "a")]),
    (b"event: x\r\ndata: a\r\ndata: b\r\n\r\n", [ServerEvent("x", "a\nb")]),
    (b"event: x\rdata: a\r\rdata:b\r\r", [ServerEvent("x", "a"), ServerEvent("", "b")]),
    (b": comment\n\nid: 7\nretry: 5\ndata:  two spaces\n\n", [ServerEvent("", " two spaces")]),
    (b"\n\n\nevent: nothing\n\ndata: a\n\n", [ServerEvent("", "a")]),
    ("data: é\u2028\u0085🙂\n\n".encode(), [ServerEvent("", "é\u2028\u0085🙂")]),
    (b'\xef\xbb\xbfdata: {"whole": 1}', [ServerEvent("", '{"whole": 1}')]),
    (b"data: [DONE]", [ServerEvent("", "[DONE]")]),
    (b'data: {"cut": ', []),
    (b"data: a\n\ndata: b", [ServerEvent("", "a")]),
]


@pytest.mark.parametrize(("stream", "events"), STREAMS)
def test_a_stream_is_read_the_same_in_two_pieces_cut_anywhere(stream: bytes, events: list[ServerEvent]) -> None:
    """Line ends of any kind, texts over several lines, comments, a last event without its blank line."""
    assert events_in(stream) == events
    for cut in range(len(stream) + 1):
        assert _in_pieces([stream[:cut], stream[cut:]]) == events
    assert _in_pieces([bytes([byte]) for byte in stream]) == events


@given(st.lists(st.integers(0, 4000), max_size=12), st.sampled_from(sorted(FORMATS)), st.booleans())
def test_any_cuts_of_a_real_stream_change_nothing(cuts: list[int], name: str, windows: bool) -> None:
    """Whatever the format and the line ends."""
    stream = FORMATS[name].streams(Said(text="é 🙂 text"))
    if windows:
        stream = stream.replace(b"\n", b"\r\n")
    places = sorted({0, *(min(cut, len(stream)) for cut in cuts), len(stream)})
    pieces = [stream[start:end] for start, end in itertools.pairwise(places)]
    assert _in_pieces(pieces) == events_in(stream)


@given(st.binary(max_size=200))
def test_any_bytes_are_some_events(stream: bytes) -> None:
    """Nothing is raised."""
    assert _in_pieces([bytes([byte]) for byte in stream]) == events_in(stream)


def _in_pieces(pieces: list[bytes]) -> list[ServerEvent]:
    parser = EventParser()
    events = [event for piece in pieces for event in parser.feed(piece)]
    return [*events, *parser.close()]
