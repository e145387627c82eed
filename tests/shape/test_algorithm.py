"""An algorithm is small: what one of them alone needs lives in it, and is no field of all."""

from __future__ import annotations

from shape.numbers import algorithm_fields

_MOST, _MOST_IN_A_BUNDLE = 12, 5


def test_an_algorithm_has_few_fields() -> None:
    """Those of a value that is one of its fields count, too: a bundle hides none."""
    found = algorithm_fields()
    assert found.pop("Algorithm") <= _MOST
    assert found.keys() == {"Words", "Plan", "Commands", "GatePolicy"}
    assert {name: count for name, count in found.items() if count > _MOST_IN_A_BUNDLE} == {}
