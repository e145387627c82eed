"""
The errors of the trainer and its adapters; those of the log are in `skillopt_es.events.errors`.

SkillOptError
├── ConfigError        a key, a value or a file of the configuration (exit 2)
│   └── SettingRefused an adapter cannot work with one of its settings
├── DataError          the user's items or skill file (exit 2)
├── BackendError       a model or harness that cannot be used: key, model name, quota, endpoint
├── Divergence         the journal holds another request for this place
│   └── CassetteMiss   a cassette has no answer to this request
├── ReplayMismatch     recorded evidence leads to another decision than the recorded one
├── CassetteDamaged    a file that is no cassette, or not the one that was written (exit 2)
├── NotInRun           a moment, event, call or skill that this run does not have (exit 2)
├── OutputRefused      a file that was asked for exists already or cannot be written (exit 2)
├── BudgetReached      what may be used is used up (exit 3)
├── AwaitingAnswers    questions wait for answers from outside (exit 3)
└── Interrupted        the user asked to stop (exit 130)
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
