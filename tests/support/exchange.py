"""Importing and exporting result folders in tests, and comparing two of them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from skillopt_es.audit.check import check
from skillopt_es.cli.export import export_results
from skillopt_es.engine.differences import CheckReport
from skillopt_es.events.catalog import GapFound
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.events.verify import verify
from skillopt_es.interchange.folder import read_folder
from skillopt_es.interchange.imported_run import imported_run, write_run
from skillopt_es.projections.state import AnyState
from support.scripted import NOON


def imported(folder: Path, run: Path) -> AnyState:
    """The state of a result folder's import, whose log is found to be whole."""
    state = write_run(imported_run(read_folder(folder)), run, now=lambda: NOON)
    assert verify(run).ok
    return state


def exported(run: Path, out: Path) -> Path:
    """A run's result folder."""
    with EventLog.open(run) as log:
        export_results(log, out)
    return out


def checked(run: Path) -> CheckReport:
    """What `replay --check` finds."""
    with EventLog.open(run) as log:
        return asyncio.run(check(log, Journal(log.reader), run))


def read(path: Path) -> Any:
    """A JSON file, or the rows of a file of JSON lines."""
    text = path.read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()] if path.suffix == ".jsonl" else json.loads(text)


def gaps(state: AnyState) -> set[tuple[str, str]]:
    """What an import does not know: where and what."""
    return {(gap.place, gap.what) for gap in state.gaps if isinstance(gap, GapFound)}


def differences(left: Path, right: Path) -> set[str]:
    """Where two result folders say different things: `file` or `file:key`, without steps' and batches' numbers."""
    files = {str(path.relative_to(root)) for root in (left, right) for path in root.rglob("*") if path.is_file()}
    found: set[str] = set()
    for file in sorted(files):
        if not (left / file).is_file() or not (right / file).is_file():
            found.add(file)
        elif file.endswith((".json", ".jsonl")):
            found |= {f"{Path(file).name}:{key}" for key in _unlike(read(left / file), read(right / file))}
        elif (left / file).read_bytes() != (right / file).read_bytes():
            found.add(file)
    return found


def _unlike(left: Any, right: Any, key: str = "") -> set[str]:
    if isinstance(left, dict) and isinstance(right, dict):
        names = {*left, *right}
        missing = object()
        return {
            each for name in names for each in _unlike(left.get(name, missing), right.get(name, missing), str(name))
        }
    if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        return {each for one, other in zip(left, right, strict=True) for each in _unlike(one, other, key)}
    return set() if left == right and type(left) is type(right) else {key}
