"""What is hidden at which paths: each is known by what was there first, as a path alone can be moved away."""

from __future__ import annotations

import errno
import os
import sys
import weakref
from collections.abc import Iterable, Mapping
from typing import Literal

from skillopt_es.adapters.processes import NotStartedError

Kind = Literal["hidden", "private"]
_OUT_OF_FILES = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)


class Covers:
    """
    The files and folders that a program does not see, in all its runs.

    A run could rename a folder, so that the next one finds the hidden files at a place that nothing covers. What was
    seen at a path is therefore kept open, and no further run starts while that has another place.
    """

    def __init__(self, hidden: Iterable[str] = ()) -> None:
        self._paths: dict[Kind, dict[str, None]] = {"hidden": dict.fromkeys(hidden), "private": {}}
        self._seen: dict[str, int] = {}
        weakref.finalize(self, _close, self._seen)
        if sys.platform == "linux":
            for path in self._paths["hidden"]:
                self._see(path)

    def marked(self, kind: Kind, more: Iterable[str] = ()) -> list[str]:
        """
        Those of a kind that are there now, as `DEVICE.INODE:PATH`; `more` of them belong to it from now on.

        Raises NotStartedError for one that has moved.
        """
        paths = self._paths[kind]
        paths.update(dict.fromkeys(more))
        return [mark for path in paths if (mark := self._mark(path))]

    def _mark(self, path: str) -> str:
        known = self._seen.get(path)
        if known is None:
            return self._see(path)
        now = _opened(path)
        try:
            if now is not None and os.path.samestat(os.fstat(known), os.fstat(now)):
                return _mark_of(now, path)
        finally:
            _close({} if now is None else {path: now})
        place = _place(known)
        if place:
            raise NotStartedError(
                f"{path} has to be hidden, but it was moved during the run and is now {place}: look at what the agent "
                "did, then move it back"
            )
        os.close(self._seen.pop(path))  # an editor has put a new file in its place, say
        return self._see(path)

    def _see(self, path: str) -> str:
        found = _opened(path)
        if found is None:
            return ""
        self._seen[path] = found
        return _mark_of(found, path)


def _opened(path: str) -> int | None:
    """A descriptor that names what is at a path, without any right to read it; none where nothing can be reached."""
    try:
        return os.open(path, os.O_PATH)
    except OSError as error:
        if error.errno in _OUT_OF_FILES:
            raise NotStartedError(f"{path} cannot be hidden: {error.strerror}") from error
        return None


def _mark_of(descriptor: int, path: str) -> str:
    facts = os.fstat(descriptor)
    return f"{facts.st_dev}.{facts.st_ino}:{path}"


def _place(descriptor: int) -> str:
    """Where it is now; nothing where it was removed, or its disk was."""
    try:
        names = os.fstat(descriptor).st_nlink
    except OSError:  # a server of files that knows it no more
        return ""
    place = os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115 -- as the kernel writes it
    return place if names and place != "/" else ""  # the top of a disk that was taken away has no other name


def _close(seen: Mapping[str, int]) -> None:
    for descriptor in seen.values():
        os.close(descriptor)
