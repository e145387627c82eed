"""Trains a folder of skills: evidence by what was opened, edits of that, and an epoch's end about the whole."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from math import ceil
from typing import Literal, get_args

from skillopt_es.algorithms.optimizer import guard
from skillopt_es.algorithms.skills.estimate import kind_of, plan_of
from skillopt_es.algorithms.skills.fold import FACTS
from skillopt_es.algorithms.skills.gate import GATE
from skillopt_es.algorithms.skills.grouping import groups_of
from skillopt_es.algorithms.skills.parts import Whole, failed_parts, parted, parts_drawn
from skillopt_es.algorithms.skills.planner import EditJob, ManageJob, next_work, over_cap
from skillopt_es.algorithms.skills.questions import ask_for_changes, ask_for_edits
from skillopt_es.algorithms.skills.state import WHOLE, Skills, SkillsState, begun, initial, where_of
from skillopt_es.algorithms.skills.triggers import drawn
from skillopt_es.algorithms.steps import PATCH_ANSWERS, candidate_of, noted, optimizer_away
from skillopt_es.config import RunConfig, TrainConfig
from skillopt_es.counting import counted
from skillopt_es.engine.algorithm import Algorithm, Commands, Decision, Plan, Refusal, Stands, Words
from skillopt_es.engine.draws import epoch_batches
from skillopt_es.engine.evidence import RecordedTexts
from skillopt_es.engine.work import Unit
from skillopt_es.events import catalog as events
from skillopt_es.events.values import REFUSED_LEAK, Edit, EditReport, Json, Minibatch
from skillopt_es.gate.course import gate_decisions, stop_training
from skillopt_es.projections.core import waiting
from skillopt_es.projections.state import there
from skillopt_es.skill.folders import ids_of, skill_of
from skillopt_es.skill.leaks import LeakGuard

SkipReason = Literal["nothing_asked", "nothing_proposed", "no_usable_patch", "unchanged", "too_large", "untrusted_only"]


def _plan_epoch(state: SkillsState, config: RunConfig, evidence: RecordedTexts) -> events.Event:
    """Every training item once, in an order of the epoch's own; the last batch may be short."""
    epoch, train = where_of(state).epoch, config.train
    batches = epoch_batches(
        state.started.splits.train,
        epoch=epoch,
        seed=train.seed,
        batch_size=train.batch_size,
        batches=state.started.steps_per_epoch - 1,
    )
    return events.EpochPlanned(epoch=epoch, batches=batches)


def _plan_groups(state: SkillsState, config: RunConfig, evidence: RecordedTexts) -> events.Event:
    groups, dropped = groups_of(state, config)
    return events.MinibatchesPlanned(step=where_of(state).number, groups=groups, dropped=dropped)


def _plan_management(state: SkillsState, config: RunConfig, evidence: RecordedTexts) -> events.Event:
    """One question about the folder; none where nobody is to manage it, or nothing is there."""
    where = where_of(state)
    asks = config.skills.manage and ids_of(state.current.skill)
    group = Minibatch(id=where.place / "manage", kind="failure", place=where.place, items=())
    return events.MinibatchesPlanned(step=where.number, groups=(group,) if asks else ())


def _build(state: SkillsState, config: RunConfig, evidence: RecordedTexts) -> events.Event:
    return _built(state, config, evidence, state.algorithm.edits)


def _build_kept(state: SkillsState, config: RunConfig, evidence: RecordedTexts) -> events.Event:
    """What stays of a candidate that was refused as a whole."""
    chosen = there(state.algorithm.ranked, "choice among the edits").chosen
    return _built(state, config, evidence, tuple(edit for edit in state.algorithm.edits if edit.id in chosen))


