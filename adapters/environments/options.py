"""Reading an environment's own keys under `env:` into its attrs class of options."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import TypeVar

from attrs import AttrsInstance, fields

from skillopt_es.errors import ConfigError, SettingRefused, first_of
from skillopt_es.events.values import Json
from skillopt_es.ports import EnvironmentSettings

T = TypeVar("T", bound=AttrsInstance)

Parse = Callable[[Json], object]


def parsed_by(parse: Parse) -> Mapping[str, Parse]:
    """Field metadata that says how an option is read; `parse` raises ValueError with what is allowed."""
    return {"parse": parse}


def read_options(kind: type[T], settings: EnvironmentSettings) -> T:
    """The options as typed values; unknown keys and wrong values are a SettingRefused that names the first of them."""
    known = {each.name: each for each in fields(kind)}
    values: dict[str, object] = {}
    mistakes: list[ConfigError] = []
    for key, given in settings.options.items():
        if key not in known:
            hint = _nearest(key, known, settings)
            said = f": environment {settings.name!r} has no such option"
            mistakes.append(SettingRefused(f"env.{key}", said, hint=hint))
        elif given is not None:
            try:
                values[key] = known[key].metadata["parse"](given)
            except ValueError as error:
                mistakes.append(SettingRefused(f"env.{key}", f": {error}, not {given!r}"))
    if mistakes:
        raise first_of(mistakes)
    return kind(**values)


def text(value: Json) -> str:
    """The value, when it is text."""
    if not isinstance(value, str):
        raise ValueError("must be text")
    return value


def yes_or_no(value: Json) -> bool:
    """The value, when it is true or false."""
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def one_of(*names: str) -> Parse:
    """The value, when it is one of these names."""

    def parse(value: Json) -> str:
        if not isinstance(value, str) or value not in names:
            raise ValueError(f"must be one of {', '.join(names)}")
        return value

    return parse


def positive_int(value: Json) -> int:
    """The value, when it is a whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError("must be a whole number of at least 1")
    return value


def non_negative_int(value: Json) -> int:
    """The value, when it is a whole number of at least 0."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError("must be a whole number of at least 0")
    return value


def positive_number(value: Json) -> float:
    """The value, when it is a finite number above 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
        raise ValueError("must be a number above 0")
    return float(value)


def _nearest(key: str, known: Mapping[str, object], settings: EnvironmentSettings) -> str:
    near = get_close_matches(key, [*settings.shared_keys, *known], n=1, cutoff=0.5)
    guess = f"did you mean env.{near[0]}? " if near else ""
    return f"{guess}it knows: {', '.join(sorted(known))}"
