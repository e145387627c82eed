"""
The scores of a run told honestly: over how many items, how far they can be trusted, and which differences are noise.

Pure: from the recorded evaluations, the results of single items, and the gate's verdicts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from attrs import evolve, field, frozen

from skillopt_es.events.catalog import SkillScored
from skillopt_es.events.values import GateVerdict, Outcome
from skillopt_es.projections.by_hand import ByHand
from skillopt_es.projections.chains import Chain
from skillopt_es.projections.intervals import Interval, Paired, draws, hard_means, paired, wilson, wilson_by_family
from skillopt_es.projections.item_results import ItemResults, Results, families_of
from skillopt_es.projections.lineage import Lineage
from skillopt_es.projections.lines import Part, last_whole
from skillopt_es.projections.summary import Summary

Name = Literal["initial", "best", "final", "current", "skill"]
Split = Literal["test", "validation", "train"]


@frozen(kw_only=True)
class Headline:
    """
    One text's score on one split; `names` are all that this text is called.

    `items` is None where an imported run does not say it; then there is no interval and no `grid` step, which is what
    one item is worth. `draws` says how often each item was measured at least and at most, for this score. A score that
    is not `exact` is an upper bound: not every item was run. A text that was `chosen` for its score on these very items
    has no interval on them. `by_family` is the interval over types of tasks, where items have any. `over` is said of a
    validation score that is not over all items.
    """

    split: Split
    names: tuple[Name, ...]
    skill: str
    hard: float
    soft: float
    items: int | None
    unmeasured: int | None
    draws: tuple[int, int]
    exact: bool
    chosen: bool = False
    by_family: Interval | None = None
    over: Part | None = None

    @property
    def grid(self) -> float | None:
        """What one item is worth."""
        return 1 / self.items if self.items else None

    @property
    def interval(self) -> Interval | None:
        """Where the hard score over all items like these lies, with 95 % confidence, if each was drawn by itself."""
        return wilson(self.hard, self.items) if self.items and self.exact and not self.chosen else None


@frozen(kw_only=True)
class Difference:
    """One text against another on one split; `paired` is None where results of single items are not in the log."""

    split: Split
    before: Headline
    after: Headline
    paired: Paired | None

    @property
    def change(self) -> float:
        """By how much the hard score differs."""
        return self.after.hard - self.before.hard


@frozen(kw_only=True)
class Accepted:
    """A text that a gate took, against the one that was current: a step's candidate, or guidance at an epoch's end."""

    step: int | None
    epoch: int | None
    paired: Paired


@frozen(kw_only=True)
class Headlines:
    """The scores that are worth telling, the differences between them, the gate's acceptances."""

    scores: tuple[Headline, ...]
    differences: tuple[Difference, ...]
    accepted: tuple[Accepted, ...]
    judged: int
    """How many texts were measured on validation before the best of them was chosen."""
    by_hand: ByHand = field(factory=ByHand)


def headlines(
    summary: Summary, scored: Sequence[SkillScored], results: ItemResults, steps: Mapping[int, Chain], tree: Lineage
) -> Headlines:
    """What can be said of a run's scores; an evaluation has one text, and a score on each split it was tried on."""
    if summary.is_evaluation:
        return Headlines(scores=tuple(_evaluations(scored, results)), differences=(), accepted=(), judged=0)
    final: Name = "current" if summary.completed is None else "final"
    named: tuple[tuple[Name, str], ...] = (
        ("initial", summary.initial), ("best", summary.best.skill), (final, summary.current.skill)
    )  # fmt: skip
    test, validation = _Scored.of(scored, "test", results), _Scored.of(scored, "selection", results)
    tests = tuple(_headlines("test", named, test))
    found = _headlines("validation", named, validation)
    validations = tuple(evolve(each, over=summary.over(each.skill)) for each in found)
    return Headlines(
        scores=(*tests, *validations),
        differences=(*_differences(tests, test), *_differences(validations, validation)),
        accepted=(*_candidates(steps.values(), validation), *_guidance(tree, validation)),
        judged=len(validation.by_skill),
        by_hand=summary.by_hand,
    )


