"""
One YAML file, or one value of the command line, as plain JSON; a mistake is named with its place and what to do.

By itself the parser lets the last of two equal keys win and says nothing, and follows a few lines of references to
references for hours: here no key is there twice, and nothing grows without end when it is read.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from pathlib import Path
from typing import cast

import yaml

from skillopt_es.config.sections import SECTIONS, Tree
from skillopt_es.config.values import shown
from skillopt_es.errors import ConfigError
from skillopt_es.events.plain import NotPlainError, TooLargeError, read_plain, similar_file
from skillopt_es.events.values import Json, clean_text

MOST_BYTES = 10_000_000  # a file of gigabytes that was named by mistake would be read whole into memory
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
        raise ConfigError(f"--set {key}: {twice.key} is given twice") from None
    except (TooLarge, RecursionError):
        raise ConfigError(f"--set {key}: a value with more than {MOST_NODES} parts") from None
    except ValueError:
        raise _unreadable(f"--set {key}") from None
    _require_plain(value, key, "--set")
    return cast(Json, value)


def _text_of(file: Path) -> str:
    try:
        # A config may be a link, and some editors begin it with a byte order mark.
        return read_plain(file, follow=True, most=MOST_BYTES).decode("utf-8-sig")
    except FileNotFoundError:
        meant = similar_file(file) or "`skillopt-es init DIR` writes one"
        raise ConfigError(f"{file}: no such config file", hint=meant) from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: not UTF-8 text (byte {error.start})") from None
    except TooLargeError as error:
        raise ConfigError(f"{file} {error.strerror}", hint="a config is a YAML file of some lines") from None
    except OSError as error:
        if file.is_dir():
            hint = f"name the YAML file in it, such as {file}/config.yaml"
            raise ConfigError(f"{file} is a folder", hint=hint) from None
        if isinstance(error, NotPlainError):  # a device may have no end, a pipe no writer
            raise ConfigError(f"{file} is not a plain file", hint="name a YAML file, such as config.yaml") from None
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from None


def _parsed(text: str, source: str) -> object:
    try:
        return load_once(text)
    except RecursionError:
        raise ConfigError(f"{source}: nested too deeply, or within itself") from None
    except TooLarge:
        raise ConfigError(
            f"{source}: its references expand to more than {MOST_NODES} keys and values",
            hint="write the values out instead of nesting references (`*name`, `<<`)",
        ) from None
    except GivenTwice as twice:
        raise ConfigError(
            f"{source}, line {twice.line}: {twice.key} was given already, in line {twice.first}",
            hint="keep one of them: the second would silently replace the first",
        ) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        raise ConfigError(f"{source}{where}: not valid YAML: {getattr(error, 'problem', error)}") from None
    except ValueError:
        raise _unreadable(source) from None


def _unreadable(source: str) -> ConfigError:
    return ConfigError(
        f"{source}: it has a number or a date that cannot be read",
        hint="a number has at most 19 digits; put text in quotes",
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
        raise ConfigError(f"{source}: {key} is a number beyond {_LARGEST}", hint="put text in quotes")
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


MOST_NODES = 100_000
"""Keys and values in all, each reference counted as what it stands for."""


class GivenTwice(Exception):
    """A key that its mapping has already, and both lines."""

    def __init__(self, key: str, line: int, first: int) -> None:
        super().__init__(key)
        self.key, self.line, self.first = key, line, first


class TooLarge(Exception):
    """References to references make this text more than anybody would write."""


class _Loader(yaml.SafeLoader):
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, object]:
        """The mapping; raises GivenTwice. Keys that come in by `<<` may be given anew, that is what it is for."""
        seen: dict[str, int] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag == "tag:yaml.org,2002:merge":
                continue
            line = key.start_mark.line + 1
            if key.value in seen:
                raise GivenTwice(key.value, line, seen[key.value])
            seen[key.value] = line
        return super().construct_mapping(node, deep=deep)


def load_once(text: str) -> object:
    """The value of a YAML text; raises GivenTwice, TooLarge, or what YAML raises (ValueError for a number, too)."""
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        if _size(node, {}) > MOST_NODES:
            raise TooLarge
        return loader.construct_document(node)
    finally:
        loader.dispose()


def _size(node: yaml.Node, known: dict[int, int]) -> int:
    """How many nodes this one stands for; one that contains itself is left to whoever reads its value."""
    if id(node) in known:
        return known[id(node)]
    known[id(node)] = 1  # until all of it is counted
    inside: list[yaml.Node] = []
    if isinstance(node, yaml.MappingNode):
        inside = [each for pair in node.value for each in pair]
    elif isinstance(node, yaml.SequenceNode):
        inside = node.value
    known[id(node)] = 1 + sum(_size(each, known) for each in inside)
    return known[id(node)]
