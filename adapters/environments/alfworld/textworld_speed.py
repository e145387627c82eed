"""
Makes TextWorld's grammar fast: what it parses anew at every step is parsed once.

TextWorld parses each command's template, and copies all it knows for each word of a text, at every step; with the forty
receptacles of a real game that is most of its time. It is patched in the child process of a game only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import lru_cache
from types import ModuleType
from typing import Any, cast

_REMEMBERED = 4096  # more texts than a game has templates and names, so that none is parsed twice

_Context = Mapping[str, Any]


def quicken(textgen: ModuleType) -> None:
    """Patch TextWorld's text generator, which does the same as before."""
    parse = cast(Callable[..., list[object]], textgen._parse_and_convert)
    rules = textgen.Rule

    @lru_cache(maxsize=_REMEMBERED)
    def parsed(text: str, rule: str) -> list[object]:
        return parse(text, rule_name=rule)

    def parse_once(text: str, rule_name: str, **_: object) -> list[object]:
        return deepcopy(parsed(text, rule_name))  # symbols are given their context after they were parsed

    def copied(context: _Context) -> dict[str, Any]:
        own = {"variables": dict(context["variables"]), "mapping": dict(context["mapping"])}
        return {**context, **own}

    class Rules(rules):  # type: ignore[misc,valid-type]
        parse_conjunctive_query = staticmethod(lru_cache(maxsize=_REMEMBERED)(rules.parse_conjunctive_query))

    for name, ours in (("_parse_and_convert", parse_once), ("copy_context", copied), ("Rule", Rules)):
        setattr(textgen, name, ours)
