"""
A cattrs converter that takes every value exactly as its annotation says and never guesses.

cattrs' defaults turn None into 'None', 3.9 into 3 and a text into a tuple of letters, and drop keys they do not know;
each of these would be a fact that never happened. A union of outcomes is tagged with its `kind`; a call is named by a
pair, slot and digest.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from typing import Literal, Union, cast, get_args, get_origin

from cattrs import Converter
from cattrs.errors import BaseValidationError, ForbiddenExtraKeysError
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override
from cattrs.v import transform_error

from skillopt_es.events.values import CallRef, Failed, Measured, NotRun, Outcome

Plain = dict[str, object]
Structure = Callable[[object, object], object]
Unstructure = Callable[[object], object]

# What any of the hooks below, or the functions cattrs generates, raise for a value that does not fit.
MISFIT = (TypeError, ValueError, KeyError, AttributeError, OverflowError, RecursionError, BaseValidationError)
MISFITS = (*MISFIT, ForbiddenExtraKeysError)

_KINDS: Mapping[str, type[Measured | Failed | NotRun]] = {"measured": Measured, "failed": Failed, "not_run": NotRun}
_NAMES = {"int": "a whole number", "bool": "true or false"}


def strict_converter(*, detailed: bool) -> Converter:
    """A converter with all exact-type hooks; `detailed` ones are slower and can say which field did not fit."""
    converter = Converter(detailed_validation=detailed, forbid_extra_keys=True)
    for exact in (int, bool):
        converter.register_structure_hook(exact, _exact(exact))
    converter.register_structure_hook(str, _text)
    converter.register_structure_hook(float, _number)
    converter.register_structure_hook_factory(_is_literal, _literal)
    converter.register_structure_hook_factory(_is_mapping, lambda kind: _mapping(kind, converter))
    converter.register_structure_hook_factory(_is_tuple, lambda kind: _tuple(kind, converter))
    converter.register_structure_hook_func(_is_json, lambda value, _: _json(value))
    converter.register_unstructure_hook_factory(_is_mapping, lambda kind: _plain_mapping(kind, converter))
    converter.register_unstructure_hook_factory(_is_tuple, lambda kind: _plain_list(kind, converter))
    converter.register_unstructure_hook_func(_is_json, lambda value: value)
    converter.register_structure_hook(CallRef, _call_ref)
    converter.register_unstructure_hook(CallRef, _plain_call_ref)
    _register_outcome(converter)
    return converter


def explain(error: BaseException) -> str:
    """Where and why a detailed converter refused a value, in one line."""
    if isinstance(error, BaseValidationError):
        return "; ".join(transform_error(error, path="payload", format_exception=_sentence))
    return _sentence(error, None)


def _sentence(error: BaseException, _type: type | None) -> str:
    if isinstance(error, KeyError):
        return f"{error} is missing"
    return str(error) or type(error).__name__


def _exact(wanted: type) -> Structure:
    expected = _NAMES[wanted.__name__]

    def hook(value: object, _: object) -> object:
        if type(value) is wanted:
            return value
        raise TypeError(f"must be {expected}, not {value!r:.80}")

    return hook


def _number(value: object, _: object) -> object:
    if type(value) is float:
        return value
    if type(value) is int:
        return float(value)
    raise TypeError(f"must be a number, not {value!r:.80}")


def _literal(kind: object) -> Structure:
    allowed = frozenset(get_args(kind))

    def hook(value: object, _: object) -> object:
        if type(value) is str and value in allowed:
            return value
        raise ValueError(f"must be one of {', '.join(sorted(allowed))}, not {value!r:.80}")

    return hook


def _is_literal(kind: object) -> bool:
    origin: object = get_origin(kind)
    return origin is Literal


def _is_json(kind: object) -> bool:
    return (get_origin(kind) in (Union, types.UnionType)) and any(get_origin(arm) is dict for arm in get_args(kind))


def _is_mapping(kind: object) -> bool:
    return get_origin(kind) is Mapping


def _is_tuple(kind: object) -> bool:
    arms = get_args(kind)
    return get_origin(kind) is tuple and len(arms) == 2 and arms[1] is Ellipsis


def _json(value: object) -> object:
    """The value itself when it is what a JSON text gives."""
    if value is None or type(value) in (str, int, float, bool):
        return value
    if type(value) is list:
        for item in value:
            _json(item)
    elif type(value) is dict:
        for key, item in value.items():
            _require_text(key)
            _json(item)
    else:
        raise TypeError(f"must be plain JSON, not {value!r:.80}")
    return value


def _require_text(value: object) -> None:
    if not isinstance(value, str):  # a place is text, too
        raise TypeError(f"must be text, not {value!r:.80}")


def _text(value: object, _: object) -> object:
    if not isinstance(value, str):  # here, too, for most fields of most events are texts
        _require_text(value)
    return value


def _mapping(kind: object, converter: Converter) -> Structure:
    inner = get_args(kind)[1]
    hook = converter.get_structure_hook(inner)

    def structure(value: object, _: object) -> object:
        if type(value) is not dict:
            raise TypeError(f"must be a mapping, not {value!r:.80}")
        for key in value:
            _require_text(key)
        return {key: hook(item, inner) for key, item in value.items()}

    return structure


def _tuple(kind: object, converter: Converter) -> Structure:
    inner = get_args(kind)[0]
    hook = converter.get_structure_hook(inner)

    def structure(value: object, _: object) -> object:
        if type(value) is not list:
            raise TypeError(f"must be a list, not {value!r:.80}")
        return tuple([hook(item, inner) for item in value])

    return structure


def _plain_mapping(kind: object, converter: Converter) -> Unstructure:
    inner = get_args(kind)[1]
    hook: Unstructure = converter.get_unstructure_hook(inner)

    def unstructure(value: object) -> object:
        if not isinstance(value, Mapping):
            raise TypeError(f"must be a mapping, not {value!r:.80}")
        return {key: hook(item) for key, item in value.items()}

    return unstructure


def _plain_list(kind: object, converter: Converter) -> Unstructure:
    inner = get_args(kind)[0]
    hook: Unstructure = converter.get_unstructure_hook(inner)

    def unstructure(value: object) -> object:
        if not isinstance(value, tuple | list):
            raise TypeError(f"must be a tuple, not {value!r:.80}")
        return [hook(item) for item in value]

    return unstructure


def _call_ref(value: object, _: object) -> CallRef:
    if type(value) is not list or len(value) != 2 or not (isinstance(value[0], str) and isinstance(value[1], str)):
        raise TypeError(f"must be the slot and digest of a call, not {value!r:.80}")
    return CallRef(value[0], value[1])


def _plain_call_ref(value: object) -> object:
    # Thousands of events name a call; a pair takes half the bytes of an object with keys.
    return [value.slot, value.digest] if type(value) is CallRef else value


def _register_outcome(converter: Converter) -> None:
    # A failure has a `kind` of its own, which is called `error` on the wire: there, `kind` is the tag.
    renamed = override(rename="error")
    converter.register_structure_hook(Failed, make_dict_structure_fn(Failed, converter, kind=renamed))
    converter.register_unstructure_hook(Failed, make_dict_unstructure_fn(Failed, converter, kind=renamed))
    readers = {tag: (converter.get_structure_hook(kind), kind) for tag, kind in _KINDS.items()}
    writers: dict[type, tuple[str, Unstructure]] = {
        kind: (tag, converter.get_unstructure_hook(kind)) for tag, kind in _KINDS.items()
    }

    def structure(value: object, _: object) -> object:
        if type(value) is not dict:
            raise TypeError(f"must be an outcome, not {value!r:.80}")
        if len(value) == 3 and value.get("kind") == "measured":  # most of a long log
            hard, soft = value.get("hard"), value.get("soft")
            if type(hard) is type(soft) is float:
                return Measured(hard, soft)
        fields = value.copy()
        tag = fields.pop("kind", "")
        if type(tag) is not str or tag not in readers:
            raise ValueError(f"must be an outcome of a known kind, not {tag!r:.80}")
        hook, kind = readers[tag]
        return hook(fields, kind)

    def unstructure(value: object) -> object:
        if type(value) not in writers:
            raise TypeError(f"must be an outcome, not {value!r:.80}")
        tag, hook = writers[type(value)]
        fields = cast("Plain", hook(value))
        fields["kind"] = tag
        return fields

    converter.register_structure_hook_func(lambda kind: kind == Outcome, structure)
    converter.register_unstructure_hook_func(lambda kind: kind == Outcome, unstructure)
