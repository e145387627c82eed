"""Writing an imported run's log, all of it or nothing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from skillopt_es.engine.fold import fold
from skillopt_es.events.create import Contents
from skillopt_es.events.values import digest_of
from skillopt_es.events.writer import RunWriter
from skillopt_es.interchange.imported_run import Imported
from skillopt_es.programs.classic.state import ClassicState, classic


def write_run(imported: Imported, folder: Path, *, now: Callable[[], datetime]) -> ClassicState:
    """A new run in a folder that has none; the state that its log leads to."""
    run_id = digest_of(f"{folder.name} {now().isoformat()}".encode())[:16]
    contents = Contents(imported.events, imported.texts)
    RunWriter.create(folder, run_id=run_id, name=folder.name, now=now, contents=contents).close()
    return classic(fold(imported.events))
