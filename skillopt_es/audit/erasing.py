"""
`retract --erase`: takes the texts about an item out of a run's log, and says what it knows to be left.

Which texts those are, `audit/own_words.py` finds. The files of skills stay: who erased one could not tell any more
which skill an event means.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path

from attrs import frozen

from skillopt_es.audit.descent import Evidence
from skillopt_es.audit.own_words import SHORTEST, OwnWords, own_words
from skillopt_es.counting import counted
from skillopt_es.engine.algorithms import check_allowed
from skillopt_es.events.catalog import RunStarted, TextsErased, only, skills_in
from skillopt_es.events.codec import canonical_json
from skillopt_es.events.erase import Eraser
from skillopt_es.events.erasures import ERASED
from skillopt_es.events.errors import LogError
from skillopt_es.events.log import EventLog, RunInfo
from skillopt_es.events.schema import LOG_FILE
from skillopt_es.events.values import Json, Learned
from skillopt_es.runs.folders import run_folders

_PROSE = frozenset(
    (
        # of results and calls, of proposals, of notes and guidance, of attempts that later steps are shown
        *("prediction", "detail", "message", "failed", "fallback", "why"),
        *("content", "target", "instruction", "title", "motivation", "text", "changes", "reasoning", "description"),
        *("note", "notes", "guidance", "risks", "meta_skill"),
        *("hypothesis", "rejected_notes", "before", "type"),
    )
)
"""The fields of events in which models and graders say things; all others are names, numbers or the skill itself."""


@frozen(kw_only=True)
class Erased:
    """What was erased from one run, and what is known to be left."""

    run: str
    event: int | None
    own_texts: int
    other_texts: int
    events: int
    too_short_to_look_for: int
    shared_with_other_items: int
    left_in_skills_of_events: tuple[int, ...]
    left_in_calls: int
    left_in_files: tuple[str, ...]
    related_runs: tuple[str, ...]

    def lines(self) -> Iterator[str]:
        """For people."""
        if self.event is None:
            yield f"erased      nothing more in {self.run}: all its texts are erased already"
        else:
            own = counted(self.own_texts, "text")
            yield (
                f"erased      from {self.run}: {own} of its own, {self.other_texts} others that say parts of "
                f"it (prompts, answers), and parts of {counted(self.events, 'event')}; event {self.event} says so"
            )
        if self.shared_with_other_items:
            yield f"left        {self.shared_with_other_items} texts that other items use as well"
        if self.too_short_to_look_for:
            yield (
                f"left        {self.too_short_to_look_for} lines of fewer than {SHORTEST} characters were not looked "
                "for in other texts; `--also FILE` looks for what you name"
            )
        if self.left_in_skills_of_events:
            events = ", ".join(map(str, self.left_in_skills_of_events[:8]))
            yield f"left        the skill itself says parts of it: events {events}"
        if self.left_in_calls:
            yield f"left        {self.left_in_calls} calls whose parameters or error messages say parts of it"
        for name in self.left_in_files:
            yield f"left        {name} in the run's folder says parts of it: remove it"
        for name in self.related_runs:
            yield f"left        {name} is a fork, a parent or a continuation and has its own copies: erase there, too"
        yield "not found   the same in other words, and copies outside this run: data files, backups, logs"


def erase_evidence(
    folder: Path, evidence: Evidence, *, reason: str, by: str, now: Callable[[], datetime], also: Sequence[str] = ()
) -> Erased:
    """
    Takes the texts about the evidence, and all that say something of `also`, out of the run.

    Raises RunBusy while another process writes it.
    """
    with Eraser(folder, now=now) as eraser:
        log = eraser.log
        [(_, started)] = only(RunStarted, log.read(until=1))
        check_allowed("erase", started, folder.name)
        learned = started.learned
        found = own_words(evidence, log, (*also, *_said_before(folder, learned, evidence)))
        payloads = dict(_redacted(found, log))
        skills = tuple(_in_skills(found, log))
        seq = None
        if found.erasable or payloads:
            event = TextsErased(
                items=(evidence.item,),
                reason=reason,
                by=by,
                texts=tuple(sorted(found.erasable)),
                events=(),
                place=evidence.place,
            )
            seq = log.head().seq + 1
            eraser.erase(event, payloads)
        info = log.run
        eraser.wipe()
    return Erased(
        run=folder.name,
        event=seq,
        own_texts=len(found.own),
        other_texts=len(found.elsewhere),
        events=len(payloads),
        too_short_to_look_for=found.short,
        shared_with_other_items=found.shared,
        left_in_skills_of_events=skills,
        left_in_calls=found.calls,
        left_in_files=tuple(_files(folder, found.pieces)),
        related_runs=tuple(_relatives(folder, info, learned)),
    )


def _said_before(folder: Path, learned: Learned | None, evidence: Evidence) -> tuple[str, ...]:
    """What was the item's own in the run that this one trains on from: what was learned there may quote it."""
    if learned is None or evidence.place:
        return ()
    for other, run, _ in _beside(folder):
        if run.run_id == learned.run_id:
            with EventLog.open(other) as log:
                return own_words(evidence, log, ()).pieces
    return ()


