"""
`overview.json` in a run's folder: what a list of runs shows of it, so that many are listed without reading their logs.

It can be deleted at any time, and goes with a copy of the folder. It is believed only while the log is at rest: its
last writer closed it, `head.json` is the one of then, and the log has its size of then and was not changed since.
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from skillopt_es.events.anchor import ANCHOR_FILE
from skillopt_es.events.plain import read_plain
from skillopt_es.events.schema import LOG_FILE
from skillopt_es.events.strict import MISFITS, strict_converter
from skillopt_es.events.tail import TAIL_FILE
from skillopt_es.events.values import Json, digest_of
from skillopt_es.runs.kept_files import read_kept, write_kept
from skillopt_es.version import software_version

FILE = "overview.json"
FORMAT = 4

converter = strict_converter(detailed=False)
converter.register_unstructure_hook(Decimal, str)
converter.register_structure_hook(Decimal, lambda value, _: Decimal(value))
converter.register_unstructure_hook(Path, str)
converter.register_structure_hook(Path, lambda value, _: Path(value))


def kept_overview(folder: Path) -> Json:
    """What was kept of a run whose log is as it was then; None for nothing."""
    said, state = read_kept(folder / FILE), _state(folder)
    if not isinstance(said, dict) or state is None or said.get("state") != state:
        return None
    try:
        changed_since = (folder / LOG_FILE).stat().st_mtime_ns > (folder / FILE).stat().st_mtime_ns
    except OSError:
        return None
    return None if changed_since else said.get("overview")


def keep_overview(folder: Path, value: Json) -> None:
    """Keeps it, where the log is at rest and the folder can be written."""
    state = _state(folder)
    if state is not None:
        write_kept(folder / FILE, {"state": state, "overview": value})


def _state(folder: Path) -> Json:
    """What tells this state of a log at rest from any other; None for one that is written or was broken off."""
    ahead = folder / f"{LOG_FILE}-wal"
    try:
        at_rest = not (folder / TAIL_FILE).exists() and not (ahead.exists() and ahead.stat().st_size)
        size, anchor = (folder / LOG_FILE).stat().st_size, read_plain(folder / ANCHOR_FILE)
    except OSError:
        return None
    return [FORMAT, software_version(), size, digest_of(anchor)] if at_rest else None


__all__ = ["MISFITS", "converter", "keep_overview", "kept_overview"]
