"""
What led to each step's verdict and to each epoch's end, joined by id: patches, merges, ranking, candidate, gate.

A chain holds what has been recorded of its step so far; a step that is open has an open chain.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Generic, TypeVar

from attrs import define, evolve, field, frozen

from skillopt_es.events.catalog import (
    AppendixConsolidated,
    AppendixExtended,
    AppendixWritten,
    CandidateBuilt,
    CandidateGated,
    CertificateWagered,
    ComparisonDrawn,
    ComparisonExtended,
    EditsRanked,
    Event,
    GapFound,
    LearningRateChosen,
    MetaSkillWritten,
    MinibatchesPlanned,
    PatchesMerged,
    PatchProposed,
    Recorded,
    RunStarted,
    SkillRewritten,
    SkillScored,
    SlowUpdateApplied,
    SlowUpdateProposed,
    StepSkipped,
    TriesPlanned,
    names_of,
)
from skillopt_es.events.places import Place
from skillopt_es.events.values import CallRef, EditReport, GateVerdict, Proposal
from skillopt_es.projections.state import proposals_in
from skillopt_es.projections.wording import by_wording, same_words

E_co = TypeVar("E_co", bound=Event, covariant=True)


@frozen
class Seen(Generic[E_co]):
    """An event of a known type and its number."""

    seq: int
    event: E_co


@frozen(kw_only=True)
class Chain:
    """
    One step, from the groups its analysts looked at to what became of its candidate.

    `alone` has the texts with each change alone, where a screen tried them, in the order of its credits. `widened` are
    texts that met further validation items right after it.
    """

    step: int
    epoch: int
    wagered: Seen[CertificateWagered] | None = None
    groups: Seen[MinibatchesPlanned] | None = None
    patches: Mapping[str, Seen[PatchProposed]] = field(factory=dict)
    extended: Seen[AppendixExtended] | None = None
    consolidated: Seen[AppendixConsolidated] | None = None
    merges: Mapping[str, Seen[PatchesMerged]] = field(factory=dict)
    learning_rate: Seen[LearningRateChosen] | None = None
    tries: tuple[Seen[TriesPlanned], ...] = ()
    alone: tuple[Seen[CandidateBuilt], ...] = ()
    ranked: Seen[EditsRanked] | None = None
    rewritten: Seen[SkillRewritten] | None = None
    first_built: Seen[CandidateBuilt] | None = None
    built: Seen[CandidateBuilt] | None = None
    gated: Seen[CandidateGated] | None = None
    skipped: Seen[StepSkipped] | None = None
    written: Seen[AppendixWritten] | None = None
    gap: Seen[GapFound] | None = None
    widened: tuple[Seen[SkillScored], ...] = ()

    @property
    def verdict(self) -> GateVerdict | None:
        """What the gate said of its candidate; None for a step whose candidate met no gate."""
        return None if self.gated is None else self.gated.event.verdict

    @property
    def taken(self) -> bool:
        """Whether its candidate became the current skill."""
        return self.verdict is not None and self.verdict.taken

    @property
    def analysts_unknown(self) -> bool:
        """Whether it had analysts and nobody recorded which trajectories they saw, as in an imported run."""
        later = (self.ranked, self.rewritten, self.built, self.gated, self.gap)
        return self.groups is None and (bool(self.patches) or any(each is not None for each in later))

    @property
    def events(self) -> tuple[Seen[Event], ...]:
        """All that was recorded of it, in order."""
        single = (self.groups, self.extended, self.consolidated, self.learning_rate, self.ranked, self.rewritten)
        ends = (self.wagered, self.built, self.gated, self.skipped, self.written, self.gap)
        there = [each for each in (*single, *ends) if each is not None]
        many = (*self.tries, *self.patches.values(), *self.merges.values(), *self.widened)
        return tuple(sorted([*there, *many], key=lambda seen: seen.seq))

    @cached_property
    def proposals(self) -> Mapping[str, Proposal]:
        """Every edit, suggestion or draft of analysts and merges, by id."""
        return {each.id: each for made in self._made() for each in proposals_in(made.event)}

    @cached_property
    def maker_of(self) -> Mapping[str, str]:
        """The patch or the merge that wrote each proposal."""
        makers = {each.id: name for name, made in self.patches.items() for each in proposals_in(made.event)}
        return makers | {each.id: name for name, made in self.merges.items() for each in proposals_in(made.event)}

    @cached_property
    def unsaid(self) -> tuple[str, ...]:
        """The merges that did not say which of several proposals they used: those are matched by wording."""
        return tuple(dict.fromkeys(self.maker_of[name] for name in self._unsaid))

    @cached_property
    def merged_into(self) -> Mapping[str, tuple[str, ...]]:
        """The proposals of merges that name a proposal as their origin or, where a merge left that unsaid, say it."""
        into: dict[str, list[str]] = {}
        for new in self.proposals.values():
            for origin in () if new.id in self._unsaid else new.origins:
                into.setdefault(origin, []).append(new.id)
        for name in self.unsaid:
            unnamed = [each for each in self._seen_by(name) if each.id not in into]
            written = [each for each in proposals_in(self.merges[name].event) if each.id in self._unsaid]
            for origin, new_id in by_wording(unnamed, written).items():
                into.setdefault(origin, []).append(new_id)
        return {origin: tuple(names) for origin, names in into.items()}

    @cached_property
    def sources(self) -> Mapping[str, tuple[str, ...]]:
        """What each proposal came from; where a merge left that unsaid and nothing matches, nothing."""
        found: dict[str, list[str]] = {
            name: [] if name in self._unsaid else [*each.origins] for name, each in self.proposals.items()
        }
        for origin, names in self.merged_into.items():
            for name in names:
                if origin not in found[name]:
                    found[name].append(origin)
        return {name: tuple(origins) for name, origins in found.items()}

    @cached_property
    def ends_in(self) -> Mapping[str, str]:
        """The merge that saw each patch's or merge's proposals."""
        return {source: name for name, made in self.merges.items() for source in made.event.inputs}

    @cached_property
    def reports(self) -> Mapping[str, EditReport]:
        """What the candidate's making says of each proposal that was chosen."""
        return {} if self.built is None else {report.edit: report for report in self.built.event.reports}

    @cached_property
    def left_out(self) -> Mapping[str, EditReport]:
        """What is said of the proposals that were not even in the candidate of all together."""
        if self.first_built is None or self.ranked is None or self.ranked.event.together is None:
            return {}
        return {
            report.edit: report
            for report in self.first_built.event.reports
            if report.edit not in self.ranked.event.pool
        }

    @cached_property
    def in_skill(self) -> Mapping[tuple[str, ...], str]:
        """The proposals that became part of the current skill, by what they say."""
        applied = [name for name, report in self.reports.items() if report.applied]
        return {same_words(self.proposals[name]): name for name in applied if self.taken and name in self.proposals}

    def unplaced(self, proposal: str) -> bool:
        """Whether a merge wrote this without saying from what, and in words that none of its inputs has."""
        return proposal in self._unsaid and not self.sources[proposal]

    def made_of(self, proposal: str) -> tuple[str, ...]:
        """The proposal and all that is known to have been merged into it, newest first, each once."""
        return self._reached(proposal, self.sources.__getitem__)

    def ancestry(self, proposal: str) -> tuple[str, ...]:
        """The proposal and all that may have been merged into it: of an unplaced one that is all that its merge saw."""
        if proposal not in self._ancestries:
            self._ancestries[proposal] = self._reached(
                proposal, lambda name: self.proposals[name].origins if self.unplaced(name) else self.sources[name]
            )
        return self._ancestries[proposal]

    @cached_property
    def _ancestries(self) -> dict[str, tuple[str, ...]]:
        return {}  # of those that were asked for: all of them can be a square

    def _reached(self, proposal: str, origins: Callable[[str], tuple[str, ...]]) -> tuple[str, ...]:
        found: dict[str, None] = {}
        waiting = deque([proposal])
        while waiting:
            name = waiting.popleft()
            if name in self.proposals and name not in found:
                found[name] = None
                waiting += origins(name)
        return tuple(found)

    def patches_behind(self, proposal: str) -> tuple[str, ...]:
        """The analysts' patches that a proposal goes back to."""
        makers = (self.maker_of[name] for name in self.ancestry(proposal))
        return tuple(dict.fromkeys(maker for maker in makers if maker in self.patches))

    def items_behind(self, patches: Iterable[str]) -> tuple[str, ...]:
        """The items whose trajectories the analysts of these patches saw."""
        seen = (self.patches[name].event.items for name in patches if name in self.patches)
        return tuple(dict.fromkeys(item for items in seen for item in items))

    def calls_behind(self, proposal: str) -> tuple[CallRef, ...]:
        """The optimizer's calls without which a proposal would not have been applied: each once."""
        calls: list[CallRef] = []
        for name in dict.fromkeys(self.maker_of[each] for each in self.ancestry(proposal)):
            made = self.patches.get(name) or self.merges[name]
            calls += made.event.calls
        for chosen in (self.learning_rate, self.ranked, self.rewritten):
            calls += chosen.event.calls if chosen is not None else ()
        return tuple(dict.fromkeys(calls))

    @cached_property
    def _unsaid(self) -> Mapping[str, None]:
        """The proposals that a merge credits to all that it saw; of a single one there is no doubt."""
        doubtful = (made for name, made in self.merges.items() if len(self._seen_by(name)) > 1)
        return {each.id: None for made in doubtful for each in proposals_in(made.event) if each.origins_assumed}

    def _seen_by(self, merge: str) -> tuple[Proposal, ...]:
        """The proposals that a merge was shown."""
        made = (self.merges.get(name) or self.patches.get(name) for name in self.merges[merge].event.inputs)
        return tuple(proposal for each in made if each is not None for proposal in proposals_in(each.event))

    def _made(self) -> tuple[Seen[PatchProposed] | Seen[PatchesMerged], ...]:
        return (*self.patches.values(), *self.merges.values())


