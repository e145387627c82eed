"""Files beside a log that only save time: written whole or not at all, and read only as they were written."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

from skillopt_es.events.plain import read_plain
from skillopt_es.events.values import Json, digest_of


def write_kept(path: Path, value: Json) -> None:
    """Puts the file in its place, or leaves it where the folder cannot be written."""
    text = json.dumps(value)
    new = path.with_name(f"{path.name}.{os.getpid()}")
    with suppress(OSError):
        try:
            new.write_text(f"{text}\n{digest_of(text.encode())}\n", encoding="utf-8")
            new.replace(path)
        finally:
            new.unlink(missing_ok=True)


def read_kept(path: Path) -> Json:
    """What the file says; None for one that is not there or not what was written."""
    try:
        text, digest, end = read_plain(path).decode().split("\n")
        said: Json = json.loads(text) if not end and digest_of(text.encode()) == digest else None
    except (OSError, ValueError, RecursionError):
        return None
    return said
