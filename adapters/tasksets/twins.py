"""Texts that are the same, or nearly: found by sketches of their word sequences; the cost grows with the texts."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from zlib import crc32

from attrs import frozen

_WORD = re.compile(r"\w+")
_RUN = 3  # words in a row that are compared
_SKETCH = 16  # Broder's sketch (1997): of texts that share .8 the smallest hash alone is the same in .8 of all pairs
_MOST_ALIKE = 40  # a sequence in more texts than this is a form, such as a heading, and says nothing
NEAR = 0.8  # two tasks of 29 words or more that differ in one word share so much


@frozen
class Twins:
    """Two texts by their names, and how much of their word sequences they share."""

    one: str
    other: str
    share: float


def twins_in(texts: Mapping[str, str], *, near: float = NEAR) -> Iterator[Twins]:
    """Pairs that share at least so much, each once; of many equal texts each beside the first."""
    sets = {name: _sequences(text) for name, text in texts.items()}
    holders: dict[int, list[str]] = defaultdict(list)
    firsts: dict[frozenset[int], str] = {}
    for name, found in sets.items():
        first = firsts.setdefault(found, name)
        if first != name:
            yield Twins(first, name, 1.0)
            continue
        sketch = sorted(found)[:_SKETCH]  # the smallest of their hashes: alike in texts that are alike
        seen = {other for each in sketch if len(holders[each]) <= _MOST_ALIKE for other in holders[each]}
        for other in sorted(seen):
            share = len(found & sets[other]) / len(found | sets[other])
            if share >= near:
                yield Twins(other, name, share)
        for each in sketch:
            holders[each].append(name)


def _sequences(text: str) -> frozenset[int]:
    words = _WORD.findall(text.casefold())
    if len(words) <= _RUN:
        return frozenset({crc32(" ".join(words).encode())})
    return frozenset(crc32(" ".join(words[at : at + _RUN]).encode()) for at in range(len(words) - _RUN + 1))
