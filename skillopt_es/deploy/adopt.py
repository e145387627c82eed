"""
Adopting a skill: what a run trained takes the place of the files that it was trained from, and can be taken back.

Files that the trained skill has no more are taken away: of a folder of skills, those that were merged or retired.

What was there before, and a receipt, are kept beside the files in `.skillopt-es/adopted/`. The backup and the receipt
are on disk before the first file changes, so whenever a process dies the files can be put back.

A file that is a link keeps being one: the file that it leads to gets the text, as in an editor. No folder is a link.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from attrs import asdict, evolve, frozen

from skillopt_es.config.places import refuse_packaged
from skillopt_es.deploy.files import refuse_run_files
from skillopt_es.deploy.install import STORE
from skillopt_es.errors import OutputRefused
from skillopt_es.events.plain import is_executable, real_path, set_executable
from skillopt_es.events.strict import MISFITS, strict_converter
from skillopt_es.events.values import FileContent, digest_of

_converter = strict_converter(detailed=False)
_RECEIPT = "receipt.json"
_BY_HAND = "put a plain file in its place, or write the skill with `skillopt-es export RUN FILE`"
_ELSEWHERE = "`skillopt-es export RUN SKILL.md` writes the best skill to a file, `install` gives it to an agent"


@frozen(kw_only=True)
class Adoption:
    """
    Which skill of which run took the place of what, by digest.

    A file that was not there before has no digest in `before`; one that is taken away has an empty one in `after`.
    """

    run: str
    skill: str
    before: Mapping[str, str]
    after: Mapping[str, str]


def gone(files: Mapping[str, FileContent], *, first: Mapping[str, FileContent]) -> tuple[str, ...]:
    """What the run began with that the trained skill does not have any more."""
    return tuple(sorted(set(first) - set(files)))


def adopt(
    folder: Path,
    name: str,
    adoption: Adoption,
    files: Mapping[str, FileContent],
    *,
    first: Mapping[str, FileContent],
    force: bool = False,
) -> bool:
    """
    Writes the files and takes away those that went, with a backup of all that changes; False where nothing does.

    Raises OutputRefused where a file is neither as it is to be nor as it was `first`, and where it is no plain file.
    """
    refuse_packaged(folder / name, _ELSEWHERE)
    adoption = evolve(adoption, after={**dict.fromkeys(gone(files, first=first), ""), **adoption.after})
    _refuse_places(folder, name, adoption.after)
    others = [path for path, digest in adoption.after.items() if not _stands(folder / path, digest, files.get(path))]
    if not others:
        return False
    changed = [path for path in others if (folder / path).exists() and not _is(folder / path, first.get(path))]
    if changed and not force:
        raise OutputRefused(
            f"{folder / changed[0]} is not what the run began with: somebody has changed it since",
            hint="`skillopt-es export` writes the skill elsewhere; --force replaces the file and keeps a copy",
        )
    missing = [path for path in first if path in files and not (folder / path).exists()]
    if missing:
        raise OutputRefused(
            f"{folder / missing[0]} is not there any more, and the run began with it",
            hint=f"put it back and adopt again; {_ELSEWHERE}",
        )
    _keep(folder, name, adoption)
    for path in others:
        if path in files:
            _replace(folder / path, files[path])
        else:
            _remove(folder, path)
    return True


def is_as(folder: Path, files: Mapping[str, FileContent]) -> bool:
    """Whether all these files are there, and as they are here."""
    return all(_is(folder / path, each) for path, each in files.items())


def _stands(path: Path, digest: str, file: FileContent | None) -> bool:
    return _digest(path) == digest and (file is None or is_executable(path) == file.executable)


def _there(path: Path) -> FileContent:
    return FileContent(path.read_bytes(), is_executable(path))


def take_back(folder: Path, name: str) -> list[str]:
    """Puts back what was there before; the files. Raises OutputRefused where somebody has changed them since."""
    refuse_packaged(folder / name, _ELSEWHERE)
    store = folder / STORE / "adopted" / name
    _refuse_links(folder, (store / _RECEIPT,))
    adoption = _earlier(store)
    if adoption is None:
        raise OutputRefused(f"nothing was adopted in {folder / name}", hint="`skillopt-es adopt RUN` does that")
    _refuse_places(folder, name, adoption.after)
    for path, digest in adoption.after.items():
        if _digest(folder / path) not in (digest, adoption.before.get(path, "")):
            raise OutputRefused(
                f"{folder / path} was changed since it was adopted", hint=f"what was there before is kept in {store}"
            )
    for path in adoption.after:
        if path in adoption.before:
            _replace(folder / path, _there(store / "before" / path))
        else:
            _remove(folder, path)
    shutil.rmtree(store)
    _prune(folder, store.parent)
    return sorted(adoption.after)


def _refuse_places(folder: Path, name: str, paths: Collection[str]) -> None:
    """Raises OutputRefused where a file, or its backup, would be written anywhere but at its own place."""
    store = folder / STORE / "adopted" / name
    _refuse_links(folder, (store / _RECEIPT, *(store / "before" / path for path in paths)))
    if folder.exists() and not folder.is_dir():
        raise OutputRefused(f"{folder} is no folder any more, and the run began with one", hint=_ELSEWHERE)
    _refuse_links(folder, [folder / path for path in paths], last=False)
    for path in paths:
        place = folder / path
        refuse_run_files(place)
        if place.is_symlink() and not place.is_file():
            raise OutputRefused(f"{place} is a link that leads to no plain file", hint=_BY_HAND)
        if place.exists() and not place.is_file():
            raise OutputRefused(f"{place} is not a plain file any more", hint=_BY_HAND)
        # The one file that a config names may be a link to any other; one in a folder of skills stays in there.
        if path != name and place.is_symlink() and not real_path(place).is_relative_to(real_path(folder)):
            raise OutputRefused(f"{place} is a link that leads out of {folder}", hint=_BY_HAND)
        refuse_packaged(place, _ELSEWHERE)
        refuse_run_files(real_path(place))


def _refuse_links(folder: Path, files: Iterable[Path], *, last: bool = True) -> None:
    """Raises OutputRefused where a folder on the way from `folder` to a file is a link, or, with `last`, the file."""
    for file in files:
        below = [each for each in file.parents if each != folder and each.is_relative_to(folder)]
        for place in (*reversed(below), *((file,) if last else ())):
            if place.is_symlink():
                raise OutputRefused(f"{place} is a link, and nothing is written through it", hint=_BY_HAND)


def _earlier(store: Path) -> Adoption | None:
    """What was adopted here and not taken back; None for nothing."""
    try:
        return _converter.structure(json.loads((store / _RECEIPT).read_bytes()), Adoption)
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError, *MISFITS) as error:
        raise OutputRefused(
            f"{store / _RECEIPT} cannot be read", hint="put the files back by hand from there"
        ) from error


def _keep(folder: Path, name: str, adoption: Adoption) -> None:
    """The backup and its receipt, on disk; what an earlier adoption met is what a second one goes back to."""
    store = folder / STORE / "adopted" / name
    earlier = _earlier(store)
    before, after = (earlier.before, earlier.after) if earlier is not None else ({}, {})
    fresh = {path: _digest(folder / path) for path in adoption.after if path not in after}
    for path, digest in fresh.items():
        if digest:
            _replace(store / "before" / path, _there(folder / path))
    met = {**before, **{path: digest for path, digest in fresh.items() if digest}}
    receipt = asdict(evolve(adoption, before=met, after={**after, **adoption.after}))
    _replace(store / _RECEIPT, FileContent(f"{json.dumps(receipt, indent=2, ensure_ascii=False)}\n".encode()))


def _remove(folder: Path, path: str) -> None:
    """Takes a file away, and the folders below `folder` in which nothing is left."""
    try:
        (folder / path).unlink(missing_ok=True)
    except OSError as error:
        raise OutputRefused(f"{folder / path} cannot be removed: {error.strerror}") from None
    _prune(folder, (folder / path).parent)


def _prune(folder: Path, below: Path) -> None:
    # `rmdir` fails where something is left, and then that folder and those above it stay.
    with suppress(OSError):
        while below != folder:
            below.rmdir()
            below = below.parent


def _is(path: Path, file: FileContent | None) -> bool:
    """Whether a file has this content; a run reads line ends, and a mark of the byte order, in one way only."""
    if file is None or not path.is_file():
        return False
    return _comparable(path.read_bytes()) == _comparable(file.content)


def _comparable(content: bytes) -> bytes:
    return content.removeprefix("\ufeff".encode()).replace(b"\r\n", b"\n").rstrip(b"\n")


def _digest(path: Path) -> str:
    return digest_of(path.read_bytes()) if path.is_file() else ""


def _replace(path: Path, content: FileContent) -> None:
    """Writes a file in one step; it is durable when this returns."""
    path = real_path(path)  # of a link, what it leads to
    draft = path.with_name(f".{path.name}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.unlink(missing_ok=True)  # a link of that name would lead elsewhere
        with draft.open("xb") as file:
            file.write(content.content)
            set_executable(draft, content.executable)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        raise OutputRefused(f"{path} cannot be written: {error.strerror}") from None
