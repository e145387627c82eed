"""
`skillopt-train` and `skillopt-eval`: the original's commands as ours, word by word.

They print the command that does the same here, and run it. What cannot be translated is refused with the reason.
"""

from __future__ import annotations

import difflib
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

import attrs
import click
from attrs import define, field

from skillopt_es.cli.main import main
from skillopt_es.cli.summary import write_best
from skillopt_es.cli.terminal import print_error
from skillopt_es.config.files import parsed_value
from skillopt_es.config.original import FATES, FLAT
from skillopt_es.config.sections import SECTIONS
from skillopt_es.events.errors import SkillOptError
from skillopt_es.events.schema import LOG_FILE
from skillopt_es.interchange.layout import BEST
from skillopt_es.sessions.session import read_state

Words = list[str]
Refusal = click.UsageError
_FLAGS: Mapping[str, str] = {**FLAT, "backend": "model.backend"}
_YES = ("true", "1", "yes")
_SWITCHES = ("enable_thinking", "full_auto", "network_access", "web_search", "trace_to_optimizer", "allow_all_tools")
_OF_BENCHMARKS = ("shuffle_choices", "use_theorem", "use_sketch")
_SECRET = re.compile(r"(api[-_]?key|token|secret|password)$", re.IGNORECASE)
_HIDDEN = re.compile(r"//[^/@\s]*@")


def train() -> NoReturn:
    """The original's `skillopt-train`."""
    _run(train_words, sys.argv[1:], "skillopt-train")


def evaluate() -> NoReturn:
    """The original's `skillopt-eval`."""
    _run(eval_words, sys.argv[1:], "skillopt-eval")


def _run(translate: Callable[[Sequence[str]], Words], words: Sequence[str], name: str) -> NoReturn:
    if not words or set(words) & {"-h", "--help"}:
        click.echo(_HELP.format(name=name, ours="run" if name == "skillopt-train" else "eval"))
        sys.exit(0)
    try:
        ours = translate(words)
    except Refusal as error:
        click.echo(f"error: {error.message}", err=True)
        sys.exit(2)
    except SkillOptError as error:  # a run folder that is named cannot be read
        print_error(error.message, error.hint)
        sys.exit(error.exit_code)
    click.echo(_HIDDEN.sub("//…@", f"skillopt-es {shlex.join(ours)}"), err=True)
    main(ours)


_HELP = """\
Usage: {name} --config FILE [--cfg-options KEY=VALUE …] [--FLAG VALUE …]

Takes the flags of the original's {name}, prints the command of skillopt-es that does the same, and runs it.
docs/original.md has what becomes of each flag; `skillopt-es {ours} --help` has what else there is."""


def train_words(words: Sequence[str]) -> Words:
    """The words of `skillopt-es` that train as these words of the original do; raises click.UsageError."""
    given = _Given.of(words)
    config = given.take("config")
    out = _out_root(given)
    if "skill" in given.values:
        raise Refusal("--skill is a flag of skillopt-eval: to begin with a skill, use --skill_init")
    if "split" in given.values:
        raise Refusal("--split is a flag of skillopt-eval: a training uses every split")
    if out is not None and (out / LOG_FILE).exists():
        if given.values or given.options:
            click.echo(
                f"note: {out} has begun, so it continues with the settings it began with; other flags are ignored",
                err=True,
            )
        return ["resume", out.name, "--dir", str(out.parent)]
    place = [] if out is None else ["--run", out.name, "--dir", str(out.parent)]
    return ["run", config, *given.settings(), *place]


def eval_words(words: Sequence[str]) -> Words:
    """The words of `skillopt-es` that score as these words of the original do; raises click.UsageError."""
    given = _Given.of(words)
    config, skill = given.take("config"), _own_best(given.take("skill"))
    split = given.values.pop("split", None)
    out = _out_root(given)
    limit = given.values.pop("test_env_num", "0")
    few = ["--limit", limit] if limit != "0" and split not in (None, "all") else []
    which = [] if split is None else ["--split", split]
    place = [] if out is None else ["--dir", str(out)]
    return ["eval", config, "--skill", skill, *which, *few, *given.settings(), *place]


