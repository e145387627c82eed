"""
The root of every error a user can meet, and those of the log.

SkillOptError
├── LogError
│   ├── LogDamaged          the file is not what was written
│   ├── LogTooNew           written by a newer version of this software
│   ├── WrongExpectedSeq    somebody else appended since we last looked
│   ├── RunBusy             another process is writing this run
│   ├── RunNotFound         there is no run of that name here
│   └── LogUnwritable       disk full, read-only, i/o error
└── (skillopt_es.errors adds the others)

Each class is a different thing for the user to do; `hint` says what.
"""

from __future__ import annotations


class SkillOptError(Exception):
    """Anything a user can act on; `str()` is one sentence, `hint` the next step."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class LogError(SkillOptError):
    """Something about the run's log."""


class LogDamaged(LogError):
    """The log is not what was written."""

    def __init__(self, message: str, *, seq: int | None = None, hint: str = "") -> None:
        super().__init__(message, hint=hint or "run `skillopt-es verify` to see how far the log can be trusted")
        self.seq = seq


class LogTooNew(LogError):
    """The log was written by a newer version of this software."""


class WrongExpectedSeq(LogError):
    """Somebody else appended since we last looked."""

    def __init__(self, *, expected: int, actual: int) -> None:
        super().__init__(f"the log is at event {actual}, not at {expected}: another writer appended to it")
        self.expected = expected
        self.actual = actual


class RunBusy(LogError):
    """Another process is writing this run."""


class RunNotFound(LogError):
    """There is no such run."""

    exit_code = 2


class LogUnwritable(LogError):
    """The disk is full, read-only or broken; nothing that was committed is lost."""
