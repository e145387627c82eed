"""
Who wrote each line of a skill, and what is behind it: one walk over the recorded texts, edits, rewrites and notes.

A line has one maker: the event that wrote its text as it stands. Lines that a change keeps, or a rewrite moves, keep
their maker. Pure: the same events give the same answer.

A call's tokens are divided equally between the lines it led to: those that are not blank and were written, at the time,
into a text that was taken. Shares of all lines ever written thus add up to the calls that led to any.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Literal

from attrs import define, evolve, field, frozen

from skillopt_es.events.catalog import (
    AppendixWritten,
    BestPromoted,
    CandidateBuilt,
    CandidateGated,
    Event,
    GapFound,
    Recorded,
    RunStarted,
    RunSteered,
    SlowUpdateApplied,
    SlowUpdateProposed,
)
from skillopt_es.events.places import Place
from skillopt_es.events.values import CallRef, Credit, Edit, GateVerdict, Proposal, SkillTree
from skillopt_es.projections.chains import CHAIN_TYPES, Chain, ChainBuilder
from skillopt_es.projections.core import moved
from skillopt_es.projections.trust import Attempts, Support, attempts_of, label, patches_behind, support_of
from skillopt_es.projections.usage import UsageSums
from skillopt_es.skill.alignment import Change, Origin, align, carried, changes, lines_of
from skillopt_es.skill.appendix import clean_note
from skillopt_es.skill.edits import apply_edits

BLAME_TYPES = (*CHAIN_TYPES, "SlowUpdateProposed", "SlowUpdateApplied", "BestPromoted", "RunSteered")
"""The events that a text's lines come from."""

Kind = Literal["initial", "edit", "rewrite", "notes", "guidance", "unknown"]


@frozen(kw_only=True)
class Maker:
    """What wrote a line: the event that put it into the text, and the proposals and patches that it carried out."""

    kind: Kind
    seq: int
    step: int | None = None
    epoch: int | None = None
    proposals: tuple[str, ...] = ()
    patches: tuple[str, ...] = ()


@frozen(kw_only=True)
class Attributed:
    """A skill, and for each of its files a maker for each line."""

    skill: SkillTree
    makers: Mapping[str, tuple[Maker, ...]]


@frozen(kw_only=True)
class Blame:
    """The current and the best text line by line, and what is needed to tell what is behind a line."""

    current: Attributed
    best: Attributed
    chains: Mapping[int, Chain]
    guidance: Mapping[int, SlowUpdateProposed]
    lines_written: Mapping[Maker, int]
    """How many lines that are not blank each maker wrote into a text that was taken."""


@define
class _Walk:
    """The texts while their events are read."""

    chains: ChainBuilder = field(factory=ChainBuilder)
    guidance: dict[int, SlowUpdateProposed] = field(factory=dict)
    held: dict[str, Attributed] = field(factory=dict)
    candidate: Callable[[], Attributed] | None = None  # most are refused, and nobody asks for their lines
    written: Counter[Maker] = field(factory=Counter)

    @property
    def current(self) -> Attributed:
        """The text that the next one is made from."""
        return self.held["current"]

    def take(self, event: Event, text: Attributed) -> None:
        """A text takes the places that the event gives it; what is new in it counts as written."""
        before = self.held.get("current")
        self.held = moved(self.held, event, text)
        known = set() if before is None else {maker for makers in before.makers.values() for maker in makers}
        for file, makers in text.makers.items():
            for maker, line in zip(makers, lines_of(text.skill.files[file]), strict=True):
                if maker not in known and line.strip():
                    self.written[maker] += 1


def blame(records: Iterable[Recorded]) -> Blame | None:
    """The makers of the current and the best text's lines; None where not even the run's beginning is there."""
    walk = _Walk()
    for recorded in records:
        walk.chains.add(recorded)
        _step(walk, recorded)
        _outside_steps(walk, recorded)
    if not walk.held:
        return None
    return Blame(
        current=walk.held["current"],
        best=walk.held["best"],
        chains=walk.chains.chains,
        guidance=walk.guidance,
        lines_written=walk.written,
    )


def _step(walk: _Walk, recorded: Recorded) -> None:
    seq = recorded.seq
    match recorded.event:
        case RunStarted() as event:
            first = Maker(kind="initial", seq=seq)
            makers = {file: (first,) * len(lines_of(text)) for file, text in event.skill.files.items()}
            walk.take(event, Attributed(skill=event.skill, makers=makers))
        case CandidateBuilt() as event:
            walk.candidate = partial(_built, walk.current, event, seq, walk.chains.chains[event.step])
        case CandidateGated(verdict=verdict) as event if verdict.taken and walk.candidate is not None:
            walk.take(event, walk.candidate())
        case BestPromoted() as event:
            walk.take(event, walk.current)


