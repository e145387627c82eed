"""
The file of a cassette: gzipped lines of canonical JSON, the same bytes for the same run.

The first line says what it is, then come the texts, the calls and the events in order, and at last the SHA-256 of all
lines before. The chains are not in it: they follow from what is, and must end where the first line says. Calls that
tests have recorded since are in no chain.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
import zlib
from collections.abc import Iterator, Mapping
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import cast

from attrs import asdict, fields, frozen

from skillopt_es.errors import CassetteDamaged
from skillopt_es.events.codec import canonical_json
from skillopt_es.events.journal import FinishedCall
from skillopt_es.events.log import RunInfo
from skillopt_es.events.plain import read_plain
from skillopt_es.events.portable import Chained, PortableCall, PortableEvent, PortableLog, chained
from skillopt_es.events.requests import RecordedRequest
from skillopt_es.events.values import Json, digest_of

KIND = "skillopt-es cassette"
VERSION = 1  # of the file: a newer one is refused by its number instead of misread
_MISFITS = (ValueError, TypeError, KeyError, AttributeError, IndexError, OverflowError, RecursionError)
_GZIP = b"\x1f\x8b"
# A run's lines are a fifth to a tenth of their size when packed; what unpacks to far more was not made by `freeze`.
_MOST_RATIO = 50
# Up to this size the ratio does not count: short texts that repeat themselves pack far better.
_SMALL = 64 * 2**20


@frozen(kw_only=True)
class Cassette:
    """A run, its texts by digest, and what was left out of it; `added` are calls that tests have recorded since."""

    log: PortableLog
    texts: Mapping[str, bytes]
    software: str
    source_head: str
    redactions: Mapping[str, int]
    left: Mapping[str, int]
    added: tuple[PortableCall, ...] = ()


def packed(cassette: Cassette) -> bytes:
    """The bytes of the file."""
    made = chained(cassette.log)
    lines = [canonical_json(each) for each in (_header(cassette, made), *_body(cassette))]
    plain = "".join(f"{line}\n" for line in lines).encode()
    end = canonical_json({"sha256": sha256(plain).hexdigest()})
    whole = io.BytesIO()
    # Neither a name nor a time in its head: the same run packs to the same bytes.
    with gzip.GzipFile(filename="", fileobj=whole, mode="wb", compresslevel=9, mtime=0) as file:
        file.write(plain + f"{end}\n".encode())
    return whole.getvalue()


def _header(cassette: Cassette, made: Chained) -> dict[str, Json]:
    run = {name: value for name, value in asdict(cassette.log.run).items() if value is not None}
    return {
        "kind": KIND,
        "version": VERSION,
        "software": cassette.software,
        "run": run,
        "head": [made.tail.seq, made.tail.hash.hex()],
        "calls_head": [made.tail.calls, made.tail.calls_hash.hex()],
        "source_head": cassette.source_head,
        "redactions": dict(cassette.redactions),
        "left": dict(cassette.left),
    }


def _body(cassette: Cassette) -> Iterator[dict[str, Json]]:
    # By digest, so that the same run packs to the same bytes.
    for _, raw in sorted(cassette.texts.items()):
        try:
            yield {"text": raw.decode()}
        except UnicodeDecodeError:
            # An image.
            yield {"base64": base64.b64encode(raw).decode()}
    for call in cassette.log.calls:
        yield {"call": _facts(call.call), "at": call.recorded_at}
    for call in cassette.added:
        yield {"added": _facts(call.call), "at": call.recorded_at}
    for event in cassette.log.events:
        yield {"event": [event.type, event.version, event.recorded_at, event.cause, event.data]}


def _facts(call: FinishedCall) -> dict[str, Json]:
    """The fields of a call that are not as they mostly are; the request's digest follows from the request."""
    given = {each.name: getattr(call, each.name) for each in fields(FinishedCall) if each.init}
    defaults = {each.name: each.default for each in fields(FinishedCall)}
    facts = {name: value for name, value in given.items() if value != defaults[name]}
    return {**facts, "request": call.request.text}


def read_cassette(path: Path) -> Cassette:
    """The cassette in a file; raises CassetteDamaged for anything else."""
    try:
        lines = _lines(path)
        header = cast("dict[str, Json]", json.loads(lines[0]))
        if header.get("kind") != KIND:
            raise CassetteDamaged(f"{path} is not a cassette", hint="`skillopt-es freeze RUN` makes one")
        if header["version"] != VERSION:
            raise CassetteDamaged(
                f"{path} has format {header['version']}, and this software knows {VERSION}", hint="upgrade"
            )
        cassette = _read(header, lines[1:])
        tail = chained(cassette.log).tail
        ends = [header["head"], header["calls_head"]]
    except _MISFITS as error:
        raise _damaged(path, "its lines are not those of a cassette") from error
    if ends != [[tail.seq, tail.hash.hex()], [tail.calls, tail.calls_hash.hex()]]:
        raise _damaged(path, "its chain does not end where it says")
    return cassette


