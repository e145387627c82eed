"""Single values of a config: strict reading, what a key allows in words, and what must never be shown or recorded."""

from __future__ import annotations

import difflib
import re
from collections import abc
from collections.abc import Callable, Sequence
from typing import Literal, cast, get_args, get_origin

import attrs
import cattrs

from skillopt_es.events.values import Json

# At the end of a name only: `access_token` is a secret, `max_completion_tokens` is none.
SECRET_KEY = re.compile(r"(api_key|token|secret|password)$")
SECRET_HEADER = re.compile(r"authorization|api[-_]?key|token|secret|password|cookie", re.IGNORECASE)
HOLDS_SECRETS = re.compile(r"(api_key_env|extra_headers|extra_body)$")


def looks_like_a_key(text: str) -> bool:
    """Whether this cannot be an environment variable's name, or reads like something generated."""
    if not text or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", text):
        return bool(text)
    # A name of a variable is hardly so long, with digits, and in letters of both kinds.
    mixed = any(map(str.islower, text)) and (any(map(str.isupper, text)) or "_" not in text)
    return len(text) >= 20 and mixed and any(map(str.isdigit, text))


def may_hold_a_secret(address: str) -> bool:
    """Whether there is more to a URL than where it leads: user and password, a query, a fragment."""
    host = address.split("://", 1)[-1].split("/", 1)[0]
    return "@" in host or "?" in address or "#" in address


def is_blank(value: Json) -> bool:
    """Whether this is no value at all: absent, null, or a text of nothing."""
    return value is None or (isinstance(value, str) and not value.strip())


def shown(key: str, value: Json) -> str:
    hidden = SECRET_KEY.search(key) or HOLDS_SECRETS.search(key)
    return "a value that is not shown" if hidden else repr(value)


def same(value: Json, other: Json) -> bool:
    """Whether both are the same value of the same type: False equals 0."""
    return type(value) is type(other) and value == other


_MOST_NAMES = 40
"""So many names are listed in a hint; where there are more, the hint names the page of the documentation."""


def nearest(name: str, names: Sequence[str], section: str = "") -> str:
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    prefix = f"{section}." if section else ""
    if close:
        return f"did you mean {prefix}{close[0]}?"
    if len(names) > _MOST_NAMES:
        return f"docs/config.md lists the keys{f' of {section}' if section else ''}"
    return f"known: {', '.join(sorted(names))}"


def literals(kind: object) -> tuple[object, ...]:
    return get_args(kind) if get_origin(kind) is Literal else ()


_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}


def described(attribute: attrs.Attribute[object]) -> str:
    """What a key allows, in words."""
    kind = attribute.type
    optional = kind in (float | None, int | None, bool | None)
    low, high = attribute.metadata.get("low"), attribute.metadata.get("high")
    if "words" in attribute.metadata:
        words = str(attribute.metadata["words"])
    elif literals(kind):
        words = "one of " + ", ".join(str(value) for value in literals(kind))
    elif optional:
        words = _WORDS[cast(type, get_args(kind)[0])]
    elif kind == WORDS:
        words = "a list of words, a text with commas, or null"
    elif _is_choice(kind):
        words = f"a list with any of {', '.join(map(str, literals(get_args(kind)[0])))}"
    elif _is_mapping(kind):
        words = "a mapping of texts (in quotes)" if get_args(kind)[1] is str else "a mapping"
    else:
        words = _WORDS[cast(type, kind)]
    if low is not None:
        words = f"{words} of at least {low:g}" if high is None else f"{words} from {low:g} to {high:g}"
    return f"{words}, or null" if optional else words


def _exact(kind: type, *others: type) -> Callable[[object, object], object]:
    def structure(value: object, _: object) -> object:
        if type(value) is kind:
            return value
        if type(value) in others:
            return kind(value)
        raise ValueError(f"not {kind.__name__}")

    return structure


def _optional_float(value: object, _: object) -> float | None:
    if value is None:
        return None
    if type(value) in (int, float):
        return float(cast(float, value))
    raise ValueError("not a number")


def _optional_bool(value: object, _: object) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    raise ValueError("not true or false")


def _optional_int(value: object, _: object) -> int | None:
    if value is None or type(value) is int:
        return value
    raise ValueError("not a whole number")


WORDS = str | tuple[str, ...] | None


def _words(value: object, _: object) -> str | tuple[str, ...] | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        return tuple(value)
    raise ValueError("not words")


def _chosen(value: object, kind: object) -> object:
    allowed = literals(get_args(kind)[0])
    if isinstance(value, list) and all(word in allowed for word in value):
        return tuple(value)
    raise ValueError("not words of the list")


def _mapping(value: object, kind: object) -> object:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise ValueError("not a mapping")
    if get_args(kind)[1] is str and not all(isinstance(inner, str) for inner in value.values()):
        raise ValueError("not texts")
    return value


def _is_choice(kind: object) -> bool:
    """Whether it is any number of a few words."""
    return get_origin(kind) is tuple and bool(literals(get_args(kind)[0]))


def _is_mapping(kind: object) -> bool:
    origin: object = get_origin(kind)
    return origin is abc.Mapping


def _make_converter() -> cattrs.Converter:
    converter = cattrs.Converter(detailed_validation=False)
    converter.register_structure_hook(int, _exact(int))
    converter.register_structure_hook(float, _exact(float, int))
    converter.register_structure_hook(str, _exact(str))
    converter.register_structure_hook(bool, _exact(bool))
    converter.register_structure_hook_func(lambda kind: kind == float | None, _optional_float)
    converter.register_structure_hook_func(lambda kind: kind == int | None, _optional_int)
    converter.register_structure_hook_func(lambda kind: kind == bool | None, _optional_bool)
    converter.register_structure_hook_func(lambda kind: kind == WORDS, _words)
    converter.register_structure_hook_func(_is_choice, _chosen)
    converter.register_structure_hook_func(_is_mapping, _mapping)
    return converter


CONVERTER = _make_converter()
