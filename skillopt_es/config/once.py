"""
YAML as a config may have it: no key twice in a mapping, and nothing that grows without end when it is read.

By itself the parser lets the last of two keys win and says nothing, and follows a few lines of references to references
for hours.
"""

from __future__ import annotations

from collections.abc import Hashable

import yaml

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