def _built(
    state: SkillsState, config: RunConfig, evidence: RecordedTexts, edits: tuple[Edit, ...]
) -> events.CandidateBuilt:
    """The folder with these edits; what copies a tried item is left out, and so is what agents could not load."""
    rows = [state.rollouts[place][item] for group in state.algorithm.groups or () for place, item in group.attempts]
    watch = guard(rows, state.current.skill, config, evidence)
    refused = {edit.id: report for edit in edits if (report := _refused(edit, watch, state, config)) is not None}
    # Of a change all parts are applied or none.
    broken = {edit.change for edit in edits if edit.id in refused and edit.change}
    for edit in edits:
        if edit.change in broken:
            refused.setdefault(edit.id, EditReport(edit.id, "skipped_with_its_change", "another part of it is refused"))
    return candidate_of(state, config, where_of(state).number, edits, refused)


def _whole(state: SkillsState, config: RunConfig) -> Whole:
    return Whole(state, waiting(state), config)


def _part(state: SkillsState, config: RunConfig, evidence: RecordedTexts) -> events.Event:
    """Which changes of a refused candidate are tried by themselves, by what each was found to do."""
    whole = _whole(state, config)
    found = there(parted(whole), "part that stays")
    return events.EditsRanked(
        step=where_of(state).number,
        budget=None,
        pool=whole.built.applied,
        chosen=found.kept,
        effects=found.effects,
        together=found.together,
    )


def _draw_parts(state: SkillsState, config: RunConfig, evidence: RecordedTexts) -> events.Event:
    return events.TriesPlanned(step=where_of(state).number, tries=parts_drawn(_whole(state, config)))


def _pause_for_parts(state: SkillsState, config: RunConfig, evidence: RecordedTexts) -> events.Event:
    return there(failed_parts(_whole(state, config)), "part that could not be measured")


def _draw_triggers(state: SkillsState, config: RunConfig, evidence: RecordedTexts) -> events.Event:
    return events.TriesPlanned(step=where_of(state).number, tries=drawn(_whole(state, config)))


def _refused(edit: Edit, watch: LeakGuard, state: SkillsState, config: RunConfig) -> EditReport | None:
    """Why an edit is not even applied: it copies what was tried, or retires a skill too early."""
    leak = watch.leak(edit.content)
    if leak:
        return EditReport(edit.id, REFUSED_LEAK, leak)
    why = _too_early(edit.file, state, config) if edit.op == "retire" and not edit.change else ""
    return EditReport(edit.id, "skipped_too_early", why) if why else None


def _too_early(path: str, state: SkillsState, config: RunConfig) -> str:
    """Why a skill is not retired yet: too few attempts could have opened it, or nobody has asked for it before."""
    skill, least = skill_of(path), config.skills.retire_after
    trials = state.algorithm.trials.get(skill, 0)
    if trials < least:
        return f"{trials} attempts could have opened {skill}, and skills.retire_after is {least}"
    if skill not in state.algorithm.doomed:
        return f"it is the first time that somebody wants {skill} retired; the second time it is"
    return ""


def _skip(reason: SkipReason, state: SkillsState, config: RunConfig, evidence: RecordedTexts) -> events.Event:
    built = state.built
    reports = () if built is None else built.reports
    details: Mapping[SkipReason, str] = {
        "nothing_asked": _nothing_asked(state, config),
        "nothing_proposed": "",
        "no_usable_patch": noted(state.algorithm.patches),
        "unchanged": "; ".join(f"{report.edit}: {report.note or report.status}" for report in reports),
        "too_large": "" if built is None else over_cap(state, built, config),
        "untrusted_only": "" if built is None else GATE.doubts(state, config),
    }
    return events.StepSkipped(step=where_of(state).number, reason=reason, detail=details[reason])


def _nothing_asked(state: SkillsState, config: RunConfig) -> str:
    if not where_of(state).managing:
        return "too few attempts opened the same skills and came out alike"
    return "there are no skills to manage" if config.skills.manage else "skills.manage is off"


def _pause(state: SkillsState, config: RunConfig, evidence: RecordedTexts) -> events.Event:
    return optimizer_away(state.algorithm.patches)


