"""What two splits of the data have in common and should not: items, and inputs under different ids."""

from __future__ import annotations

from attrs import frozen

from skillopt_es.ports import Splits


@frozen
class Shared:
    """Ids in more than one split, and inputs in more than one split as `id (split) = id (split)`."""

    ids: tuple[str, ...]
    inputs: tuple[str, ...]


def shared(splits: Splits) -> Shared:
    """All that is shared, in the order of the data."""
    first_place: dict[str, str] = {}
    first_input: dict[str, tuple[str, str]] = {}
    ids: list[str] = []
    inputs: list[str] = []
    for name, items in (("train", splits.train), ("val", splits.val), ("test", splits.test)):
        for item in items:
            if first_place.setdefault(item.id, name) != name:
                ids.append(item.id)
            digest = splits.inputs.get(item.id)
            other, where = first_input.setdefault(digest, (item.id, name)) if digest else (item.id, name)
            if where != name:
                inputs.append(f"{item.id} ({name}) = {other} ({where})")
    return Shared(tuple(ids), tuple(inputs))
