"""The evaluations that a run makes, and what is still missing of them: pure functions of the state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve, field, frozen

from skillopt_es.engine.run_data import RunData
from skillopt_es.engine.sampling import draw_seed
from skillopt_es.engine.tasks import AddUp, Evaluation, Rollouts, Task, Unit
from skillopt_es.events.catalog import RolloutCompleted
from skillopt_es.events.places import FINAL_TEST, Place
from skillopt_es.events.values import SkillTree
from skillopt_es.projections.state import AnyState, Partial, Standing


@frozen(kw_only=True)
class Contest:
    """A candidate and who it has to beat, and the places of what is drawn of each for this comparison."""

    candidate: SkillTree
    standing: Standing
    candidate_place: Place = field(converter=Place)
    current_place: Place = field(converter=Place)

    @property
    def current(self) -> SkillTree:
        """The text that it has to beat."""
        return self.standing.skill

    def against(self, standing: Standing) -> Contest:
        """The same candidate against the best text; what is drawn of that has a place below this one."""
        return evolve(self, standing=standing, current_place=self.current_place.best)


def selection(run: RunData, place: Place, skill: SkillTree, *, draw: int = 1) -> Evaluation:
    """The evaluation of a skill on the selection items; a further draw has a place and a seed of its own."""
    return Evaluation(
        place=place.drawn(draw),
        purpose="selection",
        split="val",
        items=run.selection_items,
        skill=skill,
        seed=draw_seed(run.config.train.seed, draw),
        draw=draw,
    )


def measure(state: AnyState, evaluations: Sequence[Evaluation]) -> Task | None:
    """The missing rollouts of all these evaluations at once, then their sums one by one; None when all are scored."""
    units = tuple(unit for evaluation in evaluations for unit in missing(state, evaluation))
    if units:
        return Rollouts(units)
    for evaluation in evaluations:
        if evaluation.place not in state.scored:
            return AddUp(evaluation)
    return None


def missing(state: AnyState, evaluation: Evaluation) -> list[Unit]:
    """The rollouts of an evaluation that the state does not hold yet."""
    if evaluation.place in state.scored:
        return []
    done = rows_of(state, evaluation)
    return units_of(evaluation, [item for item in evaluation.items if item not in done])


def units_of(evaluation: Evaluation, items: Sequence[str]) -> list[Unit]:
    """These items of an evaluation, to be tried."""
    return [
        Unit(
            place=evaluation.place, purpose=evaluation.purpose, item=item, skill=evaluation.skill, seed=evaluation.seed
        )
        for item in items
    ]


def rows_of(state: AnyState, evaluation: Evaluation) -> Mapping[str, RolloutCompleted]:
    """What was run of an evaluation: here, and where the same draw was begun."""
    here: Mapping[str, RolloutCompleted] = state.rollouts.get(evaluation.place, {})
    begun = begun_draw(state, evaluation)
    return here if begun is None else {**begun.rows, **here}


def begun_draw(state: AnyState, evaluation: Evaluation) -> Partial | None:
    """The part of an evaluation that was run at another place, where it ended early."""
    if evaluation.purpose != "selection":
        return None
    return state.partial.get((evaluation.skill.hash, evaluation.draw))


def unmeasured(state: AnyState, run: RunData, skills: Sequence[tuple[Place, SkillTree]]) -> list[Evaluation]:
    """Selection evaluations for those of the skills (by place) that have never been measured."""
    return [selection(run, place, skill) for place, skill in skills if skill.hash not in state.measured]


def test_evaluations(state: AnyState, run: RunData) -> list[Evaluation]:
    """The initial, best and final skill on the test items, each text once."""
    if not run.test_items:
        return []
    assert state.best is not None
    assert state.current is not None
    named = (("initial", run.started.skill), ("best", state.best.skill), ("final", state.current.skill))
    texts: dict[str, tuple[str, SkillTree]] = {}
    for name, skill in named:
        texts.setdefault(skill.hash, (name, skill))
    return [
        Evaluation(
            place=FINAL_TEST / name,
            purpose="test",
            split="test",
            items=run.test_items,
            skill=skill,
            seed=run.config.train.seed,
        )
        for name, skill in texts.values()
    ]
