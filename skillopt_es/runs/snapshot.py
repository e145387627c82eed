"""A run's state as plain JSON and in one sentence, for `replay` and for other software."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import asdict

from skillopt_es.counting import counted
from skillopt_es.engine.algorithms import algorithm_at
from skillopt_es.events.values import Json, Score
from skillopt_es.projections.state import AnyState, Counts, Standing


def position(state: AnyState | None) -> str:
    """Where in its training a run stands, in a few words."""
    if state is None:
        return "nothing has happened yet"
    if state.completed is not None:
        return f"complete after {counted(state.steps_done, 'step')}"
    return algorithm_at(state).words.stands(state).position


def counted_verdicts(counts: Counts) -> str:
    """How the steps ended, in a few words; undecided ones are only told where there are any."""
    undecided = f", {counts.indecisive} indecisive" if counts.indecisive else ""
    return f"{counts.accepted} accepted, {counts.rejected} rejected{undecided}, {counts.skipped} skipped"


def snapshot(state: AnyState | None) -> dict[str, Json]:
    """A state as JSON: where it stands, its skills by hash, and what it remembers; the same state, the same JSON."""
    if state is None:
        return {**_NOT_BEGUN, "position": position(None), "counts": asdict(Counts())}
    return {
        "status": state.status,
        "position": position(state),
        "paused": None if state.paused is None else {"reason": state.paused.reason, "message": state.paused.message},
        "stopped": None if state.stopped is None else {"reason": state.stopped.reason, "step": state.stopped.step},
        "steps_done": state.steps_done,
        "steps": state.started.total_steps,
        "current": _standing(state.current),
        "best": _standing(state.best),
        "measured": {skill: score_json(measurement.stated) for skill, measurement in state.measured.items()},
        "tests": {skill: score_json(scored.score) for skill, scored in state.tests.items()},
        "test_looks": state.looks.count,
        "counts": asdict(state.counts),
        **_imported(state),
        **algorithm_at(state).words.snapshot(state),
    }


# The same keys as a run that has begun, so that readers of the JSON ask for nothing that is not there.
_NOT_BEGUN: Mapping[str, Json] = {
    "status": "new",
    "position": "",
    "paused": None,
    "stopped": None,
    "steps_done": 0,
    "steps": 0,
    "current": None,
    "best": None,
    "measured": {},
    "tests": {},
    "test_looks": 0,
    "counts": {},
}


def _imported(state: AnyState) -> dict[str, Json]:
    """Where an imported run comes from and what of it is unknown; nothing for a run of our own."""
    if state.imported is None:
        return {}
    unknown: list[Json] = [{"place": gap.place, "what": gap.what, "why": gap.why} for gap in state.gaps]
    return {"imported": {"source": state.imported.source, "folder": state.imported.folder}, "unknown": unknown}


def score_json(score: Score | None) -> Json:
    """A score as JSON, null for none."""
    return None if score is None else asdict(score)


def _standing(standing: Standing) -> Json:
    return {
        "hash": standing.skill.hash,
        "files": [*sorted(standing.skill.files)],
        "value": standing.value,
        "score": score_json(standing.score),
        "origin": str(standing.origin),
        "step": standing.step,
        **({"stale_from": standing.stale_from} if standing.stale_from else {}),
    }
