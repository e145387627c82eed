"""`--max-cost`, `--max-tokens`, `--max-calls`, `--max-minutes`: the keys of `budget`, as options of a command."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeVar

import click

F = TypeVar("F", bound=Callable[..., object])


class Limit(click.ParamType[float]):
    """A number above 0."""

    def __init__(self, *, whole: bool) -> None:
        self.name = "whole number" if whole else "number"
        self._whole = whole

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number; fails with what is allowed."""
        try:
            number: float = int(str(value)) if self._whole else float(str(value))
        except ValueError:
            number = math.nan
        if not math.isfinite(number) or number <= 0:
            self.fail(f"{value} is not a {self.name} above 0", param, ctx)
        return number


_OPTIONS = {
    "max_minutes": ("Pause after so many minutes; what has started is finished.", False),
    "max_calls": ("Pause before more requests than this are sent.", True),
    "max_tokens": ("Pause before more tokens, in and out, are used.", True),
    "max_cost": ("Pause before more money is spent, in the currency of prices.unit.", False),
}


def budget_options(command: F) -> F:
    """The four options; what is left out is as the config says."""
    for name, (what, whole) in _OPTIONS.items():
        option = f"--{name.replace('_', '-')}"
        command = click.option(option, type=Limit(whole=whole), metavar="N", help=what)(command)
    return command


def budget_settings(given: Mapping[str, float | None]) -> tuple[str, ...]:
    """The options that were given, as settings of the config."""
    shown = {name: f"{value:f}" if isinstance(value, float) else value for name, value in given.items()}
    return tuple(f"budget.{name}={value}" for name, value in shown.items() if value is not None)
