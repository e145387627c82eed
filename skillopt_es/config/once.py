"""YAML in which no mapping has a key twice; by itself the parser lets the last one win and says nothing."""

from __future__ import annotations

from collections.abc import Hashable

import yaml


class GivenTwice(Exception):
    """A key that its mapping has already, and both lines."""

    def __init__(self, key: str, line: int, first: int) -> None:
        super().__init__(key)
        self.key, self.line, self.first = key, line, first


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
    """The value of a YAML text; raises GivenTwice, or what YAML raises."""
    return yaml.load(text, _Loader)  # noqa: S506 - a safe loader with one check more
