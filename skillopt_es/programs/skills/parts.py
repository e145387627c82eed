"""
A candidate of several changes that some items are better with and others worse: which of its changes may stay.

A change is felt by those that open its skill. So an item that got worse speaks against the changed skills that it
opened, before or now, and what no such item speaks against may be judged alone, on draws of its own. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from skillopt_es.engine.tasks import RunData
from skillopt_es.events.values import DRAWS_ONCE, Measured
from skillopt_es.gate.verdicts import candidate_gated
from skillopt_es.programs.skills.state import SkillsState
from skillopt_es.skill.folders import skill_of


@frozen(kw_only=True)
class Parted:
    """The edits that may stay, and for each changed skill the items that speak against it."""

    kept: tuple[str, ...]
    against: Mapping[str, tuple[str, ...]]


def parted(state: SkillsState, run: RunData) -> Parted | None:
    """What may stay of a candidate that is refused as a whole; None where nothing can be told apart."""
    evaluation = run.config.evaluation
    if not evaluation.use_gate or evaluation.gate_rule not in DRAWS_ONCE or state.program.ranked is not None:
        return None
    assert state.built is not None
    edits = {edit.id: edit for edit in state.program.edits}
    applied = [edits[report.edit] for report in state.built.reports if report.status.startswith("applied")]
    changed = {skill_of(edit.file) for edit in applied}
    if len(changed) < 2 or candidate_gated(state, run).verdict.action != "reject":
        return None
    won, lost = _turned(state, run)
    if not lost:
        return None
    against: dict[str, list[str]] = {}
    for item in lost:
        felt = changed & _opened(state, item)
        if not felt:  # nothing that was changed explains it
            return None
        for skill in sorted(felt):
            against.setdefault(skill, []).append(item)
    good = changed - set(against)
    if not any(good & _opened(state, item) for item in won):
        return None
    return Parted(
        kept=tuple(edit.id for edit in applied if skill_of(edit.file) in good),
        against={skill: tuple(items) for skill, items in sorted(against.items())},
    )


def _turned(state: SkillsState, run: RunData) -> tuple[list[str], list[str]]:
    """The items that the candidate made better, and those that it made worse, as far as they were tried."""
    assert state.built is not None
    assert state.current is not None
    name = state.built.candidate.hash
    known, begun = state.measured.get(name), state.partial.get((name, 1))
    tried: dict[str, Measured] = {} if known is None else dict(known.items)
    if begun is not None:
        tried |= {item: row.outcome for item, row in begun.rows.items() if isinstance(row.outcome, Measured)}
    before = state.measured[state.current.skill.hash].items

    def gain(item: str) -> float:
        return run.worth(tried[item].hard, tried[item].soft) - run.worth(before[item].hard, before[item].soft)

    both = [item for item in run.selection_items if item in tried and item in before]
    return [item for item in both if gain(item) > 0], [item for item in both if gain(item) < 0]


def _opened(state: SkillsState, item: str) -> set[str]:
    """The skills that an item opened, under the current folder or under the candidate."""
    assert state.built is not None
    assert state.current is not None
    folders = (state.current.skill.hash, state.built.candidate.hash)
    return {skill for each in folders for skill in state.program.views.get(each, {}).get(item, ())}
