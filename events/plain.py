"""Plain files alone: a pipe, a device or a folder in the place of a file is reported, and never waited for."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from difflib import get_close_matches
from io import BufferedReader
from pathlib import Path

# Opening a pipe that nobody writes to would wait for ever; Windows has none of these flags but the last.
_AT_ONCE = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_NO_LINKS = getattr(os, "O_NOFOLLOW", 0)


class NotPlainError(OSError):
    """What is there is not a plain file; `strerror` says what, after the name."""


class TooLargeError(OSError):
    """The file has more bytes than such a file may have; `strerror` says how many, after the name."""


def open_plain(path: Path, *, follow: bool = False) -> BufferedReader:
    """
    The file, open for reading; with `follow` also behind a symbolic link.

    Raises NotPlainError for anything that is not a plain file, and OSError as `open` does.
    """
    try:
        number = os.open(path, _AT_ONCE | (0 if follow else _NO_LINKS))
    except OSError as error:
        if error.errno == errno.ELOOP and not follow and path.is_symlink():
            raise NotPlainError(errno.ELOOP, "is a symbolic link", str(path)) from error
        if error.errno == errno.ENXIO:  # a socket
            raise NotPlainError(errno.ENXIO, "is not a plain file", str(path)) from error
        raise
    try:
        # Asked of the open file: its name may mean another one by now.
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise NotPlainError(errno.EINVAL, "is not a plain file", str(path))
        return os.fdopen(number, "rb")
    except BaseException:
        os.close(number)
        raise


def real_path(path: str | os.PathLike[str]) -> Path:
    """
    The path without links, as `Path.resolve` has it; that raises RuntimeError for a link to itself before 3.13.

    A pipe of the shell (`<(…)`) leads to a name that is none, and keeps its own.
    """
    found = Path(os.path.realpath(path))
    return found if found.exists() or not Path(path).exists() else Path(path).absolute()


def similar_file(path: Path) -> str:
    """What may have been meant by a file that is not there, as a question; empty where nothing is like it."""
    try:
        names = sorted(each.name for each in path.parent.iterdir() if each.is_file())
    except OSError:
        return ""
    stems = get_close_matches(path.stem, [Path(name).stem for name in names], n=3, cutoff=0.7)  # ends are much alike
    close = get_close_matches(path.name, [name for name in names if Path(name).stem in stems], n=1)
    return f"did you mean {close[0]}?" if close else ""


def is_executable(path: Path) -> bool:
    """Whether its owner may run a file; False where there is none."""
    return path.is_file() and bool(path.stat().st_mode & 0o100)


def set_executable(path: Path, executable: bool) -> None:
    """Lets a file be run by whoever may read it, or by none; other modes are left as they are."""
    mode = path.stat().st_mode
    wanted = mode | (mode & 0o444) >> 2 if executable else mode & ~0o111
    if wanted != mode:
        path.chmod(wanted)


def read_plain(path: Path, *, follow: bool = False, most: int | None = None) -> bytes:
    """All bytes of a plain file; raises as `open_plain` does, and TooLargeError where it has more bytes than `most`."""
    with open_plain(path, follow=follow) as file:
        if most is None:
            return file.read()
        if os.fstat(file.fileno()).st_size <= most:
            content = file.read(most + 1)  # it may grow, and a file of the system says that it has no bytes
            if len(content) <= most:
                return content
        raise TooLargeError(errno.EFBIG, f"has more than {most:,} bytes", str(path))


def write_plain(path: Path, content: bytes) -> None:
    """Writes a file whole or not at all, in a folder that exists; raises OSError. Several threads may write at once."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        draft.write_bytes(content)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
