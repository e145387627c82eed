"""OfficeQA's answers: the original's comparison bit for bit, and the one that knows numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt_es.adapters.environments.officeqa.evaluator import Grade, grade, normalise_upstream


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("$1,234.5 million", "1234.5"),
        ("(2,000)", "2000"),
        ("3.5%", "3.5%"),
        ("-12", "-12"),
        ("Million Dollar Bond", "bond"),
        ("1.5 trillion", "1.5 trillion"),
        ("U.S. Savings Bonds", "u.s. savings bonds"),
        ("", ""),
    ],
)
def test_texts_become_what_the_original_makes_of_them(text: str, normal: str) -> None:
    """Vectors computed with it."""
    assert normalise_upstream(text) == normal


@pytest.mark.parametrize(
    ("got", "gold", "skillopt", "extended"),
    [
        ("5 million", "5 billion", 1, 0),
        ("1,234.0", "1234", 0, 1),
        ("$5.", "5", 0, 1),
        ("12%", "12", 0, 1),
        ("12%", "12 percent", 0, 1),
        ("[1, 2]", "1 2", 1, 1),
        ("(5)", "5", 1, 1),
        ("3.50", "3.5", 0, 1),
        ("−12", "-12", 0, 1),
        ("-12", "12", 0, 0),
        ("5 million", "5,000,000", 0, 1),
        ("5 million", "5", 1, 1),
        ("0.5 billion", "500 million", 0, 1),
        ("5 thousand", "5 trillion", 0, 0),
        ("12% ", "12 million", 0, 0),
        ("1,2", "12", 1, 0),
        ("1939-40", "1939 40", 0, 1),
        ("March 1939", "march, 1939", 1, 1),
        ("March 1939", "May 1939", 0, 0),
        ("1 2 3", "1 2", 0, 0),
        ("2 1", "1 2", 0, 0),
        ("Q3", "3", 0, 0),
        ("$ -3.0", "-3", 0, 1),
        ("", "0", 0, 0),
    ],
)
def test_the_two_ways_to_compare(got: str, gold: str, skillopt: int, extended: int) -> None:
    """What is right in one may be wrong in the other; both are the same whichever comes first."""
    assert (grade(got, gold, "skillopt").right, grade(got, gold, "extended").right) == (skillopt, extended)
    assert grade(gold, got, "skillopt").right == skillopt
    assert grade(gold, got, "extended").right == extended


def test_soft_is_token_f1() -> None:
    """Empty against empty is 1, and words count as often as they stand."""
    assert grade("savings bonds", "U.S. savings bonds", "skillopt").f1 == pytest.approx(0.8)
    assert grade("million", "dollars", "skillopt") == Grade(True, 1.0)
    assert grade("3.50 and 4", "3.5 4", "extended").f1 == pytest.approx(0.8)
    assert grade("x", "dollars", "extended") == Grade(False, 0.0)


@given(st.text(max_size=40), st.text(max_size=40))
def test_grades_are_bounded_and_a_right_answer_has_all_of_soft(got: str, gold: str) -> None:
    """Whatever the texts."""
    for scoring in ("skillopt", "extended"):
        found = grade(got, gold, scoring)  # type: ignore[arg-type]
        assert 0 <= found.f1 <= 1
        assert found.f1 == 1 or not found.right
        assert grade(gold, gold, scoring) == Grade(True, 1.0)  # type: ignore[arg-type]
