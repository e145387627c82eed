"""
What derives from a piece of evidence: every result, patch, merge, edit, verdict, guidance and line that rests on it.

One walk over recorded events, by id. Where a merge left unsaid which of its inputs it used, those of its wording count;
where none is worded like it, all do. What was written later by somebody who only read a text with such lines in it is
not listed: nobody has recorded that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from attrs import define, field, frozen

from skillopt_es.audit.blame import BLAME_TYPES, Attributed, Blame, Maker, blame
from skillopt_es.events.catalog import (
    BestPromoted,
    CandidateGated,
    ComparisonDrawn,
    ComparisonExtended,
    EditsRanked,
    MetaSkillWritten,
    Recorded,
    RolloutCompleted,
    RunStarted,
    SkillScored,
    SlowUpdateApplied,
    SlowUpdateProposed,
)
from skillopt_es.events.places import SLOW, Place
from skillopt_es.events.values import GateVerdict
from skillopt_es.projections.chains import Chain
from skillopt_es.projections.fates import Fate, fates_of, note_fates, verdict_of
from skillopt_es.projections.item_results import split_in
from skillopt_es.skill.alignment import lines_of

DESCENT_TYPES = (
    *BLAME_TYPES,
    "RolloutCompleted",
    "SkillScored",
    "ComparisonDrawn",
    "ComparisonExtended",
    "MetaSkillWritten",
)
"""The events that descent is read from."""

Kind = Literal[
    "result", "score", "patch", "merge", "proposal", "note", "candidate", "verdict", "guidance", "meta_skill"
]


@frozen
class Evidence:
    """An item, or with `place` the one trajectory that it left there."""

    item: str
    place: str = ""

    def is_of(self, item: str, place: str) -> bool:
        """Whether what an item did at a place is (of) this."""
        return item == self.item and self.place in ("", place)


@frozen(kw_only=True)
class Derived:
    """One recorded thing that goes back to the evidence, and what became of it."""

    kind: Kind
    seq: int
    name: str
    step: int | None
    epoch: int | None
    fate: str = ""


@frozen(kw_only=True)
class DerivedLine:
    """A line of the current or the best skill that goes back to the evidence, counted from 1."""

    which: Literal["current", "best"]
    file: str
    number: int
    text: str
    seq: int
    step: int | None
    epoch: int | None


@frozen(kw_only=True)
class Descent:
    """
    All that goes back to a piece of evidence, in the order of the log; `taken` are the steps whose skill does.

    `unknown` are the steps that trained on it and do not say which analysts saw that: what they made is not listed.
    `unsaid` are the merges of steps that saw it which did not say what they used.
    """

    evidence: Evidence
    derived: tuple[Derived, ...]
    lines: tuple[DerivedLine, ...]
    taken: tuple[int, ...]
    unknown: tuple[int, ...] = ()
    unsaid: tuple[str, ...] = ()


@define
class _Walk:
    """
    What has been found while the events are read.

    In the `judged` steps it met a candidate or parts of one; in the `counted` epochs it was tried in a batch.
    """

    evidence: Evidence
    found: list[Derived] = field(factory=list)
    places: set[str] = field(factory=set)
    trained: set[int] = field(factory=set)
    split: str = ""
    skills: set[str] = field(factory=set)
    compared: set[int] = field(factory=set)
    advised: set[int] = field(factory=set)
    paired: set[int] = field(factory=set)
    judged: set[int] = field(factory=set)
    counted: set[int] = field(factory=set)

    def say(self, kind: Kind, seq: int, name: str, fate: str, *, step: int | None = None, epoch: int | None) -> None:
        """Notes one thing."""
        self.found.append(Derived(kind=kind, seq=seq, name=name, step=step, epoch=epoch, fate=fate))


def descent(evidence: Evidence, records: Iterable[Recorded]) -> Descent:
    """What goes back to the evidence; from all events, or those of DESCENT_TYPES."""
    rows = list(records)
    walk = _Walk(evidence)
    for recorded in rows:
        _results(walk, recorded)
        _epoch_texts(walk, recorded)
    written = blame(rows)
    chains = () if written is None else written.chains.values()
    taken = tuple(chain.step for chain in chains if _step(walk, chain) and chain.taken)
    return Descent(
        evidence=evidence,
        derived=tuple(sorted(walk.found, key=lambda each: each.seq)),
        lines=() if written is None else tuple(_lines(walk, written)),
        taken=taken,
        unknown=tuple(chain.step for chain in chains if chain.step in walk.trained and chain.analysts_unknown),
        unsaid=tuple(merge for chain in chains if _patches_of(walk, chain) for merge in chain.unsaid),
    )


def _results(walk: _Walk, recorded: Recorded) -> None:
    """The evidence itself, and the scores and verdicts in which it counts."""
    seq, event = recorded.seq, recorded.event
    match event:
        case RunStarted(algorithm="evaluation"):  # an evaluation: it has one purpose, whichever the split
            walk.split = split_in(event.splits, walk.evidence.item)
        case RolloutCompleted() if walk.evidence.is_of(event.item, event.place):
            _result(walk, seq, event)
        case SkillScored() if event.place in walk.places:
            place = Place(event.place)
            most = "" if event.exact else "at most "
            said = f"{most}hard {event.score.hard:.4f}"
            walk.say("score", seq, event.place, said, step=place.step, epoch=place.epoch)
        case CandidateGated(verdict=verdict) if event.candidate in walk.skills:
            item = walk.evidence.item
            turned = "won" if item in verdict.won else "lost" if item in verdict.lost else "same"
            fate = f"{verdict.action.replace('_', ' ')}; the item: {turned}"
            walk.say("verdict", seq, f"gate of step {event.step}", fate, step=event.step, epoch=None)
        case EditsRanked(together=GateVerdict()) if event.step in walk.judged:
            fate = f"{len(event.chosen)} of {len(event.pool)} edits stay"
            walk.say("verdict", seq, f"parts of step {event.step}", fate, step=event.step, epoch=None)
        case SlowUpdateApplied(verdict=verdict) if verdict.by_gate and event.candidate in walk.skills:
            fate = verdict.action.replace("_", " ")
            walk.say("verdict", seq, f"guidance of epoch {event.epoch}", fate, epoch=event.epoch)
        case BestPromoted() if event.skill in walk.skills:
            walk.say("verdict", seq, "promotion of the final skill", "promoted", epoch=None)


def _result(walk: _Walk, seq: int, event: RolloutCompleted) -> None:
    """One result of the evidence, and where it counts."""
    place = Place(event.place)
    walk.places.add(event.place)
    if event.purpose == "selection":
        walk.skills.add(event.skill)
    if event.purpose == "train" and place.step is not None:
        walk.trained.add(place.step)
    if place.batch is not None and place.epoch is not None:
        walk.counted.add(place.epoch)
    if event.purpose in ("selection", "parts") and place.step is not None:
        walk.judged.add(place.step)
    fate = walk.split or event.purpose.replace("_", " ")
    walk.say("result", seq, place.shown(event.item), fate, step=place.step, epoch=place.epoch)


def _epoch_texts(walk: _Walk, recorded: Recorded) -> None:
    """What the optimizer wrote at an epoch's end over a comparison that the evidence is in."""
    seq, event = recorded.seq, recorded.event
    item = walk.evidence.item
    if walk.evidence.place and not SLOW.holds(Place(walk.evidence.place).stage):
        return
    match event:
        case ComparisonDrawn() | ComparisonExtended() if item in event.items and _is_in(walk, event.epoch):
            walk.compared.add(event.epoch)
        case SlowUpdateProposed() if event.epoch in walk.compared:
            walk.paired.add(event.epoch)
            if any(pair.item == item for pair in event.pairs):
                walk.advised.add(event.epoch)
                if event.result == "guidance":
                    walk.say("guidance", seq, f"guidance of epoch {event.epoch}", "proposed", epoch=event.epoch)
        case SlowUpdateApplied() if event.epoch in walk.advised:
            fate = event.verdict.action.replace("_", " ")
            walk.say("guidance", seq, f"guidance of epoch {event.epoch}", fate, epoch=event.epoch)
        case MetaSkillWritten() if event.epoch in walk.compared and event.result == "written":
            if event.epoch in walk.advised or event.epoch not in walk.paired:
                walk.say("meta_skill", seq, f"meta skill of epoch {event.epoch}", event.result, epoch=event.epoch)


