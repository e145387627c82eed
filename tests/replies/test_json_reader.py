"""The tolerant reader: finds the object a model meant, never guesses where a cut one would have ended."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt_es.replies.json_reader import Unusable, read_object


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}',
        'Sure! Here it is:\n```json\n{"a": 1}\n```\nHope it helps {not json}.',
        'first {op: delete} then {"a": 1}',
        '{"a": 1,}',
        'thinking about {x}\n{"a": 1}',
        '```\n{"a": 1}\n```',
    ],
)
def test_an_object_is_found_among_prose(text: str) -> None:
    """Fenced, bare, after prose with braces, with a trailing comma."""
    assert read_object(text) == {"a": 1}


def test_strings_keep_their_braces_commas_and_line_breaks() -> None:
    """Repairs touch nothing inside a string."""
    assert read_object('{"a": "x,] } {", "b": [1,],}') == {"a": "x,] } {", "b": [1]}
    assert read_object('{"a": "one\ntwo"}') == {"a": "one\ntwo"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("no object here", "no JSON object at all"),
        ('{"a": [1, 2', "cut off"),
        ('{"a": "never closed', "cut off"),
        ("{a: 1}", "no valid JSON"),
        ("[1, 2]", "no JSON object at all"),
        ("", "no JSON object at all"),
    ],
)
def test_what_cannot_be_read_says_why(text: str, why: str) -> None:
    """In words that can go back to the model."""
    found = read_object(text)
    assert isinstance(found, Unusable)
    assert why in found.why


def test_not_a_number_becomes_null() -> None:
    """NaN and Infinity never reach a score or an event."""
    assert read_object('{"a": NaN, "b": -Infinity}') == {"a": None, "b": None}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), json_values), st.text(alphabet="abc \n.,:"))
def test_any_object_survives_being_wrapped_in_prose(value: dict[str, object], prose: str) -> None:
    """What a model could write is read back as it is."""
    assert read_object(f"{prose}{json.dumps(value)}{prose}") == value


@given(st.text())
def test_no_text_makes_the_reader_raise(text: str) -> None:
    """Anything is either an object or Unusable."""
    assert isinstance(read_object(text), dict | Unusable)


@pytest.mark.parametrize("text", ["{" * 100_000, '{"' * 50_000, '{"a": "' + '\\"' * 100_000, "{x}" * 20_000])
def test_hostile_text_is_read_to_its_end(text: str) -> None:
    """Deep nesting and many quotes neither overflow nor hang the reader."""
    assert isinstance(read_object(text), Unusable)
