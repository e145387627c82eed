"""
From a run to a cassette and back: `freeze` packs a whole log, `thaw` lays out a run folder that can be read.

A cassette leaves out names of machines, the folders of a person, and the values of extra headers. That touches what
says where a run was made (config, model names, errors). What was asked and answered stays word for word, because that
is what a replay compares; how many of those texts hold such a name is counted instead.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import cast

from attrs import define, evolve, field

from skillopt_es.cassettes.file import Cassette
from skillopt_es.errors import NotInRun
from skillopt_es.events.codec import canonical_json
from skillopt_es.events.erasures import erasures_in
from skillopt_es.events.errors import LogDamaged
from skillopt_es.events.portable import (
    PortableCall,
    PortableEvent,
    PortableLog,
    chained,
    put_down,
    raw_texts,
    take_up,
    with_parent_head,
)
from skillopt_es.events.values import Json
from skillopt_es.events.verify import verify
from skillopt_es.runs.reading import whole_log
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
    with whole_log(folder) as log:
        # A writer may be at work: from here on all is of one moment.
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
        redactions=redactions_of(redactor),
        left=left_in(texts.values(), redactor),
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


# /home/NAME, /Users/NAME, /root and C:\Users\NAME, where a path begins.
_HOME = re.compile(
    r"(?:(?<=[^\w.~-])|^)(?:/?(?:home|Users)/[^/\s\"':]+|/root)(?![\w.-])|[A-Za-z]:\\Users\\[^\\\s\"':]+"
)
# A name and a password may stand before the host.
_HOST = re.compile(r"(https?://)(?:[^/\s\"'@]*@)?([^/\s\"'@]+)")
# How the keys of well-known services begin.
_KEY = re.compile(r"\b(?:sk-|ghp_|gho_|github_pat_|AKIA|AIza|xox[abp]-|hf_)[A-Za-z0-9_-]{16,}")
_PLACES = frozenset({"config", "folder", "overrides", "message", "note", "failed", "detail"})
_HIDDEN = frozenset({"extra_headers", "managed_identity_client_id"})
_TYPES_WITH_NOTES = frozenset({"RunStarted"})
HIDDEN = "redacted"


@define
class Redactor:
    """Puts a number in the place of each machine's name, the same one everywhere, and counts what it replaced."""

    hosts: dict[str, str] = field(factory=dict)
    replaced: Counter[str] = field(factory=Counter)

    def text(self, text: str) -> str:
        """The text without names of machines and home folders."""
        text = _HOST.sub(lambda found: f"{found[1]}{self._host(found[2])}", text)
        for host, name in self.hosts.items():
            if host in text:
                self.replaced[name] += text.count(host)
                text = text.replace(host, name)
        text, count = _HOME.subn("~", text)
        self.replaced["home folder"] += count
        return text

    def _host(self, host: str) -> str:
        # A name of ours: the cassette's run was one before.
        if host.endswith(".invalid"):
            return host
        name = self.hosts.get(host)
        if name is None:
            name = self.hosts[host] = f"endpoint-{len(self.hosts) + 1}.invalid"
        self.replaced[name] += 1
        return name

    def value(self, value: Json, key: str = "") -> Json:
        """A JSON value without them; the values of what may be a secret are gone altogether."""
        match value:
            case str():
                return self._hide(value) if key in _HIDDEN and value else self.text(value)
            case list():
                return [self.value(item, key) for item in value]
            case dict() if key in _HIDDEN:
                return {name: self._hide(item) for name, item in value.items()}
            case dict():
                return {name: self.value(item, _named_in(value, name)) for name, item in value.items()}
            case _:
                return value

    def _hide(self, _: Json) -> str:
        self.replaced["hidden value"] += 1
        return HIDDEN


def _named_in(mapping: Mapping[str, Json], name: str) -> str:
    """The key that a value belongs to; of a changed setting, the last word of the setting's own."""
    if name == "value" and isinstance(mapping.get("key"), str):
        return str(mapping["key"]).rpartition(".")[2]
    return name.removeprefix("optimizer_").removeprefix("target_")


def redacted(log: PortableLog, redactor: Redactor) -> PortableLog:
    """The log with new names; the calls that events refer to are found again under what they are now."""
    before = chained(log)
    # The events first, so that machines are numbered as configs name them.
    events = [_event(each, redactor) for each in log.events]
    calls = [redacted_call(each, redactor) for each in log.calls]
    renamed = {
        (old.call.slot, old.call.digest): new.call.digest
        for old, new in zip(log.calls, calls, strict=True)
        if old.call.digest != new.call.digest
    }
    if renamed:
        events = [_with_calls(each, renamed) for each in events]
    made = evolve(log, events=tuple(events), calls=tuple(calls))
    if log.run.parent_head in before.hashes:
        made = with_parent_head(made, chained(made).hashes[before.hashes.index(log.run.parent_head)])
    return made


def _event(event: PortableEvent, redactor: Redactor) -> PortableEvent:
    payload = cast("dict[str, Json]", json.loads(event.data))
    changed = _fields(payload, redactor)
    if event.type in _TYPES_WITH_NOTES and "notes" in payload:
        changed = {**changed, "notes": redactor.value(payload["notes"])}
    return event if changed == payload else evolve(event, data=canonical_json(changed))


def _fields(payload: Mapping[str, Json], redactor: Redactor) -> dict[str, Json]:
    """The fields of an event, those that say where or why in new words; also of the outcome within it."""
    found: dict[str, Json] = {}
    for name, value in payload.items():
        if name in _PLACES:
            found[name] = redactor.value(value)
        elif name == "outcome" and isinstance(value, dict):
            found[name] = _fields(value, redactor)
        else:
            found[name] = value
    return found


def redacted_call(call: PortableCall, redactor: Redactor) -> PortableCall:
    """The call without names of machines and home folders."""
    old = call.call
    new = evolve(
        old,
        model=redactor.text(old.model),
        error_message=redactor.text(old.error_message),
        tries=old.tries if old.tries == "[]" else canonical_json(redactor.value(json.loads(old.tries))),
    )
    return call if new == old else evolve(call, call=new)


def _with_calls(event: PortableEvent, renamed: Mapping[tuple[str, str], str]) -> PortableEvent:
    payload = cast("dict[str, Json]", json.loads(event.data))
    refs = payload.get("calls")
    if not isinstance(refs, list):
        return event
    pairs = cast("list[list[str]]", refs)
    payload["calls"] = [[slot, renamed.get((slot, digest), digest)] for slot, digest in pairs]
    return evolve(event, data=canonical_json(payload))


def redactions_of(redactor: Redactor) -> dict[str, int]:
    """How often each thing was replaced, by name."""
    return {name: count for name, count in sorted(redactor.replaced.items()) if count}


def left_in(texts: Iterable[bytes], redactor: Redactor) -> dict[str, int]:
    """How many of the texts still hold what a cassette would leave out elsewhere, by kind."""
    home = hosts = keys = 0
    for raw in texts:
        text = raw.decode(errors="replace")
        home += bool(_HOME.search(text))
        hosts += any(host in text for host in redactor.hosts)
        keys += bool(_KEY.search(text))
    return {kind: count for kind, count in (("home", home), ("hosts", hosts), ("keys", keys)) if count}
