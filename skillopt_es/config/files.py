"""One YAML file, or one value of the command line, as plain JSON; a mistake is named with its place and what to do."""

from __future__ import annotations

import math
import stat
from pathlib import Path
from typing import cast

import yaml

from skillopt_es.config.once import MOST_NODES, GivenTwice, TooLarge, load_once
from skillopt_es.config.sections import SECTIONS, Tree
from skillopt_es.config.values import shown
from skillopt_es.errors import ConfigError
from skillopt_es.events.codec import clean_text
from skillopt_es.events.values import Json

_LARGEST = 2**63 - 1  # what every reader of JSON and every table can hold


def read_yaml(file: Path) -> tuple[str, Tree]:
    """The file's name and what it says; raises ConfigError."""
    source = str(file)
    tree = _parsed(_text_of(file), source)
    _require_plain(tree, "", source)
    if tree is None:
        tree = {}
    if not isinstance(tree, dict) or not all(isinstance(key, str) for key in tree):
        raise ConfigError(f"{file}: a config is a mapping of sections ({', '.join(['model', *SECTIONS])})")
    return source, cast(Tree, tree)


def parsed_value(text: str, key: str) -> Json:
    """A value of the command line as YAML reads it; what is no YAML is text."""
    try:
        value = load_once(text)
    except yaml.YAMLError:
        return text
    except GivenTwice as twice:
        raise ConfigError(f"--set {key}: {twice.key} is there twice") from None
    except (TooLarge, RecursionError):
        raise ConfigError(f"--set {key}: a value with more than {MOST_NODES} parts") from None
    except ValueError:
        raise _unreadable(f"--set {key}") from None
    _require_plain(value, key, "--set")
    return cast(Json, value)


def _text_of(file: Path) -> str:
    try:
        kind = file.stat().st_mode
        if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):  # a device may have no end, a pipe no writer
            raise ConfigError(f"{file} is no plain file", hint="name a YAML file, such as config.yaml")
        return file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(f"{file}: no such config file", hint="`skillopt-es init DIR` writes one") from None
    except IsADirectoryError:
        raise ConfigError(f"{file} is a folder", hint=f"name the YAML file in it, such as {file}/config.yaml") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from None


def _parsed(text: str, source: str) -> object:
    try:
        return load_once(text)
    except RecursionError:
        raise ConfigError(f"{source}: nested too deeply, or within itself") from None
    except TooLarge:
        raise ConfigError(
            f"{source}: its references stand for more than {MOST_NODES} keys and values",
            hint="write out what is meant instead of referring to references (`*name`, `<<`)",
        ) from None
    except GivenTwice as twice:
        raise ConfigError(
            f"{source}, line {twice.line}: {twice.key} is there already, in line {twice.first}",
            hint="keep one of them: what stands below one would silently replace what stands below the other",
        ) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        raise ConfigError(f"{source}{where}: not valid YAML: {getattr(error, 'problem', error)}") from None
    except ValueError:
        raise _unreadable(source) from None


def _unreadable(source: str) -> ConfigError:
    return ConfigError(
        f"{source}: there is a number or a date in it that cannot be read",
        hint="a number has at most 19 digits; what is meant as text needs quotes",
    )


def _require_plain(value: object, key: str, source: str) -> None:
    """YAML also knows dates, bytes, infinities and keys of any type; a config is recorded as JSON."""
    try:
        _check_plain(value, key, source)
    except RecursionError:
        raise ConfigError(f"{source}: nested too deeply, or within itself") from None


def _check_plain(value: object, key: str, source: str) -> None:
    if isinstance(value, dict):
        for name, inner in value.items():
            if not isinstance(name, str):
                raise ConfigError(
                    f"{source}: {key} has the key {_short(name)}, but keys must be text", hint="put it in quotes"
                )
            _check_plain(inner, f"{key}.{name}" if key else name, source)
    elif isinstance(value, list):
        for inner in value:
            _check_plain(inner, key, source)
    elif isinstance(value, int) and abs(value) > _LARGEST:
        raise ConfigError(f"{source}: {key} is a number beyond {_LARGEST}", hint="what is meant as text needs quotes")
    elif not (value is None or isinstance(value, str | int | float)) or not _is_json(value):
        raise ConfigError(
            f"{source}: {key} is {shown(key, cast(Json, value))}, but must be text, a number, true, false or null",
            hint="put it in quotes" if not isinstance(value, str | float) else "",
        )


def _short(name: object) -> str:
    return "a large number" if isinstance(name, int) and abs(name) > _LARGEST else repr(name)


def _is_json(value: str | int | float | None) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return not isinstance(value, str) or value.isascii() or clean_text(value) == value
