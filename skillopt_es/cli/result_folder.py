"""Writing a result folder: only over nothing or over an earlier export, never over anybody's results."""

from __future__ import annotations

import json
from pathlib import Path

from skillopt_es.cli.files import write_file
from skillopt_es.errors import OutputRefused
from skillopt_es.events.log import EventLog
from skillopt_es.events.values import Json
from skillopt_es.interchange.run_files import result_files

MARKER = ".skillopt-es-export.json"


def export_results(log: EventLog, out: Path) -> int:
    """Writes a run as the original's result folder; how many files it has."""
    before = _earlier_files(out)
    _mark(log, out, before)  # first, so that an export that is cut short can be done again
    written: set[str] = set()
    for path, text in result_files(log, out):
        write_file(out / path, text)
        written.add(path)
    for path in sorted(before - written):
        (out / path).unlink(missing_ok=True)
    _mark(log, out, written)
    return len(written)


def _mark(log: EventLog, out: Path, files: set[str]) -> None:
    """Says in the folder that an export wrote it, and which files are its own."""
    marker: Json = {"format": "skillopt", "run": log.run.name, "run_id": log.run.run_id, "files": [*sorted(files)]}
    write_file(out / MARKER, json.dumps(marker, indent=1, sort_keys=True) + "\n")


def _earlier_files(out: Path) -> set[str]:
    """What an earlier export wrote there; raises OutputRefused for a folder that holds anything else."""
    if not out.exists():
        return set()
    if not out.is_dir():
        raise OutputRefused(f"{out} is a file", hint="name a folder for the results")
    if not any(out.iterdir()):
        return set()
    try:
        files = json.loads((out / MARKER).read_bytes())["files"]
    except (OSError, ValueError, KeyError, TypeError):
        raise OutputRefused(
            f"{out} is not empty and was not written by an export", hint="name a folder that is new or empty"
        ) from None
    return {path for path in files if isinstance(path, str) and ".." not in Path(path).parts and path[:1] != "/"}
