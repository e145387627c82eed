"""`--until step 12`: two words after one option, for every command that names a moment of a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

F = TypeVar("F", bound=Callable[..., object])


class _Number(click.IntRange):
    name = "whole number"


def moment_option(flag: str, name: str, what: str) -> Callable[[F], F]:
    """An option that takes `step N`, `epoch N` or `seq N`."""
    return click.option(
        flag,
        name,
        type=(click.Choice(["step", "epoch", "seq"]), _Number(min=1)),
        default=None,
        metavar="step|epoch|seq N",
        help=what,
    )
