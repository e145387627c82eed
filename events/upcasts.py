"""
Lifts payloads that older versions of this software wrote to today's shape, one version at a time.

A released event class is never edited: a change raises its VERSION and adds here a pure function from the old payload
to the next version's. Nothing in it may depend on today's configuration. A payload lacks the fields that had their
default in its version.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from attrs import evolve

from skillopt_es.events.catalog import Event, SlowUpdateApplied
from skillopt_es.events.errors import LogDamaged, LogTooNew
from skillopt_es.events.values import Json

Payload = dict[str, Json]
Upcast = Callable[[Payload], Payload]
Upcasts = Mapping[tuple[str, int], Upcast]

# As these fields were called then, whatever they are called today.
_MOVED = (
    "action",
    "metric",
    "candidate_score",
    "candidate_value",
    "current_score",
    "current_value",
    "best_value",
    "compared",
    "won",
    "lost",
    "known_from",
    "stale_from",
    "rule",
    "reason",
    "draws",
    "current_draws",
    "error",
    "exact",
)


def _with_verdict(payload: Payload) -> Payload:
    """The fields of the verdict as one value, which says whether the text became the best one."""
    verdict = {name: payload[name] for name in _MOVED if name in payload}
    return {
        **{name: value for name, value in payload.items() if name not in verdict},
        "verdict": {**verdict, "new_best": verdict["action"] == "accept_new_best"},
    }


def _gated_with_verdict(payload: Payload) -> Payload:
    """A text that was forced became the best one if it counted more than the best before."""
    lifted = _with_verdict(payload)
    value, best = payload["candidate_value"], payload["best_value"]
    if payload["action"] == "force_accept" and (best is None or _number(value) > _number(best)):
        return {**lifted, "verdict": {**cast("Payload", lifted["verdict"]), "new_best": True}}
    return lifted


def _number(value: Json) -> float:
    if isinstance(value, int | float):
        return value
    raise ValueError(f"must be a number, not {value!r:.80}")


def _with_program(payload: Payload) -> Payload:
    """Before a run said which program it is of, its writer's name told an import, and having no steps an evaluation."""
    if payload.get("software") == "skillopt (imported)":
        return {**payload, "program": "imported"}
    if payload.get("total_steps") == 0 and payload.get("steps_per_epoch") == 0:
        return {**payload, "program": "evaluation"}
    return payload


def _paused_by_key(payload: Payload) -> Payload:
    """A budget's pause named its limit at the beginning of its message, and nowhere else."""
    return {**payload, "key": str(payload["message"]).split()[0]} if payload["reason"] == "budget" else payload


_NOTHING_ASKED = ("too few attempts", "there are no skills", "skills.manage")


def _skipped_for_its_reason(payload: Payload) -> Payload:
    """One reason stood for all steps without a proposal; the detail told whether anything was asked and proposed."""
    detail = str(payload.get("detail", "")).partition(";")[0]
    if payload["reason"] != "nothing_to_fix":
        return payload
    if detail.startswith(_NOTHING_ASKED):
        return {**payload, "reason": "nothing_asked"}
    if "proposed" not in detail:
        return payload
    said = {} if detail == "nothing was proposed" else {"detail": payload["detail"]}
    return {
        **{name: value for name, value in payload.items() if name != "detail"},
        **said,
        "reason": "nothing_proposed",
    }


UPCASTS: Upcasts = {
    ("StepSkipped", 1): _skipped_for_its_reason,
    ("RunStarted", 1): _with_program,
    ("RunPaused", 1): _paused_by_key,
    ("CandidateGated", 1): _gated_with_verdict,
    ("SlowUpdateApplied", 1): _with_verdict,
}


def as_said(event: Event, version: int) -> Event:
    """The event with no more in it than its `version` could say, so that one derived anew can be compared with it."""
    if isinstance(event, SlowUpdateApplied) and version == 1:
        less = evolve(event.verdict, metric=None, current_score=None, compared=None, won=(), lost=())
        return evolve(event, verdict=less)
    return event


def upcast(name: str, version: int, current: int, payload: Payload, upcasts: Upcasts = UPCASTS) -> Payload:
    """The payload as version `current` of its event would have written it."""
    if version > current:
        raise LogTooNew(f"the log has {name} in version {version}, and this software knows it up to version {current}")
    while version < current:
        step = upcasts.get((name, version))
        if step is None:
            raise LogDamaged(f"there is no way from version {version} of {name} to version {version + 1}")
        payload = step(payload)
        version += 1
    return payload
