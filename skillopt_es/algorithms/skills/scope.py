"""
Which validation items a candidate has to meet: all, or for edits of what skills say those that open these skills.

Names and descriptions decide what is opened. Where a candidate leaves them as they are, an item that did not open a
changed skill would see what it saw before, so its result is carried. A fixed sample of such items is tried all the
same: if one of them opens a changed skill or comes out otherwise, all are tried.
"""

from __future__ import annotations

from attrs import evolve

from skillopt_es.algorithms.skills.candidate import Candidate
from skillopt_es.algorithms.skills.state import place_of
from skillopt_es.engine.algorithm import Objection
from skillopt_es.engine.draws import shuffled
from skillopt_es.engine.evaluations import selection
from skillopt_es.engine.work import Evaluation
from skillopt_es.events.values import DRAWS_ONCE, WHOLE_FILES
from skillopt_es.skill.folders import SKILL_FILE, always_shown, files_of, ids_of, index_of, skill_of, skills_in


def changed_bodies(whole: Candidate) -> frozenset[str]:
    """The skills of which only what they say is changed; none where what is listed or always shown is changed, too."""
    for edit in whole.edits:
        new_file = edit.op == "create" and not edit.file.endswith(f"/{SKILL_FILE}")
        if edit.op in WHOLE_FILES and not new_file:
            return frozenset()
    changed = frozenset(skill_of(edit.file) for edit in whole.edits)
    shown = {skill for folder in whole.folders for skill in skills_in(always_shown(folder))}
    # An edit of a text may change what is listed: the line of a description is a line of a text, too.
    before, after = map(index_of, whole.folders)
    return frozenset() if changed & shown or before != after else changed


def lost_recall(whole: Candidate) -> Objection | None:
    """That too many items do not open a skill any more that the candidate left alone; nothing where that is allowed."""
    most = whole.config.skills.recall_loss
    lost = () if most is None else passing_by(whole)
    return Objection("lost_recall", lost) if most is not None and len(lost) > most else None


def passing_by(whole: Candidate) -> tuple[str, ...]:
    """The items that opened a skill which the candidate leaves as it is, and do not open it under the candidate."""
    (before, after), (old, new) = whole.folders, whole.views
    same = {skill for skill in ids_of(before) if files_of(before, skill) == files_of(after, skill)}
    return tuple(item for item in whole.items if item in new and same & set(old.get(item, ())) - set(new[item]))


def narrowed(whole: Candidate) -> Evaluation | None:
    """The candidate's evaluation on the items that can tell; None where it has to meet all of them."""
    state, config, evaluation = whole.state, whole.config, whole.config.evaluation
    current = state.current.skill.hash
    views, known = state.algorithm.views.get(current), state.measured.get(current)
    changed = changed_bodies(whole)
    if not changed or views is None or known is None or not config.skills.sentinels:
        return None
    once = evaluation.use_gate and evaluation.gate_rule in DRAWS_ONCE and not state.current.stale_from
    if not once or whole.built.candidate.hash in state.measured:
        return None
    items = whole.items
    watched = shuffled(items, config.train.seed)[: config.skills.sentinels]
    opens = [item for item in items if item not in known.items or set(views.get(item, ())) & changed]
    carried = tuple(item for item in items if item not in opens and item not in watched)
    if not carried or not opens:
        return None
    of_all = selection(config, place_of(state).gate, whole.built.candidate, items)
    rows = whole.rows(of_all.place)
    there = [rows[item] for item in watched if item not in opens and item in rows]
    # One of those that were not to notice the change did.
    if any(set(skills_in(row.viewed)) & changed or row.outcome != known.items[row.item] for row in there):
        return of_all
    return evolve(of_all, carried=carried, carried_from=current)
