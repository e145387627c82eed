"""
What comes next in a search: a pure function of the state. The same state always has the same next task.

A step: a batch is tried, failing tasks are shown to the optimizer, each of its edits alone meets the tasks that it
claims (the screen), those that have earned nothing are dropped, and what is left meets the gate together.
"""

from __future__ import annotations

from math import ceil

from attrs import evolve

from skillopt_es.algorithms.search.asking import SearchJob
from skillopt_es.algorithms.search.budget import closing_size, spare_results, step_size, tests_fit, widening_fits
from skillopt_es.algorithms.search.examples import examples_due
from skillopt_es.algorithms.search.groups import groups_to_ask, too_narrow
from skillopt_es.algorithms.search.results import solved
from skillopt_es.algorithms.search.sample import is_idle, judged_items, many_left, widening
from skillopt_es.algorithms.search.state import PRUNING, Search, SearchState, is_recalled, open_step
from skillopt_es.algorithms.search.steps import OpenStep
from skillopt_es.algorithms.search.together import tries_to_plan
from skillopt_es.algorithms.search.tries import evaluations
from skillopt_es.algorithms.steps import all_failed, doubts_about, unsupported, without_edits
from skillopt_es.config import RunConfig
from skillopt_es.engine.algorithm import GatePolicy, Terms
from skillopt_es.engine.algorithms import most_calls
from skillopt_es.engine.draws import shuffled
from skillopt_es.engine.evaluations import measure, training
from skillopt_es.engine.work import Decide, Evaluation, Questions, Rollouts, Told, Work
from skillopt_es.events.catalog import TrainingStopped
from skillopt_es.events.values import Minibatch
from skillopt_es.gate.certifying import beside, is_due
from skillopt_es.gate.course import final_work, opening_work, trial_work, unfit, usual_stop
from skillopt_es.gate.verdicts import too_large
from skillopt_es.projections.core import waiting


def _terms(state: SearchState, config: RunConfig) -> Terms:
    algorithm, spare = state.algorithm, spare_results(state, config)
    told = Told(again=algorithm.again, varied=algorithm.varied, spare=spare, ties_lead=True)
    return Terms(items=judged_items(state, config), config=config, told=told)


def _doubts(state: SearchState, config: RunConfig) -> str:
    """What of the candidate no trusted attempt supports; empty for none, or where that is no reason."""
    built, step = waiting(state), state.algorithm.step
    if step is None:
        return ""
    edits = {edit.id: edit for edit in step.edits}
    origins = ((name, edits[name].origins) for name in built.applied if name in edits)
    return doubts_about(state, config, origins, step.groups)


GATE: GatePolicy[Search] = GatePolicy(terms=_terms, doubts=_doubts)
"""How the open step's candidate meets the gate."""

_GIVEN_UP = 3  # tries in a row, after which a task that could not be measured is in no further batch


def next_work(state: SearchState, config: RunConfig) -> Work | None:
    """The next thing to do, or None when the run is complete."""
    if state.completed is not None:
        return None
    if state.algorithm.step is None and widening_due(state, config):
        return measure(state, widening(state, config))
    return _next_of(state, config, judged_items(state, config))


def _next_of(state: SearchState, config: RunConfig, items: tuple[str, ...]) -> Work | None:
    opening = opening_work(state, config, items)
    if opening is not None:
        return opening
    if state.algorithm.step is not None:
        return _step_work(state, config, state.algorithm.step)
    all_done = most_calls(state) is None and state.steps_done >= state.started.total_steps
    if state.stopped is not None or all_done:
        return _final_work(state, config)
    return Decide("plan_step" if stop(state, config) is None else "stop")


def _final_work(state: SearchState, config: RunConfig) -> Work:
    """What is left once the search is over; tests that the calls do not pay for are left out."""
    work = final_work(state, config, GATE, closing_size(state, config))
    testing = work == Decide("open_test") or (isinstance(work, Rollouts) and work.units[0].purpose == "test")
    return Decide("complete_run") if testing and not tests_fit(state, config) else work


def stop(state: SearchState, config: RunConfig) -> TrainingStopped | None:
    """Why no further step is begun: the score is reached, nothing pays any more, or the calls are used."""
    value, since, done = state.best.value, state.best.step, state.steps_done
    if (usual := usual_stop(state, config)) is not None:
        return usual
    if not unsolved(state, config) and not outdated(state, config) and not too_narrow(state, config):
        return TrainingStopped(step=done, reason="no_progress", best_value=value, since=since)
    most = most_calls(state)
    if most is not None and not step_size(state, config):
        return TrainingStopped(step=done, reason="budget", best_value=value, since=since, limit=float(most))
    return None


def widening_due(state: SearchState, config: RunConfig) -> bool:
    """Whether the current text meets all validation items now: steps earn nothing, or are over, and calls are left."""
    if not state.steps_done or state.completed is not None or state.algorithm.step is not None:
        return False
    wider = widening(state, config)
    if not wider or state.steering.stop or not widening_fits(state, config, many_left(wider)):
        return False
    return is_idle(state) or stop(state, config) is not None


