"""Hypothesis strategies for every event, made from the annotations of its class."""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from skillopt_es.events.catalog import Event

_FLOATS = st.floats(allow_nan=False, allow_infinity=False)
_LONG = st.builds(lambda letter, count: letter * count, st.characters(codec="utf-8"), st.integers(1000, 5000))
_TEXT = st.text(max_size=12) | st.sampled_from(["", "$blob", "\\ud800", '"$blob":', "\x00", "\u2028"]) | _LONG
_KEYS = st.text(max_size=6) | st.sampled_from(["$blob", "$$blob", "$$$blob", "kind"])
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | _FLOATS | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=3),
    max_leaves=6,
)
_PLAIN: dict[object, st.SearchStrategy[Any]] = {
    str: _TEXT,
    int: st.integers(),
    bool: st.booleans(),
    float: _FLOATS,
    type(None): st.none(),
}


def instances(kind: type[Event]) -> st.SearchStrategy[Event]:
    """Any event of a class."""
    return _attrs(kind)


def _attrs(kind: type) -> st.SearchStrategy[Any]:
    hints = get_type_hints(kind)
    return st.builds(kind, **{field.name: _of(hints[field.name]) for field in kind.__attrs_attrs__})  # type: ignore[attr-defined]


def _of(kind: Any) -> st.SearchStrategy[Any]:
    if kind in _PLAIN:
        return _PLAIN[kind]
    origin, arms = get_origin(kind), get_args(kind)
    if origin is Literal:
        return st.sampled_from(arms)
    if origin is tuple:
        return st.lists(_of(arms[0]), max_size=3).map(tuple)
    if origin is Mapping:
        return st.dictionaries(_KEYS, _of(arms[1]), max_size=3)
    if origin in (Union, types.UnionType):
        return _JSON if any(get_origin(arm) is dict for arm in arms) else st.one_of(*map(_of, arms))
    return _attrs(kind)
