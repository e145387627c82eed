"""
Installing a skill where an agent looks for it, and taking it away again so that all is as it was before.

The folder and its receipt go in and out as one, in one step of the file system: whenever a process dies, the place
holds what was there before or what was to come. Drafts, what was there before, and what somebody changed are kept in
a hidden folder beside the skills (`.skillopt-es`), which agents do not read. What a dead process left there is put in
order by the next one. (A disk on which two folders cannot change places in one step has a moment with nothing there;
the next process puts back what was.)
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from attrs import evolve, frozen

from skillopt_es.config.places import refuse_packaged
from skillopt_es.deploy.folder import RECEIPT, SKILL_FILE
from skillopt_es.deploy.receipt import Receipt, changed_since, read_receipt, receipt_text
from skillopt_es.errors import OutputRefused
from skillopt_es.events.plain import set_executable
from skillopt_es.events.values import FileContent

try:
    import fcntl
except ImportError:  # Windows: nothing is installed there, but the rest can be read
    fcntl = None  # type: ignore[assignment]

STORE = ".skillopt-es"


@frozen(kw_only=True)
class Installed:
    """What an installation did: whether something had been there, and where a changed version was kept."""

    place: Path
    replaced: bool
    updated: bool
    kept: Path | None = None


@frozen(kw_only=True)
class Removed:
    """What an uninstallation did; `found` is false when there was nothing of ours."""

    place: Path
    found: bool
    restored: bool = False
    kept: Path | None = None


@frozen
class _Shelf:
    """
    The hidden folder of one skill, and what may be in it.

    `scratch` is never anything but ours and may go at any time. `new` is a whole draft or, once places were exchanged,
    what came out. `aside` is what came out where two folders cannot change places in one step.
    """

    skills: Path
    name: str

    @property
    def place(self) -> Path:
        """Where agents find the skill."""
        return self.skills / self.name

    @property
    def folder(self) -> Path:
        """Where its things are kept."""
        return self.skills / STORE / self.name

    @property
    def scratch(self) -> Path:
        """What is being written or removed."""
        return self.folder / "scratch"

    @property
    def new(self) -> Path:
        """What goes in next, or came out last."""
        return self.folder / "new"

    @property
    def aside(self) -> Path:
        """What came out, between two renames."""
        return self.folder / "aside"

    @property
    def backup(self) -> Path:
        """What was there before the skill was installed."""
        return self.folder / "backup"

    def write(self, receipt: Receipt, files: Mapping[str, FileContent]) -> None:
        """Makes a whole draft."""
        for path, each in {**files, RECEIPT: FileContent(receipt_text(receipt).encode())}.items():
            target = self.scratch / path
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as file:
                file.write(each.content)
                set_executable(target, each.executable)
                file.flush()
                # Before the rename: what is called `new` is whole, also after a power cut.
                os.fsync(file.fileno())
        self.scratch.rename(self.new)

    def swap(self, incoming: Path) -> None:
        """Lets the draft or the backup take the skill's place; what was there is where it came from."""
        exchange(incoming, self.place, self.aside)

    def discard(self, path: Path) -> None:
        """Removes what is ours; half of it left by a dead process is still known to be so."""
        path.rename(self.scratch)
        shutil.rmtree(self.scratch)

    def keep(self, path: Path) -> Path:
        """Puts what is not ours alone where nobody takes it away."""
        number = 1
        while _is_there(self.folder / f"kept-{number}"):
            number += 1
        return path.rename(self.folder / f"kept-{number}")

    def put_in_order(self) -> None:
        """Ends what a process that died began: back where nothing has come in yet, forward where it has."""
        shutil.rmtree(self.scratch, ignore_errors=True)
        if _is_there(self.aside):
            self.aside.rename(self.new if _is_there(self.place) else self.place)
        if read_receipt(self.backup) is not None:  # ours, which came out when the backup went in
            self.backup.rename(self.new)
        if _is_there(self.new):
            self.settle()

    def settle(self) -> Path | None:
        """Finds the right place for what came out; where it was kept, if somebody had changed it."""
        receipt = read_receipt(self.new)
        if receipt is None:
            self.new.rename(self.backup)
            return None
        if changed_since(self.new, receipt):
            return self.keep(self.new)
        self.discard(self.new)
        return None


def install(skills: Path, receipt: Receipt, files: Mapping[str, FileContent], *, force: bool) -> Installed:
    """Puts a skill into a folder of skills; refuses to take the place of what is not ours, or was changed."""
    if skills.is_symlink() and not skills.exists():
        raise OutputRefused(f"{skills} is a link that leads nowhere", hint="fix the link, or remove it")
    with _opened(skills, receipt.name, make=True) as shelf:
        there = refuse_taking(skills, receipt.name, force=force)
        foreign = there is None and _is_there(shelf.place)
        if foreign and _is_there(shelf.backup):
            shelf.keep(shelf.backup)  # of an earlier installation that somebody removed by hand
        shelf.write(evolve(receipt, backup=foreign or _is_there(shelf.backup)), files)
        kept = None
        if _is_there(shelf.place):
            shelf.swap(shelf.new)
            kept = shelf.settle()
        else:
            shelf.new.rename(shelf.place)
        return Installed(place=shelf.place, replaced=foreign, updated=there is not None, kept=kept)


def refuse_taking(skills: Path, name: str, *, force: bool) -> Receipt | None:
    """The receipt of what is in a skill's place; raises OutputRefused where that is not ours, or was changed."""
    shelf = _Shelf(skills, name)
    there = read_receipt(shelf.place)
    if there is not None:
        _refuse_changed(shelf, there, "takes its place", force=force)
    elif _is_there(shelf.place) and not force:
        raise OutputRefused(
            f"{shelf.place} is {_what(shelf.place)} that skillopt-es did not install",
            hint="--name gives yours another name; --force replaces it, and `uninstall` restores it",
        )
    return there


