"""Whether the files that only save time say what the log says: readers believe them as long as they look right."""

from __future__ import annotations

from pathlib import Path

from attrs import evolve

from skillopt_es.events.log import EventLog
from skillopt_es.events.verify import Problem, VerifyReport
from skillopt_es.runs import kept_overviews, usage_sums
from skillopt_es.runs.overview import SESSIONS, inherited_calls, known_overview, overview

_CHANGED = "it does not say what the log says: it was changed; remove it, and it is made anew"


def with_kept(report: VerifyReport, folder: Path) -> VerifyReport:
    """A report on a log, with what is wrong with the files that save reading it; of a damaged log as it is."""
    if not report.ok:
        return report
    # An overview is made with the help of the sums, so with wrong sums nothing can be said of it.
    wrong = usage_sums.FILE if _has_wrong_sums(folder) else kept_overviews.FILE if _has_wrong_overview(folder) else ""
    return evolve(report, ok=False, problems=(Problem(wrong, _CHANGED),)) if wrong else report


def _has_wrong_sums(folder: Path) -> bool:
    with EventLog.open(folder) as log:
        inherited = inherited_calls(log.read(types=SESSIONS))
        return not usage_sums.is_true(usage_sums.kept_sums(folder, log, inherited), log)


def _has_wrong_overview(folder: Path) -> bool:
    known = known_overview(folder)
    return known is not None and overview(folder) != known and known_overview(folder) == known  # no writer came by
