"""Where a run's config lies, as its log says it: seen from the run's folder, or as a part of this package."""

from __future__ import annotations

import os
from importlib import resources
from pathlib import Path

import skillopt_es
from skillopt_es.errors import OutputRefused
from skillopt_es.events.plain import real_path

_PACKAGED = "packaged:"


def packaged(name: str = "") -> Path:
    """A file or folder of the configs that come with this package."""
    return Path(str(resources.files("skillopt_es.configs") / name))


def is_packaged(source: str) -> bool:
    """Whether a value is from a file that came with this package, so that nobody who uses it wrote it."""
    return source.startswith(f"{packaged()}{os.sep}")


def refuse_packaged(path: Path, instead: str = "name a place of your own") -> None:
    """Raises OutputRefused for a place inside this package, also behind a link: all who use it would get the change."""
    there = real_path(path)
    if any(there.is_relative_to(root.resolve()) for root in (packaged(), Path(skillopt_es.__path__[0]))):
        raise OutputRefused(f"{path} belongs to the installed skillopt-es and is not written to", hint=instead)


def place_in_words(source: str) -> str:
    """Where a value is from: a default, a preset or a demo of ours by its name, else the place as it is."""
    if not is_packaged(source):
        return source
    file = Path(source)
    return "the default" if file.parent == packaged() else f"the {file.parent.name.removesuffix('s')} {file.stem}"


def recorded_place(folder: str, run_folder: Path) -> str:
    """How a log says where the config lies; a demo's is found again wherever this package is installed by then."""
    ours = packaged().resolve()
    here = real_path(folder)
    if here.is_relative_to(ours):
        return f"{_PACKAGED}{here.relative_to(ours).as_posix()}"
    # Relative, so that run and config can be moved together.
    return os.path.relpath(folder, run_folder)


def config_folder(recorded: str, run_folder: Path) -> Path:
    """Where the config lies now."""
    if recorded.startswith(_PACKAGED):
        return packaged(recorded.removeprefix(_PACKAGED)).resolve()
    return real_path(run_folder / recorded)