# --- events, files and other runs ------------------------------------------------------------------------------------


def _redacted(found: OwnWords, log: EventLog) -> Iterator[tuple[int, str]]:
    """The events that say parts of it, with the payload that is to be left of each."""
    for row in log.reader.rows("select seq, data from events order by seq"):
        seq, data = int(str(row[0])), str(row[1])
        if seq not in found.rollouts and not found.says(data):
            continue
        payload: Json = json.loads(data)
        left = _without(payload, found, "", whole=seq in found.rollouts)
        if left != payload:
            yield seq, canonical_json(left)


def _without(value: Json, found: OwnWords, name: str, *, whole: bool) -> Json:
    """A payload with the mark in the place of what says parts of the evidence; an item's own words go as a whole."""
    match value:
        case str() if name in _PROSE and value not in ("", ERASED):
            return ERASED if (whole and name in ("prediction", "detail")) or found.says(value) else value
        case list():
            return [_without(each, found, name, whole=whole) for each in value]
        case dict():
            return {
                # The files of skills stay, and a digest says nothing.
                key: each if key in ("files", "$blob") else _without(each, found, key, whole=whole)
                for key, each in value.items()
            }
        case _:
            return value


def _in_skills(found: OwnWords, log: EventLog) -> Iterator[int]:
    """The events that bring a skill into the run which says parts of it."""
    for recorded in log.read() if found.pieces else ():
        if any(found.says(text) for skill in skills_in(recorded.event) for text in skill.files.values()):
            yield recorded.seq


def _files(folder: Path, pieces: tuple[str, ...]) -> Iterator[str]:
    """Files beside the log that say parts of it, by their path in the run's folder."""
    for path in sorted(folder.rglob("*")):
        # Nor the log itself and what SQLite keeps beside it: the texts in them are counted apart.
        if path.is_file() and not path.name.startswith(LOG_FILE):
            raw = path.read_bytes()
            if any(piece.encode() in raw for piece in pieces):
                yield str(path.relative_to(folder))


def _relatives(folder: Path, run: RunInfo, learned: Learned | None) -> Iterator[str]:
    """The runs beside this one that share a part of it, or that hand on to it what they learned, or the reverse."""
    for other, known, theirs in _beside(folder):
        parents = {known.run_id, known.parent_run} - {None}
        forked = known.parent_run == run.run_id or run.parent_run in parents
        from_here = theirs is not None and theirs.run_id == run.run_id
        if forked or from_here or (learned is not None and learned.run_id == known.run_id):
            yield other.name


def _beside(folder: Path) -> Iterator[tuple[Path, RunInfo, Learned | None]]:
    """The other runs there, and what each has learned from another one; one that cannot be read says nothing here."""
    for other in run_folders(folder.resolve().parent):
        if other.name == folder.resolve().name:
            continue
        try:
            with EventLog.open(other) as log:
                learned = next((first.learned for _, first in only(RunStarted, log.read(until=1))), None)
                yield other, log.run, learned
        except LogError:
            continue
