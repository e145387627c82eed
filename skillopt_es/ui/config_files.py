"""The configs below a folder that the page offers: found within bounds, for a folder may hold anything."""

from __future__ import annotations

import json
import os
import re
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from skillopt_es.config.original import FLAT, KNOWN
from skillopt_es.runs.folders import is_run

_ENDINGS = (".yaml", ".yml", ".json")
_ELSEWHERE = frozenset({"node_modules", "__pycache__", "site-packages"})
"""Folders of other tools; hidden ones and Python environments are theirs, too."""
_DEEPEST = 6  # folders below the working one: configs lie near its top, and checkouts of others go deeper
# Without a bound the page looks at each file of a home folder, which may have millions.
_MOST_FOLDERS, _MOST_ENTRIES, _MOST_FILES = 2000, 50_000, 500
_START = 64 * 1024  # bytes of a file that are looked at
_KEYS = frozenset({"_base_", *KNOWN, *FLAT})
_KEY = re.compile(rf"^(?:{'|'.join(map(re.escape, sorted(_KEYS)))}) *:", re.MULTILINE)


def config_files(top: Path, runs: Path) -> tuple[list[Path], bool]:
    """
    The files below a folder that look like configs, and whether the search was cut short; near ones come first.

    Runs and the folder that holds them are left out: a run is trained again by its name.
    """
    found: list[Path] = []
    for path in _files(top, runs.resolve()):
        if path is None or len(found) == _MOST_FILES:
            return found, True
        if _is_config(path):
            found.append(path)
    return found, False


def _files(top: Path, runs: Path) -> Iterator[Path | None]:
    """Files that may be configs, folder by folder; None where there are too many to look at."""
    waiting, folders, entries = deque([(top, 0)]), 0, 0
    while waiting:
        folder, depth = waiting.popleft()
        folders += 1
        if folders > _MOST_FOLDERS:
            yield None
            return
        try:
            with os.scandir(folder) as listed:
                inside = sorted(listed, key=lambda entry: entry.name)
        except OSError:  # it may not be read, or is gone
            continue
        for entry in inside:
            entries += 1
            if entries > _MOST_ENTRIES:
                yield None
                return
            path = folder / entry.name
            if entry.is_dir(follow_symlinks=False):
                if depth < _DEEPEST and not _is_elsewhere(path, runs):
                    waiting.append((path, depth + 1))
            elif entry.name.endswith(_ENDINGS) and not entry.name.startswith(".") and entry.is_file():
                yield path


def _is_elsewhere(folder: Path, runs: Path) -> bool:
    if folder.name.startswith(".") or folder.name in _ELSEWHERE:
        return True
    return folder.resolve() == runs or is_run(folder) or (folder / "pyvenv.cfg").is_file()


def _is_config(file: Path) -> bool:
    """Whether a file has a key of a config at its top; the command says more of it once it is chosen."""
    try:
        with file.open("rb") as opened:
            start = opened.read(_START).decode("utf-8-sig", errors="replace")
        if file.suffix != ".json":
            return _KEY.search(start) is not None
        tree = json.loads(start)
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(tree, dict) and not _KEYS.isdisjoint(tree)
