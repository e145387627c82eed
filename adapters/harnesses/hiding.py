"""What is hidden from an agent: where answers lie, and folders around them in which it needs nothing."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from skillopt_es.adapters.processes import NotStartedError, Program, run_program
from skillopt_es.adapters.sandboxes.places import python_places
from skillopt_es.adapters.sandboxes.start import WHY_NOT_HIDDEN, command_for, system_name
from skillopt_es.ports import Answers

_SYSTEM = (
    "bin",
    "dev",
    "etc",
    "lib",
    "lib32",
    "lib64",
    "libx32",
    "nix",
    "opt",
    "proc",
    "run",
    "sbin",
    "sys",
    "usr",
    "var",
)
_SECONDS = 30.0
_LONGEST = 100_000  # of one argument the kernel takes 128 KiB


class CannotHideError(Exception):
    """Answers lie where the agent needs something."""


def needed(command: str, variables: Mapping[str, str]) -> tuple[Path, ...]:
    """Folders and files that an agent may need: its program, the system, and all that its variables name."""
    named = (Path(each) for value in variables.values() for each in value.split(":") if each.startswith("/"))
    program = Path(command)
    own = (program, Path(tempfile.gettempdir()), *map(Path, python_places()))
    system = (Path("/", each) for each in _SYSTEM)
    found = (each.resolve() for each in (*own, *system, *named) if len(each.parts) > 1)
    return tuple(dict.fromkeys((program.parent.resolve() / program.name, *found)))


def covered(answers: Answers, keep: Iterable[Path]) -> list[str]:
    """The paths to lay nothing over; raises CannotHideError for what the agent needs itself."""
    keep = tuple(keep)
    found: list[Path] = []
    for place in dict.fromkeys(each.resolve() for each in answers.places):
        if place in keep:
            raise CannotHideError(f"{place} holds answers, and the agent needs it")
        found += _without(place, keep)
    for folder in dict.fromkeys(each.resolve() for each in answers.around):
        if folder in keep:  # and so perhaps anything in it
            raise CannotHideError(f"{folder} holds the config, data or runs, and the agent needs it as a whole")
        found += _without(folder, keep)
    outermost = sorted(dict.fromkeys(found))
    return [str(each) for each in outermost if not any(other in each.parents for other in outermost)]


def _without(place: Path, keep: tuple[Path, ...]) -> Iterator[Path]:
    """The place, or where the agent needs something in it the entries in which it does not."""
    if not any(place in each.parents for each in keep):
        yield place  # if it is not there yet, it is hidden from whatever runs once it is
        return
    for entry in place.iterdir():
        inside = entry.resolve()
        if not any(inside == each or inside in each.parents for each in keep):
            # A link that points outside of the place is covered itself, not what it leads to.
            yield inside if inside.is_relative_to(place) else entry


async def hidden_from(paths: list[str]) -> tuple[str, ...]:
    """The words before a command that hide these from it, once they were tried; raises CannotHideError."""
    if sys.platform != "linux":
        raise CannotHideError(f"hiding takes name spaces of Linux, and this is {system_name()}")
    told = json.dumps(paths)
    if len(told) > _LONGEST:
        raise CannotHideError(f"there are {len(paths)} files and folders to hide: keep them in one folder")
    words = command_for("hide", told)
    trial = Program(argv=words, folder=Path("/"), environment={}, stdin=b"", seconds=_SECONDS, most_output=4096)
    try:
        ended = await run_program(trial)
    except (NotStartedError, TimeoutError) as error:
        raise CannotHideError(str(error) or "a trial did not end") from error
    if ended.how != "exited" or ended.code:
        said = ended.errors.removeprefix(WHY_NOT_HIDDEN)
        raise CannotHideError(said or "a trial did not end well")
    return tuple(words)
