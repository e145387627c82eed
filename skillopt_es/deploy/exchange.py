"""Two folders of one disk change places in one step, where the system can do that."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from pathlib import Path

_AT_FDCWD = -100
_SWAP = 2  # RENAME_EXCHANGE of Linux, RENAME_SWAP of macOS
_CANNOT = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP)


def exchange(one: Path, other: Path, aside: Path) -> None:
    """
    Lets two paths change places: whoever looks sees either both before or both after.

    A system or disk that cannot do this takes three renames by way of `aside`.
    """
    if not _exchanged(os.fsencode(one), os.fsencode(other)):
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
