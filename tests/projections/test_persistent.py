"""The ledger: an immutable insert-only map."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt_es.projections.persistent import Ledger


@given(st.lists(st.tuples(st.integers(0, 30), st.integers())))
def test_a_ledger_is_a_dict_that_never_changes(pairs: list[tuple[int, int]]) -> None:
    """Every version keeps what it had, whatever is put into later ones or beside them."""
    model: dict[int, int] = {}
    versions: list[tuple[Ledger[int, int], dict[int, int]]] = [(Ledger(), {})]
    for key, value in pairs:
        ledger, model = versions[key % len(versions)]
        if key in model:
            with pytest.raises(KeyError):
                ledger.put(key, value)
            continue
        versions.append((ledger.put(key, value), {**model, key: value}))
    for ledger, expected in versions:
        assert dict(ledger) == expected
        assert list(ledger) == list(expected)
        assert len(ledger) == len(expected)
        assert all((key in ledger) == (key in expected) for key in range(31))


def test_versions_that_grow_apart_do_not_mix() -> None:
    """Two branches from one version."""
    base = Ledger[str, int]().put("a", 1)
    left, right = base.put("b", 2), base.put("c", 3)
    assert (dict(base), dict(left), dict(right)) == ({"a": 1}, {"a": 1, "b": 2}, {"a": 1, "c": 3})
    assert "c" not in left
    with pytest.raises(KeyError):
        left["c"]
    assert left == base.put("b", 2)


def test_a_version_can_be_walked_while_a_newer_one_grows() -> None:
    """Its keys, values and items are those it had."""
    base = Ledger[str, int]().put("a", 1).put("b", 2)
    grown = base
    for number, (key, value) in enumerate(base.items()):
        grown = grown.put(f"{key}{number}", value)
    assert list(grown.items()) == [("a", 1), ("b", 2), ("a0", 1), ("b1", 2)]
    assert list(base) == ["a", "b"]
