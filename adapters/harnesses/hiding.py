"""What is hidden from an agent: where answers lie, and folders around them in which it needs nothing."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from skillopt_es.adapters.processes import NotStartedError, Program
from skillopt_es.adapters.sandboxes.apart import distance, run_apart
from skillopt_es.adapters.sandboxes.covers import Covers
from skillopt_es.adapters.sandboxes.places import python_places
from skillopt_es.adapters.sandboxes.start import command_for
from skillopt_es.ports import Answers

_SYSTEM = (
    *("bin", "sbin", "usr", "opt", "nix", "lib", "lib32", "lib64", "libx32"),
    *("dev", "etc", "proc", "run", "sys", "var"),
)
# Such a trial takes some 20 ms; a machine that needs this long is too busy to tell.
_SECONDS = 30.0
_LONGEST = 1_000_000  # of all arguments the kernel takes 2 MiB
_MOST = 300  # each is kept open, and a process may open 1024 files on most systems


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


async def hide(paths: Sequence[str], keys: Sequence[str], *, isolated: bool) -> Covers:
    """Covers these and the files with keys; raises CannotHideError where a program would see them all the same."""
    here = await distance(isolated=isolated)
    if here.how_far != "apart":
        raise CannotHideError(here.why)
    if sum(map(len, paths)) > _LONGEST or len(paths) > _MOST:
        raise CannotHideError(f"there are {len(paths)} files and folders to hide: keep them in one folder")
    look = command_for("look")
    trial = Program(argv=look, folder=Path("/"), environment={}, stdin=b"", seconds=_SECONDS, most_output=65_536)
    try:
        covers = Covers((*paths, *keys))
        ended = await run_apart(trial, hidden=covers)
    except (NotStartedError, TimeoutError) as error:
        raise CannotHideError(str(error) or "a trial did not end") from error
    if ended.how != "exited" or ended.code:
        raise CannotHideError(ended.errors or ended.output.decode(errors="replace") or "a trial did not end well")
    return covers
