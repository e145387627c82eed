"""Families of items: tasks of one type, which one rule of a skill may turn all at once."""

from __future__ import annotations

from collections.abc import Mapping


def families_of(types: Mapping[str, str]) -> dict[str, str]:
    """
    The family of each item that has a type; no families where all have the same, or each its own.

    One family of all says nothing of what turns together: there is no other to tell it from.
    """
    typed = {item: kind for item, kind in types.items() if kind}
    kinds = set(typed.values())
    if len(kinds) == len(typed) or (len(kinds) == 1 and len(typed) == len(types)):
        return {}
    return typed
