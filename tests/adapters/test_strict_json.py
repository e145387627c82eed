"""JSON as its standard has it."""

from __future__ import annotations

import pytest

from skillopt_es.adapters.strict_json import STRICT


def test_json_is_read() -> None:
    """Large and small numbers as Python has them."""
    assert STRICT.decode('{"a": [1e300, 1e-400, null]}') == {"a": [1e300, 0.0, None]}


@pytest.mark.parametrize("text", ["NaN", "[-Infinity]", '{"a": 1e999}'])
def test_what_python_alone_takes_is_refused(text: str) -> None:
    """As any other text that is no JSON."""
    with pytest.raises(ValueError, match=r"is not JSON|is too large"):
        STRICT.decode(text)
