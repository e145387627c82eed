"""The installed command on a terminal of its own."""

from __future__ import annotations

import os
import pty
import re
from contextlib import suppress
from pathlib import Path

from support import ready

CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def on_terminal(*words: object, code: int = 0, typed: bytes = b"", **environ: str) -> str:
    """What a terminal of 80 columns and 24 lines gets of a command that ends with a code; `typed` waits there."""
    ours, theirs = pty.openpty()
    os.write(ours, typed)
    plain = {"PATH": os.environ["PATH"], "TERM": "xterm", "COLUMNS": "80", "LINES": "24", "LANG": "C.UTF-8"}
    process = ready.start(words, Path.cwd(), plain | environ, (theirs,) * 3)
    os.close(theirs)
    shown = b""
    with suppress(OSError):  # what Linux says when the other side is closed
        while piece := os.read(ours, 65536):
            shown += piece
    os.close(ours)
    assert process.wait() == code
    return shown.decode().replace("\r\n", "\n")
