"""
Keeping an agent's program apart from the processes and files of this machine that hold keys; how far is tried once.

A program can look into processes of the same user, such as the shell in which a key was exported. Where the kernel
allows it, the program has processes of its own and sees no others (`hide.py`); elsewhere as much as there is.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from attrs import evolve, frozen

from skillopt_es.adapters.processes import Ended, NotStartedError, Program, run_program
from skillopt_es.adapters.sandboxes.covers import Covers
from skillopt_es.adapters.sandboxes.places import readable_places
from skillopt_es.adapters.sandboxes.services import named_sockets, service_folders
from skillopt_es.adapters.sandboxes.start import (
    END,
    FOR_NOW,
    NOT_STARTED,
    SEEN,
    WHY_NOT_STARTED,
    command_for,
    system_name,
)
from skillopt_es.errors import BackendError

HowFar = Literal["apart", "closed", "held", "let"]
_SECONDS = 60.0  # such a trial takes some 20 ms; one that was late on a busy machine once passed for "not possible"
_TRIALS = 3  # a machine that was short of something once failed one, and agents then ran with weaker walls
_BETWEEN = 1.0  # seconds, in which a busy machine may find what it lacked
_HINT = "try it again when the machine is less busy; `model.agent_isolated: false` does without isolation"
_FILES = "can read the .env files with keys"
_KEYS = "can read the keys in the environment of your other processes, such as this one's shell"


@frozen
class Distance:
    """How far a program can be kept away here, what is within its reach all the same, and why."""

    how_far: HowFar
    within_reach: str = ""
    why: str = ""

    @property
    def said(self) -> str:
        """What is to be told of it; nothing where nothing is within reach."""
        return f"{self.within_reach} ({self.why})" if self.within_reach else ""


_LET = Distance("let", _KEYS, "model.agent_isolated is false")
_found: list[Distance] = []
_finding = threading.Lock()


async def distance(*, isolated: bool = True) -> Distance:
    """How far programs are kept away here; tried once in a process, in a thread, as a trial takes a moment."""
    return await asyncio.to_thread(_distance) if isolated else _LET


def _distance() -> Distance:
    with _finding:
        if not _found:
            _found.append(_tried())
        return _found[0]


def _tried() -> Distance:
    """The farthest at which a program that looks into all processes finds nothing."""
    if sys.platform != "linux":
        return Distance("let", _KEYS, f"isolation takes name spaces of Linux, and this is {system_name()}")
    why = _problem("apart")
    if not why:
        return Distance("apart")
    if not _problem("closed"):
        return Distance("closed", _FILES, why)
    if not _problem("held"):
        return Distance("held", _FILES, why)
    from skillopt_es.adapters.sandboxes import kernel  # noqa: PLC0415 -- Linux alone has these

    kernel.close_memory()  # then at least this process is closed to all but root
    return Distance("held", _KEYS, why)


def _problem(how_far: HowFar) -> str:
    """Why programs cannot be kept so far away here; empty where they can. Raises BackendError where no trial tells."""
    trials = _TRIALS
    while True:
        try:
            return _trial(how_far)
        except _TrialFailedError as failed:
            trials -= 1
            if not trials:
                message = f"whether an agent can be isolated here could not be tried {_TRIALS} times: {failed}"
                raise BackendError(message, kind="config", hint=_HINT) from failed
            time.sleep(_BETWEEN)


class _TrialFailedError(Exception):
    """A trial that says nothing of what is possible here: the machine was busy, or short of something."""


def _trial(how_far: HowFar) -> str:
    try:
        words = _words(how_far, Covers(), {})
        tried = subprocess.run(  # noqa: S603 -- our own programs
            [*words, *command_for("look")], env={}, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except NotStartedError as error:
        raise _TrialFailedError(str(error)) from error
    except subprocess.TimeoutExpired as error:
        raise _TrialFailedError(f"a trial took longer than {_SECONDS:g} seconds") from error
    except OSError as error:
        raise _TrialFailedError(f"a trial did not start ({error.strerror})") from error
    if not tried.returncode:
        return ""
    refused = tried.stderr.strip().removeprefix(WHY_NOT_STARTED)
    if tried.returncode == NOT_STARTED and refused != tried.stderr.strip() and not refused.startswith(FOR_NOW):
        return refused
    if tried.returncode == SEEN:
        return tried.stdout
    last = refused.splitlines()[-1:] or [f"it ended with {tried.returncode}"]
    raise _TrialFailedError(f"a trial failed ({last[0]})")


async def run_apart(program: Program, *, hidden: Covers, isolated: bool = True) -> Ended:
    """
    What came of a program that sees no other processes and none of the hidden files; raises NotStartedError.

    Nothing that it has started outlives it, and it does not outlive this process.
    """
    how_far = (await distance(isolated=isolated)).how_far
    if sys.platform != "linux":
        return await run_program(program)
    tries = _TRIALS
    while True:
        words = _words(how_far, hidden, program.environment, folder=program.folder)
        ended = await run_program(evolve(program, argv=[*words, *program.argv], ends_at=END))
        # The code alone could be the program's own; with these words it is that of the program around it.
        if ended.code != NOT_STARTED or not ended.errors.startswith(WHY_NOT_STARTED):
            return ended
        why = ended.errors.removeprefix(WHY_NOT_STARTED)
        tries -= 1
        if not tries or not why.startswith(FOR_NOW):
            raise NotStartedError(why)


def _words(how_far: HowFar, hidden: Covers, variables: Mapping[str, str], *, folder: Path = Path("/")) -> list[str]:
    """The words before a command; raises NotStartedError where something has to be hidden that has moved."""
    lists: tuple[Sequence[str], ...] = ((), (), _fixed(folder))
    if how_far == "apart":
        sockets, folders = _services(os.environ, variables, folder)
        lists = (hidden.marked("hidden", sockets), hidden.marked("private", folders), _fixed(folder))
    return command_for("hide", how_far, str(os.getpid()), *(word for each in lists for word in (str(len(each)), *each)))


def _services(
    environ: Mapping[str, str], variables: Mapping[str, str], folder: Path
) -> tuple[Sequence[str], Sequence[str]]:
    """Sockets of the user's services, which act for any program, and folders of them; but for those it is given."""
    needed = [folder.resolve(), *(Path(value) for name, value in variables.items() if name == "HOME")]

    def kept(places: Sequence[str]) -> list[str]:
        given = [place for place in places if not any(place in value for value in variables.values())]
        return [place for place in given if not any(each.is_relative_to(place) for each in needed)]

    return kept(named_sockets(environ)), kept(service_folders(environ))


def _fixed(folder: Path) -> list[str]:
    """This Python and this package, which other processes run from: but for what the program's own folder is in."""
    package = str(Path(__file__).resolve().parents[2])
    places = dict.fromkeys([*readable_places(), package])
    return [place for place in places if not folder.resolve().is_relative_to(place)]
