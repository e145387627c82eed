"""From a run to a cassette and back: `freeze` packs a whole log, `thaw` lays out a run folder that can be read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from attrs import asdict

from skillopt_es.cassettes.file import Cassette
from skillopt_es.cassettes.redaction import Redactor, left_in, redacted
from skillopt_es.errors import NotInRun
from skillopt_es.events.erasures import erasures_in
from skillopt_es.events.errors import LogDamaged
from skillopt_es.events.log import EventLog
from skillopt_es.events.portable import PortableLog, put_down, raw_texts, take_up
from skillopt_es.events.values import Json
from skillopt_es.events.verify import verify
from skillopt_es.version import software_version


def freeze(folder: Path) -> Cassette:
    """The cassette of a run as it is now; raises LogDamaged for a log that is not what was written."""
    report = verify(folder)
    if not report.ok:
        first = report.problems[0]
        raise LogDamaged(
            f"{folder.name} is damaged and cannot be a cassette: {first.message}",
            seq=first.seq,
            hint="`skillopt-es verify` lists what is wrong",
        )
    with EventLog.open(folder) as log:
        log.reader.hold()
        if any(erasures_in(log.reader)):
            raise NotInRun(
                f"texts were erased from {folder.name}, so its calls are no longer whole and cannot be a cassette",
                hint="the fork that `retract --apply` makes can be frozen",
            )
        whole = take_up(log)
        redactor = Redactor()
        shown = redacted(whole, redactor)
        texts = raw_texts(log, sorted(set(_named(shown))))
        head = log.head().hash
    return Cassette(
        log=shown,
        texts=texts,
        software=software_version(),
        source_head=head,
        redactions={name: count for name, count in sorted(redactor.replaced.items()) if count},
        left={name: count for name, count in asdict(left_in(list(texts.values()), redactor)).items() if count},
    )


def thaw(cassette: Cassette, folder: Path) -> None:
    """Lays a cassette out as a run folder, whole or not at all."""
    put_down(folder, cassette.log, cassette.texts)


def _named(log: PortableLog) -> Iterator[str]:
    """The digests of all texts and files that the log names."""
    for each in log.calls:
        yield from each.call.texts
    for event in log.events:
        payload = cast("dict[str, Json]", json.loads(event.data))
        trajectory = payload.get("trajectory")
        if isinstance(trajectory, str) and trajectory:
            yield trajectory
        if '$blob"' in event.data:
            yield from _lifted(payload)


def _lifted(value: Json) -> Iterator[str]:
    match value:
        case {"$blob": str(digest), **others} if not others:
            yield digest
        case dict():
            for item in value.values():
                yield from _lifted(item)
        case list():
            for item in value:
                yield from _lifted(item)
