"""
The root of every error a user can meet, and those of the log.

Each class is a different thing for the user to do; `hint` says what. All errors are drawn as one tree in
`skillopt_es/errors.py`.
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

    def __init__(self, message: str) -> None:
        super().__init__(message, hint="a newer version wrote it; use a newer skillopt-es")


class WrongExpectedSeq(LogError):
    """Somebody else appended since we last looked."""

    def __init__(self, *, expected: int, actual: int) -> None:
        why = "another writer appended to it" if actual > expected else "what was to come before was not written"
        super().__init__(f"the log is at event {actual}, not at {expected}: {why}")
        self.expected = expected
        self.actual = actual


class RunBusy(LogError):
    """Another process is writing this run; `host`, `pid` and `start` say which, as far as it told."""

    def __init__(self, message: str, *, host: str = "", pid: int = 0, start: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint or "wait until it ends, or stop it")
        self.host = host
        self.pid = pid
        self.start = start


class RunNotFound(LogError):
    """There is no such run."""

    exit_code = 2


class RunExists(LogError):
    """There is a run already where a new one should begin."""

    exit_code = 2


class TextErased(LogError):
    """A text that is needed was erased on purpose."""


class InvalidEvent(LogError):
    """An event or a call does not fit its own schema and could not be read back, so nothing of it was written."""


class LogUnreadable(LogError):
    """The disk, or the system, refuses to read; nothing says that what was written is not there."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message, hint=hint or "check the disk's health and permissions; copy the run elsewhere")


class LogUnwritable(LogError):
    """The disk is full, read-only or broken; nothing that was committed is lost."""
