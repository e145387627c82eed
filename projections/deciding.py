"""Settings that decide what a run is read by: as it was started, and as later forks and resumptions set them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from skillopt_es.events.catalog import RunStarted
from skillopt_es.events.values import Json, Setting

CERTIFICATE = "evaluation.certificate"
"""Whether a certificate is wanted."""
MOST_CALLS = "budget.max_calls"
"""How many calls the run may make; None for any number."""
_METRIC = "evaluation.gate_metric"


def setting_in(started: RunStarted, key: str) -> Json:
    """What a run was started with; None for a key that its config does not have."""
    name, _, inner = key.partition(".")
    section = started.config.get(name)
    return section.get(inner) if isinstance(section, dict) else None


def setting_after(value: Json, key: str, settings: Iterable[Setting]) -> Json:
    """The value of a key once these settings were changed."""
    for each in settings:
        value = each.value if each.key == key else value
    return value


def calls_allowed(most: Json) -> int | None:
    """A limit of calls as it is recorded; None for any number."""
    return most if isinstance(most, int) else None


def metric_after(metric: str, settings: Iterable[Setting]) -> str:
    """The metric once these settings were changed."""
    said = [each.value for each in settings if each.key == _METRIC and isinstance(each.value, str)]
    return said[-1] if said else metric


def metric_in(started: RunStarted, changed: Mapping[str, Json] | None = None) -> str:
    """Hard, soft or mixed in a run that began like this, with the keys that were changed since; empty if unknown."""
    known = setting_in(started, _METRIC)
    metric = known if isinstance(known, str) else ""
    return metric_after(metric, (Setting(key=key, value=value) for key, value in (changed or {}).items()))