@frozen(kw_only=True)
class _Scored:
    """The evaluations of each text on one split, and the results of single items in them."""

    by_skill: Mapping[str, Sequence[SkillScored]]
    results: ItemResults

    @staticmethod
    def of(scored: Iterable[SkillScored], purpose: str, results: ItemResults) -> _Scored:
        by_skill: dict[str, list[SkillScored]] = {}
        for event in scored:
            if event.purpose == purpose:
                by_skill.setdefault(event.skill, []).append(event)
        return _Scored(by_skill=by_skill, results=results)

    def stated(self, skill: str) -> Sequence[SkillScored]:
        """What a text's score is made of: the draw that decided nothing, else all that are whole, else a bound."""
        events = self.by_skill.get(skill, ())
        whole = last_whole([event for event in events if event.exact])
        if not whole or events[0].purpose != "selection":
            return (whole or events)[-1:]
        told = [event for event in whole if event.repeat == 0]
        return told[-1:] or whole

    def deciding(self, skill: str) -> Sequence[SkillScored]:
        """The whole draws that a gate compares."""
        whole = last_whole([event for event in self.by_skill.get(skill, ()) if event.exact])
        return [event for event in whole if event.repeat != 0]

    def items(self, events: Sequence[SkillScored]) -> Results:
        """The results of each item in these evaluations, in their order."""
        found: dict[str, tuple[Outcome, ...]] = {}
        for event in events:
            here, before = self.results.at.get(event.place, {}), self._before(event)
            for item, outcome in {**before, **here}.items():
                found[item] = (*found.get(item, ()), outcome)
        return found

    def _before(self, event: SkillScored) -> Mapping[str, Outcome]:
        """What was run of an evaluation elsewhere: where it was begun, or where its text was tried on fewer items."""
        if not event.goes_on:
            return self.results.at.get(event.begun_at, {})
        first = [other for other in self.by_skill[event.skill] if other.repeat == 1]
        places = [place for other in first for place in (other.begun_at, other.place)]
        found = {item: outcome for place in places for item, outcome in self.results.at.get(place, {}).items()}
        return {item: found[item] for item in event.carried if item in found}

    def compared(self, before: Sequence[SkillScored], after: Sequence[SkillScored]) -> Paired | None:
        """The second text against the first, in as many of these draws of each."""
        return paired(self.items(before), self.items(after), self.results.types)


def _headlines(split: Split, named: Iterable[tuple[Name, str]], scored: _Scored) -> Iterable[Headline]:
    names: dict[str, tuple[Name, ...]] = {}
    for name, skill in named:
        names[skill] = (*names.get(skill, ()), name)
    for skill, called in names.items():
        events = scored.stated(skill)
        if events and events[-1].score.measured != 0:
            chosen = split == "validation" and "initial" not in called
            yield _headline(split, called, events, scored, chosen=chosen)


def _headline(
    split: Split, names: tuple[Name, ...], events: Sequence[SkillScored], scored: _Scored, *, chosen: bool = False
) -> Headline:
    last, results = events[-1], scored.items(events)
    whole, means = last.exact and not chosen, hard_means(results)
    return Headline(
        split=split,
        names=names,
        skill=last.skill,
        hard=sum(event.score.hard for event in events) / len(events),
        soft=sum(event.score.soft for event in events) / len(events),
        items=last.score.measured,
        unmeasured=last.score.unmeasured,
        draws=draws(results),
        exact=last.exact,
        chosen=chosen,
        by_family=wilson_by_family(means, _families(means, scored.results.types)) if whole else None,
    )


def _families(items: Iterable[str], types: Mapping[str, str]) -> Mapping[str, str]:
    return families_of({item: types[item] for item in items if item in types})


def _evaluations(scored: Iterable[SkillScored], results: ItemResults) -> Iterable[Headline]:
    for event in scored:
        if event.score.measured != 0:
            split: Split = "validation" if event.split == "val" else event.split
            yield _headline(split, ("skill",), [event], _Scored(by_skill={}, results=results))


def _differences(scores: Sequence[Headline], scored: _Scored) -> Iterable[Difference]:
    """Each further text against the first one: the best and the final against the initial."""
    for after in scores[1:]:
        before = scores[0]
        pair = scored.compared(scored.stated(before.skill), scored.stated(after.skill))
        yield Difference(split=after.split, before=before, after=after, paired=pair)


def _candidates(steps: Iterable[Chain], scored: _Scored) -> Iterable[Accepted]:
    for chain in steps:
        gate = chain.verdict
        if gate is not None and chain.taken and gate.compared is not None and gate.current_score is not None:
            yield Accepted(step=chain.step, epoch=None, paired=_at_gate(gate, chain, scored))


def _at_gate(gate: GateVerdict, chain: Chain, scored: _Scored) -> Paired:
    """The items that turned, in as many draws of both texts; without these, as the verdict has them."""
    if chain.built is not None:
        before = scored.deciding(gate.stale_from or chain.built.event.parent)
        pair = scored.compared(before, scored.deciding(chain.built.event.candidate.hash)[: gate.repeats])
        if pair is not None:
            return pair
    return Paired(items=gate.compared or 0, won=gate.won, lost=gate.lost)


def _guidance(tree: Lineage, scored: _Scored) -> Iterable[Accepted]:
    """Guidance that won at a gate, with the items that turned, by the results under both texts."""
    for node in tree.nodes:
        if node.kind == "guidance" and node.verdict in ("accept", "accept_new_best"):
            before = node.stale_from or tree.by_name[node.parent].skill
            pair = scored.compared(scored.deciding(before), scored.deciding(node.skill))
            if pair is not None:
                yield Accepted(step=None, epoch=node.epoch, paired=pair)
