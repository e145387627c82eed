"""
All errors of the product as one tree, and those of the trainer and its adapters.

A command that ends by one exits with 1 unless a number is given here. Where no module is named, the error is defined
below; those of the log are all in the module of LogError.

SkillOptError                what a user can act on: one sentence, and a hint of the next step (events.errors)
├── ConfigError              a key, a value or a file of the configuration (exit 2)
│   ├── SettingRefused       an adapter cannot work with one of its settings (exit 2)
│   └── OrderRefused         an order to a run that cannot be followed (exit 2; engine.steering)
├── DataError                the user's tasks or skill file (exit 2)
├── BackendError             a model or harness that cannot be used: key, model name, quota, endpoint
├── Divergence               the journal holds another request for this place
│   └── CassetteMiss         a cassette has no answer to this request
├── ReplayMismatch           recorded evidence leads to another decision than the recorded one
├── CassetteDamaged          a file that is no cassette, or not the one that was written (exit 2)
├── NotInRun                 a moment, event, call or skill that this run does not have (exit 2)
├── OutputRefused            a file that was asked for exists already or cannot be written (exit 2)
├── BudgetReached            what may be used is used up (exit 3)
├── AwaitingAnswers          questions wait for answers from outside (exit 3)
├── Interrupted              the user asked to stop (exit 130)
├── NotChecked               a command started by the page said neither what is right nor what is wrong (ui.starting)
├── Refused                  a request to the page that may not be done (exit 2; ui.safety)
└── LogError                 something about the run's log (events.errors)
    ├── LogDamaged           the file is not what was written
    ├── LogTooNew            written by a newer version of this software
    ├── WrongExpectedSeq     another writer has appended since we last looked
    ├── RunBusy              another process is writing this run
    ├── RunNotFound          there is no run of that name here (exit 2)
    ├── RunExists            there is one already where a new one should begin (exit 2)
    ├── TextErased           a text that is needed was erased on purpose
    ├── InvalidEvent         an event or a call that could not be read back, so it was not written
    ├── LogUnreadable        the disk reports an error: what is in the log cannot be known now
    └── LogUnwritable        the disk is full, read-only or broken

CallFailed                   one call to a model has no answer, after all tries that make sense (ports.chat)
└── AttemptLost              an agent that worked elsewhere is gone with its worker (ports.chat)

NotStarted                   no error: a call was not started, for the run is stopping (ports.chat)

Unanswered                   no error: questions wait for answers from outside (ports.chat)

A call that failed says of which kind. `adapters.models.errors` tells the kinds apart, and which are tried again:
config, auth, quota (every later call would fail too: BackendError, and the run pauses), rate_limit, server, transport,
timeout, context_length, empty, invalid_reply, bad_request, crash (this call alone: its attempt is not measured).
"""

from __future__ import annotations

from collections.abc import Iterable

from skillopt_es.events.errors import SkillOptError

__all__ = [
    "AwaitingAnswers",
    "BackendError",
    "BudgetReached",
    "CassetteDamaged",
    "CassetteMiss",
    "ConfigError",
    "DataError",
    "Divergence",
    "Interrupted",
    "NotInRun",
    "OutputRefused",
    "ReplayMismatch",
    "SettingRefused",
    "SkillOptError",
    "extra_hint",
    "first_of",
]


def extra_hint(extra: str) -> str:
    """How to install an extra: our name is not registered on the package index, so its owner could be anybody."""
    return f"in the checkout, `pip install '.[{extra}]'` installs it; with a wheel, `pip install 'FILE.whl[{extra}]'`"


class ConfigError(SkillOptError):
    """
    The configuration cannot be used; the message names file, key and what is allowed.

    `others` are further mistakes that were found beside it.
    """

    exit_code = 2
    others: tuple[ConfigError, ...] = ()


def first_of(mistakes: Iterable[ConfigError]) -> ConfigError:
    """The first of these mistakes, which knows the others; what two places have found counts once."""
    flat = (each for mistake in mistakes for each in (mistake, *mistake.others))
    first, *others = {each.message: each for each in flat}.values()
    first.others = tuple(others)
    return first


class SettingRefused(ConfigError):
    """
    A setting that an adapter cannot work with.

    An adapter knows the `key` of its setting and how configs mostly spell it, but not where it was written.
    """

    def __init__(self, key: str, said: str, *, spelled: str = "", hint: str = "") -> None:
        self.spelled = spelled or key
        super().__init__(f"{self.spelled}{said}", hint=hint)
        self.key = key

    @property
    def said(self) -> str:
        """What the message says after the name of the setting."""
        return self.message[len(self.spelled) :]


class DataError(SkillOptError):
    """The items, splits or the skill file cannot be used."""

    exit_code = 2


class BackendError(SkillOptError):
    """A model cannot be used at all (key, name, quota, endpoint): the run pauses instead of learning from it."""

    def __init__(
        self, message: str, *, kind: str, status: int | None = None, request_id: str = "", hint: str = ""
    ) -> None:
        super().__init__(message, hint=hint)
        self.kind = kind
        self.status = status
        self.request_id = request_id


class Divergence(SkillOptError):
    """The journal holds an answer for this place of the algorithm, but to another request."""


class CassetteMiss(Divergence):
    """A cassette has no answer to what is asked; the message names the place and what is different."""


class ReplayMismatch(SkillOptError):
    """Recorded evidence leads to another decision than the one that was recorded."""

    def __init__(self, message: str, *, seq: int, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.seq = seq


class CassetteDamaged(SkillOptError):
    """A file that is not there, is no cassette, or is not what was written."""

    exit_code = 2


class NotInRun(SkillOptError):
    """The run does not have (or does not yet have) the moment, event, call or skill that was asked for."""

    exit_code = 2


class OutputRefused(SkillOptError):
    """A file that was asked for exists already, or the system refuses to write it."""

    exit_code = 2


class BudgetReached(SkillOptError):
    """A budget (by its `key` in a config) does not cover the next call; everything that was answered is recorded."""

    exit_code = 3

    def __init__(self, message: str, *, key: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.key = key


class AwaitingAnswers(SkillOptError):
    """Everything that can be asked is asked, and the answers come from outside."""

    exit_code = 3


class Interrupted(SkillOptError):
    """The user asked to stop; everything finished is recorded."""

    exit_code = 130