def _outside_steps(walk: _Walk, recorded: Recorded) -> None:
    """Texts that no gate let in: guidance, notes after the verdict, and what nothing explains."""
    seq = recorded.seq
    match recorded.event:
        case SlowUpdateProposed() as event:
            walk.guidance[event.epoch] = event
        case SlowUpdateApplied(verdict=verdict) as event if verdict.taken:
            walk.take(event, _aligned(walk.current, event.skill, Maker(kind="guidance", seq=seq, epoch=event.epoch)))
        case AppendixWritten() as event:
            chain = walk.chains.chains[event.step]
            maker = Maker(kind="notes", seq=seq, step=event.step, epoch=chain.epoch, patches=_noting(chain))
            walk.take(event, _noted(_aligned(walk.current, event.skill, maker), maker, chain))
        case RunSteered() as event if event.skill is not None:  # lines only go, and those that stay keep their makers
            walk.take(event, _aligned(walk.current, event.skill, Maker(kind="unknown", seq=seq)))
        case GapFound() as event if event.skill is not None:
            walk.take(event, _aligned(walk.current, event.skill, Maker(kind="unknown", seq=seq, step=event.step)))


def _built(current: Attributed, event: CandidateBuilt, seq: int, chain: Chain) -> Attributed:
    """The candidate: its edits or its rewrite, and then its reminder notes; else all that differs, as one change."""
    origin = Origin(
        reports=event.reports,
        proposals=chain.proposals,
        rewrite=event.rewrite,
        written=_whole_text(event, chain),
        gaps_closed=event.gaps_closed,
    )
    kind: Kind = "rewrite" if event.rewrite is not None else "edit"
    if not _can_be_walked(current, event, chain):
        known = event.applied
        whole = Maker(kind=kind, seq=seq, step=event.step, epoch=chain.epoch, proposals=known)
        return _aligned(current, event.candidate, whole)
    noted = Maker(kind="notes", seq=seq, step=event.step, epoch=chain.epoch, patches=_noting(chain))
    labels = dict(current.makers)
    for change in changes(current.skill, event.candidate, origin):
        maker = noted
        if change.made_by:
            maker = Maker(kind=kind, seq=seq, step=event.step, epoch=chain.epoch, proposals=change.made_by)
        before = [each for source in change.sources for each in labels[source]]
        after = carried(before, change, maker)
        # What several skills became is written anew, so their lines may stand in any order.
        written_anew = kind == "rewrite" or len(change.sources) > 1
        labels[change.file] = _moved(before, change, after) if written_anew else after
    makers = {file: labels[file] for file in event.candidate.files}
    return _noted(Attributed(skill=event.candidate, makers=makers), noted, chain)


def _can_be_walked(current: Attributed, event: CandidateBuilt, chain: Chain) -> bool:
    """Whether the recorded edits lead from the current text to the candidate's; those of an imported run may not."""
    applied = event.applied
    if event.parent != current.skill.hash or any(name not in chain.proposals for name in applied):
        return False
    if event.rewrite is not None or event.notes:
        return True
    edits = [chain.proposals[name] for name in applied]
    applicable = [each for each in edits if isinstance(each, Edit)]
    return apply_edits(current.skill, applicable, close_gaps=event.gaps_closed)[0] == event.candidate


def _whole_text(event: CandidateBuilt, chain: Chain) -> str:
    """What a model wrote in place of the skill; empty where edits were applied."""
    if event.rewrite is None:
        return ""
    if chain.rewritten is not None:
        return chain.rewritten.event.text
    drafts = [chain.proposals[report.edit] for report in event.reports if report.edit in chain.proposals]
    return next((text for draft in drafts if (text := getattr(draft, "text", ""))), "")


def _moved(before: Sequence[Maker], change: Change, after: tuple[Maker, ...]) -> tuple[Maker, ...]:
    """Lines that a rewrite put elsewhere word for word keep their maker, too; each old line is found again once."""
    old, new = lines_of(change.before), lines_of(change.after)
    kept_old = {run.old_start + offset for run in change.kept for offset in range(run.length)}
    kept_new = {run.new_start + offset for run in change.kept for offset in range(run.length)}
    gone: dict[str, list[int]] = {}
    # Reversed, so that `pop` gives the first of equal lines.
    for place in reversed([place for place in range(len(old)) if place not in kept_old]):
        gone.setdefault(old[place], []).append(place)
    makers = list(after)
    for place, line in enumerate(new):
        if place not in kept_new and line.strip() and gone.get(line):
            makers[place] = before[gone[line].pop()]
    return tuple(makers)


