"""
Whose texts are whose in a run's log, and where else an item's own words stand: word for word, and no further.

An item's own texts are those that only its rollouts sent, received or left behind. Their lines (long ones in pieces)
are then looked for in all other texts. A paraphrase is not found; nor is what other items say as well.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from attrs import define, field

from skillopt_es.audit.descent import Evidence
from skillopt_es.events.blobs import stored_text
from skillopt_es.events.catalog import RolloutCompleted, only, skills_in
from skillopt_es.events.errors import LogDamaged
from skillopt_es.events.journal import CallRow, Journal
from skillopt_es.events.log import EventLog
from skillopt_es.events.places import Place
from skillopt_es.events.values import Json, hex_digest, text_digest

SHORTEST = 8
"""The fewest characters of a line that is looked for in other texts: shorter ones stand in too many by chance."""

# A prompt may show a part of a long line only: its pieces are looked for, too. Each is sought in each text of the log.
_PIECE = 80
_MOST_PIECES = 400  # each is sought in each text of the log: a plain text of 10,000 characters is looked for whole


@define
class OwnWords:
    """What is the evidence's own, and where else parts of it stand."""

    evidence: Evidence
    own: set[str] = field(factory=set)
    elsewhere: set[str] = field(factory=set)
    pieces: tuple[str, ...] = ()
    short: int = 0
    shared: int = 0
    calls: int = 0
    rollouts: set[int] = field(factory=set)

    @property
    def erasable(self) -> set[str]:
        """The digests of all texts that can go."""
        return self.own | self.elsewhere

    def says(self, text: str) -> bool:
        """Whether a text has a piece of the evidence's, as it is or as JSON writes it."""
        return any(piece in text for piece in self.pieces)


# --- what is whose -------------------------------------------------------------------------------------------------


def own_words(evidence: Evidence, log: EventLog, also: Sequence[str]) -> OwnWords:
    """What a run's log has of the evidence, and of the lines in `also`."""
    found = OwnWords(evidence)
    uses, kept = _uses(found, log), _skill_texts(log)
    mine = {digest for digest, users in uses.items() if "me" in users}
    found.own = {digest for digest in mine if uses[digest] == {"me"} and digest not in kept and _has(log, digest)}
    found.shared = len(mine) - sum(uses[digest] == {"me"} for digest in mine)
    others = (digest for digest, users in uses.items() if len(users) == 1 and users <= {"another"})
    lines = [line for digest in found.own for line in _lines(_text(log, digest))]
    found.short = len({line for line in lines if len(line) < SHORTEST})
    own = _only_here(_thinned(_pieces(lines, SHORTEST)), (_text(log, digest) for digest in others))
    found.pieces = (*own, *_pieces(also, 1))
    for digest in [hex_digest(row[0]) for row in log.reader.rows("select digest from blobs order by rowid")]:
        if digest not in found.own and digest not in kept and found.says(_text(log, digest)):
            found.elsewhere.add(digest)
    found.calls = sum(_tells(found, row) for row in Journal(log.reader).read()) if found.pieces else 0
    return found


def _uses(found: OwnWords, log: EventLog) -> dict[str, set[str]]:
    """Who uses each text: the evidence itself (me), one other item (another), several (others), or the optimizer."""
    users: dict[str, set[str]] = {}
    for row in Journal(log.reader).read():
        who = _user(row.call.slot)
        for digest in row.call.texts:
            users.setdefault(digest, set()).add(who)
    for seq, event in only(RolloutCompleted, log.read(types=("RolloutCompleted",))):
        if found.evidence.is_of(event.item, event.place):
            found.rollouts.add(seq)
        if event.trajectory:
            users.setdefault(event.trajectory, set()).add(f"{event.place}\n{event.item}")
    return {digest: _kinds(found.evidence, names) for digest, names in users.items()}


def _kinds(evidence: Evidence, names: set[str]) -> set[str]:
    kinds, others = set[str](), set[str]()
    for name in names:
        place, _, item = name.partition("\n")
        if item and evidence.is_of(item, place):
            kinds.add("me")
        else:
            others.add(item or "optimizer")
    if others:
        kinds.add("another" if len(others) == 1 and others != {"optimizer"} else "others")
    return kinds


def _user(slot: str) -> str:
    """The place and the item whose rollout made a call; nothing for the optimizer's."""
    place = Place(slot)
    return f"{place.evaluation}\n{place.item}" if place.item is not None else ""


def _skill_texts(log: EventLog) -> set[str]:
    """The digests of the files of every skill."""
    skills = (skill for recorded in log.read() for skill in skills_in(recorded.event))
    return {text_digest(text) for skill in skills for text in skill.files.values()}


def _has(log: EventLog, digest: str) -> bool:
    return log.reader.row("select 1 from blobs where digest = ?", (bytes.fromhex(digest),)) is not None


def _text(log: EventLog, digest: str) -> str:
    """A stored text; nothing for an image, and for what was erased before."""
    try:
        return stored_text(log.reader, digest) or ""
    except LogDamaged:
        return ""


# --- pieces --------------------------------------------------------------------------------------------------------


def _lines(text: str) -> Iterator[str]:
    """The lines of a text; of one that is JSON (a trajectory, an agent's steps), those of the texts in it."""
    try:
        values: Json = json.loads(text) if text[:1] in ("{", "[") else text
    except (ValueError, RecursionError):  # what is nested too deep for the reader is searched as it stands
        values = text
    for each in _strings(values):
        yield from filter(None, (line.strip() for line in each.splitlines()))


def _strings(value: Json) -> Iterator[str]:
    left = [value]  # not by recursion: what a model wrote may be nested as deep as it can be read
    while left:
        match left.pop():
            case str() as text:
                yield text
            case list() as values:
                left += reversed(values)
            case dict() as fields:
                left += reversed(fields.values())


def _pieces(lines: Iterable[str], shortest: int) -> list[str]:
    """What to look for: short lines whole, long ones cut up, each also as JSON writes it."""
    pieces: dict[str, None] = {}
    for line in dict.fromkeys(lines):
        parts = [line] if len(line) <= 2 * _PIECE else [line[at : at + _PIECE] for at in range(0, len(line), _PIECE)]
        for part in parts:
            if len(part) >= shortest:
                pieces.update(dict.fromkeys((part, json.dumps(part)[1:-1], json.dumps(part, ensure_ascii=False)[1:-1])))
    return list(pieces)


def _thinned(pieces: list[str]) -> list[str]:
    """No more than can be looked for in good time; of a long text, a prompt that shows a part has many pieces."""
    # One in so many, rounded up; with no pieces at all a step must still not be 0.
    return pieces[:: -(-len(pieces) // _MOST_PIECES) or 1]


def _only_here(pieces: list[str], others: Iterable[str]) -> tuple[str, ...]:
    """The pieces that no other item's own text has: templates and shared passages are not the evidence's."""
    left = pieces
    for text in others:
        if not left:
            break
        left = [piece for piece in left if piece not in text]
    return tuple(left)


def _tells(found: OwnWords, row: CallRow) -> bool:
    return any(found.says(text) for text in (row.call.request.text, row.call.tries, row.call.error_message))