def _is_in(walk: _Walk, epoch: int) -> bool:
    """Whether the evidence, where it is one trajectory, is of this epoch."""
    return not walk.evidence.place or Place(walk.evidence.place).epoch == epoch


def _patches_of(walk: _Walk, chain: Chain) -> frozenset[str]:
    """The patches of a step whose analysts saw the evidence, or were told counts that it is in."""
    place, item = Place(walk.evidence.place), walk.evidence.item
    seen = (name for name, patch in chain.patches.items() if item in patch.event.items)
    groups = () if chain.groups is None or chain.epoch not in walk.counted else chain.groups.event.groups
    # A question without items is one about the whole folder: it is told what all attempts of its epoch came to.
    told = {group.id for group in groups if not group.items}.intersection(chain.patches)
    return frozenset({name for name in seen if not place or place.holds(name)} | told)


def _step(walk: _Walk, chain: Chain) -> bool:
    """Notes what a step made of the evidence; whether its candidate goes back to it."""
    patches = _patches_of(walk, chain)
    if not patches:
        return False
    for name in patches:
        patch = chain.patches[name]
        walk.say("patch", patch.seq, name, patch.event.result, step=chain.step, epoch=chain.epoch)
    from_it = [name for name in chain.proposals if patches & set(chain.patches_behind(name))]
    for name in dict.fromkeys(chain.maker_of[each] for each in from_it):
        if name in chain.merges:
            walk.say("merge", chain.merges[name].seq, name, "merged", step=chain.step, epoch=chain.epoch)
    for name in from_it:
        maker = chain.maker_of[name]
        made = chain.merges.get(maker) or chain.patches[maker]
        fates = "; ".join(dict.fromkeys(map(_fate, fates_of(chain, name))))
        walk.say("proposal", made.seq, name, fates, step=chain.step, epoch=chain.epoch)
    noted = [fate for fate in note_fates(chain) if fate.patch in patches]
    for fate in noted:
        assert chain.extended is not None
        reason = fate.reason.replace("_", " ")
        walk.say("note", chain.extended.seq, fate.note, reason, step=chain.step, epoch=chain.epoch)
    return _candidate(walk, chain, set(from_it), noted_in=any(fate.reason == "taken" for fate in noted))


