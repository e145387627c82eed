"""Which scores an evaluation's log has: of which draw, graded how often, and the one that stands."""

from __future__ import annotations

import re

from attrs import evolve

from skillopt_es.engine import scores
from skillopt_es.engine.run_data import RunData
from skillopt_es.engine.tasks import Evaluation
from skillopt_es.events.catalog import RolloutCompleted, SkillScored
from skillopt_es.events.journal import Journal
from skillopt_es.projections.state import AnyState

_DRAW = re.compile(r"draw-(\d+)/")


def passes(state: AnyState, first: str) -> list[str]:
    """Where the results of a draw are recorded: at its own place, and again when graded otherwise."""
    own = re.compile(re.escape(first) + r"(/\d+)?")
    return [place for place in state.rollouts if own.fullmatch(place)]


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
    own = [name.removeprefix(f"{first}/") for name in names if name == first or name.startswith(f"{first}/")]
    newest = max(map(_draw_in, own), default=1)
    if any(place in state.scored for place in passes(state, drawn_at(first, newest))):
        newest += 1
    return evolve(evaluation, place=drawn_at(first, newest))


def drawn_at(first: str, number: int) -> str:
    """The place of an evaluation's n-th draw."""
    return first if number == 1 else f"{first}/draw-{number}"


def draw_of(place: str) -> int:
    """Which draw of its split a place of results or calls is of."""
    return _draw_in("/".join(place.split("/")[2:]))


def _draw_in(rest: str) -> int:
    found = _DRAW.match(f"{rest}/")
    return int(found[1]) if found else 1
