"""
The evaluations that only classic training makes, and what it has the gate compare: of its steps, and at an epoch's end.

Pure functions of the state.
"""

from __future__ import annotations

from functools import partial

from skillopt_es.algorithms.classic.state import ClassicState, EndedEpoch, OpenStep, StepState, step_after
from skillopt_es.config import RunConfig
from skillopt_es.engine.draws import comparison_seed
from skillopt_es.engine.evaluations import missing, training
from skillopt_es.engine.run_config import validation_items
from skillopt_es.engine.work import Contest, Evaluation, Unit
from skillopt_es.events.places import Place
from skillopt_es.events.values import GateVerdict, SkillTree
from skillopt_es.gate.verdicts import weighed
from skillopt_es.projections.state import Standing


def train_evaluations(place: Place, step: StepState, current: Standing) -> list[Evaluation]:
    """The training rollouts of a step, one evaluation a batch."""
    return [
        each
        for index, batch in enumerate(step.batches)
        for each in training(place.in_batch(index), current.skill, batch.items, batch.seed)
    ]


def comparison_evaluations(state: ClassicState, config: RunConfig, end: EndedEpoch) -> list[Evaluation]:
    """An epoch's first and last skill on the drawn items; one evaluation when they are one text, if that is enough."""
    epoch, place = end.epoch, Place.of_epoch(end.epoch.number).slow
    seed = comparison_seed(config.train.seed, epoch.number)
    on_drawn = partial(Evaluation, split="train", items=end.comparison.items, seed=seed)
    current = on_drawn(place=place.current, purpose="slow_current", skill=state.current.skill)
    if end.comparison.one_text and not config.follows("epoch_end"):
        return [current]
    return [on_drawn(place=place.previous, purpose="slow_previous", skill=epoch.first_skill), current]


def units_ahead(state: ClassicState, at: OpenStep) -> tuple[Unit, ...]:
    """What the next step will try if the candidate that is being judged is rejected."""
    following = step_after(state, at.epoch, at.step.number + 1)
    if following is None:
        return ()
    evaluations = train_evaluations(Place.of_step(at.epoch.number, following.number), following, state.current)
    return tuple(unit for evaluation in evaluations for unit in missing(state, evaluation))


def guidance_contest(state: ClassicState, config: RunConfig, epoch: int, candidate: SkillTree) -> Contest:
    """An epoch's guidance against the current skill."""
    place = Place.of_epoch(epoch).slow
    return Contest(
        candidate=candidate,
        standing=state.current,
        items=validation_items(state.started, config),
        candidate_place=place.gate,
        current_place=place.standing,
    )


def judged_guidance(state: ClassicState, config: RunConfig, epoch: int, candidate: SkillTree) -> GateVerdict:
    """The verdict over an epoch's guidance, where it has to pass the gate."""
    contest = guidance_contest(state, config, epoch, candidate)
    return weighed(state, config, contest, contest.against(state.best), use_gate=True)
