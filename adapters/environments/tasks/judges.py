"""Which judge grades an item."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TypeVar

from skillopt_es.adapters.environments.data import RawItem
from skillopt_es.adapters.environments.tasks.choices import choice, read_choices
from skillopt_es.adapters.environments.tasks.commands import command_judges
from skillopt_es.adapters.environments.tasks.fields import json_fields
from skillopt_es.adapters.environments.tasks.numbers import number, read_tolerance
from skillopt_es.adapters.environments.tasks.options import BUILT_IN_NAMES, BuiltIn, Command, TaskOptions
from skillopt_es.adapters.environments.tasks.patterns import regex
from skillopt_es.adapters.environments.tasks.user_code import Fields, python_judges
from skillopt_es.adapters.environments.tasks.verdicts import GraderError, Judge, Key, Verdict
from skillopt_es.adapters.environments.tasks.words import contains, exact, f1, normalized
from skillopt_es.errors import DataError, SettingRefused
from skillopt_es.events.values import Json

T = TypeVar("T")
REPORTED = "reported"
"""The grader of agents that grade themselves: it takes the score that comes with the answer."""

_BUILT_IN: Mapping[str, Callable[[Key], Judge]] = {
    "exact": exact,
    "normalized": normalized,
    "contains": contains,
    "regex": regex,
    "choice": choice,
    "number": number,
    "f1": f1,
    "json": json_fields,
}


class Judges:
    """Makes the judge of each item, from the options and from what the item itself says."""

    def __init__(self, options: TaskOptions, folder: Path) -> None:
        self._options = options
        self._user_code: Callable[[Fields], Judge] | None = None
        grader = options.grader
        if isinstance(grader, BuiltIn):
            self._default = grader.name
        elif isinstance(grader, Command):
            self._default = "command"
            self._user_code = command_judges(grader, options, folder)
        else:
            self._default = "python"
            self._user_code = python_judges(grader, folder, options.timeout)
        if options.grader_files and not isinstance(grader, Command):
            raise SettingRefused(
                "env.grader_files",
                " are for a grader that is a command",
                hint="leave them out, or set env.grader: command:…",
            )

    def of(self, raw: RawItem) -> tuple[str, Judge]:
        """The name of an item's grader and its judge; raises DataError when the item cannot be graded."""
        name = raw.fields.get("grader") or self._default
        if name == self._default and self._user_code is not None:
            return self._default, self._user_code(raw.fields)
        if name == REPORTED:
            return REPORTED, _not_asked
        if not isinstance(name, str) or name not in _BUILT_IN:
            raise _unknown_grader(raw, name)
        if "expected" not in raw.fields:
            raise raw.refusal("`expected` is missing", f'the {name} grader needs it: "expected": …')
        key = Key(
            expected=raw.fields["expected"],
            choices=_own(raw, "choices", read_choices, self._options.choices),
            tolerance=_own(raw, "tolerance", read_tolerance, self._options.tolerance),
            timeout=self._options.timeout,
        )
        try:
            return name, _BUILT_IN[name](key)
        except ValueError as error:
            raise raw.refusal(f"`expected` {error}", f"correct it, or choose another grader than {name}") from error


async def _not_asked(answer: str) -> Verdict:
    """In place of a judge, where the agent has graded itself."""
    raise GraderError("the agent reported no score of its own")


def _own(raw: RawItem, key: str, read: Callable[[Json], T], default: T) -> T:
    """What the item itself says under a key, else the default."""
    value = raw.fields.get(key)
    if value is None:
        return default
    try:
        return read(value)
    except ValueError as error:
        raise raw.refusal(f"`{key}` {error}", f"correct it, or leave it out to use env.{key}") from error


def _unknown_grader(raw: RawItem, name: Json) -> DataError:
    kind = str(name).partition(":")[0]
    if isinstance(name, dict) or kind in ("python", "command"):
        # Data comes from anywhere; it must not be able to choose code to run.
        return raw.refusal("only the config can name a python or command grader", "set env.grader")
    near = get_close_matches(str(name), BUILT_IN_NAMES, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(BUILT_IN_NAMES)}"
    return raw.refusal(f"unknown grader {name!r}", hint)
