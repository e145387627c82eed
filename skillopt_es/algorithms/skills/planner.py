"""
What comes next for a folder of skills: a pure function of the state. The same state always has the same next task.

A step tries a batch, asks about attempts that opened the same skills, and has its edits judged. The last step of an
epoch tries nothing: whoever manages the folder is asked about all of it.
"""

from __future__ import annotations

from attrs import frozen

from skillopt_es.algorithms.skills.gate import GATE
from skillopt_es.algorithms.skills.parts import Whole, part_work
from skillopt_es.algorithms.skills.scope import narrowed
from skillopt_es.algorithms.skills.state import SkillsState, Where, begun, tried_at, where_of
from skillopt_es.algorithms.skills.triggers import trigger_work
from skillopt_es.algorithms.steps import all_failed, without_edits
from skillopt_es.config import RunConfig
from skillopt_es.engine.evaluations import measure, training
from skillopt_es.engine.run_config import validation_items
from skillopt_es.engine.work import Decide, Evaluation, Questions, Work
from skillopt_es.events.catalog import CandidateBuilt, EpochPlanned
from skillopt_es.events.values import Minibatch
from skillopt_es.gate.course import final_work, opening_work, trial_work, unfit, usual_stop
from skillopt_es.gate.verdicts import too_large
from skillopt_es.skill.folders import ids_of, listing_of


@frozen
class EditJob:
    """One question about attempts that opened the same skills."""

    group: Minibatch


@frozen
class ManageJob:
    """The question about the whole folder at an epoch's end."""

    group: Minibatch


def next_work(state: SkillsState, config: RunConfig) -> Work | None:
    """The next thing to do, or None when the run is complete."""
    if state.completed is not None:
        return None
    opening = opening_work(state, config, validation_items(state.started, config))
    if opening is not None:
        return opening
    if state.stopped is not None or state.steps_done >= state.started.total_steps:
        return final_work(state, config, GATE)
    return _training_work(state, config)


def _training_work(state: SkillsState, config: RunConfig) -> Work:
    where = where_of(state)
    if not begun(state) and usual_stop(state, config) is not None:
        return Decide("stop")
    if state.algorithm.epoch is None or state.algorithm.epoch.epoch != where.epoch:
        return Decide("plan_epoch")
    return _step_work(state, config, where, state.algorithm.epoch)


def _step_work(state: SkillsState, config: RunConfig, where: Where, epoch: EpochPlanned) -> Work:
    algorithm = state.algorithm
    if algorithm.groups is None:
        rollouts = None if where.managing else measure(state, _batch(state, where, epoch))
        return rollouts or Decide("plan_management" if where.managing else "plan_groups")
    job = ManageJob if where.managing else EditJob
    waiting = tuple(job(group) for group in algorithm.groups if group.id not in algorithm.patches)
    if waiting:
        return Questions(waiting)
    if all_failed(algorithm.patches.values()):
        return Decide("pause_for_optimizer")
    if not algorithm.edits:
        return without_edits(algorithm.patches, "nothing_asked")
    return Decide("build") if state.built is None else _gate_work(state, state.built, config, where)


def _part_waits(state: SkillsState, built: CandidateBuilt) -> bool:
    """Whether it is known what stays of a refused candidate, and that is not built yet."""
    ranked = state.algorithm.ranked
    return ranked is not None and tuple(report.edit for report in built.reports) != ranked.chosen


def _batch(state: SkillsState, where: Where, epoch: EpochPlanned) -> list[Evaluation]:
    batch, place = epoch.batches[where.index], where.place.in_batch(0)
    return training(place, state.current.skill, tried_at(state, place, batch.items), batch.seed)


def _gate_work(state: SkillsState, built: CandidateBuilt, config: RunConfig, where: Where) -> Work:
    if _part_waits(state, built):
        return Decide("build_kept")
    reason = unfit(state, config, built, GATE, over_cap(state, built, config))
    if reason:
        return Decide(f"skip:{reason}")
    whole = Whole(state, built, config)
    narrow = None if where.managing else narrowed(whole)
    trying = trial_work(state, config, built, GATE) if narrow is None else measure(state, [narrow])
    # A change of the list meets its trigger set, too; what is refused as a whole may have a part that stays.
    return trying or trigger_work(whole, GATE) or part_work(whole) or Decide("gate_candidate")


def over_cap(state: SkillsState, built: CandidateBuilt, config: RunConfig) -> str:
    """Which bound the candidate breaks; empty for none. What was over it before may stay as it is, but not grow."""
    candidate, current, skills = built.candidate, state.current.skill, config.skills
    many, listed = len(ids_of(candidate)), len(listing_of(candidate))
    if many > max(skills.most_skills, len(ids_of(current))):
        return f"{many} skills, and skills.most_skills is {skills.most_skills}"
    if listed > max(skills.most_listed, len(listing_of(current))):
        return f"names and descriptions have {listed} characters, and skills.most_listed is {skills.most_listed}"
    return too_large(config, candidate)
