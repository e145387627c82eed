"""Readable names for the things of a household: `mug 1` for `Mug_bar_…`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

_BAR = "_bar_"
_SIGNS = {"_minus_": "-", "_plus_": "+", "_dot_": ".", "_comma_": ","}


def readable_names(ids: Iterable[str]) -> Mapping[str, str]:
    """The name of each id, numbered per kind of thing from the highest down in the order of ids, as ALFWorld does."""
    known = sorted(set(ids))
    left = Counter(_kind(each) for each in known if _BAR in each)
    names: dict[str, str] = {}
    for each in known:
        kind = _kind(each)
        if _BAR in each:
            names[each] = f"{kind} {left[kind]}"
            left[kind] -= 1
        else:
            names[each] = f"{kind} "
    return names


def _kind(name: str) -> str:
    kind, bar, _ = name.partition(_BAR)
    for written, sign in _SIGNS.items():
        kind = kind.replace(written, sign)
    return f"{kind}basin" if bar and "basin" in name else kind
