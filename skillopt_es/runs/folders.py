"""Run folders: where they are, which one a name means, what a new one is called, and whether somebody writes it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

from skillopt_es.errors import ConfigError
from skillopt_es.events.errors import RunNotFound
from skillopt_es.events.faults import system_fault
from skillopt_es.events.lock import holder_of
from skillopt_es.events.schema import LOG_FILE

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")

USUAL = Path("runs")
"""Where runs are unless `--dir` says otherwise."""

BEST_FOLDER = "best"
"""Where a run's best skill lies in its folder."""


def dir_option(directory: Path) -> str:
    """What a command has to be told to look there, with a space before it; nothing where it looks by itself."""
    return "" if directory == USUAL else f" --dir {shlex.quote(str(directory))}"


def is_run(folder: Path) -> bool:
    """Whether a folder has a run's log."""
    return (folder / LOG_FILE).is_file()


def run_folders(directory: Path) -> list[Path]:
    """All runs in a directory, the most recently written last."""
    if not directory.is_dir():
        return []
    found = [path for path in directory.iterdir() if is_run(path)]
    return sorted(found, key=lambda path: (_last_written(path), path.name))


def _last_written(folder: Path) -> float:
    log, ahead = (folder / LOG_FILE).stat(), folder / f"{LOG_FILE}-wal"
    # A reader leaves an empty write-ahead log behind; only a writer puts something into it.
    newer = ahead.stat() if ahead.exists() else log
    return max(log.st_mtime, newer.st_mtime if newer.st_size else 0.0)


def find_run(name: str | None, directory: Path) -> Path:
    """The folder of a run given by name or path; without a name, of the newest run."""
    if name is None:
        folders = run_folders(directory)
        if not folders:
            raise RunNotFound(
                f"there is no run in {directory}", hint="`skillopt-es run` starts one; `--dir` looks elsewhere"
            )
        return folders[-1]
    found = [folder for folder in (directory / name, Path(name)) if is_run(folder)]
    if len(found) == 2 and not found[0].samefile(found[1]):
        raise ConfigError(
            f"{name} names two runs, {found[0]} and {found[1]}", hint=f"say which by its path: {found[1].resolve()}"
        )
    if found:
        return found[0]
    known = [path.name for path in run_folders(directory)]
    close = [other for other in known if name in other] or get_close_matches(name, known)
    hint = f"did you mean {', '.join(close[:3])}?" if close else f"`skillopt-es runs{dir_option(directory)}` lists them"
    raise RunNotFound(f"there is no run {name} in {directory}", hint=hint)


def find_runs(names: Sequence[str], directory: Path) -> list[Path]:
    """The folders of several runs; a folder that is no run stands for all runs in it, however deep."""
    found: list[Path] = []
    for name in names:
        is_one = is_run(directory / name) or is_run(Path(name))
        below = () if is_one else sorted(path.parent for path in Path(name).rglob(LOG_FILE))
        found += below or [find_run(name, directory)]
    return list(dict.fromkeys(found))


def new_run_folder(given: str | None, stem: str, now: datetime, directory: Path) -> AbstractContextManager[Path]:
    """The folder of a new run: named as given, or after the config and the time; see `_taken`."""
    return _taken(given, f"{stem}-{now:%Y%m%d-%H%M%S}", directory)


def fork_folder(given: str | None, parent: Path, moment: str) -> AbstractContextManager[Path]:
    """The folder of a fork, beside its parent: named as given, or after both; see `_taken`."""
    return _taken(given, f"{parent.name[:60]}-{moment}", parent.parent)


def continued_folder(given: str | None, parent: Path) -> AbstractContextManager[Path]:
    """The folder of a run that continues another one, beside it: named as given, or after it with a number."""
    return _taken(given, f"{parent.name[:60]}-on", parent.parent)


def checked_name(option: str, given: str) -> str:
    """The name, if a run may be called so; it never points outside of the directory of runs."""
    if not _NAME.fullmatch(given):
        raise ConfigError(f"{option} {given}: a run's name has letters, digits, dots, dashes and underscores only")
    return given


@contextmanager
def _taken(given: str | None, base: str, directory: Path) -> Iterator[Path]:
    """
    The folder that is `given`; else a new one of the name `base`, or with a number after it.
    No other process gets the same new one. Where no run comes of it, it is gone again.
    """
    if given is not None:
        yield directory / checked_name("--name", given)
        return
    made = not directory.exists()
    folder, number = directory / base, 1
    try:
        directory.mkdir(parents=True, exist_ok=True)
        # Made rather than looked for: of two processes one alone gets the name.
        while not _made(folder):
            number += 1
            folder = directory / f"{base}-{number}"
    except OSError as error:
        raise system_fault(error, folder) from error
    try:
        yield folder
    finally:
        if not is_run(folder):
            with suppress(OSError):  # something else may have been put there
                folder.rmdir()
                if made:
                    directory.rmdir()


def _made(folder: Path) -> bool:
    """Whether the folder is a new one, made just now."""
    try:
        folder.mkdir()
    except FileExistsError:
        return False
    return True


Status = Literal["new", "running", "stopped", "paused", "completed", "scored"]


def is_written(folder: Path) -> bool:
    """Whether a live process has the run open for writing, as far as its lock file tells."""
    holder = holder_of(folder)
    return holder is not None and holder.may_live


def writer_here(folder: Path) -> int | None:
    """The process of this machine that has the run open for writing; None where there is none, or it is elsewhere."""
    holder = holder_of(folder)
    return holder.pid if holder is not None and holder.is_here and holder.may_live else None


def writer_words(folder: Path) -> str:
    """Who has the run open for writing, as `process 4711 on this-host`; empty where nobody has."""
    holder = holder_of(folder)
    return f"process {holder.pid} on {holder.host}" if holder is not None and holder.may_live else ""


def status_now(recorded: Literal["new", "running", "paused", "completed"], folder: Path) -> Status:
    """The status that a log records, with a run whose writer is gone told apart as `stopped`."""
    return "stopped" if recorded == "running" and not is_written(folder) else recorded