def left_over(skills: Path, names: Collection[str], *, runs: Collection[str], began: str) -> tuple[str, ...]:
    """
    What an earlier installation of a folder of skills left there that the folder does not have any more, by name.

    The folder now has these `names`; an earlier one is of one of these `runs`, or what the run `began` with, by hash.
    """
    receipts = {name: read_receipt(skills / name) for name in installed_in(skills) if name not in names}
    return tuple(
        name
        for name, receipt in receipts.items()
        if receipt is not None and (receipt.run_id in runs or receipt.skill == began)
    )


def uninstall(skills: Path, name: str, *, force: bool) -> Removed:
    """Takes a skill away and puts back what was there before; refuses when what was installed has been changed."""
    nothing = Removed(place=skills / name, found=False)
    if not skills.is_dir():
        return nothing
    with _opened(skills, name, make=False) as shelf:
        there = read_receipt(shelf.place)
        if there is None:
            if _is_there(shelf.place) or not _is_there(shelf.backup):
                return nothing
            shelf.backup.rename(shelf.place)  # ours was removed by hand
            return evolve(nothing, restored=True)
        _refuse_changed(shelf, there, "takes it away", force=force)
        restores = _is_there(shelf.backup)
        if there.backup and not restores and not force:
            raise OutputRefused(
                f"what {shelf.place} replaced is no longer in {shelf.backup}", hint="--force removes the skill anyway"
            )
        if restores:
            shelf.swap(shelf.backup)
            shelf.backup.rename(shelf.new)
        else:
            shelf.folder.mkdir(parents=True, exist_ok=True)
            shelf.place.rename(shelf.new)
        return Removed(place=shelf.place, found=True, restored=restores, kept=shelf.settle())


def installed_in(skills: Path) -> tuple[str, ...]:
    """The names of the skills in a folder that we have installed there."""
    if not skills.is_dir():
        return ()
    return tuple(path.name for path in sorted(skills.iterdir()) if read_receipt(path) is not None)


def _refuse_changed(shelf: _Shelf, receipt: Receipt, what: str, *, force: bool) -> None:
    changed = changed_since(shelf.place, receipt)
    if changed and not force:
        raise OutputRefused(
            f"{shelf.place} was changed since it was installed ({changed})", hint=f"--force {what} and keeps a copy"
        )


@contextmanager
def _opened(skills: Path, name: str, *, make: bool) -> Iterator[_Shelf]:
    """One skill's shelf, in order, for one process at a time; what the system refuses becomes a sentence."""
    if fcntl is None:
        raise OutputRefused(
            "this system has no lock (flock) that keeps two installations apart",
            hint="`skillopt-es export` writes the folder: copy it where the agent looks",
        )
    refuse_packaged(skills)
    shelf = _Shelf(skills, name)
    try:
        if make:
            skills.mkdir(parents=True, exist_ok=True)
        handle = os.open(skills, os.O_RDONLY | os.O_DIRECTORY)
        try:
            # The folder itself is locked: among the skills of others no lock file is left.
            fcntl.flock(handle, fcntl.LOCK_EX)
            if (skills / STORE).is_symlink():
                raise OutputRefused(f"{skills / STORE} is a link", hint="what is kept there must lie beside the skills")
            if make:
                shelf.folder.mkdir(parents=True, exist_ok=True)
            if shelf.folder.is_dir():
                shelf.put_in_order()
            yield shelf
            # Renames are not on the disk before the folder is.
            os.fsync(handle)
        finally:
            _leave(shelf)
            os.close(handle)
    except OSError as error:
        raise OutputRefused(f"{error.filename or skills} cannot be changed: {error.strerror or error}") from None


def _leave(shelf: _Shelf) -> None:
    """Takes away the folders in which nothing is kept."""
    for folder in (shelf.folder, shelf.folder.parent):
        # `rmdir` fails where something is kept, and then the folder stays.
        with suppress(OSError):
            folder.rmdir()


def _is_there(path: Path) -> bool:
    return path.is_symlink() or path.exists()


def _what(path: Path) -> str:
    if path.is_symlink():
        return f"a link to {path.readlink()}"
    return "a skill" if (path / SKILL_FILE).is_file() else "a folder" if path.is_dir() else "a file"


_AT_FDCWD = -100  # of fcntl.h on Linux: paths are seen from the working folder
_SWAP = 2  # RENAME_EXCHANGE of Linux, RENAME_SWAP of macOS
# The system or the disk knows no exchange; any other error is a failure.
_CANNOT = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP)


def exchange(one: Path, other: Path, aside: Path) -> None:
    """
    Lets two paths change places: whoever looks sees either both before or both after.

    A system or disk that cannot do this takes three renames by way of `aside`.
    """
    if not _exchanged(os.fsencode(one), os.fsencode(other)):
        # A process that dies between these leaves `aside`, with which `put_in_order` goes on.
        other.rename(aside)
        one.rename(other)
        aside.rename(one)


def _exchanged(one: bytes, other: bytes) -> bool:
    library = ctypes.CDLL(None, use_errno=True)
    if sys.platform == "linux" and hasattr(library, "renameat2"):
        failed = library.renameat2(_AT_FDCWD, one, _AT_FDCWD, other, ctypes.c_uint(_SWAP))
    elif sys.platform == "darwin" and hasattr(library, "renamex_np"):
        failed = library.renamex_np(one, other, ctypes.c_uint(_SWAP))
    else:
        return False
    if failed:
        code = ctypes.get_errno()
        if code in _CANNOT:
            return False
        raise OSError(code, os.strerror(code), os.fsdecode(other))
    return True
