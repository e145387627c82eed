"""The words that data use for their splits, read as one of our three."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from skillopt_es.events.values import Split

_CERTAIN: Mapping[str, Split] = {
    "train": "train",
    "training": "train",
    "val": "val",
    "valid": "val",
    "validation": "val",
    "dev": "val",
    "development": "val",
    "selection": "val",
    "valid_seen": "val",
    "test": "test",
    "testing": "test",
    "valid_unseen": "test",
}
_EITHER = ("eval", "evaluation", "held-out", "held_out", "heldout", "holdout")
"""For some these are what candidates are judged by, for others what is left for the end: the other words tell."""

SPLIT_WORDS = (*_CERTAIN, *_EITHER)


def split_words(words: Iterable[str]) -> dict[str, Split]:
    """
    The split that each of a data set's words means, in lower case; a word that is not in it means none.

    Beside a word for validation, `eval` and `held-out` are the test; otherwise they are what there is to validate. Two
    such words in one data set, or one beside both others, mean none.
    """
    known = {word.lower() for word in words} & {*SPLIT_WORDS}
    found = {word: _CERTAIN[word] for word in known if word in _CERTAIN}
    either, certain = known - found.keys(), {*found.values()}
    if len(either) == 1 and not {"val", "test"} <= certain:
        found[either.pop()] = "test" if "val" in certain else "val"
    return found