def _aligned(current: Attributed, skill: SkillTree, maker: Maker) -> Attributed:
    """A newer text in which lines that stand in the current one keep their maker."""
    makers = {}
    for file, text in skill.files.items():
        old = current.skill.files.get(file, "")
        change = Change(file=file, sources=(file,), before=old, after=text, kept=align(old, text), made_by=())
        makers[file] = carried(current.makers.get(file, ()), change, maker)
    return Attributed(skill=skill, makers=makers)


def _noting(chain: Chain) -> tuple[str, ...]:
    """The patches whose reminder notes a step added."""
    reports = chain.extended.event.reports if chain.extended is not None else ()
    return tuple(dict.fromkeys(report.patch for report in reports if report.status == "added"))


def _noted(text: Attributed, maker: Maker, chain: Chain) -> Attributed:
    """Lines of reminder notes come from the one patch that proposed the note, where its wording is still its own."""
    reports = chain.extended.event.reports if chain.extended is not None else ()
    by_note = {report.note: report.patch for report in reports if report.status == "added"}
    main = text.skill.main
    if not main:
        return text
    makers = []
    for each, line in zip(text.makers[main], lines_of(text.skill.text), strict=True):
        patch = by_note.get(clean_note(line)) if each == maker else None
        makers.append(each if patch is None else evolve(maker, patches=(patch,)))
    return Attributed(skill=text.skill, makers={**text.makers, main: tuple(makers)})


def guidance_behind(found: Blame, maker: Maker) -> SlowUpdateProposed | None:
    """The optimizer's answer that guidance comes from; None for other lines, and for a mere place for guidance."""
    return found.guidance.get(maker.epoch) if maker.kind == "guidance" and maker.epoch is not None else None


def calls_behind(found: Blame, maker: Maker) -> tuple[CallRef, ...]:
    """The optimizer's calls that a maker's lines go back to, each once."""
    if maker.kind == "guidance":
        guidance = guidance_behind(found, maker)
        return () if guidance is None else guidance.calls
    chain = found.chains.get(maker.step) if maker.step is not None else None
    if chain is None:
        return ()
    calls = [call for name in maker.proposals for call in chain.calls_behind(name)]
    calls += [call for name in maker.patches if name in chain.patches for call in chain.patches[name].event.calls]
    if maker.kind == "notes" and chain.consolidated is not None:
        calls += chain.consolidated.event.calls
    return tuple(dict.fromkeys(calls))


@frozen(kw_only=True)
class Cost:
    """
    A share of some calls' tokens and money; None where nothing is known of any call behind it.

    `silent` counts the calls that did not report all their tokens, `unpriced` those that cost an unknown amount.
    """

    calls: int = 0
    input: float | None = None
    output: float | None = None
    silent: int = 0
    money: float | None = None
    unpriced: int = 0

    @property
    def tokens(self) -> float | None:
        """In and out together."""
        if self.input is None and self.output is None:
            return None
        return (self.input or 0.0) + (self.output or 0.0)


@frozen(kw_only=True)
class Behind:
    """
    What is behind all lines of one maker; the proposals are those it carried out and what was merged into them.

    `unsaid` are the merges on the way that did not say which of their inputs they used, `unplaced` the proposals that
    nothing which such a merge saw is worded like: of these all analysts and items count. `support` says whether a
    trusted attempt stands behind them, or only untrusted ones. `credits` are what those edits have earned alone that
    were tried alone.
    """

    proposals: tuple[Proposal, ...]
    patches: tuple[str, ...]
    items: tuple[str, ...]
    gate: GateVerdict | None
    cost: Cost
    unsaid: tuple[str, ...] = ()
    unplaced: tuple[str, ...] = ()
    support: Support = "trusted"
    credits: tuple[Credit, ...] = ()


@frozen(kw_only=True)
class BlamedLine:
    """One line, counted from 1, who wrote it, and what is behind it."""

    number: int
    text: str
    maker: Maker
    behind: Behind


def slots_behind(found: Blame) -> frozenset[str]:
    """The slots of all calls that led to any line that was ever written."""
    return frozenset(call.slot for maker in found.lines_written for call in calls_behind(found, maker))


