"""Which types of tasks belong together: those whose tasks all share a word that most other types lack. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

_WORD = re.compile(r"\w{3,}")


def families(tasks: Iterable[tuple[str, str]]) -> Mapping[str, str]:
    """
    For each type that has one the word that names its family, from tasks with their types.

    Each of a type's tasks has it, at least one other type has it as well, and fewer than half of all types do.
    """
    common: dict[str, set[str]] = {}
    for kind, task in tasks:
        if kind:
            words = set(_WORD.findall(task.lower()))
            common[kind] = common[kind] & words if kind in common else words
    types = Counter(word for words in common.values() for word in words)
    found = {}
    for kind, words in common.items():
        shared = [word for word in words if types[word] > 1 and 2 * types[word] < len(common)]
        if shared:
            found[kind] = max(shared, key=lambda word: (types[word], word))
    return found