def _with_groups(chain: Chain, seen: Seen[MinibatchesPlanned]) -> Chain:
    """With one more round of groups; a step has one of them, unless it asks again."""
    earlier = () if chain.groups is None else chain.groups.event.groups
    return evolve(chain, groups=evolve(seen, event=evolve(seen.event, groups=(*earlier, *seen.event.groups))))


def _with_built(chain: Chain, seen: Seen[CandidateBuilt]) -> Chain:
    """With one more text; before anything was chosen it may be one change alone."""
    alone = (*chain.alone, seen) if chain.ranked is None else chain.alone
    return evolve(chain, first_built=chain.first_built or seen, built=seen, alone=alone)


_JOINED: Mapping[type[Event], Callable[..., Chain]] = {
    CertificateWagered: lambda chain, seen: evolve(chain, wagered=seen),
    MinibatchesPlanned: _with_groups,
    PatchProposed: lambda chain, seen: evolve(chain, patches={**chain.patches, seen.event.patch: seen}),
    AppendixExtended: lambda chain, seen: evolve(chain, extended=seen),
    AppendixConsolidated: lambda chain, seen: evolve(chain, consolidated=seen),
    PatchesMerged: lambda chain, seen: evolve(chain, merges={**chain.merges, seen.event.merge: seen}),
    LearningRateChosen: lambda chain, seen: evolve(chain, learning_rate=seen),
    TriesPlanned: lambda chain, seen: evolve(chain, tries=(*chain.tries, seen)),
    EditsRanked: lambda chain, seen: evolve(chain, ranked=seen),
    SkillRewritten: lambda chain, seen: evolve(chain, rewritten=seen),
    CandidateBuilt: _with_built,
    CandidateGated: lambda chain, seen: evolve(chain, gated=seen),
    StepSkipped: lambda chain, seen: evolve(chain, skipped=seen),
    AppendixWritten: lambda chain, seen: evolve(chain, written=seen),
    GapFound: lambda chain, seen: evolve(chain, gap=seen),
    SkillScored: lambda chain, seen: evolve(chain, widened=(*chain.widened, seen)),
}
CHAIN_TYPES = names_of((RunStarted, *_JOINED))
"""The events that chains are made of."""


