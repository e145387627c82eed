"""What code of the user's raised, and in which of their own lines."""

from __future__ import annotations

import sysconfig
from pathlib import Path
from types import TracebackType

from attrs import frozen

_MOST_MESSAGE = 300  # an error's text may hold a whole value, and the line of the code comes after it
_OURS = ("skillopt_es.", "concurrent.futures.")
_STANDARD = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib")})
_INSTALLED = ("site-packages", "dist-packages")


@frozen
class _Frame:
    """One line of a traceback."""

    file: str
    line: int
    function: str
    module: str

    @property
    def is_installed(self) -> bool:
        """Whether it lies in somebody's package."""
        return any(part in _INSTALLED for part in Path(self.file).parts)

    @property
    def is_foreign(self) -> bool:
        """Whether it is ours, or the standard library's."""
        standard = self.file.startswith((*_STANDARD, "<frozen ")) and not self.is_installed
        return standard or self.module.startswith(_OURS)


def raised_words(error: BaseException, folder: str | Path) -> str:
    """
    The error, and where the last line of the user's own code on the way to it stands; the line may hold a key.

    Code in a package counts as the user's where none else does. Paths are seen from `folder`, as the user wrote them.
    """
    text = f"{error}".replace(str(folder), ".")
    said = f"{type(error).__name__}: {text}" if text else type(error).__name__
    said = said if len(said) <= _MOST_MESSAGE else f"{said[: _MOST_MESSAGE - 1]}…"
    frame = _own_frame(error.__traceback__)
    return said if frame is None else f"{said} ({_place(frame, folder)})"


def _own_frame(traceback: TracebackType | None) -> _Frame | None:
    frames = [frame for frame in _frames(traceback) if not frame.is_foreign]
    own = [frame for frame in frames if not frame.is_installed]
    return next(reversed(own or frames), None)


def _frames(traceback: TracebackType | None) -> list[_Frame]:
    found = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        module = str(traceback.tb_frame.f_globals.get("__name__", ""))
        found.append(_Frame(code.co_filename, traceback.tb_lineno, code.co_name, module))
        traceback = traceback.tb_next
    return found


def _place(frame: _Frame, folder: str | Path) -> str:
    file = Path(frame.file)
    inside = file.is_relative_to(folder)
    # A path outside of the folder says more of the machine than of the code.
    where = f"{file.relative_to(folder) if inside else file.name}:{frame.line}"
    function = "" if frame.function == "<module>" else f", in {frame.function}"
    return f"{where}{function}"
