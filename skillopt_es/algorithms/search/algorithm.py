"""The search as an algorithm: small batches, edits that say what they fix, a screen before a liberal gate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import ceil
from typing import Literal, get_args

from attrs import evolve

from skillopt_es.algorithms.optimizer import guard
from skillopt_es.algorithms.search import folding
from skillopt_es.algorithms.search.asking import SearchJob, ask_for_edits
from skillopt_es.algorithms.search.credit import Screened
from skillopt_es.algorithms.search.estimate import kind_of, plan_of
from skillopt_es.algorithms.search.examples import examples_due, examples_group, form, show_examples
from skillopt_es.algorithms.search.groups import groups_to_ask
from skillopt_es.algorithms.search.planner import (
    GATE,
    drawn_batch,
    next_work,
    nobody_vouches_for,
    stop,
)
from skillopt_es.algorithms.search.pruning import prune, pruning_due, pruning_groups
from skillopt_es.algorithms.search.results import screened
from skillopt_es.algorithms.search.sample import other_items
from skillopt_es.algorithms.search.state import Search, SearchState, is_recalled, kept_edits, open_step
from skillopt_es.algorithms.search.together import tries_to_plan
from skillopt_es.algorithms.steps import PATCH_ANSWERS, candidate_of, leaking, noted, optimizer_away
from skillopt_es.config import RunConfig, TrainConfig
from skillopt_es.counting import counted
from skillopt_es.engine.algorithm import Algorithm, Commands, Decision, Plan, Refusal, Stands, Words
from skillopt_es.engine.evidence import RecordedTexts
from skillopt_es.engine.work import Unit
from skillopt_es.events import catalog as events
from skillopt_es.events.values import Batch, Credit, Edit, Json, Order
from skillopt_es.gate.course import gate_decisions
from skillopt_es.gate.verdicts import too_large
from skillopt_es.projections.fates import earned
from skillopt_es.projections.state import there

SkipReason = Literal[
    "nothing_to_fix",
    "nothing_proposed",
    "no_usable_patch",
    "no_edit_chosen",
    "unchanged",
    "too_large",
    "untrusted_only",
]


def _stop(state: SearchState, config: RunConfig, evidence: RecordedTexts) -> events.Event:
    return there(stop(state, config), "rule that ends the training")


def _plan_step(state: SearchState, config: RunConfig, evidence: RecordedTexts) -> events.Event:
    number = state.steps_done + 1
    seed = config.train.seed + number * 1000
    return events.EpochPlanned(epoch=number, batches=(Batch(seed=seed, items=drawn_batch(state, config, seed)),))


def _plan_questions(state: SearchState, config: RunConfig, evidence: RecordedTexts) -> events.Event:
    step, groups = open_step(state), groups_to_ask(state, config)
    shown = examples_group(state, config, evidence) if examples_due(state, config) else ()
    idle = pruning_groups(state, config, evidence) if pruning_due(state, config) else ()
    return events.MinibatchesPlanned(step=step.number, groups=(*groups, *shown, *idle))


def _recall(state: SearchState, config: RunConfig, evidence: RecordedTexts) -> events.Event:
    """Saved edits, proposed once more without a question: their names say of which step they are now."""
    step = open_step(state)
    group = next(each for each in step.asked if is_recalled(each) and each.id not in step.patches)
    saved = [each for each in step.recalled if each.place == group.place]
    return events.PatchProposed(
        patch=group.id,
        step=step.number,
        kind="failure",
        items=group.items,
        result="edits",
        edits=tuple(
            evolve(each.edit, id=f"{group.id}#{number}", origins=(group.id,)) for number, each in enumerate(saved, 1)
        ),
        reasoning="refused together with others, and tried again without them",
    )


def _plan_tries(state: SearchState, config: RunConfig, evidence: RecordedTexts) -> events.Event:
    return events.TriesPlanned(step=open_step(state).number, tries=tries_to_plan(state, config))


def _build_alone(state: SearchState, config: RunConfig, evidence: RecordedTexts) -> events.Event:
    """The next change, on what earlier rounds have kept."""
    step = open_step(state)
    index = len(step.alone)
    kept = [at for at, found in screened(state, config, earlier=step.round_of(index)).items() if found.won]
    return _built(state, config, evidence, step.in_order([*kept, index]))


def _build_kept(state: SearchState, config: RunConfig, evidence: RecordedTexts) -> events.Event:
    return _built(state, config, evidence, kept_edits(open_step(state)))


def _built(
    state: SearchState, config: RunConfig, evidence: RecordedTexts, edits: tuple[Edit, ...]
) -> events.CandidateBuilt:
    """The current skill with these edits; what copies a tried item is left out."""
    step = open_step(state)
    rows = [state.rollouts[group.place][item] for group in step.groups for item in group.items]
    quoted = bool(form(state, config))  # whole items may stand in the skill, then
    watch = guard(rows, state.current.skill, config, evidence, quoted=quoted)
    refused = leaking([edit for edit in edits if edit.source != "examples"], watch)
    return candidate_of(state, config, step.number, edits, refused)


def _screen(state: SearchState, config: RunConfig, evidence: RecordedTexts) -> events.Event:
    """The edits that have alone made more tasks better than worse, and not by luck."""
    step = open_step(state)
    found = screened(state, config)
    won = {edit.id for index, each in found.items() if each.won for edit in step.changes[index]}
    if config.evaluation.no_untrusted_only:  # it would take the others with it
        won -= nobody_vouches_for(state)
    pool = tuple(edit.id for edit in step.edits)
    given = {index: _credit(step.changes[index][-1].id, each) for index, each in found.items()}
    return events.EditsRanked(
        step=step.number,
        budget=None,
        pool=pool,
        chosen=tuple(name for name in pool if name in won),
        reasoning="; ".join(f"{each.edit} {_earned(each, found[index])}" for index, each in given.items()),
        credits=tuple(given.values()),
    )


def _earned(credit: Credit, found: Screened) -> str:
    """What an edit has earned; of a line that it takes out, whether a task needs it."""
    if not found.deletes:
        return earned(credit)
    return f"is needed by {', '.join(found.worse)}" if found.worse else f"is of no use to {', '.join(found.results)}"


def _credit(name: str, found: Screened) -> Credit:
    """What an edit has earned; of one that is dropped, also what may have been luck."""
    return Credit(
        edit=name,
        fixed=found.better if found.won or found.chances is None else found.fixed_once,
        broke=found.worse,
        varied=found.varied,
        again=found.again,
        tries=sum(len(each.after) for each in found.results.values()),
        nearer=found.nearer,
    )


def _skip(reason: SkipReason, state: SearchState, config: RunConfig, evidence: RecordedTexts) -> events.Event:
    step = open_step(state)
    built = state.built
    reports = () if built is None else built.reports
    details: Mapping[SkipReason, str] = {
        "nothing_to_fix": "no task of the batch failed",
        "nothing_proposed": "",
        "no_usable_patch": noted(step.patches),
        "no_edit_chosen": "" if step.ranked is None else f"screen: {step.ranked.reasoning}",
        "unchanged": "; ".join(f"{report.edit}: {report.status}" for report in reports),
        "too_large": "" if built is None else too_large(config, built.candidate),
        "untrusted_only": "" if built is None else GATE.doubts(state, config),
    }
    return events.StepSkipped(step=step.number, reason=reason, detail=details[reason])


def _pause(state: SearchState, config: RunConfig, evidence: RecordedTexts) -> events.Event:
    return optimizer_away(open_step(state).patches)


DECISIONS: Mapping[str, Decision[Search]] = {
    **gate_decisions(GATE),
    "stop": _stop,
    "plan_step": _plan_step,
    "plan_questions": _plan_questions,
    "recall": _recall,
    "show_examples": show_examples,
    "prune": prune,
    "plan_tries": _plan_tries,
    "build_alone": _build_alone,
    "build_kept": _build_kept,
    "screen": _screen,
    "pause_for_optimizer": _pause,
    **{f"skip:{reason}": partial(_skip, reason) for reason in get_args(SkipReason)},
}


# --- words -----------------------------------------------------------------------------------------------------------


def _position(state: SearchState) -> str:
    if state.completed is not None or state.stopped is not None:
        why = "" if state.stopped is None else f", stopped by {state.stopped.reason}"
        return f"at the end, after {counted(state.steps_done, 'step')}{why}"
    step = state.algorithm.step
    if step is None:
        return f"after step {state.steps_done}" if state.algorithm.tries else "before the first step"
    if not step.rounds:
        return f"tasks of step {step.number}"
    if not step.alone:
        return f"questions of step {step.number}"
    return f"{'screen' if step.ranked is None else 'gate'} of step {step.number}"


def _stands(state: SearchState) -> Stands:
    step = state.algorithm.step
    if step is None:
        return Stands(position=_position(state))
    return Stands(position=_position(state), step=step.number, where=f"step {step.number}")


def _doing(task: object) -> str:
    if not isinstance(task, Unit):
        return "ask for edits"
    if task.purpose == "test":
        return "scoring on the test items"
    if task.purpose == "selection":
        return "scoring on the validation items"
    return "trying each edit alone" if task.place.stage == "screen" else "trying training items"


def _snapshot(state: SearchState) -> dict[str, Json]:
    algorithm = state.algorithm
    return {
        "open_step": None if algorithm.step is None else algorithm.step.number,
        "calls": algorithm.calls + algorithm.questions,
        "known": {item: found.hard for item, found in algorithm.known.items()},
        "tried": [{"step": each.step, "edit": each.edit.id, "why": each.why} for each in algorithm.tried],
    }


def _remembered(state: SearchState) -> tuple[tuple[str, str], ...]:
    return tuple(
        ("" if at else "refused", f"{each.edit.id}: {each.why}") for at, each in enumerate(state.algorithm.tried)
    )


def _steps(train: TrainConfig, items: int) -> tuple[int, int]:
    """An epoch is one step; together they go as often over the training items as there are epochs in the config."""
    return 1, ceil(items / train.batch_size) * train.num_epochs


_HANDLERS: Mapping[type[events.Event], Callable[..., SearchState]] = {
    events.RunResumed: folding.resumed,
    events.EvidenceRetracted: folding.retracted,
    events.EpochPlanned: folding.planned,
    events.SkillScored: folding.scored,
    events.MinibatchesPlanned: folding.grouped,
    events.PatchProposed: folding.proposed,
    events.TriesPlanned: folding.tries_planned,
    events.CandidateBuilt: folding.built,
    events.EditsRanked: folding.ranked,
    events.CandidateGated: folding.gated,
    events.StepSkipped: folding.skipped,
}

SEARCH: Algorithm[Search] = Algorithm(
    name="search",
    initial=folding.initial,
    evolve=_HANDLERS,
    next_work=next_work,
    decisions=DECISIONS,
    questions={SearchJob: ask_for_edits},
    answers=PATCH_ANSWERS,
    plan=Plan(steps=_steps, parts=plan_of, kind_of=kind_of, by_calls=True),
    commands=Commands(
        heeds=frozenset(get_args(Order)),
        under_way=lambda state: "" if state.algorithm.step is None else f"step {state.algorithm.step.number} is",
        contradicts=other_items,
        refuses={
            "rescore": Refusal(
                "tries versions of the skill that its log does not hold whole: their answers cannot be graded again",
                hint="`skillopt-es eval` scores a skill with another grader",
            )
        },
    ),
    gate=GATE,
    words=Words(
        stands=_stands,
        doing=_doing,
        before_the_gate="An edit has to win on training tasks first. ",
        remembered=_remembered,
        snapshot=_snapshot,
    ),
)
