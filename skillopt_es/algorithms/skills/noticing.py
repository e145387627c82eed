"""
What a candidate consists of: changes that could each be made without the others, and which items notice which. Pure.

A change is noticed by items that open a skill that it is about, before or after. Where an item opens otherwise or comes
out otherwise and opened none of those, it may be any change of what is listed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from skillopt_es.algorithms.skills.effects import Draw
from skillopt_es.algorithms.skills.state import Key, SkillsState, applied_edits
from skillopt_es.algorithms.skills.triggers import routing_of, triggers_met
from skillopt_es.config import RunConfig
from skillopt_es.engine.run_config import validation_items
from skillopt_es.events.catalog import CandidateBuilt
from skillopt_es.events.values import Edit, EditReport, Measured, SkillTree
from skillopt_es.skill.edits import apply_edits
from skillopt_es.skill.folders import always_shown, skill_of, skills_in


@frozen(kw_only=True)
class Change:
    """Edits that can only be made together, and the skills that they are about; `lists` where those are listed anew."""

    edits: tuple[str, ...]
    skills: frozenset[str]
    lists: bool

    @property
    def name(self) -> str:
        """Its first edit's."""
        return self.edits[0]


def changes_of(state: SkillsState, built: CandidateBuilt) -> tuple[Change, ...]:
    """The changes that the candidate consists of."""
    routing = routing_of(state, built)
    found = []
    for edits in _apart(state, built, applied_edits(state.algorithm.edits, built)):
        skills = frozenset(name for edit in edits for name in (skill_of(edit.file), *_sources(edit)))
        names = tuple(edit.id for edit in edits)
        found.append(Change(edits=names, skills=skills, lists=bool(skills & (routing.old | routing.new))))
    return tuple(found)


def _sources(edit: Edit) -> list[str]:
    return edit.target.split() if edit.op in ("rename", "merge", "split") else []


def _apart(state: SkillsState, built: CandidateBuilt, applied: Sequence[Edit]) -> list[tuple[Edit, ...]]:
    """The edits in groups: the parts of one change, and those that cannot be applied where another one is left out."""
    of = {edit.id: edit.change or edit.id for edit in applied}
    for left_out in dict.fromkeys(of.values()):
        _, reports = made_with(state, built, [edit for edit in applied if of[edit.id] != left_out])
        needy = {of[report.edit] for report in reports if not report.status.startswith("applied")}
        of = {name: left_out if group in needy else group for name, group in of.items()}
    return [tuple(edit for edit in applied if of[edit.id] == group) for group in dict.fromkeys(of.values())]


def made_with(
    state: SkillsState, built: CandidateBuilt, edits: Sequence[Edit]
) -> tuple[SkillTree, tuple[EditReport, ...]]:
    """The current folder with some of the candidate's edits."""
    return apply_edits(state.current.skill, edits, close_gaps=built.gaps_closed)


def draws_so_far(
    state: SkillsState, built: CandidateBuilt, config: RunConfig, changes: Sequence[Change]
) -> tuple[Draw, ...]:
    """Every result under the current folder, the candidate or parts of it, with what was on that the item notices."""
    felt, every = noticed(state, built, config, changes), frozenset(change.name for change in changes)
    found = [Draw(item, frozenset(), value) for item, value in _before(state, config)]
    found += [Draw(item, every & felt[item], value) for item, value in _together(state, built, config) if item in felt]
    for tries in state.algorithm.parts:
        on = frozenset(change.name for change in changes if change.name in tries.edits)
        found += [Draw(item, on & felt[item], value) for item, value in _at(state, config, tries.place)]
    for each in triggers_met(state, built, config):
        on = _noticing(changes, {*each.before, *each.after}, moved=each.before != each.after)
        found.append(Draw(each.item, frozenset(), config.worth(each.was.hard, each.was.soft)))
        found.append(Draw(each.item, on, config.worth(each.now.hard, each.now.soft)))
    return tuple(found)


def noticed(
    state: SkillsState, built: CandidateBuilt, config: RunConfig, changes: Sequence[Change]
) -> Mapping[str, frozenset[str]]:
    """The changes that each validation item notices, by their names."""
    folders = (state.current.skill, built.candidate)
    views = [state.algorithm.views.get(folder.hash, {}) for folder in folders]
    shown = {skill for folder in folders for skill in skills_in(always_shown(folder))}
    turned, parts = set(turned_items(state, built, config)), _opened_in_parts(state)
    found = {}
    for item in validation_items(state.started, config):
        keys = [view[item] for view in views if item in view]
        opened = shown.union(*keys, parts.get(item, ()))
        found[item] = _noticing(changes, opened, moved=item in turned or len(set(keys)) > 1)
    return found


def _noticing(changes: Sequence[Change], opened: set[str], *, moved: bool) -> frozenset[str]:
    direct = frozenset(change.name for change in changes if change.skills & opened)
    return direct or frozenset(change.name for change in changes if change.lists and moved)


def turned_items(state: SkillsState, built: CandidateBuilt, config: RunConfig) -> dict[str, float]:
    """The items that came out otherwise under the whole candidate, as far as they were tried, and by how much."""
    before: dict[str, list[float]] = {}
    after: dict[str, list[float]] = {}
    for values, found in ((_before(state, config), before), (_together(state, built, config), after)):
        for item, value in values:
            found.setdefault(item, []).append(value)
    gains = {item: _mean(after[item]) - _mean(before[item]) for item in before if item in after}
    return {item: gains[item] for item in validation_items(state.started, config) if gains.get(item, 0.0) != 0.0}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _before(state: SkillsState, config: RunConfig) -> list[tuple[str, float]]:
    drawn = state.measured[state.current.skill.hash].drawn
    return [(item, config.worth(row.hard, row.soft)) for each in drawn for item, row in each.items.items()]


def _together(state: SkillsState, built: CandidateBuilt, config: RunConfig) -> list[tuple[str, float]]:
    """The results of the whole candidate, those of a draw that ended early among them."""
    name = built.candidate.hash
    known = state.measured.get(name)
    found = [(item, row) for each in (known.drawn if known is not None else ()) for item, row in each.items.items()]
    for (skill, _), begun in state.partial.items():
        if skill == name:
            found += [(item, row.outcome) for item, row in begun.rows.items() if isinstance(row.outcome, Measured)]
    return [(item, config.worth(row.hard, row.soft)) for item, row in found]


def _at(state: SkillsState, config: RunConfig, place: str) -> list[tuple[str, float]]:
    rows = state.rollouts.get(place, {}).values()
    return [
        (row.item, config.worth(row.outcome.hard, row.outcome.soft))
        for row in rows
        if isinstance(row.outcome, Measured)
    ]


def _opened_in_parts(state: SkillsState) -> dict[str, Key]:
    """What items opened under parts of the candidate."""
    found: dict[str, Key] = {}
    for tries in state.algorithm.parts:
        for row in state.rollouts.get(tries.place, {}).values():
            found[row.item] = (*found.get(row.item, ()), *skills_in(row.viewed))
    return found
