"""What of this machine code behind walls can read: the system's programs and libraries, and this Python."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store")
# A Python may have been put into a project's own folder, beside keys and answers: of that only these are Python's.
_PARTS = ("bin", "include", "lib", "lib32", "lib64", "libexec", "pyvenv.cfg", "share")
_BUNDLED = Path(__file__).resolve().parents[2] / "configs"  # with the data of demos, which is everybody's


def python_places() -> list[str]:
    """The folders and files of this Python and its packages, whether or not they are there."""
    prefixes = {sys.prefix, sys.base_prefix, sys.exec_prefix, str(Path(sys.executable).resolve().parent.parent)}
    return sorted({str(Path(prefix, part)) for prefix in prefixes for part in _PARTS})


def readable_places() -> list[str]:
    """Those of this Python, as far as the system's folders do not hold them."""
    return [path for path in python_places() if not path.startswith(tuple(f"{one}/" for one in SYSTEM))]


def is_visible(path: str) -> bool:
    """Whether a file of this machine can be read behind the walls."""
    places = (*SYSTEM, *readable_places())
    return Path(path).is_absolute() and any(Path(os.path.normpath(path)).is_relative_to(place) for place in places)


def visible_answers(places: Iterable[Path]) -> str:
    """Why code behind the walls could read one of these places of answers; nothing where it reads none."""
    shown = [Path(each).resolve() for each in (*SYSTEM, *readable_places())]
    for place in (each.resolve() for each in places):
        if any(place.is_relative_to(each) for each in shown) and not place.is_relative_to(_BUNDLED):
            return f"{place} lies among the files of the system or of this Python, which it reads"
    return ""
