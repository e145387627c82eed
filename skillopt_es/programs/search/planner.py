"""
What comes next in a search: a pure function of the state. The same state always has the same next task.

A step: a batch is tried, failing tasks are shown to the optimizer, each of its edits alone meets the tasks that it
claims (the screen), those that have earned nothing are dropped, and what is left meets the gate together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import ceil

from skillopt_es.engine.run_data import RunData
from skillopt_es.engine.tasks import (
    Decide,
    Evaluation,
    Questions,
    Rollouts,
    Task,
    measure,
    selection,
    shuffled,
    told_evaluation,
    unmeasured,
)
from skillopt_es.events.catalog import RolloutCompleted, TrainingStopped
from skillopt_es.events.places import BASELINE
from skillopt_es.events.values import Edit, Measured
from skillopt_es.gate.certifying import beside, is_due
from skillopt_es.gate.verdicts import candidate_contest, draw_task, final_task, too_large
from skillopt_es.programs.search.asking import SearchJob
from skillopt_es.programs.search.budget import closing_size, most_calls, most_tries, step_size, tests_fit
from skillopt_es.programs.search.credit import Screened, screened
from skillopt_es.programs.search.state import OpenStep, SearchState
from skillopt_es.projections.trust import attempts_of, support_of

_TASKS = 3  # of what an edit claims: enough to tell whether it does anything
_BESIDE = 2  # that pass, for an edit that is for many


def next_task(state: SearchState, run: RunData) -> Task | None:
    """The next thing to do, or None when the run is complete."""
    if state.completed is not None:
        return None
    if run.started.skill.hash not in state.measured:
        return measure(state, [selection(run, BASELINE, run.started.skill)])
    told = measure(state, told_evaluation(state, run))
    if told is not None:
        return told
    if state.program.step is not None:
        return _step_task(state, run, state.program.step)
    all_done = most_calls(state) is None and state.steps_done >= run.started.total_steps
    if state.stopped is not None or all_done:
        return _final_task(state, run)
    return Decide("plan_step" if stop(state, run) is None else "stop")


def _final_task(state: SearchState, run: RunData) -> Task:
    """What is left once the search is over; tests that the calls do not pay for are left out."""
    task = final_task(state, run, closing_size(state, run))
    testing = task == Decide("open_test") or (isinstance(task, Rollouts) and task.units[0].purpose == "test")
    return Decide("complete_run") if testing and not tests_fit(state, run) else task


def stop(state: SearchState, run: RunData) -> TrainingStopped | None:
    """Why no further step is begun: the score is reached, nothing pays any more, or the calls are used."""
    assert state.best is not None
    train, value, since, done = run.config.train, state.best.value, state.best.step, state.steps_done
    if train.target_score is not None and value is not None and value >= train.target_score:
        return TrainingStopped(
            step=done, reason="target_score", best_value=value, since=since, limit=train.target_score
        )
    if train.patience is not None and done - since >= train.patience:
        return TrainingStopped(step=done, reason="patience", best_value=value, since=since, limit=float(train.patience))
    if not unsolved(state, run) and not outdated(state, run):
        return TrainingStopped(step=done, reason="no_progress", best_value=value, since=since)
    most = most_calls(state)
    if most is not None and not step_size(state, run):
        return TrainingStopped(step=done, reason="budget", best_value=value, since=since, limit=float(most))
    return None


def unsolved(state: SearchState, run: RunData) -> tuple[str, ...]:
    """The training items that nothing on the way to the current skill is known to have passed."""
    return tuple(item for item in run.started.splits.train if not _solved(state, run, item))


def outdated(state: SearchState, run: RunData) -> tuple[str, ...]:
    """The training items that an older text passed: the current one may not."""
    assert state.current is not None
    under, now = state.program.under, state.current.skill.hash
    return tuple(item for item in run.started.splits.train if _solved(state, run, item) and under[item] != now)


def drawn_batch(state: SearchState, run: RunData, seed: int) -> tuple[str, ...]:
    """
    Items for the next step, by chance among those that were tried in the fewest batches.

    Where few are unsolved, up to half of a batch are items that an older text has passed.
    """
    shown, size = state.program.shown, step_size(state, run)

    def drawn(items: tuple[str, ...], most: int) -> list[str]:
        return sorted(shuffled(items, seed), key=lambda item: shown.get(item, 0))[:most]

    chosen = drawn(unsolved(state, run), size)
    return (*chosen, *drawn(outdated(state, run), max(0, ceil(size / 2) - len(chosen))))


# --- the open step ---------------------------------------------------------------------------------------------------


def _step_task(state: SearchState, run: RunData, step: OpenStep) -> Task:
    if step.groups is None:
        batch = [_batch(state, step)] if step.batch.items else []
        rollouts = measure(state, [*batch, *beside(state, run, step.place, batch)])
        return rollouts or Decide("wager" if is_due(state, step.place) else "plan_questions")
    waiting = tuple(SearchJob(group) for group in step.groups if group.id not in step.patches)
    if waiting:
        return Questions(waiting)
    if step.ranked is None:
        return _screen_task(state, run, step)
    return _gate_task(state, run, step)


def _screen_task(state: SearchState, run: RunData, step: OpenStep) -> Task:
    results = [patch.result for patch in step.patches.values()]
    if results and all(result == "failed" for result in results):
        return Decide("pause_for_optimizer")
    if not step.edits:
        broken = any(result in ("unusable", "failed") for result in results)
        return Decide("skip:no_usable_patch" if broken else "skip:nothing_to_fix")
    if len(step.alone) < len(step.changes):
        return Decide("build_alone")
    return measure(state, screens(state, run, step)) or Decide("screen")


def _gate_task(state: SearchState, run: RunData, step: OpenStep) -> Task:
    assert state.built is not None
    assert step.ranked is not None
    if not step.ranked.chosen:
        return Decide("skip:no_edit_chosen")
    if tuple(report.edit for report in state.built.reports) != step.ranked.chosen:
        return Decide("build_kept")
    if state.built.candidate.hash == state.built.parent:
        return Decide("skip:unchanged")
    if too_large(run, state.built.candidate):
        return Decide("skip:too_large")
    if untrusted_parts(state, run):
        return Decide("skip:untrusted_only")
    if run.config.evaluation.use_gate:
        drawing = draw_task(state, run, candidate_contest(state))
    else:
        drawing = measure(state, unmeasured(state, run, [(step.place.gate, state.built.candidate)]))
    return drawing or Decide("gate_candidate")


def _applied(state: SearchState) -> list[str]:
    assert state.built is not None
    return [report.edit for report in state.built.reports if report.status.startswith("applied")]


def _batch(state: SearchState, step: OpenStep) -> Evaluation:
    assert state.current is not None
    return Evaluation(
        place=step.place.in_batch(0),
        purpose="train",
        split="train",
        items=step.batch.items,
        skill=state.current.skill,
        seed=step.batch.seed,
    )


def screens(state: SearchState, run: RunData, step: OpenStep) -> list[Evaluation]:
    """Each change alone, on tasks that it is to fix; one that is for many of them, on some that pass as well."""
    wanted = {
        index: _tasks_for(state, run, step, change)
        for index, change in enumerate(step.changes)
        if step.alone[index].candidate.hash != step.alone[index].parent
    }
    # Every change has its first task before any has its second.
    turns = sorted((at, index) for index, items in wanted.items() for at in range(len(items)))
    most = dict(Counter(index for _, index in turns[: most_tries(len(step.batch.items))]))
    return [
        Evaluation(
            place=step.screen(index),
            purpose="train",
            split="train",
            items=items[: most[index]],
            skill=step.alone[index].candidate,
            seed=run.config.train.seed,
        )
        for index, items in wanted.items()
        if index in most
    ]


def _tasks_for(state: SearchState, run: RunData, step: OpenStep, change: Sequence[Edit]) -> tuple[str, ...]:
    """The tasks that tell what a change is worth."""
    edit = change[-1]
    group = next(group for group in step.groups or () if group.id in edit.origins)
    failing = [item for item in group.items if not _solved(state, run, item)]
    if edit.claims and 2 * len(edit.claims) <= max(2, len(failing)):
        return edit.claims[:_TASKS]
    passing = [item for item in run.started.splits.train if _solved(state, run, item)]
    beside = shuffled(passing, step.batch.seed)[:_BESIDE]
    return (*(edit.claims or shuffled(failing, step.batch.seed))[:_TASKS], *beside)


def credit(state: SearchState, run: RunData, step: OpenStep) -> dict[str, Screened]:
    """What each edit has done alone; one that could not be applied, or was not tried, has done nothing."""
    found: dict[str, Screened] = {}
    for index, change in enumerate(step.changes):
        rows: Mapping[str, RolloutCompleted] = state.rollouts.get(step.screen(index), {})
        after = {item: row.outcome for item, row in rows.items() if isinstance(row.outcome, Measured)}
        found |= {edit.id: screened(state.program.known, after, run.worth) for edit in change}
    return found


def _solved(state: SearchState, run: RunData, item: str) -> bool:
    known = state.program.known.get(item)
    return known is not None and run.passes(known)


def untrusted_parts(state: SearchState, run: RunData) -> str:
    """What of the candidate no trusted attempt supports; empty for none, or where that is no reason."""
    if not run.config.evaluation.no_untrusted_only or state.program.step is None:
        return ""
    step = state.program.step
    origins = {edit.id: edit.origins for edit in step.edits}
    doubtful = [
        name
        for name in _applied(state)
        if support_of(state.rollouts[at][item].trust for at, item in attempts_of(origins[name], step.groups or ()))
        == "untrusted"
    ]
    return f"only untrusted attempts support {', '.join(doubtful)}" if doubtful else ""