DECISIONS: Mapping[str, Decision[Skills]] = {
    **gate_decisions(GATE),
    "stop": stop_training,
    "plan_epoch": _plan_epoch,
    "plan_groups": _plan_groups,
    "plan_management": _plan_management,
    "build": _build,
    "build_kept": _build_kept,
    "draw_parts": _draw_parts,
    "pause_for_parts": _pause_for_parts,
    "part": _part,
    "draw_triggers": _draw_triggers,
    "pause_for_optimizer": _pause,
    **{f"skip:{reason}": partial(_skip, reason) for reason in get_args(SkipReason)},
}


# --- words -----------------------------------------------------------------------------------------------------------


def _position(state: SkillsState) -> str:
    if state.completed is not None or state.stopped is not None:
        why = "" if state.stopped is None else f", stopped by {state.stopped.reason}"
        return f"at the end, after {counted(state.steps_done, 'step')}{why}"
    if not begun(state):
        return f"after step {state.steps_done} of {state.started.total_steps}"
    where = where_of(state)
    if state.built is not None:
        return f"gate of step {where.number}"
    if state.algorithm.groups is not None:
        return f"questions of step {where.number}"
    return f"tasks of step {where.number}"


def _step(state: SkillsState) -> int | None:
    return None if state.stopped is not None or state.steps_done >= state.started.total_steps else state.steps_done + 1


def _stands(state: SkillsState) -> Stands:
    step = _step(state)
    where = "" if step is None else f"step {step}/{state.started.total_steps}"
    return Stands(position=_position(state), step=step, where=where)


_TRYING = {
    "test": "scoring on the test items",
    "selection": "scoring on the validation items",
    "parts": "trying parts of the candidate",
}


_ASKING: Mapping[type, str] = {EditJob: "ask for edits", ManageJob: "ask about the folder"}


def _doing(task: object) -> str:
    return _TRYING.get(task.purpose, "trying training items") if isinstance(task, Unit) else _ASKING[type(task)]


def _snapshot(state: SkillsState) -> dict[str, Json]:
    algorithm = state.algorithm
    return {
        "waiting": len(algorithm.waiting),
        "refused": sum(map(len, algorithm.refused.values())),
        "trials": dict(algorithm.trials),
        "retired": [*sorted(algorithm.gone)],
    }


def _remembered(state: SkillsState) -> tuple[tuple[str, str], ...]:
    algorithm = state.algorithm
    lines = [f"{len(algorithm.waiting)} attempts wait for others like them"] if algorithm.waiting else []
    named = {WHOLE: "the whole folder", (): "no skill open"}
    lines += [
        f"{named.get(key) or '+'.join(key)}: {len(rows)} refused" for key, rows in sorted(algorithm.refused.items())
    ]
    return tuple(("" if at else "by skills", line) for at, line in enumerate(lines))


def _under_way(state: SkillsState) -> str:
    over = state.completed is not None or state.stopped is not None
    return f"step {where_of(state).number} is" if not over and _step(state) is not None and begun(state) else ""


def _steps(train: TrainConfig, items: int) -> tuple[int, int]:
    """A step a batch, and one at the epoch's end for the folder as a whole."""
    steps = ceil(items / train.batch_size) + 1
    return steps, steps * train.num_epochs


SKILLS: Algorithm[Skills] = Algorithm(
    name="skills",
    initial=initial,
    evolve=FACTS,
    next_work=next_work,
    decisions=DECISIONS,
    questions={EditJob: ask_for_edits, ManageJob: ask_for_changes},
    answers=PATCH_ANSWERS,
    words=Words(
        stands=_stands,
        doing=_doing,
        remembered=_remembered,
        snapshot=_snapshot,
    ),
    plan=Plan(steps=_steps, parts=plan_of, kind_of=kind_of),
    commands=Commands(
        heeds=frozenset({"pause", "budget", "stop", "hint", "retract"}),
        under_way=_under_way,
        refuses={
            "rescore": Refusal(
                "tries parts of a folder that its log does not hold whole: their answers cannot be graded again",
                hint="`skillopt-es eval` scores a skill with another grader",
            )
        },
    ),
    gate=GATE,
    trains_folder=True,
)
