"""Audits of a run that is named by its folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from skillopt_es.audit import regating, rescoring
from skillopt_es.audit.regated import Regated
from skillopt_es.audit.rescoring import Rescoring
from skillopt_es.events.log import EventLog
from skillopt_es.sessions.wiring import REAL_WORLD, World


def regated(folder: Path, overrides: Sequence[str] = ()) -> Regated:
    """What another rule would have decided."""
    with EventLog.open(folder) as log:
        return regating.regated(log, folder, overrides)


async def rescored(folder: Path, overrides: Sequence[str] = (), *, world: World = REAL_WORLD) -> Rescoring:
    """What the run's answers come to, graded again."""
    with EventLog.open(folder) as log:
        return await rescoring.rescored(log, log, folder, overrides, world=world)
