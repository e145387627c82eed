"""
Lifts payloads that older versions of this software wrote to today's shape, one version at a time.

A released event class is never edited: a change raises its VERSION and adds here a pure function from the old payload
to the next version's. Nothing in it may depend on today's configuration. A payload lacks the fields that had their
default in its version.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from skillopt_es.events.errors import LogDamaged, LogTooNew
from skillopt_es.events.values import Json

Payload = dict[str, Json]
Upcast = Callable[[Payload], Payload]
Upcasts = Mapping[tuple[str, int], Upcast]


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


UPCASTS: Upcasts = {("RunStarted", 1): _with_program, ("RunPaused", 1): _paused_by_key}


def upcast(name: str, version: int, current: int, payload: Payload, upcasts: Upcasts = UPCASTS) -> Payload:
    """The payload as version `current` of its event would have written it."""
    if version > current:
        raise LogTooNew(
            f"the log has {name} in version {version}, and this software knows it up to version {current}",
            hint="use a newer skillopt-es",
        )
    while version < current:
        step = upcasts.get((name, version))
        if step is None:
            raise LogDamaged(f"there is no way from version {version} of {name} to version {version + 1}")
        payload = step(payload)
        version += 1
    return payload
