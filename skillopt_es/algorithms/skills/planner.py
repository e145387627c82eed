"""
What comes next for a folder of skills: a pure function of the state. The same state always has the same next task.

A step tries a batch, asks about attempts that opened the same skills, and has its edits judged. The last step of an
epoch tries nothing: whoever manages the folder is asked about all of it.
"""

from __future__ import annotations

from attrs import evolve, frozen

from skillopt_es.algorithms.skills.parts import part_work
from skillopt_es.algorithms.skills.scope import narrowed
from skillopt_es.algorithms.skills.state import SkillsState, Where, begun, place_of, tried_at, where_of
from skillopt_es.algorithms.skills.triggers import trigger_work
from skillopt_es.engine.evaluations import fresh_evaluation, measure, selection
from skillopt_es.engine.evaluations import unmeasured as not_measured
from skillopt_es.engine.run_data import RunData
from skillopt_es.engine.work import Decide, Evaluation, Questions, Work
from skillopt_es.events.catalog import TrainingStopped
from skillopt_es.events.places import BASELINE
from skillopt_es.events.values import Minibatch
from skillopt_es.gate.verdicts import candidate_contest, draw_work, final_work, too_large, usual_stop
from skillopt_es.projections.trust import attempts_of, support_of
from skillopt_es.skill.folders import ids_of, listing_of


@frozen
class EditJob:
    """One question about attempts that opened the same skills."""

    group: Minibatch


@frozen
class ManageJob:
    """The question about the whole folder at an epoch's end."""

    group: Minibatch


def next_work(state: SkillsState, run: RunData) -> Work | None:
    """The next thing to do, or None when the run is complete."""
    if state.completed is not None:
        return None
    if run.started.skill.hash not in state.measured:
        return measure(state, [selection(run, BASELINE, run.started.skill)])
    fresh = measure(state, fresh_evaluation(state, run))
    if fresh is not None:
        return fresh
    if state.stopped is not None or state.steps_done >= run.started.total_steps:
        return final_work(state, run)
    return _training_work(state, run)


def _training_work(state: SkillsState, run: RunData) -> Work:
    where = where_of(state)
    if not begun(state) and stop(state, run) is not None:
        return Decide("stop")
    if state.algorithm.epoch is None or state.algorithm.epoch.epoch != where.epoch:
        return Decide("plan_epoch")
    return _step_work(state, run, where)


def stop(state: SkillsState, run: RunData) -> TrainingStopped | None:
    """Why no further step is begun: the score is reached, or too many steps have brought nothing."""
    return usual_stop(state, run)


def _step_work(state: SkillsState, run: RunData, where: Where) -> Work:
    algorithm = state.algorithm
    if algorithm.groups is None:
        rollouts = None if where.managing else measure(state, _batch(state, where))
        return rollouts or Decide("plan_management" if where.managing else "plan_groups")
    job = ManageJob if where.managing else EditJob
    waiting = tuple(job(group) for group in algorithm.groups if group.id not in algorithm.patches)
    if waiting:
        return Questions(waiting)
    results = [patch.result for patch in algorithm.patches.values()]
    if results and all(result == "failed" for result in results):
        return Decide("pause_for_optimizer")
    if not algorithm.edits:
        broken = any(result in ("unusable", "failed") for result in results)
        if broken:
            return Decide("skip:no_usable_patch")
        return Decide("skip:nothing_proposed" if results else "skip:nothing_asked")
    return _gate_work(state, run, where) if state.built is not None and not _part_waits(state) else _build_work(state)


def _build_work(state: SkillsState) -> Work:
    return Decide("build" if state.built is None else "build_kept")


def _part_waits(state: SkillsState) -> bool:
    """Whether it is known what stays of a refused candidate, and that is not built yet."""
    assert state.built is not None
    ranked = state.algorithm.ranked
    return ranked is not None and tuple(report.edit for report in state.built.reports) != ranked.chosen


def _batch(state: SkillsState, where: Where) -> list[Evaluation]:
    assert state.algorithm.epoch is not None
    batch, place = state.algorithm.epoch.batches[where.index], where.place.in_batch(0)
    items = tried_at(state, place, batch.items)
    if not items:  # all of them may have been retracted
        return []
    return [
        Evaluation(
            place=place,
            purpose="train",
            split="train",
            items=items,
            skill=state.current.skill,
            seed=batch.seed,
        )
    ]


def _gate_work(state: SkillsState, run: RunData, where: Where) -> Work:
    assert state.built is not None
    if state.built.candidate.hash == state.built.parent:
        return Decide("skip:unchanged")
    if over_cap(state, run):
        return Decide("skip:too_large")
    if untrusted_parts(state, run):
        return Decide("skip:untrusted_only")
    narrow = None if where.managing else narrowed(state, run)
    if narrow is not None:
        return measure(state, [narrow]) or _verdict(state, run)
    if run.config.evaluation.use_gate:
        drawing = draw_work(state, gate_run(state, run), candidate_contest(state))
    else:
        drawing = measure(state, not_measured(state, run, [(place_of(state).gate, state.built.candidate)]))
    return drawing or _verdict(state, run)


def _verdict(state: SkillsState, run: RunData) -> Work:
    """A change of the list meets its trigger set, too; what is refused as a whole may have a part that stays."""
    triggers = trigger_work(state, run)
    if triggers is not None:
        return triggers
    return part_work(state, run) or Decide("gate_candidate")


def gate_run(state: SkillsState, run: RunData) -> RunData:
    """The run with the rule for the open step: at an epoch's end a simpler folder need not be a better one."""
    if not where_of(state).managing:
        return run
    evaluation = evolve(run.config.evaluation, gate_rule=run.config.skills.manage_gate_rule)
    return evolve(run, config=evolve(run.config, evaluation=evaluation))


def over_cap(state: SkillsState, run: RunData) -> str:
    """Which bound the candidate breaks; empty for none. What was over it before may stay as it is, but not grow."""
    assert state.built is not None
    candidate, current, skills = state.built.candidate, state.current.skill, run.config.skills
    many, listed = len(ids_of(candidate)), len(listing_of(candidate))
    if many > max(skills.most_skills, len(ids_of(current))):
        return f"{many} skills, and skills.most_skills is {skills.most_skills}"
    if listed > max(skills.most_listed, len(listing_of(current))):
        return f"names and descriptions have {listed} characters, and skills.most_listed is {skills.most_listed}"
    return too_large(run, candidate)


def untrusted_parts(state: SkillsState, run: RunData) -> str:
    """What of the candidate no trusted attempt supports; empty for none, or where that is no reason."""
    if not run.config.evaluation.no_untrusted_only or state.built is None:
        return ""
    origins = {edit.id: edit.origins for edit in state.algorithm.edits}
    applied = [report.edit for report in state.built.reports if report.status.startswith("applied")]
    doubtful = [
        name
        for name in applied
        if support_of(
            state.rollouts[at][item].trust for at, item in attempts_of(origins[name], state.algorithm.groups or ())
        )
        == "untrusted"
    ]
    return f"only untrusted attempts support {', '.join(doubtful)}" if doubtful else ""