def _own_best(said: str) -> str:
    """The file of a skill; `best_skill.md` of a run folder of ours is the main file in its `best/`."""
    file = Path(said)
    if file.name != BEST or file.exists() or not (file.parent / LOG_FILE).exists():
        return said
    state = read_state(file.parent)
    if state is None:
        raise Refusal(f"--skill {said}: {file.parent} stopped before it began, so it has no best skill")
    ours = write_best(state, file.parent)
    click.echo(f"note: {file.parent} is a run of skillopt-es, whose best skill is {ours}", err=True)
    return str(ours)


@define
class _Given:
    """The flags that were given, each with its value, and the options behind `--cfg-options`."""

    values: dict[str, str] = field(factory=dict)
    options: list[str] = field(factory=list)

    @classmethod
    def of(cls, words: Sequence[str]) -> _Given:
        """What the words say; the original's parser takes a value after a blank or an equals sign."""
        given, rest = cls(), list(words)
        while rest:
            word = rest.pop(0)
            name, equals, value = word.removeprefix("--").partition("=")
            if not word.startswith("--") or not name:
                raise Refusal(f"{word}: flags begin with --, and each takes one value")
            if name in ("cfg-options", "cfg_options"):
                given.options += [value] if equals else []
                while rest and not rest[0].startswith("--"):
                    given.options.append(rest.pop(0))
                continue
            if not equals:
                if not rest:
                    raise Refusal(f"--{name} takes a value")
                value = rest.pop(0)
            given.values[_known(name)] = value
        return given

    def take(self, name: str) -> str:
        """A flag that has to be there."""
        if name not in self.values:
            raise Refusal(f"--{name} is missing")
        return self.values.pop(name)

    def settings(self) -> Words:
        """Everything else, as settings of a config; `--cfg-options` first, as there."""
        found: Words = []
        for option in self.options:
            key, equals, _ = option.partition("=")
            if not equals:
                raise Refusal(f"--cfg-options {key}: write it as section.key=value")
            _refuse_secret(f"--cfg-options {key}", key.strip(), FLAT.get(key.strip(), key.strip()))
            found += ["--set", option]
        for name, value in self.values.items():
            key = _FLAGS[name]
            _refuse_secret(f"--{name}", name, key)
            fate = FATES.get(key)
            if fate is not None and fate.ignored:
                click.echo(f"note: --{name} is left out: {fate.ignored}", err=True)
                continue
            found += ["--set", f"{key}={_as_yaml(key, value)}"]
        return found


_MORE = ("config", "skill", "split")


def _known(name: str) -> str:
    if name in _FLAGS or name in _MORE:
        return name
    close = difflib.get_close_matches(name, [*_FLAGS, *_MORE], n=1)
    raise Refusal(f"there is no flag --{name}" + (f"; did you mean --{close[0]}?" if close else ""))


def _refuse_secret(said: str, name: str, key: str) -> None:
    if not _SECRET.search(name):
        return
    own = FATES[key].secret if key in FATES else ""
    variable, more = (own, "") if own else ("MY_KEY", " and write model.api_key_env: MY_KEY")
    raise Refusal(
        f"{said}: a key on a command line is seen by everybody on this machine; `export {variable}=…`{more} instead"
    )


def _out_root(given: _Given) -> Path | None:
    """The folder of the result; as in the original, a flag comes after an option."""
    keys = ("env.out_root=", "out_root=")
    options = [option for option in given.options if option.startswith(keys)]
    given.options = [option for option in given.options if not option.startswith(keys)]
    said = given.values.pop("out_root", options[-1].partition("=")[2] if options else "")
    return Path(said) if said else None


def _as_yaml(key: str, value: str) -> str:
    """A value as `--set` reads it: yes and no as the original reads them, and text stays text."""
    section, _, name = key.partition(".")
    kind = attrs.fields_dict(SECTIONS[section])[name].type if section in SECTIONS and name in _fields(section) else None
    if kind is bool or name.endswith(_SWITCHES) or name in _OF_BENCHMARKS:
        return "true" if value.lower() in _YES else "false"
    text = kind is str or (section == "model" and name in ("optimizer", "target"))
    return f"'{value}'" if text and value and not isinstance(parsed_value(value, key), str) else value


def _fields(section: str) -> tuple[str, ...]:
    return tuple(attribute.name for attribute in attrs.fields(SECTIONS[section]))
