"""The evaluations that only classic training makes: of its steps, and at an epoch's end. Pure."""

from __future__ import annotations

from skillopt_es.engine.evaluations import comparison_seed, missing, selection
from skillopt_es.engine.run_data import RunData
from skillopt_es.engine.tasks import Evaluation, Rollouts, Task, Unit
from skillopt_es.events.places import BASELINE, Place
from skillopt_es.programs.classic.state import ClassicState, EpochState, StepState, step_after
from skillopt_es.projections.state import AnyState, Standing


def told_evaluation(state: AnyState, run: RunData) -> list[Evaluation]:
    """The draw of the current text that decides nothing, where it is wanted and missing: it states the text's score."""
    current = state.current
    assert current is not None
    known = state.measured.get(current.skill.hash)
    if not run.config.evaluation.fresh_score or known is None or known.fresh is not None or current.stale_from:
        return []
    return [selection(run, _origin_place(current, run).told, current.skill, draw=0)]


def _origin_place(current: Standing, run: RunData) -> Place:
    """The place at which a text became the current one."""
    if current.origin.kind == "initial_skill":
        return BASELINE
    if current.origin.kind in ("slow_update", "slow_update_placeholder"):
        return Place.of_epoch(current.origin.epoch).slow
    return Place.of_step((current.step - 1) // run.started.steps_per_epoch + 1, current.step)


def train_evaluations(place: Place, step: StepState, current: Standing) -> list[Evaluation]:
    """The training rollouts of a step, one evaluation a batch."""
    return [
        Evaluation(
            place=place.in_batch(index),
            purpose="train",
            split="train",
            items=batch.items,
            skill=current.skill,
            seed=batch.seed,
        )
        for index, batch in enumerate(step.batches)
        if batch.items  # all of a batch may have been retracted
    ]


def comparison_evaluations(state: ClassicState, run: RunData, epoch: EpochState) -> list[Evaluation]:
    """An epoch's first and last skill on the drawn items; one evaluation when they are one text, if that is enough."""
    assert epoch.comparison is not None
    assert state.current is not None
    place = Place.of_epoch(epoch.number).slow
    seed = comparison_seed(run.config.train.seed, epoch.number)
    current = Evaluation(
        place=place.current,
        purpose="slow_current",
        split="train",
        items=epoch.comparison.items,
        skill=state.current.skill,
        seed=seed,
    )
    if epoch.comparison.previous == epoch.comparison.current and not run.config.optimizer.compare_equal_skills:
        return [current]
    previous = Evaluation(
        place=place.previous,
        purpose="slow_previous",
        split="train",
        items=epoch.comparison.items,
        skill=epoch.first_skill,
        seed=seed,
    )
    return [previous, current]


def units_ahead(task: Task, state: ClassicState) -> tuple[Unit, ...]:
    """What the next step will try if the candidate that is being judged is rejected; nothing at any other time."""
    epoch, step = state.program.epoch, state.program.step
    if not isinstance(task, Rollouts) or step is None or state.built is None:
        return ()
    assert epoch is not None
    assert state.current is not None
    following = step_after(state, epoch, step.number + 1)
    if following is None:
        return ()
    evaluations = train_evaluations(Place.of_step(epoch.number, following.number), following, state.current)
    return tuple(unit for evaluation in evaluations for unit in missing(state, evaluation))
