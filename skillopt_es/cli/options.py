"""Options and arguments that several commands share."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import click

from skillopt_es.runs.folders import USUAL

OFFLINE_DEMO = "This is the offline demo: both models are simulated, no key and no network are used."
"""Said where nobody names a config."""

CONFIG = "config.yaml"

F = TypeVar("F", bound=Callable[..., object])


_SHAPED_LIKE_AN_OPTION = re.compile(r"--[A-Za-z][\w-]*(=.*)?|-\w\S*", re.DOTALL)


class TextCommand(click.Command):
    """A command that takes a text, such as a line of a skill: one that begins with a dash is a text, too."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Reads the arguments as any command does, once options and texts are told apart."""
        return super().parse_args(ctx, _options_first(args, self.get_params(ctx)))


def _options_first(args: Sequence[str], params: Sequence[click.Parameter]) -> list[str]:
    """The arguments with all options and their values in front, and a mark behind which nothing is an option."""
    options = [each for each in params if isinstance(each, click.Option)]
    takes = {name: 0 if each.is_flag or each.count else each.nargs for each in options for name in each.opts}
    takes |= {name: 0 for each in options for name in each.secondary_opts}
    found, texts, waiting = list[str](), list[str](), list(args)
    while waiting:
        word = waiting.pop(0)
        if word == "--":
            texts += waiting
            break
        name, given, _ = word.partition("=")
        if word in takes:
            found += [word, *waiting[: takes[word]]]
            del waiting[: takes[word]]
        elif (given and name in takes) or _SHAPED_LIKE_AN_OPTION.fullmatch(word):
            found.append(word)
        else:
            texts.append(word)
    return [*found, "--", *texts]


def config_here(other: str = "; `--demo demo` takes the bundled demo") -> Path | None:
    """The config of the current folder, for a command that is given none; says so. None where there is none."""
    from skillopt_es.cli.terminal import tell

    if not os.path.lexists(CONFIG):  # a pipe, a folder or a link to nowhere is an error of its own, and not the demo
        return None
    tell("note", f"{CONFIG} of this folder is used{other}")
    return Path(CONFIG)


def place_option(usual: Path, what: str, flag: str = "--dir", name: str = "directory") -> Callable[[F], F]:
    """`--dir`: where folders of a kind are."""
    kind = click.Path(path_type=Path, file_okay=False)
    return click.option(flag, name, type=kind, default=usual, show_default=True, help=what)


def which_option(*skills: str, what: str = "Which skill.") -> Callable[[F], F]:
    """`--which`: a skill of the run, by its name there; the best one when left out."""
    return click.option("--which", type=click.Choice(skills), default="best", show_default=True, help=what)


def config_named(config: Path | None, demo: str | None) -> Path | None:
    """The file of a CONFIG or a --demo, or else the config of the current folder; None for the bundled demo."""
    from skillopt_es.config import demo_config

    if config is not None and demo is not None:
        raise click.UsageError("give a CONFIG or a --demo, not both")
    return config or config_here() if demo is None else demo_config(demo)


def directory_option(command: F) -> F:
    """`--dir`: where the run folders are."""
    return place_option(USUAL, "Where the run folders are.")(command)


def set_option(what: str) -> Callable[[F], F]:
    """`--set`: a config key with another value."""
    return click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help=what)


def json_option(command: F) -> F:
    """`--json`: for programs."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")(command)


def run_argument(command: F) -> F:
    """RUN: a name or a folder; the newest run when left out."""
    return click.argument("run", required=False, shell_complete=complete_run)(command)


def complete_run(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """The runs whose names begin like this, for a shell that completes one."""
    from skillopt_es.runs.folders import run_folders

    names = [folder.name for folder in run_folders(Path(ctx.params.get("directory") or USUAL))]
    return [name for name in names if name.startswith(incomplete)]


class _Number(click.IntRange):
    name = "whole number"


class _MomentOption(click.Option):
    """An option of two words: `step 12`."""


def moments_apart(command: click.Command, words: Sequence[str]) -> list[str]:
    """The words after a command, with a moment in quotes as its two words; raises UsageError for a bare number."""
    flags = {flag for each in command.params if isinstance(each, _MomentOption) for flag in each.opts}
    found: list[str] = []
    for word in words:
        after = found[-1] if found and found[-1] in flags else ""
        if after and word.isdecimal():
            raise click.UsageError(
                f"{after} {word} is a number of what? Write {after} step {word}, epoch {word} or seq {word}"
            )
        found += word.split() if after and _is_moment(word) else [word]
    return found


def moment_option(flag: str, name: str, what: str) -> Callable[[F], F]:
    """An option that takes `step N`, `epoch N` or `seq N`."""
    return click.option(
        flag,
        name,
        cls=_MomentOption,
        type=(click.Choice(["step", "epoch", "seq"]), _Number(min=1)),
        default=None,
        metavar="step|epoch|seq N",
        help=what,
    )


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
    "max_calls": ("Pause before more requests than this are sent; `search` plans with them and ends, complete.", True),
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


def two_words(words: Sequence[str]) -> list[str]:
    """Arguments as words: who quotes a moment (`"step 12"`) means the two words."""
    return [part for word in words for part in (word.split() if _is_moment(word) else [word])]


def _is_moment(word: str) -> bool:
    parts = word.split()
    return len(parts) == 2 and parts[0] in ("step", "epoch", "seq", "event", "candidate")