def _fate(fate: Fate) -> str:
    return fate.reason.replace("_", " ")


def _candidate(walk: _Walk, chain: Chain, from_it: set[str], *, noted_in: bool) -> bool:
    if chain.written is not None and noted_in:
        walk.say("note", chain.written.seq, "written after the verdict", "taken", step=chain.step, epoch=chain.epoch)
    if chain.built is None:
        return noted_in
    carried = chain.built.event.applied
    measured = chain.extended is not None and chain.extended.event.order == "measured"
    if not (from_it.intersection(carried) or (measured and noted_in)):
        return noted_in
    fate = verdict_of(chain)[0].replace("_", " ")
    name = chain.built.event.candidate.hash[:12]
    walk.say("candidate", chain.built.seq, name, fate, step=chain.step, epoch=chain.epoch)
    return True


def _lines(walk: _Walk, written: Blame) -> Iterator[DerivedLine]:
    """The lines whose maker carried out what goes back to the evidence."""
    texts: tuple[tuple[Literal["current", "best"], Attributed], ...] = (
        ("current", written.current),
        ("best", written.best),
    )
    for which, text in texts:
        for file, makers in text.makers.items():
            rows = zip(lines_of(text.skill.files[file]), makers, strict=True)
            for number, (line, maker) in enumerate(rows, start=1):
                if line.strip() and _goes_back(walk, written, maker):
                    yield DerivedLine(which=which, file=file, number=number, text=line,
                                      seq=maker.seq, step=maker.step, epoch=maker.epoch)  # fmt: skip


def _goes_back(walk: _Walk, written: Blame, maker: Maker) -> bool:
    if maker.kind == "guidance":
        return maker.epoch in walk.advised
    chain = written.chains.get(maker.step) if maker.step is not None else None
    if chain is None:
        return False
    patches = _patches_of(walk, chain)
    behind = {patch for name in maker.proposals for patch in chain.patches_behind(name)}
    return bool(patches & (behind | set(maker.patches)))