def unsolved(state: SearchState, config: RunConfig) -> tuple[str, ...]:
    """The training items that nothing on the way to the current skill is known to have passed."""
    return tuple(item for item in _clean(state, config) if not solved(state, config, item))


def outdated(state: SearchState, config: RunConfig) -> tuple[str, ...]:
    """The training items that an older text passed: the current one may not."""
    under, now = state.algorithm.under, state.current.skill.hash
    return tuple(item for item in _clean(state, config) if solved(state, config, item) and under[item] != now)


def _clean(state: SearchState, config: RunConfig) -> tuple[str, ...]:
    """The training items that do not stand in the skill with their answers, and that can be measured."""
    given_up = {item for item, times in state.algorithm.failed.items() if times >= _GIVEN_UP}
    spared = given_up.union(state.algorithm.examples)
    return tuple(item for item in state.started.splits.train if item not in spared)


def drawn_batch(state: SearchState, config: RunConfig, seed: int) -> tuple[str, ...]:
    """
    Items for the next step, by chance among those that were tried in the fewest batches.

    Where few are unsolved, up to a quarter of a batch are items that an older text has passed; where nothing is to be
    done, all of it. What saved edits have fixed is left to them.
    """
    shown, size = state.algorithm.shown, step_size(state, config)

    def drawn(items: tuple[str, ...], most: int) -> list[str]:
        return sorted(shuffled(items, seed), key=lambda item: shown.get(item, 0))[:most]

    saved = {item for each in state.algorithm.saved for item in each.items if config.search.backlog}
    chosen = drawn(tuple(item for item in unsolved(state, config) if item not in saved), size)
    idle = not chosen and not saved and not too_narrow(state, config)
    return (*chosen, *drawn(outdated(state, config), max(0, (size if idle else ceil(size / 4)) - len(chosen))))


# --- the open step ---------------------------------------------------------------------------------------------------


def _step_work(state: SearchState, config: RunConfig, step: OpenStep) -> Work:
    if not step.rounds:
        batch = _batch(state, step)
        rollouts = measure(state, [*batch, *beside(state, config, step.place, batch)])
        return rollouts or (Decide("wager") if is_due(state, step.place) else Decide("plan_questions", reads_back=True))
    waiting = [group for group in step.asked if group.id not in step.patches]
    told = _by_itself(waiting[-1]) if waiting else ""
    if told:
        return Decide(told)
    if waiting:
        return Questions(tuple(map(SearchJob, waiting)))
    if step.ranked is None:
        return _screen_work(state, config, step)
    return _gate_work(state, config, step)


def _by_itself(group: Minibatch) -> str:
    """The decision that says which edits a group comes to, where nobody is asked; empty where somebody is."""
    return "recall" if is_recalled(group) else {PRUNING: "prune", "examples": "show_examples"}.get(group.kind, "")


def _screen_work(state: SearchState, config: RunConfig, step: OpenStep) -> Work:
    asked = [step.patches[group.id] for group in step.rounds[-1] if group.kind == "failure"]
    if all_failed(asked):
        return Decide("pause_for_optimizer")
    trying = _try_alone(state, config, step)
    if trying is not None:
        return trying
    if examples_due(state, config):
        return Decide("plan_questions", reads_back=True)
    if not step.edits:
        return without_edits(step.patches, "nothing_to_fix")
    return Decide("plan_questions" if groups_to_ask(state, config) else "screen")


def _try_alone(state: SearchState, config: RunConfig, step: OpenStep) -> Work | None:
    """What is still to be tried of the changes so far, each alone; None when nothing is."""
    if len(step.alone) < len(step.changes):
        return Decide("build_alone")
    waiting = measure(state, evaluations(state, config))
    if waiting is not None:
        return waiting
    return Decide("plan_tries") if tries_to_plan(state, config) else None


def _gate_work(state: SearchState, config: RunConfig, step: OpenStep) -> Work:
    built = state.built
    if not step.chosen:
        return Decide("skip:no_edit_chosen")
    if built is None or tuple(report.edit for report in built.reports) != step.chosen:
        return Decide("build_kept")
    reason = unfit(state, config, built, GATE, too_large(config, built.candidate))
    if reason:
        return Decide(f"skip:{reason}")
    return trial_work(state, config, built, GATE) or Decide("gate_candidate")


def _batch(state: SearchState, step: OpenStep) -> list[Evaluation]:
    return [
        evolve(each, near=True, by_item=True)
        for each in training(step.place.in_batch(0), state.current.skill, step.batch.items, step.batch.seed)
    ]


def nobody_vouches_for(state: SearchState) -> frozenset[str]:
    """The edits of the open step that no trusted attempt supports."""
    step = open_step(state)
    return frozenset(unsupported(state, ((edit.id, edit.origins) for edit in step.edits), step.groups))
