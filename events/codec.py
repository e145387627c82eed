"""
Events as canonical JSON, and back, exactly.

Canonical means: sorted keys, no spaces, ASCII, no NaN, so that equal events have equal bytes anywhere. A text of 4 KiB
or more leaves the payload for a blob and `{"$blob": digest}` stands in its place; a payload's own key of that name gets
one more `$`. A field of the event that has its default is left out. Whatever `encode` gives, `decode` reads: an event
that would not come back is refused, not written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import NoReturn, cast

from attrs import NOTHING, fields, frozen

from skillopt_es.events.catalog import BY_NAME, CATALOG, Event
from skillopt_es.events.errors import InvalidEvent, LogDamaged, LogTooNew
from skillopt_es.events.strict import MISFITS, explain, strict_converter
from skillopt_es.events.upcasts import UPCASTS, Payload, Upcasts, lifted
from skillopt_es.events.values import Json, clean_text, digest_of

BIG = 4096  # a page of SQLite: large texts are blobs from here on, which leaves 99.8 % of all events below it
# A character has four bytes at most, so a text of fewer characters is not big.
_BIG_CHARACTERS = BIG // 4
_BLOB_KEY = re.compile(r"\$+blob")
# Without the quote in front: a payload's own key has one more `$` there.
_BLOB_MARK = '$blob"'
# What JSON writes for a surrogate; whole pairs have it, too, and cleaning leaves them as they are.
_SURROGATE_MARK = "\\ud"

canonical_json: Callable[[object], str] = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False, check_circular=False
).encode
"""The one JSON text of a value."""


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_raw_decode = json.JSONDecoder(parse_constant=_refuse_constant).raw_decode


def _loads(data: str) -> Json:
    """The value of a JSON text with no space around it, which is how we write them; a quarter faster than `loads`."""
    value, end = _raw_decode(data)
    if end != len(data):
        raise ValueError("something follows the end of its JSON")
    return cast("Json", value)


_converter = strict_converter(detailed=False)
_explainer = strict_converter(detailed=True)
_readers = {kind.__name__: (kind, kind.VERSION, _converter.get_structure_hook(kind)) for kind in CATALOG}
_writers = {kind: _converter.get_unstructure_hook(kind) for kind in CATALOG}
_defaults = {
    kind: [(each.name, _converter.unstructure(each.default)) for each in fields(kind) if each.default is not NOTHING]
    for kind in CATALOG
}


@frozen
class EncodedEvent:
    """An event ready to be written: its wire name, version, canonical JSON and the big texts it refers to."""

    type: str
    version: int
    data: str
    blobs: tuple[tuple[str, bytes], ...] = ()


def encode(event: Event) -> EncodedEvent:
    """The event as it is written; raises InvalidEvent for one that could not be read back."""
    kind = type(event)
    try:
        payload = _writers[kind](event)
        _readers[kind.__name__][2](payload, kind)
        # It has been checked by now: what equals a default (as 0 equals False) is of the default's type, too.
        for name, default in _defaults[kind]:
            if payload[name] == default:
                del payload[name]
        data = canonical_json(payload)
    except MISFITS as error:
        raise InvalidEvent(f"{kind.__name__} cannot be recorded: {_misfit(event)}") from error
    if _SURROGATE_MARK in data:
        payload = _cleaned(payload)
        data = canonical_json(payload)
    blobs: dict[str, bytes] = {}
    if len(data) >= BIG or _BLOB_MARK in data:
        data = canonical_json(_lift(payload, blobs))
    return EncodedEvent(kind.__name__, kind.VERSION, data, tuple(blobs.items()))


def decode(
    name: str,
    version: int,
    data: str,
    read_blob: Callable[[str], str],
    *,
    seq: int | None = None,
    upcasts: Upcasts = UPCASTS,
) -> Event:
    """The event that was written; raises LogTooNew or LogDamaged, which name the event."""
    try:
        kind, current, structure = _readers[name]
    except (KeyError, TypeError):
        raise LogTooNew(f"{_place(name, seq)} has a type that this software does not know") from None
    try:
        payload = _loads(data)
        if _BLOB_MARK in data:
            payload = _sink(payload, read_blob)
        if version != current:
            payload = lifted(name, version, current, cast("Payload", payload), upcasts)
        return cast("Event", structure(payload, kind))
    except MISFITS as error:
        raise LogDamaged(f"{_place(name, seq)} cannot be read: {_unreadable(data, error, name)}", seq=seq) from error


def _place(name: str, seq: int | None) -> str:
    return f"an event ({name})" if seq is None else f"event {seq} ({name})"


def _misfit(event: Event) -> str:
    """Which field of the event does not fit, found by the slow converter."""
    kind = type(event)
    if BY_NAME.get(kind.__name__) is not kind:
        return "it is not in the catalogue"
    name = ""
    try:
        for field in fields(kind):
            name = field.name
            payload = _explainer.unstructure(getattr(event, name), unstructure_as=field.type)
            _explainer.structure(payload, cast("type[object]", field.type))
            canonical_json(payload)
    except MISFITS as error:
        return f"{name}: {explain(error)}"
    return "its fields do not fit"


def _unreadable(data: str, error: Exception, name: str) -> str:
    try:
        _explainer.structure(_loads(data), BY_NAME[name])
    except MISFITS as detailed:
        return explain(detailed)
    return explain(error)


def _cleaned(value: Json) -> Json:
    match value:
        case str():
            return clean_text(value)
        case list():
            return [_cleaned(item) for item in value]
        case dict():
            return {clean_text(key): _cleaned(item) for key, item in value.items()}
        case _:
            return value


def _lift(value: Json, blobs: dict[str, bytes]) -> Json:
    """The payload with its big texts moved to `blobs`, in an order that depends on nothing else."""
    match value:
        case str():
            raw = value.encode() if len(value) >= _BIG_CHARACTERS else b""
            if len(raw) < BIG:
                return value
            digest = digest_of(raw)
            blobs[digest] = raw
            return {"$blob": digest}
        case list():
            return [_lift(item, blobs) for item in value]
        case dict():
            return {
                f"${key}" if _BLOB_KEY.fullmatch(key) else key: _lift(item, blobs)
                for key, item in sorted(value.items())
            }
        case _:
            return value


def _sink(value: Json, read_blob: Callable[[str], str]) -> Json:
    """The payload with its big texts back in their places."""
    match value:
        case list():
            return [_sink(item, read_blob) for item in value]
        case {"$blob": digest, **others}:
            if type(digest) is not str or others:
                raise ValueError("a reference to a blob is malformed")
            return read_blob(digest)
        case dict():
            return {key[1:] if _BLOB_KEY.fullmatch(key) else key: _sink(item, read_blob) for key, item in value.items()}
        case _:
            return value
