"""
The inbox of a run: orders as small files in its folder, until the writer has followed or refused them.

Anybody who may write in the folder may give orders. An order is written whole or not at all, and read as strictly as a
log: what is no order is refused and said to be none.
"""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from attrs import asdict

from skillopt_es.engine.steering import Asked
from skillopt_es.events.faults import system_fault
from skillopt_es.events.plain import read_plain
from skillopt_es.events.strict import MISFITS, strict_converter
from skillopt_es.events.values import Json, Order

INBOX = "inbox"
_NAME = re.compile(r"[0-9]{1,20}-[0-9a-f]{8}")
_MOST_BYTES = 64 * 1024  # an order is a few lines; what else lies there is not read whole
_SHOWN = 80  # characters of a text in a line about it
_LOOK_EVERY = 0.2  # seconds: calls ask whether to pause far more often
_converter = strict_converter(detailed=False)


class Inbox:
    """The orders that wait in one run's folder."""

    def __init__(
        self,
        folder: Path,
        clock: Callable[[], float] = time.monotonic,
        told: Callable[[str], None] = lambda words: None,
    ) -> None:
        self._folder = folder / INBOX
        self._clock = clock
        self._told = told
        self._looked = float("-inf")
        self._pausing = False

    def waiting(self) -> Sequence[Asked]:
        """Those that can be read, in the order in which they were given."""
        found = [asked for path in self._files() if (asked := self._read(path)) is not None]
        self._looked, self._pausing = self._clock(), any(asked.order == "pause" for asked in found)
        return found

    def pausing(self) -> bool:
        """Whether one of them asks for a pause, as of a moment ago."""
        if self._clock() - self._looked >= _LOOK_EVERY:
            self.waiting()
        return self._pausing

    def followed(self, name: str) -> None:
        """It is in the log."""
        with suppress(OSError):
            self._file(name).unlink(missing_ok=True)
        with suppress(OSError):  # somebody may have put another one there meanwhile
            self._folder.rmdir()

    def refused(self, name: str, why: str) -> None:
        """It is put aside with the reason, for whoever gave it."""
        asked = self._said(name)
        self._told(f"{_named(asked)} was refused: {why}")
        with suppress(OSError):
            self._file(name).with_suffix(".refused").write_text(f"{why}\n{_named(asked)}", encoding="utf-8")
            self._file(name).unlink(missing_ok=True)

    def not_followed(self) -> Iterator[str]:
        """In words, the orders that wait, and those whose refusal was told to nobody yet; the first one first."""
        for path in self._files((".json", ".refused")):
            with suppress(OSError):
                if path.suffix == ".json":
                    yield f"{_named(self._said(path.stem))} waits"
                else:
                    why, _, named = read_plain(path).decode(errors="replace").partition("\n")
                    yield f"{named or _named(None)} was refused: {why}"

    def outcome(self, name: str) -> str | None:
        """Why an order was refused, empty if it was followed, None while it waits; a reason is told once."""
        if self._file(name).exists():  # it goes once the reason is written whole
            return None
        aside = self._file(name).with_suffix(".refused")
        if not aside.exists():
            return ""
        why = read_plain(aside).decode(errors="replace").partition("\n")[0]
        aside.unlink(missing_ok=True)
        return why or "it was refused"

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.json"

    def _files(self, kinds: Sequence[str] = (".json",)) -> list[Path]:
        try:
            names = [path for path in self._folder.iterdir() if path.suffix in kinds]
        except OSError:
            return []
        return sorted(names)

    def _read(self, path: Path) -> Asked | None:
        try:
            return _order_in(path)
        except FileNotFoundError:
            return None
        except (OSError, *_NO_ORDER):
            self.refused(path.stem, "this file is not an order")
            return None

    def _said(self, name: str) -> Asked | None:
        """An order as it was given; None for what cannot be read."""
        try:
            return _order_in(self._file(name))
        except (OSError, *_NO_ORDER):
            return None


_NO_ORDER = (ValueError, TypeError, RecursionError, *MISFITS)


def _order_in(path: Path) -> Asked:
    raw = read_plain(path)
    if not _NAME.fullmatch(path.stem) or len(raw) > _MOST_BYTES:
        raise ValueError("not an order")
    asked: Asked = _converter.structure({**json.loads(raw), "name": path.stem}, Asked)
    return asked


def _named(asked: Asked | None) -> str:
    """An order for people, in one line."""
    if asked is None:
        return "an order"
    limits = ", ".join(f"{key.removeprefix('budget.')} {value}" for key, value in asked.settings.items())
    what = " ".join(asked.text.split())[:_SHOWN] or limits
    return f"{asked.order}{f' ({what})' if what else ''}, ordered by {' '.join(asked.by.split())[:_SHOWN]},"


def leave(
    folder: Path, order: Order, *, by: str, why: str, text: str = "", settings: Mapping[str, Json] | None = None
) -> Asked:
    """Leaves an order for the writer of a run; raises SkillOptError where the folder cannot be written."""
    name = f"{time.time_ns():020d}-{secrets.token_hex(4)}"
    asked = Asked(name=name, order=order, by=by, why=why, text=text, settings=settings or {})
    said = {key: value for key, value in asdict(asked).items() if key != "name"}
    new = folder / INBOX / f".{name}"
    try:
        new.parent.mkdir(exist_ok=True)
        new.write_text(json.dumps(said), encoding="utf-8")
        new.replace(new.with_name(f"{name}.json"))
    except OSError as error:
        raise system_fault(error, folder / INBOX) from error
    return asked
