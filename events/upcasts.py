"""
Lifts payloads that older releases wrote to today's shape, one version at a time.

A released event class is never edited. A change raises its VERSION and adds here a pure function from the old payload
to the next version's, which may not depend on today's configuration:

    @upcast("StepSkipped", version=1)
    def _renamed(payload: Payload) -> Payload: ...

A payload lacks the fields that had their default in its version. A config key that a release adds or drops is an upcast
of RunStarted, too: it gives the value that decided as the older release did, which need not be today's default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from skillopt_es.events.errors import LogDamaged, LogTooNew
from skillopt_es.events.values import Json

Payload = dict[str, Json]
Upcast = Callable[[Payload], Payload]
Upcasts = Mapping[tuple[str, int], Upcast]
UPCASTS: dict[tuple[str, int], Upcast] = {}


def upcast(name: str, version: int, upcasts: dict[tuple[str, int], Upcast] = UPCASTS) -> Callable[[Upcast], Upcast]:
    """Registers the function that lifts payloads of this event from this version to the next."""

    def registered(function: Upcast) -> Upcast:
        upcasts[name, version] = function
        return function

    return registered


def lifted(name: str, version: int, current: int, payload: Payload, upcasts: Upcasts = UPCASTS) -> Payload:
    """The payload as version `current` of its event would have written it."""
    if version > current:
        raise LogTooNew(f"the log has {name} in version {version}, and this software knows it up to version {current}")
    for step in range(version, current):
        if (name, step) not in upcasts:
            raise LogDamaged(f"there is no way from version {step} of {name} to version {step + 1}")
        payload = upcasts[name, step](payload)
    return payload