def blamed_lines(
    found: Blame, text: Attributed, file: str, usage: Mapping[str, UsageSums], untrusted: Attempts = frozenset()
) -> tuple[BlamedLine, ...]:
    """Each line of a file of one of the texts; `usage` has what each slot's calls used."""
    makers = text.makers[file]
    lines_of_slot: dict[str, int] = {}
    for maker, lines in found.lines_written.items():
        for slot in dict.fromkeys(call.slot for call in calls_behind(found, maker)):
            lines_of_slot[slot] = lines_of_slot.get(slot, 0) + lines
    behind = {
        maker: evolve(_behind(found, maker, usage, lines_of_slot), support=_support(found, maker, untrusted))
        for maker in dict.fromkeys(makers)
    }
    nothing = Cost()
    rows = []
    for number, (line, maker) in enumerate(zip(lines_of(text.skill.files[file]), makers, strict=True), start=1):
        what = behind[maker]
        if not line.strip():
            what = evolve(what, cost=nothing)
        rows.append(BlamedLine(number=number, text=line, maker=maker, behind=what))
    return tuple(rows)


def _behind(found: Blame, maker: Maker, usage: Mapping[str, UsageSums], lines_of_slot: Mapping[str, int]) -> Behind:
    slots = dict.fromkeys(call.slot for call in calls_behind(found, maker))
    cost = _cost((usage[slot], lines_of_slot[slot]) for slot in slots if slot in usage and lines_of_slot.get(slot))
    chain = found.chains.get(maker.step) if maker.step is not None else None
    if chain is None:
        guidance = guidance_behind(found, maker)
        items = () if guidance is None else tuple(pair.item for pair in guidance.pairs)
        return Behind(proposals=(), patches=(), items=items, gate=None, cost=cost)
    names = dict.fromkeys(name for each in maker.proposals for name in chain.made_of(each))
    makers = {chain.maker_of[name] for name in names}
    earned = () if chain.ranked is None else chain.ranked.event.credits
    patches = (*maker.patches, *(patch for name in maker.proposals for patch in chain.patches_behind(name)))
    patches = tuple(dict.fromkeys(patches))
    return Behind(
        proposals=tuple(evolve(chain.proposals[name], origins=chain.sources[name]) for name in names),
        patches=patches,
        items=chain.items_behind(patches),
        gate=chain.verdict,
        cost=cost,
        unsaid=tuple(merge for merge in chain.unsaid if merge in makers),
        unplaced=tuple(name for name in names if chain.unplaced(name)),
        credits=tuple(each for each in earned if each.edit in names),
    )


def _support(found: Blame, maker: Maker, untrusted: Attempts) -> Support:
    """What a maker's lines stand on; where several proposals made them, the weakest of them counts."""
    if not untrusted:
        return "trusted"
    guidance = guidance_behind(found, maker)
    if guidance is not None:
        return _of_guidance(guidance, untrusted)
    chain = found.chains.get(maker.step) if maker.step is not None else None
    if chain is None:
        return "trusted"
    groups = chain.groups.event.groups if chain.groups is not None else ()
    # Not by wording: as the gate looked at it, which goes by what is recorded.
    patches = [patches_behind(each, chain.proposals, chain.patches) for each in maker.proposals] or [maker.patches]
    each = [support_of(label(*attempt, untrusted) for attempt in attempts_of(one, groups)) for one in patches]
    return max(each, key=("trusted", "mixed", "untrusted").index)


def _of_guidance(guidance: SlowUpdateProposed, untrusted: Attempts) -> Support:
    """The pairs that were compared; one side that nobody vouches for makes a pair doubtful."""
    compared = Place.of_epoch(guidance.epoch).slow
    seen = {item for place, item in untrusted if compared.holds(place)}
    return support_of("untrusted" if pair.item in seen else "trusted" for pair in guidance.pairs)


def _cost(shares: Iterable[tuple[UsageSums, int]]) -> Cost:
    calls = silent = unpriced = 0
    into: float | None = None
    out: float | None = None
    money: float | None = None
    for usage, lines in shares:
        if not usage.calls:  # its answer was that of a call elsewhere
            continue
        calls += usage.calls
        silent += max(usage.input.silent, usage.output.silent)
        if usage.input.known is not None:
            into = (into or 0.0) + usage.input.known / lines
        if usage.output.known is not None:
            out = (out or 0.0) + usage.output.known / lines
        unpriced += usage.cost.unknown
        if usage.cost.known is not None:
            money = (money or 0.0) + float(usage.cost.known) / lines
    return Cost(calls=calls, input=into, output=out, silent=silent, money=money, unpriced=unpriced)