def _damaged(path: Path, why: str) -> CassetteDamaged:
    return CassetteDamaged(f"{path} is damaged: {why}", hint="freeze its run again, or fetch the file again")


def _lines(path: Path) -> list[bytes]:
    """All lines but the last one, which must vouch for them."""
    try:
        raw = read_plain(path, follow=True)
    except FileNotFoundError:
        raise CassetteDamaged(
            f"there is no cassette {path}", hint="`skillopt-es freeze RUN --out FILE` makes one"
        ) from None
    except OSError as error:
        raise CassetteDamaged(f"{path} cannot be read: {error.strerror or error}") from None
    plain = _unpacked(path, raw)
    *lines, last = plain.splitlines(keepends=True) or [b""]
    if last != f"{canonical_json({'sha256': sha256(b''.join(lines)).hexdigest()})}\n".encode():
        raise _damaged(path, "it is not what was written")
    return lines


def _unpacked(path: Path, raw: bytes) -> bytes:
    """The lines in the file; never more than a cassette of its size can have."""
    if not raw.startswith(_GZIP):
        raise CassetteDamaged(
            f"{path} is not a cassette, or its beginning is damaged",
            hint="`skillopt-es freeze RUN` makes one; fetch it again if it was damaged on its way",
        )
    most = _SMALL + _MOST_RATIO * len(raw)
    # With 16 added, zlib takes gzip and nothing else.
    inflate = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        # One byte too many is enough to know, and no more is unpacked.
        plain = inflate.decompress(raw, most + 1)
    except zlib.error as error:
        raise _damaged(path, "it cannot be unpacked") from error
    if len(plain) > most:
        raise CassetteDamaged(
            f"{path} unpacks to more than {most // 2**20} MiB, which no cassette of its size does",
            hint="do not use it: it was made to fill your memory, or is not a cassette",
        )
    if not inflate.eof or inflate.unused_data:
        raise _damaged(path, "it is incomplete" if not inflate.eof else "there is something after its end")
    return plain


def _read(header: Mapping[str, Json], lines: list[bytes]) -> Cassette:
    texts: dict[str, bytes] = {}
    calls: list[PortableCall] = []
    added: list[PortableCall] = []
    events: list[PortableEvent] = []
    for line in lines:
        match json.loads(line):
            case {"text": text}:
                raw = text.encode()
                texts[digest_of(raw)] = raw
            case {"base64": text}:
                raw = base64.b64decode(text)
                texts[digest_of(raw)] = raw
            case {"call": call, "at": recorded_at}:
                calls.append(PortableCall(_call(call), _moment(recorded_at)))
            case {"added": call, "at": recorded_at}:
                added.append(PortableCall(_call(call), _moment(recorded_at)))
            case {"event": [name, version, recorded_at, cause, data]}:
                events.append(PortableEvent(name, version, _moment(recorded_at), cause, data))
            case _:
                raise ValueError("a line of no known kind")
    run = RunInfo(**cast("dict[str, str]", header["run"]))  # type: ignore[arg-type]  # checked by its own hash
    if run.hash != run.computed_hash():
        raise ValueError("the run is not what it says")
    return Cassette(
        log=PortableLog(run=run, events=tuple(events), calls=tuple(calls)),
        texts=texts,
        software=str(header["software"]),
        source_head=str(header["source_head"]),
        redactions=cast("dict[str, int]", header["redactions"]),
        left=cast("dict[str, int]", header["left"]),
        added=tuple(added),
    )


def _moment(text: str) -> str:
    """A time of day with its zone; raises ValueError or TypeError for anything else."""
    if datetime.fromisoformat(text).tzinfo is None:
        raise ValueError("a time without its zone")
    return text


def _call(facts: Mapping[str, str]) -> FinishedCall:
    """A call whose numbers a log can hold."""
    asked = {"request": RecordedRequest(facts["request"])}
    call = FinishedCall(**{**facts, **asked})  # type: ignore[arg-type]  # its digests are checked by the chain
    numbers = (call.input_tokens, call.output_tokens, call.cached_tokens, call.reasoning_tokens, call.latency_ms)
    if not all(number is None or (type(number) is int and 0 <= number < 2**63) for number in numbers):
        raise ValueError("a number that no log can hold")
    return call