def _step_of(event: Event) -> int | None:
    """The step that an event is of; a gap, a bet at the end of a run, and most evaluations are of none."""
    if isinstance(event, SkillScored):
        return Place(event.place).step if event.goes_on else None
    if isinstance(event, CertificateWagered):
        return Place(event.place).step
    step = getattr(event, "step", None)
    return step if isinstance(step, int) else None


@define
class ChainBuilder:
    """Chains while their events are read, for those who read other events beside them."""

    chains: dict[int, Chain] = field(factory=dict)
    steps_per_epoch: int = 1

    def add(self, recorded: Recorded) -> None:
        """Takes one event in; those of other types are left alone."""
        event = recorded.event
        join = _JOINED.get(type(event))
        if isinstance(event, RunStarted):
            self.steps_per_epoch = max(1, event.steps_per_epoch)
        elif join is not None and (step := _step_of(event)) is not None:
            chain = self.chains.get(step) or Chain(step=step, epoch=(step - 1) // self.steps_per_epoch + 1)
            self.chains[step] = join(chain, Seen(recorded.seq, event))


def chains(records: Iterable[Recorded]) -> Mapping[int, Chain]:
    """The chain of every step that has begun, by step; from all of a run's events, or those of CHAIN_TYPES."""
    builder = ChainBuilder()
    for recorded in records:
        builder.add(recorded)
    return builder.chains


@frozen(kw_only=True)
class EpochEnd:
    """The end of one epoch, as far as it has been recorded; what failed is asked for again, and judged later."""

    epoch: int
    drawn: Seen[ComparisonDrawn] | None = None
    extended: tuple[Seen[ComparisonExtended], ...] = ()
    proposed: tuple[Seen[SlowUpdateProposed], ...] = ()
    applied: tuple[Seen[SlowUpdateApplied], ...] = ()
    meta: tuple[Seen[MetaSkillWritten], ...] = ()

    @property
    def events(self) -> tuple[Seen[Event], ...]:
        """All that was recorded of it, in order."""
        drawn = () if self.drawn is None else (self.drawn,)
        there: tuple[Seen[Event], ...] = (*drawn, *self.extended, *self.proposed, *self.applied, *self.meta)
        return tuple(sorted(there, key=lambda seen: seen.seq))


def epoch_ends(records: Iterable[Recorded]) -> Mapping[int, EpochEnd]:
    """The end of every epoch that has ended; from all of a run's events, or those of END_TYPES."""
    ends: dict[int, EpochEnd] = {}
    for recorded in records:
        join = _ENDS.get(type(recorded.event))
        if join is not None:
            epoch = int(getattr(recorded.event, "epoch"))  # noqa: B009 -- all that are joined have one
            ends[epoch] = join(ends.get(epoch) or EpochEnd(epoch=epoch), Seen(recorded.seq, recorded.event))
    return ends


_ENDS: Mapping[type[Event], Callable[..., EpochEnd]] = {
    ComparisonDrawn: lambda end, seen: evolve(end, drawn=seen),
    ComparisonExtended: lambda end, seen: evolve(end, extended=(*end.extended, seen)),
    SlowUpdateProposed: lambda end, seen: evolve(end, proposed=(*end.proposed, seen)),
    SlowUpdateApplied: lambda end, seen: evolve(end, applied=(*end.applied, seen)),
    MetaSkillWritten: lambda end, seen: evolve(end, meta=(*end.meta, seen)),
}
END_TYPES = names_of(_ENDS)
"""The events that ends of epochs are made of."""
