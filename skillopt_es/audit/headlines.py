"""
The scores of a run told honestly: over how many items, how far they can be trusted, and which differences are noise.

Pure: from the recorded evaluations, the results of single items, and the gate's verdicts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from attrs import evolve, frozen

from skillopt_es.events.catalog import SkillScored
from skillopt_es.projections.chains import Chain
from skillopt_es.projections.intervals import Interval, Paired, draws, hard_means, paired, wilson
from skillopt_es.projections.item_results import ItemResults, Results
from skillopt_es.projections.lineage import Lineage
from skillopt_es.projections.summary import Summary

Name = Literal["initial", "best", "final", "current", "skill"]
Split = Literal["test", "validation", "train"]


@frozen(kw_only=True)
class Headline:
    """
    One text's score on one split; `names` are all that this text is called.

    `items` is None where an imported run does not say it; then there is no interval and no `grid` step, which is what
    one item is worth. `draws` says how often each item was measured at least and at most. A score that is not `exact`
    is an upper bound: not every item was run.
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

    @property
    def grid(self) -> float | None:
        """What one item is worth."""
        return 1 / self.items if self.items else None

    @property
    def interval(self) -> Interval | None:
        """Where the true hard score lies, with 95 % confidence."""
        return wilson(self.hard, self.items) if self.items and self.exact else None


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


def headlines(
    summary: Summary,
    scored: Sequence[SkillScored],
    results: ItemResults,
    steps: Mapping[int, Chain],
    tree: Lineage,
) -> Headlines:
    """What can be said of a run's scores; an evaluation has one text, and a score on each split it was tried on."""
    if summary.is_evaluation:
        return Headlines(scores=tuple(_evaluations(scored, results)), differences=(), accepted=(), judged=0)
    final: Name = "current" if summary.completed is None else "final"
    named: tuple[tuple[Name, str], ...] = (
        ("initial", summary.initial), ("best", summary.best.skill), (final, summary.current.skill)
    )  # fmt: skip
    test = _headlines("test", named, _last(scored, "test"), results.test)
    validation = _headlines("validation", named, _last(scored, "selection"), results.validation)
    return Headlines(
        scores=(*test, *validation),
        differences=(*_differences(test, results.test), *_differences(validation, results.validation)),
        accepted=(*_candidates(steps.values()), *_guidance(tree, results.validation)),
        judged=len({event.skill for event in scored if event.purpose == "selection"}),
    )


def _last(scored: Iterable[SkillScored], purpose: str) -> dict[str, SkillScored]:
    """Each text's evaluation: the one that decided nothing, else the mean over all that are whole, else a bound."""
    by_skill: dict[str, list[SkillScored]] = {}
    for event in scored:
        if event.purpose == purpose:
            by_skill.setdefault(event.skill, []).append(event)
    return {skill: _stated(events, purpose) for skill, events in by_skill.items()}


def _stated(events: Sequence[SkillScored], purpose: str) -> SkillScored:
    whole = [event for event in events if event.exact]
    if purpose != "selection" or len(whole) < 2:
        return (whole or events)[-1]
    told = [event for event in whole if event.draw == 0]
    if told:
        return told[-1]
    hard, soft = (sum(getattr(event.score, kind) for event in whole) / len(whole) for kind in ("hard", "soft"))
    return evolve(whole[-1], score=evolve(whole[-1].score, hard=hard, soft=soft))


def _headlines(
    split: Split,
    named: Iterable[tuple[Name, str]],
    scored: Mapping[str, SkillScored],
    results: Mapping[str, Results],
) -> tuple[Headline, ...]:
    names: dict[str, tuple[Name, ...]] = {}
    for name, skill in named:
        names[skill] = (*names.get(skill, ()), name)
    found = []
    for skill, called in names.items():
        event = scored.get(skill)
        if event is None or event.score.measured == 0:
            continue
        found.append(_headline(split, called, event, results.get(skill, {})))
    return tuple(found)


def _headline(split: Split, names: tuple[Name, ...], event: SkillScored, results: Results) -> Headline:
    return Headline(
        split=split,
        names=names,
        skill=event.skill,
        hard=event.score.hard,
        soft=event.score.soft,
        items=event.score.measured,
        unmeasured=event.score.unmeasured,
        draws=draws(results),
        exact=event.exact,
    )


def _evaluations(scored: Iterable[SkillScored], results: ItemResults) -> Iterable[Headline]:
    for event in scored:
        if event.score.measured != 0:
            split: Split = "validation" if event.split == "val" else event.split
            yield _headline(split, ("skill",), event, results.test.get(event.skill, {}))


def _differences(scores: Sequence[Headline], results: Mapping[str, Results]) -> Iterable[Difference]:
    """Each further text against the first one: the best and the final against the initial."""
    for after in scores[1:]:
        before = scores[0]
        pair = paired(hard_means(results.get(before.skill, {})), hard_means(results.get(after.skill, {})))
        yield Difference(split=after.split, before=before, after=after, paired=pair)


def _candidates(steps: Iterable[Chain]) -> Iterable[Accepted]:
    for chain in steps:
        gate = None if chain.gated is None else chain.gated.event
        if gate is not None and chain.taken and gate.compared is not None and gate.current_score is not None:
            pair = Paired(items=gate.compared, won=gate.won, lost=gate.lost)
            yield Accepted(step=chain.step, epoch=None, paired=pair)


def _guidance(tree: Lineage, results: Mapping[str, Results]) -> Iterable[Accepted]:
    """Guidance that won at a gate; its event has no items, so they come from the results under both texts."""
    for node in tree.nodes:
        if node.kind == "guidance" and node.verdict in ("accept", "accept_new_best"):
            before = node.stale_from or tree.by_name[node.parent].skill
            pair = paired(hard_means(results.get(before, {})), hard_means(results.get(node.skill, {})))
            if pair is not None:
                yield Accepted(step=None, epoch=node.epoch, paired=pair)
