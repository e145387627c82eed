"""
Which validation items a candidate has to meet: all, or for edits of what skills say those that open these skills.

Names and descriptions decide what is opened. Where a candidate leaves them as they are, an item that did not open a
changed skill would see what it saw before, so its result is carried. A fixed sample of such items is tried all the
same: if one of them opens a changed skill or comes out otherwise, all are tried.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve

from skillopt_es.algorithms.skills.state import SkillsState, place_of
from skillopt_es.config import RunConfig
from skillopt_es.engine.algorithm import Objection
from skillopt_es.engine.draws import shuffled
from skillopt_es.engine.evaluations import selection
from skillopt_es.engine.run_config import validation_items
from skillopt_es.engine.work import Evaluation
from skillopt_es.events.catalog import CandidateBuilt, RolloutCompleted
from skillopt_es.events.values import DRAWS_ONCE, WHOLE_FILES
from skillopt_es.skill.folders import SKILL_FILE, always_shown, files_of, ids_of, index_of, skill_of, skills_in


def changed_bodies(state: SkillsState, built: CandidateBuilt) -> frozenset[str]:
    """The skills of which only what they say is changed; none where what is listed or always shown is changed, too."""
    edits = {edit.id: edit for edit in state.algorithm.edits}
    applied = [edits[name] for name in built.applied]
    for edit in applied:
        new_file = edit.op == "create" and not edit.file.endswith(f"/{SKILL_FILE}")
        if edit.op in WHOLE_FILES and not new_file:
            return frozenset()
    changed = frozenset(skill_of(edit.file) for edit in applied)
    shown = skills_in(always_shown(state.current.skill)) + skills_in(always_shown(built.candidate))
    return frozenset() if changed & set(shown) or _listed_otherwise(state, built) else changed


def _listed_otherwise(state: SkillsState, built: CandidateBuilt) -> bool:
    """Whether an edit of a text has changed what is listed: the line of a description is a line of a text, too."""
    return index_of(built.candidate) != index_of(state.current.skill)


def lost_recall(state: SkillsState, built: CandidateBuilt, config: RunConfig) -> Objection | None:
    """That too many items do not open a skill any more that the candidate left alone; nothing where that is allowed."""
    most = config.skills.recall_loss
    lost = () if most is None else passing_by(state, built, config)
    return Objection("lost_recall", lost) if most is not None and len(lost) > most else None


def passing_by(state: SkillsState, built: CandidateBuilt, config: RunConfig) -> tuple[str, ...]:
    """The items that opened a skill which the candidate leaves as it is, and do not open it under the candidate."""
    before, after = state.current.skill, built.candidate
    same = {skill for skill in ids_of(before) if files_of(before, skill) == files_of(after, skill)}
    old, new = (state.algorithm.views.get(each.hash, {}) for each in (before, after))
    items = validation_items(state.started, config)
    return tuple(item for item in items if item in new and same & set(old.get(item, ())) - set(new[item]))


def narrowed(state: SkillsState, built: CandidateBuilt, config: RunConfig) -> Evaluation | None:
    """The candidate's evaluation on the items that can tell; None where it has to meet all of them."""
    evaluation, current = config.evaluation, state.current.skill.hash
    views, known = state.algorithm.views.get(current), state.measured.get(current)
    changed = changed_bodies(state, built)
    if not changed or views is None or known is None or not config.skills.sentinels:
        return None
    once = evaluation.use_gate and evaluation.gate_rule in DRAWS_ONCE and not state.current.stale_from
    if not once or built.candidate.hash in state.measured:
        return None
    items = validation_items(state.started, config)
    watched = shuffled(items, config.train.seed)[: config.skills.sentinels]
    opens = [item for item in items if item not in known.items or set(views.get(item, ())) & changed]
    carried = tuple(item for item in items if item not in opens and item not in watched)
    if not carried or not opens:
        return None
    whole = selection(config, place_of(state).gate, built.candidate, items)
    if _moved(state, whole, [item for item in watched if item not in opens], changed):
        return whole
    return evolve(whole, carried=carried, carried_from=current)


def _moved(state: SkillsState, whole: Evaluation, watched: list[str], changed: frozenset[str]) -> bool:
    """Whether an item that was not to notice the change did."""
    rows: Mapping[str, RolloutCompleted] = state.rollouts.get(whole.place, {})
    known = state.measured[state.current.skill.hash].items
    there = [rows[item] for item in watched if item in rows]
    return any(set(skills_in(row.viewed)) & changed or row.outcome != known[row.item] for row in there)
