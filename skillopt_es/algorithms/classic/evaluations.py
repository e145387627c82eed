"""
The evaluations that only classic training makes, and what it has the gate compare: of its steps, and at an epoch's end.

Pure functions of the state.
"""

from __future__ import annotations

from skillopt_es.algorithms.classic.state import ClassicState, EndedEpoch, OpenStep, StepState, step_after
from skillopt_es.config import RunConfig
from skillopt_es.engine.draws import comparison_seed
from skillopt_es.engine.evaluations import missing
from skillopt_es.engine.run_config import validation_items
from skillopt_es.engine.work import Contest, Evaluation, Unit
from skillopt_es.events.places import Place
from skillopt_es.events.values import GateVerdict, SkillTree
from skillopt_es.gate.verdicts import weighed
from skillopt_es.projections.state import Standing


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


def comparison_evaluations(state: ClassicState, config: RunConfig, end: EndedEpoch) -> list[Evaluation]:
    """An epoch's first and last skill on the drawn items; one evaluation when they are one text, if that is enough."""
    epoch, items = end.epoch, end.comparison.items
    place = Place.of_epoch(epoch.number).slow
    seed = comparison_seed(config.train.seed, epoch.number)
    current = Evaluation(
        place=place.current,
        purpose="slow_current",
        split="train",
        items=items,
        skill=state.current.skill,
        seed=seed,
    )
    if end.comparison.one_text and not config.follows("epoch_end"):
        return [current]
    previous = Evaluation(
        place=place.previous,
        purpose="slow_previous",
        split="train",
        items=items,
        skill=epoch.first_skill,
        seed=seed,
    )
    return [previous, current]


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
