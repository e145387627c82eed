"""Which graders look at an item's answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TypeVar

from attrs import frozen

from skillopt_es.adapters.environments.data import RawItem
from skillopt_es.adapters.environments.tasks.checks import read_checks
from skillopt_es.adapters.environments.tasks.choices import choice, read_choices
from skillopt_es.adapters.environments.tasks.commands import command_graders
from skillopt_es.adapters.environments.tasks.fields import json_fields
from skillopt_es.adapters.environments.tasks.judging import judge_grader
from skillopt_es.adapters.environments.tasks.numbers import number, read_tolerance
from skillopt_es.adapters.environments.tasks.options import (
    BUILT_IN_NAMES,
    BuiltIn,
    Command,
    SingleGrader,
    TaskOptions,
)
from skillopt_es.adapters.environments.tasks.patterns import regex
from skillopt_es.adapters.environments.tasks.rubrics import Criterion, read_rubric
from skillopt_es.adapters.environments.tasks.user_code import Fields, python_graders
from skillopt_es.adapters.environments.tasks.verdicts import (
    Attempt,
    Grader,
    GraderError,
    Key,
    Verdict,
    passing,
    verdict_of,
)
from skillopt_es.adapters.environments.tasks.words import contains, exact, f1, normalized
from skillopt_es.errors import DataError, SettingRefused
from skillopt_es.events.values import Json

T = TypeVar("T")
REPORTED = "reported"
"""The grader of agents that grade themselves: it takes the score that comes with the answer."""
JUDGE = "judge"
"""The grader that asks a model."""
CHECKS = "checks"
"""The grader that an item's own `checks` are for."""

_BUILT_IN: Mapping[str, Callable[[Key], Grader]] = {
    "exact": exact,
    "normalized": normalized,
    "contains": contains,
    "regex": regex,
    "choice": choice,
    "number": number,
    "f1": f1,
    "json": json_fields,
}


@frozen
class _Part:
    """One of the config's graders; `make` is None for one that is part of this package."""

    name: str
    weight: float
    make: Callable[[Fields], Grader] | None


class Graders:
    """Makes the grader of each item, from the options and from what the item itself says."""

    def __init__(self, options: TaskOptions, folder: Path) -> None:
        self._options = options
        if options.grader_files and not any(isinstance(grader, Command) for grader, _ in options.graders):
            raise SettingRefused(
                "env.grader_files",
                " are for a grader that is a command",
                hint="leave them out, or set env.grader: command:…",
            )
        self._parts = [_part(grader, weight, options, folder) for grader, weight in options.graders]

    def of(self, raw: RawItem) -> tuple[str, Grader]:
        """The name of an item's grader, and the grader; raises DataError when the item cannot be graded."""
        own = raw.fields.get("grader")
        mine = [part for part in self._parts if part.name == own] or (self._parts if not own else [])
        found = [(part.name, part.weight, self._of_part(raw, part)) for part in mine] or [self._named(raw, own)]
        name = " + ".join(dict.fromkeys(name for name, _, _ in found))
        if len(found) > 1:
            return name, _Several(tuple(found), self._options.pass_score)
        grader = found[0][2]
        score = self._options.pass_score
        return name, grader if score is None else _Passing(grader, score)

    def _rubric(self, raw: RawItem) -> tuple[Criterion, ...]:
        return _own(raw, "rubric", read_rubric, self._options.rubric)

    def _of_part(self, raw: RawItem, part: _Part) -> Grader:
        return part.make(raw.fields) if part.make is not None else self._named(raw, part.name)[2]

    def _named(self, raw: RawItem, name: Json) -> tuple[str, float, Grader]:
        """A grader that is part of this package."""
        if name == REPORTED:
            return REPORTED, 1.0, _reported
        if name == JUDGE:
            return JUDGE, 1.0, judge_grader(raw, self._options, self._rubric(raw))
        if name == CHECKS:
            return CHECKS, 1.0, _checks_of(raw)
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
            return name, 1.0, _BUILT_IN[name](key)
        except ValueError as error:
            raise raw.refusal(f"`expected` {error}", f"correct it, or choose another grader than {name}") from error


def _checks_of(raw: RawItem) -> Grader:
    try:
        return read_checks(raw.fields.get("checks"))
    except ValueError as error:
        raise raw.refusal(f"`checks` {error}", "docs/tasks.md lists the kinds of checks") from error


def _part(grader: SingleGrader, weight: float, options: TaskOptions, folder: Path) -> _Part:
    if isinstance(grader, BuiltIn):
        return _Part(grader.name, weight, None)
    if isinstance(grader, Command):
        return _Part("command", weight, command_graders(grader, options, folder))
    return _Part("python", weight, python_graders(grader, folder, options.timeout))


@frozen
class _Passing:
    """Another grader, whose soft score says from where on an answer is solved."""

    grader: Grader
    score: float

    async def __call__(self, attempt: Attempt) -> Verdict:
        return passing(await self.grader(attempt), self.score)


@frozen
class _Several:
    """Several graders: soft is their weighted mean; solved is what all call solved, or what reaches the threshold."""

    parts: tuple[tuple[str, float, Grader], ...]
    pass_score: float | None

    async def __call__(self, attempt: Attempt) -> Verdict:
        """The verdict of all; one that gives no grade leaves the answer without one."""
        verdicts = [(name, weight, await self._graded(name, grader, attempt)) for name, weight, grader in self.parts]
        whole = math.fsum(weight for _, weight, _ in verdicts)
        soft = min(1.0, math.fsum(weight * each.soft for _, weight, each in verdicts) / whole)
        note = "; ".join(f"{name} {each.soft:.2f}{f': {each.note}' if each.note else ''}" for name, _, each in verdicts)
        codes = [each.code for _, _, each in verdicts if each.code]
        found = Verdict(min(each.hard for _, _, each in verdicts), soft, note, codes[0] if codes else "")
        return found if self.pass_score is None else passing(found, self.pass_score)

    async def _graded(self, name: str, grader: Grader, attempt: Attempt) -> Verdict:
        try:
            return await grader(attempt)
        except GraderError as error:
            raise GraderError(f"{name}: {error}", code=error.code) from error


async def _reported(attempt: Attempt) -> Verdict:
    """The score that the agent gave itself."""
    if attempt.reported is None:
        raise GraderError("the agent reported no score of its own")
    return verdict_of(attempt.reported)


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
