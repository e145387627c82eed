"""
Which modules of ours one call to a model enters: `python -m tests.shape.way_of_a_call` prints them, and how many.

A small run of the command is traced against an endpoint on loopback. Its steps have one task each, so that no other
call is under way. The way of a call has three legs: from the question to the answer that the journal holds (`asked`),
to the event that names it (`read`), and until this event is folded and durable (`recorded`). A module counts once one
of its functions is called for this call, in the event loop or in the log's thread. Two things are not counted: values
and errors (`BY_THE_WAY`), and what observers do, who only look on.
"""

from __future__ import annotations

import contextlib
import dis
import io
import os
import sys
import tempfile
import threading
from collections.abc import Mapping
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from unittest import mock

from attrs import define, field, frozen

sys.path.insert(0, str(Path(__file__).parent.parent))

from support.project import KEY, KEY_NAME, Endpoint, Project, demo_rows, plain_config

from skillopt_es.cli.main import main as command
from skillopt_es.engine.calls import LiveCalls
from skillopt_es.engine.loop import Trainer
from skillopt_es.engine.observers import Observers
from skillopt_es.events.writer import RunWriter

ROOT = Path(__file__).parent.parent.parent
TOPS = ("skillopt_es", "events", "projections", "adapters")
BY_THE_WAY = (
    "events/places.py",
    "events/values.py",
    "skillopt_es/errors.py",
    "skillopt_es/logs.py",
    "skillopt_es/ports/",
)
# The question about the second step's only attempt, and that attempt: by then every connection is open.
OPTIMIZER, TARGET = "e1/s2/b0/success-0", "e1/s2/b0/item/date-01"
LEGS = ("asked", "read", "recorded")


@frozen
class Way:
    """The modules that a call enters on each leg, by their paths; without those that are there by the way."""

    legs: Mapping[str, frozenset[str]]

    @property
    def modules(self) -> frozenset[str]:
        """Those of all legs."""
        return frozenset().union(*self.legs.values())


@cache
def _start(code: CodeType) -> int:
    """Where a function begins; a coroutine that waited and continues is further on."""
    return next((each.offset for each in dis.get_instructions(code) if each.opname == "RESUME"), 0)


def _begins(frame: FrameType, kind: str) -> bool:
    return kind == "call" and frame.f_lasti <= _start(frame.f_code)


def _ends(frame: FrameType, kind: str) -> bool:
    """Whether a function returns; a coroutine that waits leaves its frame, too."""
    code, at = frame.f_code, frame.f_lasti
    return kind == "return" and at > _start(code) and dis.opname[code.co_code[at]].startswith("RETURN")


_ASK, _APPEND = LiveCalls.ask.__code__, Trainer.append.__code__
_TELL, _COMMIT = Observers._each.__code__, RunWriter._commit.__code__


@define
class _Tracer:
    """
    Follows a call from its question on, in the context of the task that asks, and of the tasks that this begins.

    The log's thread has no such context: what it commits meanwhile is the call's own, for no other one is under way.
    """

    names: Mapping[str, str]
    ways: dict[str, dict[str, set[str]]] = field(factory=dict)
    leg: dict[str, str] = field(factory=dict)
    here: ContextVar[str] = field(factory=lambda: ContextVar("slot", default=""))
    commits: bool = False
    tells: bool = False

    def __call__(self, frame: FrameType, kind: str, _: object) -> None:
        """What the interpreter calls for each function that is entered or left."""
        code = frame.f_code
        if code is _ASK:
            self._asks(frame, kind)
        elif code is _APPEND:
            self._appends(frame, kind)
        elif code is _COMMIT:
            self.commits = kind == "call"
        elif code is _TELL:
            self._told(kind)
        if self.leg and _begins(frame, kind) and code.co_filename in self.names:
            self._entered(self.names[code.co_filename])

    def _asks(self, frame: FrameType, kind: str) -> None:
        slot = frame.f_locals["request"].slot
        if _begins(frame, kind) and slot not in self.ways:
            self.here.set(slot)
            self.leg[slot] = "asked"
            self.ways[slot] = {leg: set() for leg in LEGS}
        elif _ends(frame, kind):
            self.leg[slot] = "read"

    def _appends(self, frame: FrameType, kind: str) -> None:
        """An event that names the call is folded here, and committed by a task that begins here."""
        for slot in {ref.slot for event in frame.f_locals["events"] for ref in getattr(event, "calls", ())}:
            if _begins(frame, kind) and slot in self.leg:
                self.here.set(slot)
                self.leg[slot] = "recorded"
            elif _ends(frame, kind):
                self.here.set("")

    def _told(self, kind: str) -> None:
        self.tells = kind == "call"
        slot = self.here.get()
        if self.tells and self.leg.get(slot) == "recorded":
            del self.leg[slot]  # observers are told of an event once it is durable

    def _entered(self, name: str) -> None:
        if threading.current_thread() is threading.main_thread():
            slots = [] if self.tells else [self.here.get()]
        else:
            slots = list(self.leg) if self.commits else []
        for slot in slots:
            if slot in self.leg and not name.startswith(BY_THE_WAY):
                self.ways[slot][self.leg[slot]].add(name)


def ways() -> Mapping[str, Way]:
    """The way of a question to the optimizer and of a call to the target, by their slots."""
    tracer = _Tracer({str(file): str(file.relative_to(ROOT)) for top in TOPS for file in (ROOT / top).rglob("*.py")})
    before = sys.getprofile()
    with tempfile.TemporaryDirectory() as folder, Endpoint().server as server:
        _project(Path(folder), server.base_url)
        with mock.patch.dict(os.environ, {KEY_NAME: KEY}), contextlib.redirect_stdout(io.StringIO()):
            threading.setprofile(tracer)
            sys.setprofile(tracer)
            try:
                command(["run", f"{folder}/config.yaml", "--dir", f"{folder}/runs", "--name", "one", "--quiet"])
            except SystemExit as ended:
                if ended.code:
                    raise
            finally:
                sys.setprofile(before)
                threading.setprofile(None)
    return {
        slot: Way({leg: frozenset(names) for leg, names in tracer.ways[slot].items()}) for slot in (OPTIMIZER, TARGET)
    }


def _project(folder: Path, base_url: str) -> None:
    """Two steps of one task each, with a budget, and one call at a time."""
    most = {"train": 2, "val": 2, "test": 1}
    rows = [row for split, few in most.items() for row in [r for r in demo_rows() if r["split"] == split][:few]]
    Project(folder, plain_config(base_url), rows=rows).set(
        train={"num_epochs": 1, "batch_size": 1},
        gradient={"minibatch_size": 1, "analyst_workers": 1},
        env={"workers": 1},
        budget={"max_calls": 300},
    )


def main() -> None:
    """Prints the modules of each leg, and how many there are."""
    for slot, way in ways().items():
        print(f"{slot}: {len(way.modules)} modules")
        for leg, names in way.legs.items():
            print(f"  {leg}: {len(names)}")
            print("\n".join(f"    {name}" for name in sorted(names)))


if __name__ == "__main__":
    main()
