"""Which validation score decides in a run: as it was started, and as somebody who forked or resumed it has said."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import evolve, frozen

from skillopt_es.events.catalog import RunStarted
from skillopt_es.events.values import Json, Setting

METRIC, COMPARES = "evaluation.gate_metric", "evaluation.compare_answers"


@frozen(kw_only=True)
class Deciding:
    """
    What validation scores are: `metric` is hard, soft or mixed, and empty where a log does not say it.

    Where `by_judge`, a judge's preference decides, and scores are only shown.
    """

    metric: str = ""
    by_judge: bool = False

    def after(self, settings: Iterable[Setting]) -> Deciding:
        """The same after these settings were changed."""
        found = self
        for setting in settings:
            if setting.key == METRIC and isinstance(setting.value, str):
                found = evolve(found, metric=setting.value)
            elif setting.key == COMPARES:
                found = evolve(found, by_judge=setting.value is True)
        return found


def deciding_in(started: RunStarted, changed: Mapping[str, Json] | None = None) -> Deciding:
    """What decides in a run that began like this, with the keys that were changed since."""
    section = started.config.get("evaluation")
    known = section if isinstance(section, dict) else {}
    metric, by_judge = known.get("gate_metric"), known.get("compare_answers")
    found = Deciding(metric=metric if isinstance(metric, str) else "", by_judge=by_judge is True)
    return found.after(Setting(key=key, value=value) for key, value in (changed or {}).items())
