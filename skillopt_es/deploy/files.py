"""Writing the files a user asked for: exactly, and never over something by accident."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Set
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from skillopt_es.config.places import refuse_packaged
from skillopt_es.deploy.check import provenance_in
from skillopt_es.deploy.folder import SkillFolder
from skillopt_es.deploy.provenance import FILE
from skillopt_es.errors import DataError, OutputRefused
from skillopt_es.events.anchor import ANCHOR_FILE
from skillopt_es.events.lock import LOCK_FILE
from skillopt_es.events.plain import real_path, set_executable
from skillopt_es.events.schema import LOG_FILE
from skillopt_es.events.tail import TAIL_FILE
from skillopt_es.events.values import FileContent, SkillTree
from skillopt_es.runs.folders import BEST_FOLDER, is_run
from skillopt_es.runs.inbox import INBOX
from skillopt_es.runs.kept import OVERVIEW_FILE, SUMS_FILE
from skillopt_es.runs.now import NOW_FILE
from skillopt_es.runs.run_log import LOGS_FILE
from skillopt_es.sessions.accounts import FILE as ACCOUNTS_FILE

_LOGGED = (ANCHOR_FILE, LOCK_FILE, TAIL_FILE, LOGS_FILE, ACCOUNTS_FILE)
_OF_RUNS = frozenset((*_LOGGED, NOW_FILE, OVERVIEW_FILE, SUMS_FILE, INBOX, BEST_FOLDER))
_OF_SWEEPS = "sweep.jsonl"


def refuse_run_files(path: Path) -> None:
    """Raises OutputRefused for what a run, or a sweep, keeps in its folder: its log, its lock, its best skill."""
    # The name itself is not followed: where it is a link, the link is replaced.
    parent = real_path(path.parent)
    for folder in (parent, *parent.parents):
        first = (parent / path.name).relative_to(folder).parts[0]
        if (first in _OF_RUNS or first.startswith(LOG_FILE)) and is_run(folder):
            raise OutputRefused(f"{path} belongs to the run {folder.name}", hint="name a place outside of its folder")
    if path.name == _OF_SWEEPS and path.exists():
        raise OutputRefused(f"{path} belongs to the sweep in {parent.name}", hint="name another file")


def refuse_existing(path: Path, *, force: bool) -> None:
    """Raises OutputRefused for a file that is there, unless it may be replaced, and for one of a run or of ours."""
    refuse_packaged(path)
    refuse_run_files(path)
    if path.is_dir():
        raise OutputRefused(f"{path} is a folder", hint="name a file in it")
    if path.exists() and not path.is_file():
        raise OutputRefused(f"{path} is not a plain file", hint="name another file")
    if (path.exists() or path.is_symlink()) and not force:
        raise OutputRefused(f"{path} exists already", hint="--force replaces it")


@contextmanager
def writing(path: Path, *, force: bool) -> Iterator[Path]:
    """
    A draft beside a file, which takes the file's place when all is written, and goes when something fails.

    A link is replaced itself: what it leads to stays as it is.
    """
    refuse_existing(path, force=force)
    # In the same folder, hence on the same disk: only there does `replace` take one step.
    draft = path.with_name(f".{path.name}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.unlink(missing_ok=True)  # a link of that name would lead elsewhere
        yield draft
        draft.replace(path)
    except (OSError, sqlite3.OperationalError) as error:
        why = getattr(error, "strerror", None) or error
        raise OutputRefused(f"{path} cannot be written: {why}") from None
    finally:
        with suppress(OSError):
            draft.unlink()


def write_file(path: Path, text: str, *, force: bool = True) -> None:
    """Writes a text as UTF-8, byte for byte, with the folders above it."""
    with writing(path, force=force) as draft:
        draft.write_bytes(text.encode())


def write_skill(folder: Path, skill: SkillTree) -> list[Path]:
    """Writes a skill's files into a folder; their paths, the main one first."""
    contents = skill.contents
    paths = {name: folder / _inside(name) for name in sorted(contents, key=lambda name: (name != skill.main, name))}
    for name, path in paths.items():
        write_content(path, contents[name])
    return list(paths.values())


def write_content(path: Path, content: FileContent, *, force: bool = True) -> None:
    """Writes a file of a skill, byte for byte, and as one that may be run where it is one."""
    with writing(path, force=force) as draft:
        draft.write_bytes(content.content)
        set_executable(draft, content.executable)


def _inside(name: str) -> PurePosixPath:
    """A skill file's own path, which must not point outside of the folder it is written to."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise OutputRefused(f"the skill has a file named {name}, which points outside of its folder")
    return path


def write_built(folder: Path, built: SkillFolder, *, force: bool) -> list[Path]:
    """Writes a skill into its folder; the paths. What an earlier export wrote there and this one does not, goes."""
    paths = {path: folder / path for path in built.files}
    for path in paths.values():
        refuse_existing(path, force=force)
    _remove_files(folder, keep=set(paths))
    for name, path in paths.items():
        write_content(path, built.files[name])
    return list(paths.values())


def remove_export(folder: Path) -> None:
    """Takes away what an export wrote into a folder, and the folder itself where nothing else is in it."""
    _remove_files(folder, keep=set())
    (folder / FILE).unlink(missing_ok=True)
    for each in (*sorted((path for path in folder.rglob("*") if path.is_dir()), reverse=True), folder):
        with suppress(OSError):  # something is in it
            each.rmdir()


def _remove_files(folder: Path, *, keep: Set[str]) -> None:
    """Takes away the files that an earlier export wrote, but for those to `keep`."""
    # Where no export of ours can be read, nothing there is ours to remove.
    with suppress(DataError):
        earlier = provenance_in(folder).folder.files
        for stale in {file.path for file in earlier} - keep:
            # The document may have been edited: what lies outside the folder is never removed.
            if ".." not in Path(stale).parts and not Path(stale).is_absolute():
                (folder / stale).unlink(missing_ok=True)
