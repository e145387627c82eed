"""Which validation score decides in a run: as it was started, and as a later fork or resumption has set it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from skillopt_es.events.catalog import RunStarted
from skillopt_es.events.values import Json, Setting

_METRIC = "evaluation.gate_metric"


def metric_after(metric: str, settings: Iterable[Setting]) -> str:
    """The metric once these settings were changed."""
    said = [each.value for each in settings if each.key == _METRIC and isinstance(each.value, str)]
    return said[-1] if said else metric


def metric_in(started: RunStarted, changed: Mapping[str, Json] | None = None) -> str:
    """Hard, soft or mixed in a run that began like this, with the keys that were changed since; empty if unknown."""
    section = started.config.get("evaluation")
    known = section.get("gate_metric") if isinstance(section, dict) else None
    metric = known if isinstance(known, str) else ""
    return metric_after(metric, (Setting(key=key, value=value) for key, value in (changed or {}).items()))
