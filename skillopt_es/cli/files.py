"""Writing the files a user asked for: exactly, and never over something by accident."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from skillopt_es.config.places import refuse_packaged
from skillopt_es.errors import OutputRefused
from skillopt_es.events.plain import set_executable
from skillopt_es.events.values import FileContent, SkillTree


def refuse_existing(path: Path, *, force: bool) -> None:
    """Raises OutputRefused for a file that is there, unless it may be replaced, and for one of this package."""
    refuse_packaged(path)
    if path.is_dir():
        raise OutputRefused(f"{path} is a folder", hint="name a file in it")
    if path.exists() and not force:
        raise OutputRefused(f"{path} exists already", hint="--force replaces it")


@contextmanager
def writing(path: Path, *, force: bool) -> Iterator[Path]:
    """A draft beside a file, which takes the file's place when all is written, and goes when something fails."""
    refuse_existing(path, force=force)
    # In the same folder, hence on the same disk: only there does `replace` take one step.
    draft = path.with_name(f".{path.name}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
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
