"""Which scores an evaluation's log has: of which draw, graded how often, and the one that stands."""

from __future__ import annotations

from attrs import evolve

from skillopt_es.engine import scores
from skillopt_es.engine.run_data import RunData
from skillopt_es.engine.tasks import Evaluation
from skillopt_es.events.catalog import RolloutCompleted, SkillScored
from skillopt_es.events.journal import Journal
from skillopt_es.events.places import Place
from skillopt_es.projections.state import AnyState


def passes(state: AnyState, first: Place) -> list[Place]:
    """Where the results of a draw are recorded: at its own place, and again when graded otherwise."""
    return [place for place in map(Place, state.rollouts) if place.is_grading_of(first)]


def standing_rows(state: AnyState, run: RunData, evaluation: Evaluation) -> tuple[RolloutCompleted, ...]:
    """The rows behind the newest score of this evaluation; none unless there is one, by the settings of now."""
    for place in reversed(passes(state, evaluation.place)):
        rows = state.rollouts[place]
        if place in state.scored and tuple(rows) == evaluation.items:
            found = scores.score(evolve(evaluation, place=place), state, run)
            return tuple(rows.values()) if isinstance(found, SkillScored) else ()
    return ()


def next_draw(state: AnyState, journal: Journal, evaluation: Evaluation) -> Evaluation:
    """A draw of its own: the newest one as long as it has no score, else one that nobody has begun."""
    first = evaluation.place
    names = [*state.rollouts, *(row.call.slot for row in journal.read())]
    newest = max((Place(name).draw for name in names if first.holds(name)), default=1)
    if any(place in state.scored for place in passes(state, first.drawn(newest))):
        newest += 1
    return evolve(evaluation, place=first.drawn(newest))
